"""How often a search is repeated: a number of times, or until the median is settled.

Settled is a median of which the distribution-free confidence interval is narrower than
asked for. Only the looks of ``stats`` are moments at which that may be decided, because
they share the 5 % (``stats.confidence``). A pure function of the results so far.

Results may be lower bounds (``stats.censored``). An interval of which the upper end is
one has no known width. If so many are that all of the interval may be infinite, the
median is a bound, and more results would only say so again.

A search that found a rate knows that the device's limit is between that and another
rate, up to a resolution above. Results that are all the same know no more: an interval
is never narrower than the resolution, unless it ends at the highest rate that may be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dutperf import stats
from dutperf.search.search_types import Resolution


@dataclass(frozen=True)
class Repeats:
    """``most`` of them; with ``width`` fewer, as soon as the interval is that narrow.

    A relative ``width`` is a share of the median. ``resolution`` is that of each
    result, ``highest_fps`` the highest one that may be.
    """

    most: int
    width: Resolution | None = None
    resolution: Resolution | None = None
    highest_fps: float = math.inf

    def enough(self, values: Sequence[float], at_least: Sequence[bool] = ()) -> bool:
        """Whether these results are all that are needed.

        ``at_least``: which of them are lower bounds; empty: none.
        """
        if len(values) >= self.most or self.settled(values, at_least):
            return True
        return self.width is not None and self._only_bounds(values, at_least)

    def settled(self, values: Sequence[float], at_least: Sequence[bool] = ()) -> bool:
        """Whether ``width`` was asked for and is reached."""
        interval = self._of_samples(values)
        if interval is None or self.width is None:
            return False
        highest = self._of_samples(stats.highest(values, at_least))
        if highest is None or highest.upper != interval.upper:
            return False
        median = stats.median(values)
        width = Fraction(interval.upper) - Fraction(interval.lower)
        if self.resolution is not None:
            width = max(width, self.resolution.width_fps(median))
        return width <= self.width.width_fps(median)

    def _only_bounds(self, values: Sequence[float], at_least: Sequence[bool]) -> bool:
        """Whether bounds are all that the interval is made of."""
        highest = self._of_samples(stats.highest(values, at_least))
        return highest is not None and math.isinf(highest.lower)

    def interval(self, values: Sequence[float]) -> stats.Interval | None:
        """That of the median, with 95 % at least; None: too few results to tell."""
        found = self._of_samples(values)
        if found is None or self.resolution is None or math.isinf(found.upper):
            return found
        width_fps = math.ceil(self.resolution.width_fps(stats.median(values)))
        known_fps = found.lower + width_fps
        upper_fps = max(found.upper, min(known_fps, self.highest_fps))
        return replace(found, upper=upper_fps)

    def _of_samples(self, values: Sequence[float]) -> stats.Interval | None:
        if self.width is None:
            return stats.median_interval(values)
        return stats.interval_at_look(values)
