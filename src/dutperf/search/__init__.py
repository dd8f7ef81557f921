"""Searches: pure, no I/O; they know rates and outcomes, not frames or devices."""

from dutperf.search.binary import OnStep, binary_search, ignore_step
from dutperf.search.model import (
    Conclusion,
    Measure,
    Outcome,
    Resolution,
    SearchResult,
    Step,
)

__all__ = [
    "Conclusion",
    "Measure",
    "OnStep",
    "Outcome",
    "Resolution",
    "SearchResult",
    "Step",
    "binary_search",
    "ignore_step",
]
