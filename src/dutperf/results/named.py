"""Cells by their ids or titles, several of them in short."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

_FEW = 3


def named(ids: Sequence[str]) -> str:
    """``throughput-ip4-64-both and -ip6-84-both``; of many the first ones."""
    parts = shortened(ids)
    if len(parts) > _FEW:
        return f"{', '.join(parts[: _FEW - 1])} and {len(parts) - _FEW + 1} more"
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last


def shortened(ids: Sequence[str]) -> list[str]:
    """The first one, and of the others what is different from it.

    Titles have commas between their parts: ``Throughput, IPv4 and IPv6``.
    """
    between = _COMMA if all(_COMMA in each for each in ids) else "-"
    lead = "" if between is _COMMA else between
    first = ids[0].split(between)
    return [ids[0], *(_rest(first, each, between, lead) for each in ids[1:])]


_COMMA = ", "


def _rest(first: list[str], other: str, between: str, lead: str) -> str:
    """All of it if nothing is the same, or nothing would be left."""
    parts = other.split(between)
    pairs = zip(first, parts, strict=False)
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
    return lead + between.join(parts[same:]) if 0 < same < len(parts) else other
