"""One trial, judged by all that is known of it.

A script takes what it reads for the device's. So a trial whose losses are in part the
tester's own says nothing: not of a search, which would repeat it, nor of a loss rate.
"""

from __future__ import annotations

from dutperf.procedures import taken_cpu, unreceived
from dutperf.procedures.loss_criterion import missing, own_drops
from dutperf.procedures.taken_cpu import DeviceWatch
from dutperf.protocol import Reason, TrialRequest, TrialResult, Verdict
from dutperf.run.engine_session import TesterEngine

_REPEAT = "the trial is worth repeating"


def measured(
    engine: TesterEngine, request: TrialRequest, watch: DeviceWatch | None
) -> TrialResult:
    """Run ``request``.

    ``watch`` knows where a lab's device works; None: nobody does.
    """
    sent = watch.sent() if watch else {}
    taken_ns = watch.started() if watch else None
    result = engine.measure(request)
    if watch and taken_ns:
        result = unreceived.counted(result, request, sent, watch.sent())
        found = taken_cpu.found_in(request, taken_ns(), watch.queue_frames)
        if taken_cpu.explains(found, request, result):
            result = taken_cpu.judged(result, found, again=True, then=_REPEAT)
    return _without_own_losses(result)


def _without_own_losses(result: TrialResult) -> TrialResult:
    """Invalid if the tester dropped some of the frames that are missing."""
    if result.verdict.kind != "fail":
        return result
    reasons = [
        Reason(
            code="receiver_overflow",
            message=f"{direction.name}: of {missing(direction):,} lost or late frames "
            f"the tester itself dropped up to {own:,}",
            hint="lower the rate, or give the tester more cores or a faster driver",
        )
        for direction in result.directions
        if (own := own_drops(result, direction)) and missing(direction)
    ]
    if not reasons:
        return result
    verdict = Verdict(kind="invalid", reasons=[*reasons, *result.verdict.reasons])
    return result.model_copy(update={"verdict": verdict})
