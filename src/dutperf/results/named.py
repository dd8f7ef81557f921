"""Cells by their ids, several of them in short."""

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
    """The first id, and of the others what is different from it."""
    first = ids[0].split("-")
    return [ids[0], *("-".join(_rest(first, other.split("-"))) for other in ids[1:])]


def _rest(first: list[str], other: list[str]) -> list[str]:
    same = len(
        list(
            takewhile(lambda pair: pair[0] == pair[1], zip(first, other, strict=False))
        )
    )
    return ["", *other[same:]] if 0 < same < len(other) else other
