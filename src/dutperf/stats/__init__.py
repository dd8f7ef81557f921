"""Order statistics as RFC 8219 12 asks for: median, 1st and 99th percentile."""

from dutperf.stats.order import (
    histogram_median,
    histogram_percentile,
    mean,
    median,
    percentile,
)

__all__ = ["histogram_median", "histogram_percentile", "mean", "median", "percentile"]
