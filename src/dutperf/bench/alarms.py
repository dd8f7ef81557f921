"""How often ``compare`` and ``trend`` tell a change where there is none, or miss one.

Samples are drawn with a fixed seed. A run's effect is what all its repeats share.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from dutperf import stats
from dutperf.query.change_points import change_points

if TYPE_CHECKING:
    from numpy import float64
    from numpy.random import Generator
    from numpy.typing import NDArray

_SEED = 1
_SPREAD = 0.01
_REPEATS = 20
_ALPHA = Fraction(5, 100)
_NOISE = 0.02
_CORRELATION = 0.3
_RUNS = 24
_LAST = 4
_BROKEN = 0.01


class Row(NamedTuple):
    """In how many percent of draws a change is told; ``changed``: there is one."""

    case: str
    changed: bool
    told_percent: float


def compare_alarms(draws: int) -> Iterator[Row]:
    """Two runs of 20 repeats that scatter by 1 %, of which one may be lower."""
    import numpy as np  # noqa: PLC0415 - takes a while to be loaded

    for effect in (0, 0.25, 0.5, 1):
        for lower_percent in (0, 2):
            random = np.random.default_rng(_SEED)
            told = sum(_differ(random, effect, lower_percent) for _ in range(draws))
            case = f"run-to-run effect {effect:g} of the spread, {-lower_percent} %"
            yield Row(case, lower_percent > 0, 100 * told / draws)


def _differ(random: Generator, effect: float, lower_percent: float) -> bool:
    before, after = (
        _repeats(random, effect, level) for level in (1, 1 - lower_percent / 100)
    )
    found = stats.shift(before, after, _ALPHA, "ratio")
    return (found.lower or 0) > 1 or (found.upper or 0) < 1


def _repeats(random: Generator, effect: float, level: float) -> list[stats.Sample]:
    shared = effect * random.normal()
    values = level * (1 + _SPREAD * (shared + random.normal(size=_REPEATS)))
    return [stats.Sample(v, v, v) for v in values.tolist()]


_CHANGES: dict[str, tuple[tuple[int, int, float], ...]] = {
    "none": (),
    "-20 %, last 4 nights": ((_RUNS - _LAST, _RUNS, 0.8),),
    "-20 % after x2": ((10, _RUNS, 2.0), (_RUNS - _LAST, _RUNS, 0.8)),
    "-20 % after a broken night": ((5, 6, _BROKEN), (_RUNS - _LAST, _RUNS, 0.8)),
    "-10 %, last 3 nights": ((_RUNS - 3, _RUNS, 0.9),),
    "-10 %, 3 nights between": ((10, 13, 0.9),),
}
"""First and last night but one, and what their figures are multiplied by."""


def trend_alarms(draws: int) -> Iterator[Row]:
    """24 nights with a noise of 2 %; told: the last change at its place, to a night."""
    import numpy as np  # noqa: PLC0415 - takes a while to be loaded

    for kind in ("normal", "heavy-tailed", "correlated 0.3"):
        for name, factors in _CHANGES.items():
            random = np.random.default_rng(_SEED)
            told = 0
            for _ in range(draws):
                logs = _NOISE * noise(random, kind, _RUNS)
                for begin, end, factor in factors:
                    logs[begin:end] += math.log(factor)
                found = change_points(np.exp(logs).tolist())
                at = factors[-1][0] if factors else None
                told += any(at is None or abs(each - at) <= 1 for each in found)
            yield Row(f"{kind}: {name}", bool(factors), 100 * told / draws)


def noise(random: Generator, kind: str, runs: int) -> NDArray[float64]:
    """Of 1; heavy-tailed: Student's t of 3 degrees; or correlated from run to run."""
    if kind == "heavy-tailed":
        return random.standard_t(3, runs)
    found = random.normal(size=runs)
    if kind.startswith("correlated"):
        fresh = math.sqrt(1 - _CORRELATION**2)
        for at in range(1, runs):
            found[at] = _CORRELATION * found[at - 1] + fresh * found[at]
    return found
