"""The elementary test of a stateful gateway: open all connections, then use each once.

Phase 1 passes when all N frames arrive (RFC 9693 4.5). That they arrived does not prove
that the device remembers them; validated, each must also let a frame back, sent at
``alpha`` times the rate (4.6). The device's table is emptied before each test, by the
testbed's hooks.

A device that forgets what was too much for it forgets the burst after a stall of the
tester, too. So a validation which misses nothing but connections that were opened in
the shadow of such a stall, and no more than it can have cost, tells nothing of the rate
(``docs/adr/0001``): the test is made again.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, NoReturn

from dutperf.config.phase2 import Timing, phase1_frames
from dutperf.config.sizes import LONGER_THAN_SYN_BYTES, syn_size
from dutperf.model.cell import Cell
from dutperf.model.frames import version_of
from dutperf.model.procedure_keys import TcpKeys
from dutperf.model.stateful_keys import Stateful, bounds
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.searching import NoUseError, Troubles, outcome
from dutperf.procedures.stateful.connection_diagnosis import (
    Counting,
    unexpected_reasons,
)
from dutperf.procedures.trials import (
    ATTEMPTS,
    PASSED,
    Afterwards,
    Ask,
    DeviceTrials,
    Shape,
    fails_beside_loss,
    fails_without_loss,
    no_rate_helps,
)
from dutperf.protocol.result_messages import (
    Reason,
    Shadow,
    TrialResult,
    Verdict,
    VerdictKind,
)
from dutperf.protocol.trial_messages import MAX_SERIES, Record, Tcp, TrialRequest
from dutperf.results.trial_record import TrialRecord
from dutperf.results.units import about
from dutperf.search import Outcome, Resolution

# The trials of a stateful test, made of a cell's ordinary request (RFC 9693 4).
#
# phase 1      the initiator sends each four-tuple once, the responder learns them
# phase 2      the cell's own trial: the initiator sends the same four-tuples in random
#              order, the responder those that it learned, and goes on learning
# validation   the responder sends one frame back for each; frame k is connection k
# use          of TCP in its place: the initiator sends its next segment on each
#
# Of TCP a trial of SYNs opens before phase 1, whose frames are then data as those of
# phase 2 are: what a gateway has made of the four-tuples is learned from that.


SURVIVAL_BLOCKS = 256
SHORTEST_NS = 1_000_000
_ADDRESSES = ("src_ip", "dst_ip")
_TUPLE = {"src_port", "dst_port", *_ADDRESSES}


def opening(request: TrialRequest, cell: Cell, stateful: Stateful) -> TrialRequest:
    """``request``, which the initiator alone sends, as one that opens, by SYNs."""
    data, stream = _one_direction(request)
    data["directions"][0] |= {"streams": [stream], "mix": None}
    data["tcp"] = Tcp(until="opened").model_dump()
    stream["frame_sizes"] = [syn_size({stream["ip_version"]})]
    responder = version_of(cell.ip, stateful.responder)
    stream["received_frame_sizes"] = [syn_size({responder})]
    return phase1(TrialRequest.model_validate(data), cell, stateful)


def phase1(
    request: TrialRequest,
    cell: Cell,
    stateful: Stateful,
    opened_by: int | None = None,
) -> TrialRequest:
    """``request``, which the initiator alone sends, as one that opens connections.

    Or sends data on each that a trial has opened, of which it is told the id.
    """
    data, stream = _one_direction(request)
    _enumerate(stream, stateful)
    if opened_by is not None:
        data["tcp_data"] = _on_tcp(stateful, opened_by)
        data["settle_ns"] = 0  # the device knows the tester by now
    if request.tcp is None:
        data["learn"] = _learn(cell, stateful)
    else:
        data["tcp"]["translated"] = stateful.translates
    # All must arrive, however the trials of phase 2 are judged (RFC 9693 4.2).
    data |= {"frame_timeout_ns": None, "loss_tolerance_ppb": 0}
    return _timed(data, stateful)


def phase2(
    request: TrialRequest,
    cell: Cell,
    stateful: Stateful,
    timing: Timing,
    opened_by: int | None = None,
) -> TrialRequest:
    """``request`` as one on open connections; what the initiator sends is learned.

    Of each of which something is to be told, they take turns, in the order of opening.
    """
    data = request.model_dump()
    data["tcp_data"] = _on_tcp(stateful, opened_by)
    in_turn = bool(request.record.connection_blocks)
    for direction in data["directions"]:
        stream = direction["streams"][0]
        if direction["name"] == stateful.direction:
            _enumerate(stream, stateful)
            order = "increasing" if in_turn else "random"
            stream["tuples"] = _tuples("generated", stateful, order)
            data["learn"] = _learn(cell, stateful) | {"keep": True}
        else:
            _answer(
                stream, stateful, "increasing" if in_turn else stateful.responder_order
            )
    data["settle_ns"] = 0  # the device knows the tester from phase 1
    data["not_before_ns"] = timing.start_ms * 1_000_000
    return TrialRequest.model_validate(data)


def use(
    request: TrialRequest, spec: TcpKeys, stateful: Stateful, opened_by: int
) -> TrialRequest:
    """``request`` as one that the initiator sends on what that trial has opened."""
    data, stream = _one_direction(request)
    _enumerate(stream, stateful)
    data["tcp"] = spec.used(opened_by).model_dump()
    data["tcp"]["translated"] = stateful.translates
    for key in ("frame_sizes", "received_frame_sizes"):
        longer = LONGER_THAN_SYN_BYTES[data["tcp"]["begin"]]
        stream[key] = [size + longer for size in stream[key]]
    data["settle_ns"] = 0  # the device knows the tester from phase 1
    return _timed(data, stateful)


def validation(
    request: TrialRequest, stateful: Stateful, opened_by: int | None = None
) -> TrialRequest:
    """``request``, which the responder alone sends, as a frame for each connection."""
    data, stream = _one_direction(request)
    data["tcp_data"] = _on_tcp(stateful, opened_by)
    data["directions"][0] |= {"streams": [stream], "mix": None}
    _answer(stream, stateful, "increasing")
    data["settle_ns"] = 0  # the device knows the tester from phase 1
    data |= {"frame_timeout_ns": None, "loss_tolerance_ppb": 0}
    return _timed(data, stateful)


def opened_by(request: TrialRequest) -> int | None:
    """The id of the trial that has opened the TCP connections of ``request``'s data."""
    return request.tcp_data.opened_by if request.tcp_data else None


def _on_tcp(stateful: Stateful, opened_by: int | None) -> dict[str, Any] | None:
    if opened_by is None:
        return None
    return {"opened_by": opened_by, "translated": stateful.translates}


def _one_direction(request: TrialRequest) -> tuple[dict[str, Any], dict[str, Any]]:
    """As plain data: the request, and the foreground of its only direction.

    What is beside the stream is there in phase 2 alone.
    """
    data = request.model_dump()
    (direction,) = data["directions"]
    if direction["streams"][-1]["name"] == "beside":
        direction |= {"streams": direction["streams"][:1], "mix": None}
    return data, direction["streams"][0]


def _enumerate(stream: dict[str, Any], stateful: Stateful) -> None:
    """Give the initiator's stream its four-tuples."""
    least, most = bounds(stateful.source_ports)
    first, last = stateful.destinations
    stream |= {"src_port": least, "dst_port": first}
    stream["enumeration_order"] = stateful.order
    # The source port changes fastest, the destination address last (RFC 9693 4.4).
    stream["vary"] = [
        *([] if first == last and least == most else _ports("src_port", least, most)),
        *_ports("dst_port", first, last),
        *(
            varied | {"mode": "enumerate"}
            for field in _ADDRESSES
            for varied in stream["vary"]
            if varied["field"] == field
        ),
        *_besides_tuple(stream),
    ]


def _answer(stream: dict[str, Any], stateful: Stateful, order: str) -> None:
    """Give the responder's stream what was learned."""
    # A frame whose tuple was never learned must not find a connection by chance.
    stream |= {"vary": _besides_tuple(stream), "dst_port": 0}
    stream["tuples"] = _tuples("learned", stateful, order)


def _learn(cell: Cell, stateful: Stateful) -> dict[str, Any]:
    expected = stateful.expected
    return {
        "direction": stateful.direction,
        "ip_version": version_of(cell.ip, stateful.responder),
        "entries": stateful.connections,
        "told": stateful.connections if stateful.is_told else 0,
        "expected": expected.model_dump() if expected else None,
    }


def _tuples(source: str, stateful: Stateful, order: str) -> dict[str, Any]:
    return {"source": source, "count": stateful.connections, "order": order}


def _timed(data: dict[str, Any], stateful: Stateful) -> TrialRequest:
    """Exactly one foreground frame for each connection, and the wait T.

    What a trial of phase 2 records beside its counts, this one does not.
    """
    (direction,) = data["directions"]
    mix = direction["mix"] or {"foreground": 1, "of": 1}
    frames = phase1_frames(stateful.connections, mix["foreground"], mix["of"])
    duration_ns = max(SHORTEST_NS, round(frames * 10**9 / direction["rate_fps"]))
    data["duration_ns"] = duration_ns
    tcp = Tcp.model_validate(data["tcp"]) if data["tcp"] else None
    data["residual_wait_ns"] = stateful.timeout_ms * 1_000_000
    data["residual_wait_ns"] += tcp.retransmits_ns if tcp else 0
    given_ns = data["record"]["series_interval_ns"]
    data["record"] = Record(
        series_interval_ns=max(given_ns, -(-duration_ns // MAX_SERIES)),
        survival_blocks=min(SURVIVAL_BLOCKS, stateful.connections),
    ).model_dump()
    return TrialRequest.model_validate(data)


def _ports(field: str, least: int, most: int) -> list[dict[str, Any]]:
    return [
        {"field": field, "width": 16, "min": least, "max": most, "mode": "enumerate"}
    ]


def _besides_tuple(stream: dict[str, Any]) -> list[dict[str, Any]]:
    return [v for v in stream["vary"] if v["field"] not in _TUPLE]


# What a test that passed proves (RFC 9693 4.5): a device that lets frames wait passes a
# short test at a rate far above its own, and its last frames come late.


_LEAST_SHARE = Fraction(1, 100)
"""No resolution is so fine that less than this is worth a longer test."""


def opened_per_s(result: TrialResult) -> float:
    """How fast a test that passed opened its connections, until the last frame came.

    N / (N/R + largest delay): what was still in the device when all were sent, it has
    had that much longer for. A test proves no higher rate (RFC 9693 4.5).
    """
    (direction,) = result.directions
    sent = sum(stream.sent for stream in direction.streams)
    delays_ns = [stream.delay_ns.max or 0 for stream in direction.streams]
    took_s = sent / direction.intended_rate_fps + max(delays_ns) / 1e9
    return sent / took_s


def unproven(
    result: TrialResult, rate_per_s: int, resolution: Resolution
) -> Reason | None:
    """Why a test that passed is no proof of its rate; None: it is one."""
    opened = opened_per_s(result)
    allowed = max(resolution.width_fps(rate_per_s), _LEAST_SHARE * Fraction(rate_per_s))
    if rate_per_s - opened <= allowed:
        return None
    (direction,) = result.directions
    delay_s = max(stream.delay_ns.max or 0 for stream in direction.streams) / 1e9
    enough = math.ceil(delay_s * rate_per_s * rate_per_s / float(allowed))
    connections = sum(stream.sent for stream in direction.streams)
    return Reason(
        code="short_tests",
        message=f"{rate_per_s:,}/s passed, but {connections:,} connections make too "
        f"short a test to prove it: with frames up to {about(delay_s * 1000)} ms late "
        f"it proves {about(opened)}/s",
        hint=f"open {_rounded_up(enough):,} or more (--connections)",
    )


def _rounded_up(number: int) -> int:
    """To two digits."""
    unit = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // unit) * unit


def stateful_of(cell: Cell) -> Stateful:
    """What a cell of a procedure about connections has."""
    assert cell.stateful is not None, f"{cell.id} opens connections"  # noqa: S101
    return cell.stateful


def fastest(limit: MaxRate, connections: int) -> MaxRate:
    """``limit``, or the rate at which so many take the shortest trial there is."""
    most = connections * 10**9 // SHORTEST_NS
    if limit.rate_fps <= most:
        return limit
    detail = f"the rate at which {connections:,} connections take the shortest trial"
    return replace(limit, rate_fps=most, kind="tester", detail=detail, line_rate=False)


@dataclass
class Opened:
    """Both phases of one test; ``back`` is None if there was no second one."""

    first: TrialRecord
    back: TrialRecord | None = None

    @property
    def last(self) -> TrialRecord:
        """The one that decides."""
        return self.back or self.first

    @property
    def tells_nothing(self) -> bool:
        """Whether it is invalid."""
        return self.last.result.verdict.kind == "invalid"


class Establishing:
    """The elementary tests of one repeat, and what became of them.

    Args:
        runner: runs their trials.
        cell: whose tests they are.
        repeat: its number.
        may_collapse: see ``Trials.run``.
    """

    def __init__(
        self,
        runner: DeviceTrials,
        cell: Cell,
        repeat: int,
        *,
        may_collapse: bool = False,
    ) -> None:
        self._runner = runner
        self._cell = cell
        self._repeat = repeat
        self._may_collapse = may_collapse
        self._before = runner.finished
        self._counting = Counting(runner)
        self.passed: int | None = None
        self.opened_at: dict[int, TrialResult] = {}
        """Phase 1 of the last test that passed at each rate."""
        self.last: Opened | None = None
        self.troubles = Troubles()
        self.expired = False
        """Of the tests whose phase 1 failed."""
        self._pause_s = 0.0
        """The longest between the phases: what hooks took, beside the waits."""

    @property
    def failed_otherwise(self) -> list[Reason]:
        """Why the last test failed, where it lost no connections."""
        return fails_without_loss(self.last.last.result.verdict) if self.last else []

    @property
    def trials(self) -> int:
        """How many there were, of both phases."""
        return self._runner.finished - self._before

    def spoilt_at(self, rate_per_s: int) -> Reason:
        """Why no test at that rate told anything."""
        reasons = self.troubles.at(rate_per_s)
        untold = Reason(code="nothing_passed", message="no test was valid")
        return reasons[0] if reasons else untold

    def establish(self, stateful: Stateful, rate_per_s: int) -> Outcome:
        """One test: what it says of that rate.

        Raises:
            NoUseError: no test at this or a lower rate would tell anything.
            EngineError, SetupError: see ``Trials.run``.
        """
        if self._outlives(stateful, rate_per_s):
            self._expired()
        _, used_per_s = stateful.rates_per_s(rate_per_s)
        if used_per_s is None:
            opened = self.opened(stateful, rate_per_s)
        else:
            opened = self.both(stateful, rate_per_s)
        reason = forgotten_in_shadow(opened)
        if stateful.is_opened_before and opened.back is None:
            reason = not_opened(opened.first)
        if reason:
            self._spoilt(rate_per_s, [reason])
            return Outcome("invalid")
        if opened.last.result.verdict.kind == "pass":
            proof = opened.last if stateful.is_opened_before else opened.first
            self.opened_at[rate_per_s] = proof.result
        return self._told(rate_per_s, opened.last.result)

    def both(
        self,
        stateful: Stateful,
        rate_per_s: int,
        *,
        goes_on: Collection[VerdictKind] = PASSED,
    ) -> Opened:
        """Phase 1 and, after one of these verdicts, the validation of what it opened.

        A run that ended between the two has lost what was opened: it is opened anew.
        """
        found: list[Opened] = []

        def phase1() -> TrialRecord:
            found.append(self.opened(stateful, rate_per_s))
            return found[-1].first

        verdict = self._runner.opened(phase1, goes_on).result.verdict.kind
        opened = found[-1]
        if verdict not in goes_on:
            return opened
        return self._used(opened, stateful, rate_per_s)

    def opened(
        self,
        stateful: Stateful,
        rate_per_s: int,
        afterwards: Afterwards | None = None,
    ) -> Opened:
        """Phase 1 alone, whatever it says."""
        record = self._runner.run(
            Ask(
                self._cell,
                stateful.rates_per_s(rate_per_s)[0],
                repeat=self._repeat,
                shape=partial(phase1, cell=self._cell, stateful=stateful),
                afterwards=afterwards or self._counting.ask,
                may_collapse=self._may_collapse,
            )
        )
        self.last = Opened(record)
        self._check(record, stateful, rate_per_s)
        if afterwards is None:
            self._counting.compare(record, stateful)
        return self.last

    def _used(self, opened: Opened, stateful: Stateful, rate_per_s: int) -> Opened:
        """One frame back for each connection, or of TCP its initiator's next one."""
        _, used_per_s = stateful.rates_per_s(rate_per_s)
        cell, spec = self._cell, self._cell.spec
        shape: Shape = partial(validation, stateful=stateful)
        if isinstance(spec, TcpKeys) and spec.tcp:
            opened_by = opened.first.request.trial_id
            shape = partial(use, spec=spec, stateful=stateful, opened_by=opened_by)
        else:
            cell = cell.model_copy(update={"direction": stateful.responder_direction})
        record = self._runner.run(
            Ask(
                cell,
                used_per_s or rate_per_s,
                repeat=self._repeat,
                shape=shape,
                continues=True,
                may_collapse=self._may_collapse,
            )
        )
        self.last = Opened(opened.first, record)
        self._check(record, stateful, rate_per_s)
        table = record.result.table
        if table:
            phase1 = opened.first.request
            pause_ns = table.since_learning_ns - phase1.duration_ns
            pause_ns -= phase1.residual_wait_ns
            self._pause_s = max(self._pause_s, pause_ns / 1e9)
        if record.result.verdict.kind == "fail" and self._outlives(
            stateful, rate_per_s
        ):
            self._expired()
        return self.last

    def _expired(self) -> NoReturn:
        self.expired = True
        raise NoUseError

    def _outlives(self, stateful: Stateful, rate_per_s: int) -> bool:
        """Whether a test would last longer than the device keeps connections."""
        timeout_s = stateful.dut_timeout_s
        lives_s = stateful.lifetime_s(rate_per_s) + self._pause_s
        return timeout_s is not None and lives_s >= timeout_s

    def _check(self, record: TrialRecord, stateful: Stateful, rate_per_s: int) -> None:
        if elsewhere := unexpected_reasons(record, stateful):
            self._spoilt(rate_per_s, elsewhere)
            raise NoUseError
        reasons = record.result.verdict.reasons
        if record.attempt == ATTEMPTS and no_rate_helps(reasons):
            self._spoilt(rate_per_s, reasons)
            raise NoUseError

    def _spoilt(self, rate_per_s: int, reasons: list[Reason]) -> None:
        self.troubles.note(rate_per_s, Verdict(kind="invalid", reasons=reasons))

    def _told(self, rate_per_s: int, result: TrialResult) -> Outcome:
        self.troubles.note(rate_per_s, result.verdict)
        if result.verdict.kind == "pass":
            self.passed = max(rate_per_s, self.passed or 0)
        if fails_beside_loss(result.verdict):
            return Outcome("fail")  # whatever share of them is missing
        return outcome(result)


def not_opened(phase1: TrialRecord) -> Reason:
    """Why nothing was used: a rate of uses says nothing of how connections open."""
    told = "; ".join(reason.message for reason in phase1.result.verdict.reasons)
    return Reason(
        code="phase1_failed",
        message=f"not all connections opened at {phase1.load_fps:,}/s: {told}",
        hint="lower --phase1-rate, safely below what tcp-connection-rate finds",
    )


def forgotten_in_shadow(opened: Opened) -> Reason | None:
    """Why the validation of a test whose phase 1 had a stall tells nothing, if so."""
    if opened.back is None or opened.back.result.verdict.kind != "fail":
        return None
    if {reason.code for reason in opened.back.result.verdict.reasons} != {
        "frames_lost"
    }:
        return None  # a stall makes no duplicates
    (first,) = opened.first.result.directions
    survival = opened.back.result.directions[0].streams[0].survival
    if survival is None or survival.more_ranges:
        return None
    lost = [
        range(begin, begin + count) for begin, count in survival.lost_ranges if count
    ]
    bursts = [shadow for shadow in first.shadows if shadow.may_lose]
    missing = sum(map(len, lost))
    most = sum(missing if b.frames is None else b.frames for b in bursts)
    spans = [_opened_in(shadow, first.intended_rate_fps) for shadow in bursts]
    if not 0 < missing <= most or not all(
        any(one[0] in span and one[-1] in span for span in spans) for one in lost
    ):
        return None
    return Reason(
        code="sender_burst",
        message=f"{missing:,} connections do not work that were opened in the "
        "recovery window of a stall of the tester's sender, which may have cost them",
        hint="isolate the tester's cores; the test is worth repeating",
    )


def _opened_in(shadow: Shadow, rate_per_s: int) -> range:
    """The connections whose frame of phase 1 was due then, and one at each end."""
    begin = shadow.begin_ns * rate_per_s // 10**9
    if shadow.end_ns is None:
        return range(max(0, begin - 1), sys.maxsize)
    return range(max(0, begin - 1), shadow.end_ns * rate_per_s // 10**9 + 2)


def expired(stateful: Stateful) -> Reason:
    """Why slower tests were not made."""
    return Reason(
        code="connections_expire",
        message=f"at the rates that are left a test would last longer than the device "
        f"keeps connections, {stateful.dut_timeout_s:g} s",
        hint="raise the device's UDP timeout and --dut-timeout, or open fewer "
        "connections",
    )
