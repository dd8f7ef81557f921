"""What a log says of each mapping that was seen, and what of nobody's.

    seen      10.0.0.2:10000 is 198.19.0.1:2048 towards 198.19.0.2:80
    log       10.0.0.2:10000 is 198.19.0.1:2048            named
              nothing of either end                        missing
              10.0.0.3:10000 is 198.19.0.1:2048            wrong
              both of these                                ambiguous

An entry of a block of ports names all that its host has in it. An entry without a
remote end names a mapping whoever it is towards; so where no entry has one, mappings
are counted instead of connections.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from dutperf.procedures.stateful.nat_behaviour import End
from dutperf.results.details import LogVerdict
from dutperf.results.device_log import LogEntry


class Seen(NamedTuple):
    """A mapping; ``remote`` is None where the log does not tell it."""

    inside: End
    public: End
    remote: End | None

    def __str__(self) -> str:
        """As people write it."""
        towards = f" towards {self.remote}" if self.remote else ""
        return f"{self.inside} is {self.public}{towards}"


class Audit(NamedTuple):
    """What became of each mapping, and of the log's entries.

    found: verdict and, but for those that are named, what the log says instead.
    entries, other: how many there are, but for ends; and of no mapping that was seen.
    clock_ns: of each entry with a time whose connection is known, that less the time
        of the connection's first frame.
    """

    found: dict[Seen, tuple[LogVerdict, str]]
    entries: int
    other: int
    clock_ns: list[int]


@dataclass
class _Block:
    """Of a host, from entry ``begin`` on up to entry ``end``."""

    entry: LogEntry
    begin: int
    end: float = float("inf")


def audited(seen: Mapping[Seen, int | None], entries: Sequence[LogEntry]) -> Audit:
    """What the log says of each mapping.

    Args:
        seen: when the first frame of each was sent, in nanoseconds since 1970.
        entries: of the log, in its order.
    """
    if entries and not any(e.remote for e in entries):
        sent: dict[Seen, int | None] = {}
        for each, sent_ns in seen.items():
            sent.setdefault(each._replace(remote=None), sent_ns)
        seen = sent
    named: dict[Seen, list[LogEntry]] = defaultdict(list)
    for entry in entries:
        if entry.inside_port is not None and not entry.ends:
            inside = End(entry.inside, entry.inside_port)
            remote = End(entry.remote, entry.remote_port or 0) if entry.remote else None
            public = End(entry.public, entry.first_port)
            named[Seen(inside, public, remote)].append(entry)
    blocks = _blocks(entries)
    holders, covered = _holders(blocks, {each.public for each in seen})
    log = _Log(seen, named, holders)
    known = {*seen, *(each._replace(remote=None) for each in seen)}
    strange = sum(len(of) for each, of in named.items() if each not in known)
    return Audit(
        found={each: log.verdict(each) for each in seen},
        entries=sum(not entry.ends for entry in entries),
        other=strange + len(blocks) - covered,
        clock_ns=[
            of[-1].time_ns - sent_ns
            for each, of in named.items()
            if (sent_ns := seen.get(each)) is not None and of[-1].time_ns is not None
        ],
    )


def _blocks(entries: Sequence[LogEntry]) -> list[_Block]:
    """One ends with the first entry that takes just it from its host."""
    found: list[_Block] = []
    open_blocks: dict[tuple[object, ...], list[_Block]] = defaultdict(list)
    for number, entry in enumerate(entries):
        if entry.inside_port is not None:
            continue
        key = (entry.inside, entry.public, entry.first_port, entry.last_port)
        if not entry.ends:
            found.append(_Block(entry, number))
            open_blocks[key].append(found[-1])
        elif open_blocks[key]:
            open_blocks[key].pop(0).end = number
    return found


def _holders(
    blocks: Sequence[_Block], publics: set[End]
) -> tuple[dict[End, list[_Block]], int]:
    """The blocks that each public end is in; and how many blocks have one."""
    ports: dict[str, list[int]] = defaultdict(list)
    for public in sorted(publics):
        ports[public.address].append(public.port)
    holders: dict[End, list[_Block]] = defaultdict(list)
    covered = 0
    for block in blocks:
        of, entry = ports[block.entry.public], block.entry
        inside = of[
            bisect_left(of, entry.first_port) : bisect_right(of, entry.last_port)
        ]
        covered += bool(inside)
        for port in inside:
            holders[End(entry.public, port)].append(block)
    return holders, covered


class _Log:
    """The entries by what they name; ends of mappings say nothing here."""

    def __init__(
        self,
        seen: Mapping[Seen, int | None],
        named: Mapping[Seen, list[LogEntry]],
        holders: Mapping[End, list[_Block]],
    ) -> None:
        self._named, self._holders = named, holders
        self._insides: dict[tuple[End, End | None], set[End]] = defaultdict(set)
        self._publics: dict[tuple[End, End | None], set[End]] = defaultdict(set)
        self._seen_publics: dict[End, set[End]] = defaultdict(set)
        for each in seen:
            self._seen_publics[each.inside].add(each.public)
        for each in named:
            self._insides[each.public, each.remote].add(each.inside)
            self._publics[each.inside, each.remote].add(each.public)

    def verdict(self, each: Seen) -> tuple[LogVerdict, str]:
        """And what the log says instead."""
        remotes = {each.remote, None}
        own = [self._named.get(each._replace(remote=r), ()) for r in remotes]
        times = max(map(len, own))
        insides = {i for r in remotes for i in self._insides.get((each.public, r), ())}
        if others := sorted(insides - {each.inside}):
            words = f"{each.public} is said to be {others[0]}"
            return ("ambiguous", f"{words}, too") if times else ("wrong", words)
        if times > 1:
            return "duplicate", f"{times} entries"
        if times:
            late = all(entry.late for of in own for entry in of)
            return ("late", "its entry came too late") if late else ("named", "")
        publics = {p for r in remotes for p in self._publics.get((each.inside, r), ())}
        if others := sorted(publics - self._seen_publics[each.inside]):
            return "wrong", f"{each.inside} is said to be {others[0]}"
        return self._of_blocks(each)

    def _of_blocks(self, each: Seen) -> tuple[LogVerdict, str]:
        blocks = self._holders.get(each.public, ())
        own = [b for b in blocks if b.entry.inside == each.inside.address]
        others = [b for b in blocks if b not in own]
        if not own:
            if not others:
                return "missing", "no entry"
            return "wrong", f"its port is in a block of {others[0].entry.inside}"
        for b in others:
            if any(a.begin < b.end and b.begin < a.end for a in own):
                return "ambiguous", f"its port is in a block of {b.entry.inside}, too"
        if any(b.begin < a.end for a, b in pairwise(own)):
            return "duplicate", f"{len(own)} blocks"
        if all(b.entry.late for b in own):
            return "late", "the entry of its block came too late"
        return "named", ""
