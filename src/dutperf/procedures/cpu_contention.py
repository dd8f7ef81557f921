"""Trials in which others took the device's CPU for longer than its queue bridges.

Such a trial says nothing of the device if it lost no more frames than arrived in that
time. It is repeated; when that has not helped, it counts as it is, and says so. Only
who knows where the device works can tell: a lab does, a testbed does not.

A burst of a millisecond is watched for half a second, in which others nearly always
have the CPU for longer than its queue bridges. They do not meet it each time alike, a
buffer that is full does: the same loss three times is the device's. Not where all but
the queue is lost: that is what one slice of the CPU costs by itself, each time alike.

What passes only because a trial with loss was repeated is no longer what RFC 2544 asks
for: rare losses of the device's own are forgiven with those of others. The result is
named for it (``named``), and docs/verdicts.md tells by how much it is too high.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from dutperf.catalogue import PROCEDURES
from dutperf.procedures.loss_criterion import (
    damage_fails,
    dropped_on_receive,
    missing,
    missing_but_damaged,
    own_drops,
)
from dutperf.protocol.result_messages import (
    DirectionResult,
    PortReport,
    Reason,
    ReasonCode,
    TrialResult,
    Verdict,
    VerdictKind,
)
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results.trial_record import DeviceCpu, DeviceDrops, TrialRecord
from dutperf.results.units import about
from dutperf.standards import Deviation

if TYPE_CHECKING:
    from dutperf.results.model import CellResult


_CODE: ReasonCode = "device_cpu_taken"
_SHORT = 10
"""A burst is short if its frames come in this part of the wait for the last of them."""
_ALIKE_FRAMES, _ALIKE_PARTS = 2, 100
"""Losses are alike if they differ by no more frames, or no greater part of them."""
_ALIKE_BEFORE = 2
"""So many losses before must be alike this one."""
_EXPLAINED = {"frames_lost", "frames_late"}
"""Damaged or duplicate frames are the device's own, whoever has its CPU."""
_SECTION = re.compile(r" \(RFC [^()]*\)$")
"""By which a quantity is named as the RFC defines it."""
_HINT = (
    "keep other work off the device's CPU, or take a machine, or a host, that has more "
    "of them to spare"
)


class DeviceWatch(Protocol):
    """Knows where the device works."""

    @property
    def queue_frames(self) -> int:
        """How many frames wait for it without being lost."""
        ...

    @property
    def cpu(self) -> int:
        """Where it works."""
        ...

    @property
    def drops(self) -> Callable[[], dict[str, dict[str, int]]]:
        """Tells what its interfaces have dropped so far."""
        ...

    @property
    def sent(self) -> Callable[[], dict[str, int]]:
        """Tells what it has sent to each port so far; empty: its CPU hands it over."""
        ...

    def started(self) -> Callable[[], int]:
        """Begins to watch; what it returns tells the nanoseconds taken since."""
        ...


class Watched(NamedTuple):
    """A trial, and what was seen of the device meanwhile; None: nobody watched it."""

    result: TrialResult
    cpu: DeviceCpu | None = None
    drops: DeviceDrops | None = None


def watched(
    watch: DeviceWatch | None,
    request: TrialRequest,
    measure: Callable[[], TrialResult],
) -> Watched:
    """What ``measure`` gives, without what the tester's kernel did not take in."""
    if watch is None:
        return Watched(measure())
    dropped_before, sent_before = watch.drops(), watch.sent()
    taken_ns = watch.started()
    result = counted(measure(), request, sent_before, watch.sent())
    return Watched(
        result,
        found_in(request, taken_ns(), watch.queue_frames),
        dropped(watch, dropped_before, result),
    )


def found_in(request: TrialRequest, taken_ns: int, queue_frames: int) -> DeviceCpu:
    """What was taken in a trial, beside what the queue bridges at its rate."""
    bridged_ns = queue_frames * 10**9 // _rate_fps(request)
    return DeviceCpu(
        taken_ns=taken_ns, queue_frames=queue_frames, bridged_ns=bridged_ns
    )


def dropped(
    watch: DeviceWatch, before: dict[str, dict[str, int]], result: TrialResult
) -> DeviceDrops:
    """What the device dropped since ``before``, and in its input queue."""
    interfaces: dict[str, dict[str, int]] = {}
    for side, now in watch.drops().items():
        then = before.get(side, {})
        rises = {name: count - then.get(name, 0) for name, count in now.items()}
        rose = {name: rise for name, rise in rises.items() if rise > 0}
        if rose:
            interfaces[side] = rose
    queues = [q for q in result.input_queues if q.cpu == watch.cpu]
    return DeviceDrops(
        input_queue=sum(queue.dropped for queue in queues), interfaces=interfaces
    )


def explains(found: DeviceCpu, request: TrialRequest, result: TrialResult) -> bool:
    """Whether all that the trial lost may have been lost for want of the CPU."""
    if result.verdict.kind != "fail" or damage_fails(request, result):
        return False
    if any(reason.code not in _EXPLAINED for reason in result.verdict.reasons):
        return False
    return explains_absent(found, request, result)


def explains_absent(
    found: DeviceCpu, request: TrialRequest, result: TrialResult
) -> bool:
    """Whether all may have been lost for it that is lost but for damaged frames."""
    if found.taken_ns <= found.bridged_ns:
        return False
    return 0 < lost_in(result) <= found.taken_ns * _rate_fps(request) // 10**9


def lost_in(result: TrialResult) -> int:
    """Frames lost, and late, in all directions, but for those that came damaged."""
    return sum(map(missing_but_damaged, result.directions))


def came_again(
    request: TrialRequest,
    result: TrialResult,
    lost_before: Sequence[int],
    queue_frames: int,
) -> bool:
    """Whether a short burst lost as many frames as two times before.

    ``lost_before``: frames that were lost when it was tried before, and explained. A
    long trial may well lose the same by others who take the CPU time after time; so
    does a burst that comes while they have it, of which the queue takes what it can.
    """
    if request.duration_ns * _SHORT > request.residual_wait_ns:
        return False
    lost = lost_in(result)
    most = max(_ALIKE_FRAMES, lost // _ALIKE_PARTS)
    if any(
        abs(lost - slice_lost) <= most for slice_lost in _of_slice(result, queue_frames)
    ):
        return False
    alike = sum(abs(lost - before) <= most for before in lost_before)
    return alike >= _ALIKE_BEFORE


def _of_slice(result: TrialResult, queue_frames: int) -> list[int]:
    """What a burst loses that comes while the CPU is away, of one queue or of each."""
    bursts = [sum(s.sent for s in each.streams) for each in result.directions]
    one_queue = sum(bursts) - queue_frames
    one_each = sum(max(0, burst - queue_frames) for burst in bursts)
    return [lost for lost in (one_queue, one_each) if lost > 0]


def contended(
    result: TrialResult,
    request: TrialRequest,
    found: DeviceCpu | None,
    *,
    attempts: int,
    lost_before: Sequence[int],
    invalid_before: int,
) -> TrialResult:
    """``result``, or the same explained by what others took of the device's CPU.

    Invalid while it may be run again, out of ``attempts``, and not once a burst has
    lost alike twice before; the last one counts as it is. By how much that makes a
    throughput too high: docs/verdicts.md.

    Args:
        result: of a trial about the device; a probe's frames are lost on purpose.
        request: what was asked for.
        found: what was taken; None: nobody watched.
        attempts: how often the trial is run at most; 1: nobody needs a bound, and it
            is as invalid.
        lost_before: see ``came_again``.
        invalid_before: how many of the attempts were invalid.
    """
    if found is None or not explains(found, request, result):
        return result
    if attempts == 1:
        return judged(result, found, again=True, then="it is not repeated")
    if came_again(request, result, lost_before, found.queue_frames):
        then = "it lost as many frames twice before, so it counts"
        return judged(result, found, again=False, then=then)
    return judged(result, found, again=invalid_before < attempts - 1)


def repeated(record: TrialRecord) -> bool:
    """Whether it is invalid because others had the device's CPU."""
    verdict = record.result.verdict
    return verdict.kind == "invalid" and _explained(record)


def judged(
    result: TrialResult, found: DeviceCpu, *, again: bool, then: str = ""
) -> TrialResult:
    """``result``, explained by ``found``: invalid if it is run ``again``.

    ``then``: what is done about it, if that is not for us.
    """
    then = then or ("it is repeated" if again else "repeating it has not helped")
    reason = Reason(
        code=_CODE,
        message=f"other programs used the device's CPU for {_ms(found.taken_ns)}; its "
        f"queue of {found.queue_frames:,} frames covers {_ms(found.bridged_ns)}: "
        f"{then}",
        hint=_HINT,
    )
    reasons = [reason, *result.verdict.reasons]
    kind: VerdictKind = "invalid" if again else result.verdict.kind
    verdict = Verdict(kind=kind, reasons=reasons)
    return result.model_copy(update={"verdict": verdict})


def beside_repeated(result: CellResult, records: Iterable[TrialRecord]) -> CellResult:
    """``result`` with how many of its trials were repeated, or counted, in spite."""
    own = [record for record in records if record.cell == result.id]
    kinds = [r.result.verdict.kind for r in own if _explained(r)]
    told = list(_told(kinds.count("invalid"), kinds.count("fail")))
    result = result.model_copy(update={"reasons": [*result.reasons, *told]})
    tried = [trials for trials in _forgiven(own) if trials > 1]
    return _named(result, len(tried), max(tried)) if tried else result


def _forgiven(records: Iterable[TrialRecord]) -> Iterator[int]:
    """Of each trial that passed: it, and those before it whose loss was explained.

    A trial is the same when role, repeat, rate and duration are. Between two attempts
    of a stateful one, connections are opened anew.
    """
    lost: Counter[tuple[str, int, int, int]] = Counter()
    for record in records:
        duration_ns = record.request.duration_ns
        asked = (record.role, record.repeat, record.load_fps, duration_ns)
        if record.role == "probe" or record.result.verdict.kind == "invalid":
            lost[asked] += repeated(record)
            continue
        before = lost.pop(asked, 0)
        yield 1 + (before if record.result.verdict.kind == "pass" else 0)


def _named(result: CellResult, passed: int, trials: int) -> CellResult:
    """``result`` named for what it is; RFC 9004 has losses of bursts verified."""
    family = PROCEDURES[result.procedure].family
    if family == "burst search":
        return result
    quantity = _SECTION.sub("", result.quantity)
    point = Deviation(
        rfc="RFC 9693 4.5" if family == "connections" else "RFC 2544 26",
        requirement="each trial that lost frames counts",
        actual=f"{_counted(passed)} passed after one with a loss that did not count, "
        "because other programs used the device's CPU",
        level="definition",
    )
    return result.model_copy(
        update={
            "quantity": f"{quantity}, losses verified by up to {trials} trials",
            "verified_by": trials,
            "deviations": [*result.deviations, point],
        }
    )


def _explained(record: TrialRecord) -> bool:
    return any(reason.code == _CODE for reason in record.result.verdict.reasons)


def _told(repeated: int, counted: int) -> Iterable[Reason]:
    """Of trials that were repeated, and of those that count nevertheless."""
    why = "other programs used the device's CPU for longer than its queue covers"
    if repeated:
        trials = _counted(repeated)
        text = f"{trials} with lost frames repeated, because {why}"
        yield Reason(code=_CODE, message=text, hint=_HINT)
    if counted:
        trials = _counted(counted)
        text = f"{trials} with lost frames counted, although {why}, time after time"
        yield Reason(code=_CODE, message=text, hint=_HINT)


def _counted(trials: int) -> str:
    return f"{trials} trial{'' if trials == 1 else 's'}"


def _rate_fps(request: TrialRequest) -> int:
    """Of all directions: they share the device's CPU."""
    return sum(direction.rate_fps for direction in request.directions)


def _ms(duration_ns: int) -> str:
    return f"{about(duration_ns / 1e6, 3)} ms"


# Trials in which the tester's kernel did not take in what a lab's device had sent.
#
# Where a CPU of the tester's own takes the device's frames in, the ring and the queue
# before it are the tester's. What the device sent into them and no port received in the
# trial, dropped or still on its way, counts as ``interface_drops`` of the port: all
# loss figures leave it out, and a trial that fails is invalid unless it lost more than
# that.


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
