"""Order statistics as RFC 8219 12 asks for: median, 1st and 99th percentile."""

from dutperf.stats.order import histogram_percentile, median, percentile

__all__ = ["histogram_percentile", "median", "percentile"]
