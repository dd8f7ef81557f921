"""Do the repeats have one value at all? Modes, shifts, drifts, outliers, and no value.

A median can be computed of anything. Here repeats are looked at in their order, and
what speaks against one number for all of them is found, with the evidence:

* Repeats in groups with nothing between them: sorted, they are cut at the widest gaps,
  and the gaps must be as wide as every group. Groups of some size are modes, or a shift
  when the device changed from one to the other once; a few repeats far from all others
  are outliers.
* Drift: Mann and Kendall's test against time, with its exact distribution, ties
  included; told only if first and last third differ by more than the resolution.
* Unstable: what is left without the farthest tenth at either end is still far apart.

The resolution counts: a search tells its result only to within that, so nothing below
twice of it is a gap, a group or a drift. All thresholds, and how often steady devices
are accused, are in docs/adr/0013-stability.md; a test holds them to it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise
from typing import Literal, NamedTuple

from dutperf.stats.order import median

FEWEST = 8
"""Repeats that groups and drifts can be found in; among fewer everything happens."""
MODE_SHARE = 0.15
"""A group with less of the repeats (or fewer than three) is not a mode."""
DRIFT_P = 0.001
"""How often a steady device may be called drifting."""
RESOLUTIONS = 2
"""What is not known better than the resolution may look that much apart."""
EXACT_UP_TO = 64
"""Samples up to which the distribution of Kendall's S is counted, not approximated."""
_LEAST_MODE = 3
_CUTS = 5

Kind = Literal["modes", "shift", "drift", "unstable", "outliers"]


@dataclass(frozen=True)
class Limits:
    """From where on repeats have no common value, as shares of their median.

    middle: what all but the farthest tenth at either end may be apart.
    all_of_them: the same of all repeats but the outliers that were named.
    """

    middle: float = 0.05
    all_of_them: float = 0.10


@dataclass(frozen=True)
class Group:
    """Repeats (numbers from 1) whose values lie together."""

    repeats: tuple[int, ...]
    lowest: float
    highest: float


@dataclass(frozen=True)
class Finding:
    """What speaks against one value, and its evidence.

    modes, shift: ``groups`` by rising value (shift: in time), ``gap`` is the smallest
    between them, ``widest`` the widest group. outliers: the others are the first
    group. drift: ``p``, ``each`` repeat (Theil and Sen's slope), medians of the
    ``first`` and ``last`` third. unstable: ``apart`` and ``limit``, as shares of the
    median, of the ``lowest`` to the ``highest`` repeat that counts.
    """

    kind: Kind
    groups: tuple[Group, ...]
    numbers: dict[str, float]


class _Sample(NamedTuple):
    value: float
    repeat: int


def examine(
    values: Sequence[float | None],
    resolution: float,
    limits: Limits = Limits(),
    *,
    apart: float | None = None,
) -> list[Finding]:
    """What speaks against one value for all ``values``; mostly nothing.

    Args:
        values: of the repeats in their order; None, or infinite: it has none.
        resolution: how closely a value is known, in its unit.
        limits: from where on there is no common value.
        apart: closer than twice that values are common whatever the limits; None: the
            resolution.
    """
    samples = [
        _Sample(value, repeat)
        for repeat, value in enumerate(values, 1)
        if value is not None and math.isfinite(value)
    ]
    found = _groups(samples, resolution) if len(samples) >= FEWEST else None
    if found and found.kind != "outliers":
        return [found]
    left = samples
    if found:
        left = [s for s in samples if s.repeat in found.groups[0].repeats]
    return [
        *([found] if found else []),
        *_drift(left, resolution),
        *_unstable(left, resolution if apart is None else apart, limits),
    ]


# --- groups ---------------------------------------------------------------------------


def _groups(samples: Sequence[_Sample], resolution: float) -> Finding | None:
    """Modes, a shift, or outliers."""
    count = len(samples)
    parts, gap, widest = _best_cut(sorted(samples), resolution)
    separation = gap / widest
    if separation < max(1.0, 30 / count):
        return None
    least = max(_LEAST_MODE, math.ceil(MODE_SHARE * count))
    modes = [part for part in parts if len(part) >= least]
    if not modes:
        return None
    apart = [part[-1].value - part[0].value for part in parts]
    numbers = {"gap": gap, "widest": max(apart)}
    if len(modes) > 1:
        return _modes(modes, samples, numbers)
    if separation < max(2.0, 30 / count):
        return None
    strays = [part for part in parts if part is not modes[0]]
    return Finding("outliers", tuple(map(_group, [modes[0], *strays])), numbers)


def _best_cut(
    ordered: Sequence[_Sample], resolution: float
) -> tuple[list[Sequence[_Sample]], float, float]:
    """The parts between the widest gaps, of up to five cuts the clearest."""
    gaps = sorted(
        ((b.value - a.value, at) for at, (a, b) in enumerate(pairwise(ordered), 1)),
        reverse=True,
    )
    best: tuple[list[Sequence[_Sample]], float, float] = ([ordered], 0.0, 1.0)
    for cuts in range(1, min(_CUTS, len(ordered) // 4) + 1):
        ends = [0, *sorted(at for _, at in gaps[:cuts]), len(ordered)]
        parts = [ordered[begin:end] for begin, end in pairwise(ends)]
        widest = max(part[-1].value - part[0].value for part in parts)
        widest = max(widest, RESOLUTIONS * resolution)
        gap = gaps[cuts - 1][0]
        if widest and gap / widest > best[1] / best[2]:
            best = (parts, gap, widest)
    return best


def _modes(
    modes: Sequence[Sequence[_Sample]],
    samples: Sequence[_Sample],
    numbers: dict[str, float],
) -> Finding:
    """A shift if the device was in each mode once, one after the other."""
    of_repeat = {s.repeat: place for place, mode in enumerate(modes) for s in mode}
    visited = [of_repeat[s.repeat] for s in samples if s.repeat in of_repeat]
    changes = sum(a != b for a, b in pairwise(visited))
    groups = tuple(map(_group, modes))
    if changes == len(modes) - 1:
        in_time = tuple(sorted(groups, key=lambda group: group.repeats))
        return Finding("shift", in_time, numbers)
    return Finding("modes", groups, numbers | {"changes": float(changes)})


def _group(part: Sequence[_Sample]) -> Group:
    return Group(
        tuple(sorted(sample.repeat for sample in part)), part[0].value, part[-1].value
    )


# --- drift ----------------------------------------------------------------------------


def _drift(samples: Sequence[_Sample], resolution: float) -> list[Finding]:
    if len(samples) < FEWEST:
        return []
    values = [sample.value for sample in samples]
    third = len(values) // 3
    first, last = median(values[:third]), median(values[-third:])
    if abs(last - first) <= RESOLUTIONS * resolution:
        return []
    p = kendall_p(values)
    if p > DRIFT_P:
        return []
    slopes = [
        (b.value - a.value) / (b.repeat - a.repeat) for a, b in combinations(samples, 2)
    ]
    numbers = {"p": p, "each": median(slopes), "first": first, "last": last}
    return [Finding("drift", (), numbers)]


def kendall_p(values: Sequence[float]) -> float:
    """How often chance puts ``values`` in an order that rises or falls as clearly.

    Mann and Kendall's test, two-sided. Up to 64 values all orders are counted.
    """
    falls = sum(a > b for a, b in combinations(values, 2))
    rises = sum(a < b for a, b in combinations(values, 2))
    ties = tuple(sorted(Counter(values).values()))
    if len(values) <= EXACT_UP_TO:
        counts = _orders_by_falls(ties)
        as_clear = sum(counts[: min(falls, rises) + 1])
        return min(1.0, float(2 * as_clear / sum(counts)))
    variance = (_spread_of_s(len(values)) - sum(map(_spread_of_s, ties))) / 18
    clear = abs(rises - falls) - 1
    return math.erfc(max(0, clear) / math.sqrt(2 * variance)) if variance else 1.0


def _spread_of_s(count: int) -> int:
    return count * (count - 1) * (2 * count + 5)


@cache
def _orders_by_falls(ties: tuple[int, ...]) -> tuple[int, ...]:
    """In how many orders of a multiset 0, 1, 2, ... pairs fall.

    That is the q-multinomial coefficient (MacMahon): for each further element the
    product with (1 - q^n) / (1 - q^k), n elements so far, k of them equal to it.
    """
    counts, elements = [1], 0
    for equal in ties:
        for k in range(1, equal + 1):
            elements += 1
            counts = _divided(_times(counts, elements), k)
    return tuple(counts)


def _times(counts: Sequence[int], power: int) -> list[int]:
    """The polynomial ``counts`` times (1 - q^power)."""
    longer = [*counts, *[0] * power]
    for n, count in enumerate(counts):
        longer[n + power] -= count
    return longer


def _divided(counts: list[int], power: int) -> list[int]:
    """The polynomial ``counts`` by (1 - q^power), which divides it."""
    for n in range(power, len(counts)):
        counts[n] += counts[n - power]
    return counts[: len(counts) - power]


# --- no common value ------------------------------------------------------------------


def _unstable(
    samples: Sequence[_Sample], resolution: float, limits: Limits
) -> list[Finding]:
    values = sorted(sample.value for sample in samples)
    if len(values) < 2 or (middle := abs(median(values))) == 0:
        return []
    tenth = len(values) // 10
    for left_out, limit in ((tenth, limits.middle), (0, limits.all_of_them)):
        lowest, highest = values[left_out], values[-1 - left_out]
        apart = highest - lowest
        if apart > max(limit * middle, RESOLUTIONS * resolution):
            numbers = {
                "apart": apart / middle,
                "limit": limit,
                "lowest": lowest,
                "highest": highest,
                "count": float(len(values)),
                "left_out": float(2 * left_out),
            }
            return [Finding("unstable", (), numbers)]
    return []
