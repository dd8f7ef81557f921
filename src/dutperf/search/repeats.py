"""How often a search is repeated: a number of times, or until the median is settled.

Settled is a median of which the distribution-free confidence interval is narrower than
asked for. Only the looks of ``stats`` are moments at which that may be decided, because
they share the 5 % (``stats.confidence``). A pure function of the results so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dutperf import stats
from dutperf.search.model import Resolution


@dataclass(frozen=True)
class Repeats:
    """``most`` of them; with ``width`` fewer, as soon as the interval is that narrow.

    A relative ``width`` is a share of the median.
    """

    most: int
    width: Resolution | None = None

    def enough(self, values: Sequence[float]) -> bool:
        """Whether these results are all that are needed."""
        return len(values) >= self.most or self.settled(values)

    def settled(self, values: Sequence[float]) -> bool:
        """Whether ``width`` was asked for and is reached."""
        interval = self.interval(values)
        if interval is None or self.width is None:
            return False
        share = Fraction(stats.median(values)) if self.width.relative else 1
        width = Fraction(interval.upper) - Fraction(interval.lower)
        return width <= self.width.value * share

    def interval(self, values: Sequence[float]) -> stats.Interval | None:
        """That of the median, with 95 % at least; None: too few results to tell."""
        if self.width is None:
            return stats.median_interval(values)
        return stats.interval_at_look(values)
