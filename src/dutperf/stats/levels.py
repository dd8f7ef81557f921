"""Where the level of a series changes, by the series alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray


# PELT (Killick, Fearnhead, Eckley 2012).
#
# What a change has to gain is taken from the series itself: more than the best split
# gains in 199 of 200 shuffles of what its runs differ from their level, and a quarter
# more, as nights in a row are alike. What levels are known is taken off before, so a
# large change hides none after it; a night that is far from those around it counts as
# one at the edge of the noise.


LEAST_VALUES = 11
"""With fewer, few orders of them are rare."""
_SHORTEST = 3
"""Runs of one level: fewer may be outliers."""
_AROUND = 5
"""Runs that an outlier is one of: three of a new level are most of them."""
_FAR = 4
"""Standard deviations of the noise."""
_ALIKE = 1.25
"""Holds false alarms below 5 % where up to 40 nights correlate by 0.3."""
_NORMAL = 1.4826
"""Standard deviations of a normal distribution in its median absolute deviation."""
_SHUFFLES = 1999
_RARE = 0.995
_SEED = 1
_MOST_VALUES = 200_000
"""Of shuffles that are looked at together: what a CPU's cache holds."""
_ROUNDING = 1e-9
"""Relative; so far apart may be what is equal."""


def change_points(values: Sequence[float]) -> list[int]:
    """Places of the values at which a new level begins, rising.

    Levels are those of the logarithms: a step of 10 % is one at any rate.

    Args:
        values: positive, in the order of time.

    Returns:
        Empty where the series is too short, or nothing speaks for a change.

    Raises:
        ValueError: a value is not above 0.
    """
    return _starts([math.log(value) for value in values])


def level_starts(values: Sequence[float]) -> list[int]:
    """The same of values of any sign, whose levels are those of the values themselves.

    A scale changes nothing; ``values`` are finite.
    """
    largest = max(map(abs, values), default=0.0)
    return _starts([value / largest for value in values]) if largest else []


def _starts(values: Sequence[float]) -> list[int]:
    import numpy as np  # noqa: PLC0415 - takes a while to be loaded, as ruptures does

    logs = np.array(values)
    if len(logs) < LEAST_VALUES or np.ptp(logs) < _ROUNDING:
        return []
    logs = _within(logs, _medians_around(logs), _noise(logs))
    noise = _noise(logs)
    levels = np.full(len(logs), np.median(logs))
    starts: list[int] = []
    while True:
        rest = _within(logs - levels, np.zeros(len(logs)), noise)
        if np.ptp(rest) < _ROUNDING:
            return starts
        found = _cut(logs, _ALIKE * _penalty(rest))
        if len(found) <= len(starts):
            return starts
        starts = found
        parts = np.split(logs, starts)
        levels = np.concatenate([np.full(len(p), np.median(p)) for p in parts])


def _cut(logs: NDArray[float64], penalty: float) -> list[int]:
    import ruptures  # noqa: PLC0415 - as above

    # With a linear kernel its cost is the squared error; it is written in C.
    search = ruptures.KernelCPD(kernel="linear", min_size=_SHORTEST)
    ends = search.fit(logs.reshape(-1, 1)).predict(pen=penalty)
    return [int(end) for end in ends[:-1]]  # the last is that of the series


def _noise(logs: NDArray[float64]) -> float:
    """Its standard deviation by the steps from run to run, of which few are changes.

    Where most are equal, the least step: that of a search's grid.
    """
    import numpy as np  # noqa: PLC0415 - as above

    steps = np.abs(np.diff(logs))
    usual = float(_NORMAL * np.median(steps) / math.sqrt(2))
    some = steps[steps > _ROUNDING]
    return usual if usual > _ROUNDING or not len(some) else float(some.min())


def _within(
    logs: NDArray[float64], middle: NDArray[float64], noise: float
) -> NDArray[float64]:
    import numpy as np  # noqa: PLC0415 - as above

    return np.clip(logs, middle - _FAR * noise, middle + _FAR * noise)


def _medians_around(logs: NDArray[float64]) -> NDArray[float64]:
    """Of the runs around each; at an end of the series of those next to it."""
    import numpy as np  # noqa: PLC0415 - as above

    inside = np.lib.stride_tricks.sliding_window_view(logs, _AROUND)
    return np.pad(np.median(inside, axis=1), _AROUND // 2, mode="edge")


def _penalty(logs: NDArray[float64]) -> float:
    """What the best split of a series without order gains, but in 1 of 200 cases."""
    import numpy as np  # noqa: PLC0415 - as above

    runs = len(logs)
    lengths = np.arange(_SHORTEST, runs - _SHORTEST + 1)
    # Of a split at k, with sum 0 in all: n S(k)^2 / (k (n - k)) less squared error.
    weights = runs / (lengths * (runs - lengths))
    draws = np.random.default_rng(_SEED)
    at_once = max(1, _MOST_VALUES // runs)
    best = []
    for done in range(0, _SHUFFLES, at_once):
        series = np.tile(logs - logs.mean(), (min(at_once, _SHUFFLES - done), 1))
        draws.permuted(series, axis=1, out=series)
        gains = series.cumsum(axis=1)[:, _SHORTEST - 1 : runs - _SHORTEST]
        gains *= gains
        gains *= weights
        best.append(gains.max(axis=1))
    return float(np.quantile(np.concatenate(best), _RARE)) * (1 + _ROUNDING)
