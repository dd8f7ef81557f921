"""Which connections survived, and what that says of the gateway's table.

After more connections were asked for than the table holds, each is tried once, in the
order in which they were opened. What the eviction policies leave (RFC 9693 4.9):

    keeps the first   ######........   refuses new ones when it is full
    keeps the last    ........######   drops the oldest, one by one or in chunks
    refuses some      ####.##.#..#.#   refuses new ones when their part of it is full
    drops some        ..#.##.#######   drops others for new ones
    mixed             ##.####.#..#.#   drops others for some new ones, refuses the rest

The last three are told apart by when the lost ones were lost: on their way in, or after
they had been let in. Whether a device drops any other, or the oldest of a part of its
table (a bucket of a hash table), a picture of one number of connections does not tell.

One picture cannot tell one by one from chunks, whose survivors are up to a chunk fewer
than the table holds; two numbers of connections can (``oldest_kind``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Policy = Literal[
    "all",
    "none",
    "keeps_first",
    "keeps_last",
    "refuses_some",
    "random",
    "mixed",
    "unclear",
]
OldestKind = Literal["one_by_one", "chunks"]

Ranges = list[tuple[int, int]]
"""[first, how many] of connections in a row; rising, without overlap."""

_STRAY_SHARE = 0.02
"""Exceptions that a picture may have, such as the few that were lost on the way."""
_LEAST_RUNS = 8
"""Fewer stretches of survivors are no random picture."""


@dataclass(frozen=True)
class Survivors:
    """What survived of ``connections``, and the policy that this looks like.

    ``border`` is where the living and the lost meet; ``strays`` are on the wrong side
    of the best one.
    """

    connections: int
    survived: int
    policy: Policy
    border: int | None
    strays: int

    @property
    def words(self) -> str:
        """For people."""
        share = f"{self.survived:,} of {self.connections:,} connections survived"
        return f"{share}: {_WORDS[self.policy]}"


_WORDS: dict[Policy, str] = {
    "all": "the table holds them all",
    "none": "no connection works",
    "keeps_first": "the first ones; the device refuses new ones when its table is full",
    "keeps_last": "the last ones; the device drops the oldest, one by one or in chunks",
    "refuses_some": "here and there, and none was lost that had been let in; the "
    "device refuses new ones when their part of the table is full",
    "random": "here and there, and all were let in; the device drops others for new "
    "ones: any of them, or the oldest of a part of its table, which is not told apart",
    "mixed": "here and there; for some new ones the device drops others, the rest it "
    "refuses",
    "unclear": "no eviction policy that is known leaves this",
}


def survivors(
    total: int, lost: Sequence[tuple[int, int]], refused: int = 0
) -> Survivors:
    """What connections 0 to ``total`` - 1 say, of which ``lost`` did not survive.

    Args:
        total: how many were tried.
        lost: [first, how many] of those lost in a row, rising, without overlap.
        refused: how many of them were never let in.

    Raises:
        ValueError: the ranges are not such.
    """
    _check(total, lost)
    gone = sum(count for _, count in lost)
    alive, dropped = total - gone, gone - refused
    if gone == 0:
        return Survivors(total, alive, "all", None, 0)
    if alive == 0:
        return Survivors(total, 0, "none", None, 0)
    first_border, first_strays = _best_border(total, lost, alive_first=True)
    last_border, last_strays = _best_border(total, lost, alive_first=False)
    tolerated = math.floor(_STRAY_SHARE * min(alive, gone))
    if dropped <= tolerated and first_strays <= tolerated:
        return Survivors(total, alive, "keeps_first", first_border, first_strays)
    if refused <= tolerated and last_strays <= tolerated:
        return Survivors(total, alive, "keeps_last", last_border, last_strays)
    policy: Policy = "mixed"
    if len(lost) < _LEAST_RUNS:
        policy = "unclear"
    elif dropped <= tolerated:
        policy = "refuses_some"
    elif refused <= tolerated:
        policy = "random"
    return Survivors(total, alive, policy, None, min(first_strays, last_strays))


def oldest_kind(results: Sequence[Survivors]) -> OldestKind | None:
    """How the oldest are dropped; None where the pictures do not tell.

    A table that drops one by one holds the same number whatever was asked for; one that
    drops chunks holds another number each time.
    """
    last = [one for one in results if one.policy == "keeps_last"]
    # Not the survivors: some of them may have been lost on the way.
    kept = {one.connections - (one.border or 0) for one in last}
    asked = {one.connections for one in last}
    if len(asked) < 2:
        return None
    return "one_by_one" if len(kept) == 1 else "chunks"


def in_both(one: Ranges, other: Ranges) -> Ranges:
    """The connections of two lists of ranges that are in either."""
    found: Ranges = []
    rest = iter(other)
    begin, more = next(rest, (0, 0))
    for first, count in one:
        while more:
            least, end = max(first, begin), min(first + count, begin + more)
            if least < end:
                found.append((least, end - least))
            if begin + more > first + count:
                break
            begin, more = next(rest, (0, 0))
    return found


def _check(total: int, lost: Sequence[tuple[int, int]]) -> None:
    end = 0
    for first, count in lost:
        if first < end or count < 1:
            raise ValueError(f"no rising ranges: {first} after {end}")
        end = first + count
    if end > total:
        raise ValueError(f"lost up to {end}, of {total}")


def _best_border(
    total: int, lost: Sequence[tuple[int, int]], *, alive_first: bool
) -> tuple[int, int]:
    """Where to cut, and how many are on the wrong side then.

    Wrong are the lost ones on the side of the living, and the living on the other. Only
    the ends of the ranges can be best.
    """
    gone = sum(count for _, count in lost)
    lost_before = 0
    borders = [(0, 0)]
    for first, count in lost:
        borders.append((first, lost_before))
        lost_before += count
        borders.append((first + count, lost_before))
    borders.append((total, lost_before))
    cuts = []
    for border, before in borders:
        alive_before, alive_after = border - before, total - border - (gone - before)
        wrong = before + alive_after if alive_first else alive_before + gone - before
        cuts.append((border, wrong))
    return min(cuts, key=lambda cut: cut[1])
