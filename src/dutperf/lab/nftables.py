"""The kernel's packet filter in a namespace: load rules, count those that are there."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from dutperf.programs import feed, in_namespace

_NFT = ("nft", "-j", "-f", "-")


def load(namespace: str, commands: Sequence[Mapping[str, Any]]) -> str:
    """Runs nftables' commands, all or none; what it complained of, or nothing."""
    return feed(
        in_namespace(namespace, *_NFT), json.dumps({"nftables": list(commands)})
    )


def replace(namespace: str, commands: Sequence[Mapping[str, Any]]) -> str:
    """As ``load``, and nothing else is left; no packet sees a state between."""
    return load(namespace, [{"flush": {"ruleset": None}}, *commands])


def count_rules(namespace: str, table: str) -> dict[str, int]:
    """The number of rules in the tables of that name, by their family."""
    listed = subprocess.run(
        in_namespace(namespace, "nft", "-j", "list", "ruleset"),
        capture_output=True,
        text=True,
        check=False,
    )
    counts: dict[str, int] = {}
    if listed.returncode == 0:
        for item in json.loads(listed.stdout)["nftables"]:
            rule = item.get("rule")
            if rule and rule["table"] == table:
                counts[rule["family"]] = counts.get(rule["family"], 0) + 1
    return counts
