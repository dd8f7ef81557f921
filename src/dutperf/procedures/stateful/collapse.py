"""Whether a device still works after a trial, and whether it was brought back."""

from __future__ import annotations

from collections.abc import Sequence

from dutperf.protocol import TrialResult
from dutperf.results.trial_record import HookRun, TrialRecord


def has_collapsed(result: TrialResult, hooks: Sequence[HookRun]) -> bool:
    """Whether no frame came back, or the device said that it does not work.

    A trial that tells nothing does not tell that either (RFC 9693 4.9).
    """
    if any(run.moment == "is_alive" and not run.succeeded for run in hooks):
        return True
    streams = [stream for each in result.directions for stream in each.streams]
    sent = any(stream.sent for stream in streams)
    returned = any(stream.received for stream in streams)
    return result.verdict.kind == "fail" and sent and not returned


def collapsed(record: TrialRecord) -> bool:
    """``has_collapsed``, of a trial whose record is there: asked before the revival."""
    revived = [n for n, run in enumerate(record.hooks) if run.moment == "restart"]
    before = record.hooks[: revived[0]] if revived else record.hooks
    return has_collapsed(record.result, before)


def came_back(record: TrialRecord) -> bool:
    """Whether the hooks brought it back, as far as they can tell."""
    moments = [run.moment for run in record.hooks]
    if "restart" not in moments:
        return False
    after = record.hooks[moments.index("restart") :]
    return all(run.succeeded for run in after)
