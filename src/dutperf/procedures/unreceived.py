"""Trials in which the tester's kernel did not take in what a lab's device had sent.

Where a CPU of the tester's own takes the device's frames in, the ring and the queue
before it are the tester's. What the device sent into them and no port received in the
trial, dropped or still on its way, counts as ``interface_drops`` of the port: all loss
figures leave it out, and a trial that fails is invalid unless it lost more than that.
"""

from __future__ import annotations

from collections.abc import Mapping

from dutperf.procedures.loss_criterion import dropped_on_receive, missing, own_drops
from dutperf.protocol import (
    DirectionResult,
    PortReport,
    Reason,
    TrialRequest,
    TrialResult,
    Verdict,
)


def counted(
    result: TrialResult,
    request: TrialRequest,
    before: Mapping[str, int],
    now: Mapping[str, int],
) -> TrialResult:
    """``result`` with what was not received as the tester's own, and judged by that.

    ``before`` and ``now``: frames that the device has sent to each port so far, by its
    name; empty where its own CPU hands them to the ports, or it was gone.
    """
    lacking = {
        port.label: _unreceived(result, port, now[port.label] - before[port.label])
        for port in result.ports
        if port.label in before and port.label in now
    }
    if not any(lacking.values()):
        return result
    ports = [
        port.model_copy(
            update={
                "interface_drops": port.interface_drops + lacking.get(port.label, 0)
            }
        )
        for port in result.ports
    ]
    result = result.model_copy(update={"ports": ports})
    if result.verdict.kind != "fail" or _surely_lost(result, request):
        return result
    reasons = [_reason(port, frames) for port, frames in lacking.items() if frames]
    verdict = Verdict(kind="invalid", reasons=[*reasons, *result.verdict.reasons])
    return result.model_copy(update={"verdict": verdict})


def _unreceived(result: TrialResult, port: PortReport, sent: int) -> int:
    """The device answered for its next hops, too, before the port began to count."""
    answers = sum(1 for each in result.neighbours if each.port_label == port.label)
    received = port.after.rx_frames - port.before.rx_frames
    return max(0, sent - answers - received - dropped_on_receive(port))


def _reason(port: str, frames: int) -> Reason:
    return Reason(
        code="receiver_overflow",
        message=f"{port}: the device sent {frames:,} frames that the tester's kernel "
        "did not take in: its receiving CPU was away, or is too slow",
        hint="keep other work off that CPU, or take a machine that has more of them to "
        "spare",
    )


def _surely_lost(result: TrialResult, request: TrialRequest) -> bool:
    """Whether a direction lost more than the tester can have dropped of it."""
    return any(
        _lost_at_least(result, direction) * 10**9
        > request.loss_tolerance_ppb * sum(s.intended for s in direction.streams)
        for direction in result.directions
    )


def _lost_at_least(result: TrialResult, direction: DirectionResult) -> int:
    """Damaged frames did arrive, and late ones did, so nobody dropped those."""
    arrived = sum(min(s.corrupt, s.lost) + s.late for s in direction.streams)
    in_shadow = sum(s.lost_in_shadow for s in direction.streams)
    absent = missing(direction) - arrived
    return missing(direction) - min(absent, in_shadow + own_drops(result, direction))
