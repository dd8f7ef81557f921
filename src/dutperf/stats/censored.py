"""Order statistics of samples of which some are only lower bounds (right-censored).

A search that ends at the tester's limit has found "at least so much": the true value is
that or any higher one. A figure made of such samples is exact if it does not depend on
how much higher they are: if it is the same with all bounds taken at their value and
with all of them taken as infinite. Otherwise it is a lower bound itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

Statistic = Callable[[Sequence[float]], float]


class Estimate(NamedTuple):
    """A figure; ``at_least``: it is a lower bound."""

    value: float
    at_least: bool


def estimate(
    statistic: Statistic, values: Sequence[float], at_least: Sequence[bool] = ()
) -> Estimate:
    """``statistic`` of ``values``, bounds taken at their value, and what it is.

    Args:
        statistic: must not fall when a sample rises; percentiles, medians and their
            intervals do not.
        values: the samples.
        at_least: which of them are lower bounds; empty: none.
    """
    value = statistic(values)
    return Estimate(value, statistic(highest(values, at_least)) != value)


def highest(values: Sequence[float], at_least: Sequence[bool]) -> list[float]:
    """The most that the samples may be: bounds are infinite.

    Raises:
        ValueError: ``at_least`` is neither empty nor as long as ``values``.
    """
    marks = at_least or [False] * len(values)
    return [
        math.inf if bound else value for value, bound in zip(values, marks, strict=True)
    ]
