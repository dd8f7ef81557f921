"""Whether a stored result was judged as RFC 2544 judges: by no frame lost, ever."""

from __future__ import annotations

from dutperf.results.model import CellResult

OTHER_MEASURE = ("frame_timeout_ms", "loss_tolerance_percent", "verify_trials")
"""Settings that make a result another measure than the RFC's; not set: the RFC's."""


def is_by_the_book(result: CellResult) -> bool:
    """Whether nothing lets a lossy rate pass, or makes of late frames lost ones."""
    lossy = any(goal.loss_ratio or goal.exceed_ratio for goal in result.goals[:1])
    verified = result.verified_by is not None
    settings = any(map(result.parameters.get, OTHER_MEASURE))
    return not (lossy or verified or settings)
