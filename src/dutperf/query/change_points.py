"""Where the level of a series changes: PELT (Killick, Fearnhead, Eckley 2012).

What a change has to gain is taken from the series itself: more than the best split
gains in 199 of 200 of its shuffles, which have no order. So noise of any kind is rarely
split, and nothing has to be known of it; runs are taken to be independent otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

LEAST_RUNS = 11
"""With fewer, no order of values is rarer than 1 in 200."""
_SHORTEST = 2
"""Runs of one level: a single one may be an outlier."""
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
    import numpy as np  # noqa: PLC0415 - both take a while to be loaded
    import ruptures  # noqa: PLC0415

    logs = np.array([math.log(value) for value in values])
    if len(logs) < LEAST_RUNS or np.ptp(logs) < _ROUNDING:
        return []
    # With a linear kernel its cost is the squared error; it is written in C.
    search = ruptures.KernelCPD(kernel="linear", min_size=_SHORTEST)
    ends = search.fit(logs.reshape(-1, 1)).predict(pen=_penalty(logs))
    return [int(end) for end in ends[:-1]]  # the last is that of the series


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
