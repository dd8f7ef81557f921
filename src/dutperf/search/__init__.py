"""Searches: pure, no I/O; they know rates and outcomes, not frames or devices."""

from dutperf.search.binary import OnStep, binary_search, confirm, ignore_step
from dutperf.search.mlr import Goal, GoalResult, MlrResult, MlrTrial, mlr_search
from dutperf.search.search_types import (
    Bracket,
    Conclusion,
    Measure,
    Outcome,
    Resolution,
    SearchResult,
    Step,
    Verification,
)

__all__ = [
    "Bracket",
    "Conclusion",
    "Goal",
    "GoalResult",
    "Measure",
    "MlrResult",
    "MlrTrial",
    "OnStep",
    "Outcome",
    "Resolution",
    "SearchResult",
    "Step",
    "Verification",
    "binary_search",
    "confirm",
    "ignore_step",
    "mlr_search",
]
