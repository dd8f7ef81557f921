"""Order statistics as RFC 8219 12 asks for: median, 1st and 99th percentile."""

from dutperf.stats.censored import Estimate, Statistic, estimate, highest
from dutperf.stats.confidence import (
    LOOKS,
    Interval,
    interval_at_look,
    mean_interval,
    median_interval,
)
from dutperf.stats.order import (
    histogram_median,
    histogram_percentile,
    mean,
    median,
    median_bounds,
    merged_histogram,
    percentile,
    percentile_bounds,
)
from dutperf.stats.two_samples import (
    Sample,
    Shift,
    inflation,
    least_beside,
    least_each,
    rank,
    shift,
)

__all__ = [
    "LOOKS",
    "Estimate",
    "Interval",
    "Sample",
    "Shift",
    "Statistic",
    "estimate",
    "highest",
    "histogram_median",
    "histogram_percentile",
    "inflation",
    "interval_at_look",
    "least_beside",
    "least_each",
    "mean",
    "mean_interval",
    "median",
    "median_bounds",
    "median_interval",
    "merged_histogram",
    "percentile",
    "percentile_bounds",
    "rank",
    "shift",
]
