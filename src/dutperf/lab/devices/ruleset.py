"""nftables' JSON commands, of which rulesets of devices are made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Command = Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """A table of one IP version, and the commands that fill it."""

    family: Literal["ip", "ip6"]
    name: str

    def added(self) -> Command:
        """The table itself."""
        return {"add": {"table": {"family": self.family, "name": self.name}}}

    def chain(
        self, name: str, kind: str, hook: str, priority: int, policy: str = "accept"
    ) -> Command:
        """A chain at a hook; what no rule decides is up to ``policy``."""
        where = {"family": self.family, "table": self.name, "name": name}
        chain = {"type": kind, "hook": hook, "prio": priority, "policy": policy}
        return {"add": {"chain": {**where, **chain}}}

    def rule(self, chain: str, does: Sequence[Any]) -> Command:
        """The next rule of ``chain``."""
        where = {"family": self.family, "table": self.name, "chain": chain}
        return {"add": {"rule": {**where, "expr": list(does)}}}

    def between(self, source: object, destination: object) -> Iterator[Command]:
        """What matches packets from one address or network to another."""
        for key, value in (("saddr", source), ("daddr", destination)):
            yield matches({"payload": {"protocol": self.family, "field": key}}, value)


def matches(what: Mapping[str, Any], value: object) -> Command:
    """The part of a rule that lets those go on which have this value."""
    return {"match": {"op": "==", "left": what, "right": value}}


def network(text: str) -> Command:
    """``198.18.0.0/15``, for ``Table.between``."""
    address, _, length = text.partition("/")
    return {"prefix": {"addr": address, "len": int(length)}}
