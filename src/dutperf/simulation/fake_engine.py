"""An engine without packets: trials against a simulated device under test.

    engine = FakeEngine(step(250_000), delays=every(10, 1_000_000_000))
    engine.measure(trial).verdict

No time passes and nothing is opened, so procedures, campaigns and the command line
can be tried and tested anywhere. The results are complete: counters, histograms and
port statistics agree with each other as the real engine's do.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import get_args

from dutperf.engine.client import ProgressCallback, ignore_progress
from dutperf.errors import EngineError
from dutperf.protocol.base import DirectionName, Driver, Side
from dutperf.protocol.methods import (
    ERROR_ENVIRONMENT,
    ERROR_STATE,
    PROTOCOL_VERSION,
    HelloResult,
    PreviewParams,
    PreviewResult,
)
from dutperf.protocol.port_messages import (
    DriverCounter,
    NeighboursParams,
    NeighboursResult,
    PortCounters,
    PortSpec,
    PortsResult,
    PortStatus,
    ResolvedNeighbour,
)
from dutperf.protocol.result_messages import (
    BesideResult,
    Damage,
    DirectionResult,
    DnsAsked,
    DnsReplies,
    DnsResult,
    Histogram,
    PortReport,
    Reason,
    ReasonCode,
    SegmentName,
    Segments,
    Silence,
    StreamResult,
    TcpEnd,
    TcpResult,
    TrialResult,
    Verdict,
)
from dutperf.protocol.stream_messages import GENERATOR, DirectionRequest
from dutperf.protocol.stream_parts import Learn, TableResult
from dutperf.protocol.trial_messages import Dns, TrialProgress, TrialRequest
from dutperf.simulation.loads_over_time import (
    Arrivals,
    Schedule,
    absent,
    due_times,
    each_step,
    is_of,
    longest_silence,
    of_stream,
    queueing,
)
from dutperf.simulation.simulated_devices import (
    COARSE_BITS,
    Counts,
    Damages,
    Delays,
    Dut,
    Fate,
    Pattern,
    buffered,
    end_of_hopeless,
    every,
    exceeds_tolerance,
    fixed,
    histogram,
    jitter,
    jump,
    lossy,
    noisy,
    perfect,
    rising,
    sometimes,
    step,
    stream_result,
    without_checksum,
)
from dutperf.simulation.simulated_gateway import (
    SimulatedAgent,
    SimulatedNat,
    SimulatedTable,
    TupleTraffic,
    traffic_of,
)

__all__ = [
    "Arrivals",
    "Delays",
    "Dut",
    "FakeEngine",
    "SimulatedNat",
    "absent",
    "buffered",
    "every",
    "fixed",
    "jitter",
    "jump",
    "lossy",
    "noisy",
    "perfect",
    "queueing",
    "rising",
    "sometimes",
    "step",
    "without_checksum",
]

_SIDES: tuple[Side, Side] = ("left", "right")
Port = tuple[Side, int]
"""Side and number."""
_NO_TABLE = "run phase 1 first: a trial with learn and keep false"
_BROADCAST_MAC = "ff:ff:ff:ff:ff:ff"
_GIVE_UP_SHARE = 10
"""A sender that is hopelessly behind gives up after this part of the trial."""
_DELAY_NS = 20_000
_SEND_CALL_NS = 300
_RECEIVE_GAP_NS = 900


DUT_MAC = "02:00:00:00:01:01"
"""The device's, on both sides."""
_GROUP_MACS = ("01:00:5e:", "33:33:")


class FakeEngine:
    """Implements everything that a campaign asks of an engine.

    Args:
        dut: the simulated device, the same for both directions.
        delays: how long its frames take.
        tester_limit_fps: the fastest rate the tester can offer; None: any.
        held_back: it is not the tester's own limit: something behind a port stops it.
        pause_frames: that the sending port counts whenever the tester is held back.
        troubles: call number of ``measure`` (from 1) -> what happens instead of a
            measurement: a reason makes the trial invalid, an exception is raised.
        link_speed_mbps: what the ports say; None: nothing.
        refused: drivers that ``open_ports`` refuses, as on a kernel without them.
        silent: next hops that nobody answers for.
        down: sides of which the links are.
        damages: how many of a direction's forwarded frames it damages.
        nat: the connections of the device, when it has any. Where connections are
            opened or answered no trial ends early.
        arrivals: which frames arrive, one by one; ``dut`` is not asked then.
        agent: answers management queries; None: one that answers all.
    """

    def __init__(
        self,
        dut: Dut,
        *,
        delays: Delays = fixed(_DELAY_NS),  # noqa: B008 - it has no state
        tester_limit_fps: float | None = None,
        held_back: bool = False,
        pause_frames: int = 0,
        troubles: Mapping[int, ReasonCode | BaseException] | None = None,
        link_speed_mbps: int | None = 10_000,
        refused: Collection[Driver] = (),
        silent: Collection[str] = (),
        down: Collection[Side] = (),
        damages: Damages = without_checksum(sys.maxsize),  # noqa: B008 - the same
        nat: SimulatedNat | None = None,
        arrivals: Arrivals | None = None,
        agent: SimulatedAgent | None = None,
    ) -> None:
        self.trials: list[TrialRequest] = []
        self.previews: list[PreviewParams] = []
        self.aborted = False
        self._stopped = False
        self._dut = dut
        self._delays = delays
        self._tester_limit_fps = tester_limit_fps
        self._held_back = held_back
        self._pause_frames = pause_frames
        self._troubles = dict(troubles or {})
        self._link_speed_mbps = link_speed_mbps
        self._refused = refused
        self._silent = silent
        self._down = down
        self._damages = damages
        self._arrivals = arrivals
        self._nat = nat or SimulatedNat()
        self._agent = agent or SimulatedAgent()
        self._table: SimulatedTable | None = None
        self._ports: list[PortSpec] = []
        self._counters = {port: _counters() for port in _ports(1)}

    def hello(self) -> HelloResult:
        """Say what it is: nothing real."""
        return HelloResult(
            engine_version="fake",
            dpdk_version="none",
            protocol_version=PROTOCOL_VERSION,
            tsc_hz=1_000_000_000,
            worker_cpus=[0],
            main_cpu=0,
            hugepages=False,
            memory_mb=0,
            drivers=list(get_args(Driver)),
            clock_offset_ns=0,
        )

    def open_ports(self, ports: list[PortSpec], shares: int = 1) -> PortsResult:
        """Accept every driver that is not in ``refused``."""
        for port in ports:
            if port.driver in self._refused:
                raise EngineError(
                    f"{port.label}: {port.driver} does not work on {port.device}",
                    rpc_code=ERROR_ENVIRONMENT,
                )
        self._ports = list(ports)
        self.shares = shares
        self._counters = {port: _counters() for port in _ports(len(ports) // 2)}
        return self.port_status()

    def port_status(self) -> PortsResult:
        """Links are up, but for those of ``down``; flow control is off."""
        return PortsResult(ports=[self._status(port) for port in self._ports])

    def set_neighbours(self, params: NeighboursParams) -> NeighboursResult:
        """Resolve everything that is not in ``silent``."""
        found = [
            ResolvedNeighbour(
                port=port.port,
                number=port.number,
                ip=ip,
                mac=None if ip in self._silent else DUT_MAC,
                duration_ns=1000,
            )
            for port in params.ports
            for ip in port.resolve
        ]
        return NeighboursResult(neighbours=found)

    def measure(
        self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        """Simulate ``trial``, see ``Measurer.measure``."""
        self.trials.append(trial)
        trouble = self._troubles.get(len(self.trials))
        if isinstance(trouble, BaseException):
            raise trouble
        self._check_table(trial)
        pattern = self._delays(len(self.trials))
        self._wait_for_start(trial)
        started_ns = self._nat.now_ns
        fates = [self._fate(trial, d) for d in trial.directions]
        arrived = self._connect(trial, fates)
        pattern = replace(pattern, jump_ns=pattern.jump_ns + self._nat.waited_ns)
        end_ns = trial.duration_ns if arrived else self._end_ns(trial, fates, pattern)

        def sent_until(end_ns: int) -> list[DirectionResult]:
            return [
                _direction(
                    trial,
                    d,
                    fate.until(min(end_ns, fate.sending_ns)),
                    pattern,
                    arrived.get(d.name),
                )
                for d, fate in zip(trial.directions, fates, strict=True)
            ]

        directions = sent_until(end_ns)
        self._stopped = False
        on_progress(_progress(trial, directions, end_ns))
        if self._stopped:
            end_ns = min(end_ns, trial.duration_ns // 2)
            directions = sent_until(end_ns)
        self._nat.wait(end_ns + trial.residual_wait_ns)
        before = dict(self._counters)
        for request, direction in zip(trial.directions, directions, strict=True):
            self._count(request, direction)
        return TrialResult(
            trial_id=trial.trial_id,
            verdict=self._verdict(trial, trouble, directions, end_ns),
            ended_early=end_ns < trial.duration_ns,
            directions=directions,
            tcp=_connections(trial, directions),
            dns=_queries(trial, directions),
            ports=[
                self._report(trial, port, before[port], directions)
                for port in self._counters
            ],
            neighbours=[],
            table=self._table_result(trial, started_ns),
            generator=GENERATOR,
            begin_unix_ns=_began_ns(self.trials[0].trial_id) + started_ns
            if _is_phase(trial)
            else None,
            total_ns=trial.settle_ns + end_ns + trial.residual_wait_ns,
            overhead_ns=0,
        )

    def preview(self, params: PreviewParams) -> PreviewResult:
        """Say that the frames were written; write none."""
        self.previews.append(params)
        trial = params.trial
        frames = [min(params.count, trial.frames(d)) for d in trial.directions]
        return PreviewResult(frames=sum(frames))

    def drop_table(self) -> None:
        """Forget what was learned."""
        self._table = None

    def stop(self) -> None:
        """Asked for while a trial tells its progress: it has sent for half its time."""
        self._stopped = True

    def abort(self) -> None:
        """Remember that it was asked to."""
        self.aborted = True

    def _status(self, port: PortSpec) -> PortStatus:
        return PortStatus(
            name=port.name,
            number=port.number,
            driver=port.driver,
            device=port.device,
            mac=port.mac or "02:00:00:00:00:01",
            link_up=port.name not in self._down,
            link_speed_mbps=self._link_speed_mbps,
            full_duplex=True,
            flow_control="off",
            numa_node=None,
            mtu=port.mtu,
            vlan=port.vlan,
            mpls=port.mpls,
            encapsulation=port.encapsulation,
            dpdk_name="fake",
            counters=self._counters[port.name, port.number],
        )

    def _report(
        self,
        trial: TrialRequest,
        port: Port,
        before: PortCounters,
        directions: list[DirectionResult],
    ) -> PortReport:
        """Announcements are the first port's of a side, and so is what is damaged."""
        side, number = port
        if number:
            return _port_report(port, before, self._counters[port], [])
        found = _port_report(port, before, self._counters[port], directions)
        return found.model_copy(
            update={
                "announced": sum(a.port == side for a in trial.announcements),
                "answers": self._agent.answers(trial, side),
            }
        )

    def _too_fast(self, rate_fps: int) -> bool:
        return self._tester_limit_fps is not None and rate_fps > self._tester_limit_fps

    def _wait_for_start(self, trial: TrialRequest) -> None:
        self._nat.wait(trial.settle_ns)
        if self._table and trial.not_before_ns:
            begin_ns = self._table.started_ns + trial.not_before_ns
            self._nat.wait(max(begin_ns - self._nat.now_ns, 0))

    def _fate(self, trial: TrialRequest, direction: DirectionRequest) -> Fate:
        rate_fps, sent = float(direction.rate_fps), trial.frames(direction)
        sending_ns = trial.duration_ns
        if self._tester_limit_fps is not None and self._too_fast(direction.rate_fps):
            rate_fps = float(self._tester_limit_fps)
            sending_ns //= _GIVE_UP_SHARE
            sent = int(rate_fps * sending_ns / 1e9)
        # Frames to a MAC address of the tester's choice are not the device's.
        reach_it = self._nat.is_alive and _is_forwarded(direction.streams[0].dst_mac)
        if not reach_it:
            return Fate(rate_fps, sent, 0, sending_ns)
        arrived = self._arrived(direction, sent)
        forwarded = self._dut(rate_fps, sent) if arrived is None else arrived.count(1)
        damaged = self._damages(forwarded)
        if arrived is not None:
            arrived = arrived.replace(b"\1", b"\0", damaged.total)
        received = forwarded - damaged.total
        return Fate(rate_fps, sent, received, sending_ns, damaged, arrived)

    def _arrived(self, direction: DirectionRequest, sent: int) -> bytearray | None:
        """One by one, where the load changes or the device looks at each frame."""
        if self._arrivals:
            return self._arrivals(due_times(direction, sent))
        return each_step(self._dut, direction, sent) if direction.steps else None

    def _end_ns(self, trial: TrialRequest, fates: list[Fate], pattern: Pattern) -> int:
        """When sending ends; where a sender gives up, the trial is not stopped."""
        gives_up = any(self._too_fast(d.rate_fps) for d in trial.directions)
        if not trial.stop_when_lost or gives_up:
            return trial.duration_ns
        return end_of_hopeless(trial, fates, pattern) or trial.duration_ns

    def _check_table(self, trial: TrialRequest) -> None:
        """Refuse what the table of earlier trials cannot do."""
        table, learn = self._table, trial.learn
        learned = [d.streams[0] for d in trial.directions if d.streams[0].is_learned]
        keeps = learn if learn and learn.keep else None
        if not (learned or keeps or trial.not_before_ns):
            return
        if table is None:
            raise _state_error("there is no table: no trial has learned one", _NO_TABLE)
        size, version = len(table.entries), table.learn.ip_version
        for stream in learned:
            if stream.tuples and stream.tuples.count > size:
                raise _state_error(
                    f"tuples.count {stream.tuples.count} is more than the table's "
                    f"{size} entries"
                )
            if stream.ip_version != version:
                raise _state_error(f"the table is one of IPv{version} tuples")
        if keeps and not _fits(keeps, table.learn):
            raise _state_error(
                f"learn: the table has {size} entries of IPv{version}, "
                f"learned {table.learn.direction}"
            )

    def _connect(
        self, trial: TrialRequest, fates: list[Fate]
    ) -> dict[DirectionName, bytearray]:
        """What arrives of the foreground streams whose tuples are connections."""
        learn, started_ns = trial.learn, self._nat.now_ns
        if learn and not learn.keep:
            self._table = SimulatedTable(learn, started_ns, _first_tuple(trial))
        if self._table:
            self._table.begin_trial()
        names: dict[bool, DirectionName] = {}
        traffic: dict[bool, TupleTraffic] = {}
        for direction, fate in zip(trial.directions, fates, strict=True):
            stream = direction.streams[0]
            learns = learn and learn.direction == direction.name
            if stream.tuples or learns or (trial.tcp and stream.enumerates):
                forwarded = direction.frames_of(0, fate.received)
                frames = traffic_of(trial, direction, forwarded, started_ns)
                names[stream.is_learned] = direction.name
                traffic[stream.is_learned] = frames
        found = self._nat.carry(
            traffic.get(False),
            traffic.get(True),
            self._table,
            learns=bool(learn),
            opens=trial.tcp.begin == "syn" if trial.tcp else trial.tcp_data is None,
        )
        arrived = {names[kind]: found[kind] for kind in names}
        for direction in trial.directions:
            tuples = direction.streams[0].tuples
            if tuples and not self._nat.lets_in(tuples):
                arrived[direction.name] = bytearray(len(arrived[direction.name]))
        return arrived

    def _table_result(self, trial: TrialRequest, started_ns: int) -> TableResult | None:
        uses = trial.learn or any(d.streams[0].is_learned for d in trial.directions)
        if self._table is None or not uses:
            return None
        return self._table.result(trial, started_ns, self._nat)

    def _verdict(
        self,
        trial: TrialRequest,
        trouble: ReasonCode | None,
        directions: list[DirectionResult],
        end_ns: int,
    ) -> Verdict:
        if trouble:
            return _invalid(trouble, "simulated")
        if any(self._too_fast(d.rate_fps) for d in trial.directions):
            code: ReasonCode = "held_back" if self._held_back else "sender_behind"
            return _invalid(code, "the simulated tester is not that fast")
        asked = zip(trial.directions, directions, strict=True)
        failures = [_failure(trial, request, result) for request, result in asked]
        reasons = [reason for found in failures for reason in found]
        if end_ns < trial.duration_ns and not reasons and not self._stopped:
            return _invalid("stopped_in_error", "all frames came back, only later")
        return Verdict(kind="fail" if reasons else "pass", reasons=reasons)

    def _count(self, request: DirectionRequest, direction: DirectionResult) -> None:
        sender, receiver = _SIDES if direction.name == "forward" else _SIDES[::-1]
        found: list[StreamResult | BesideResult] = [*direction.streams]
        if direction.beside:
            found.append(direction.beside)
        for stream, counts in zip(request.streams, found, strict=True):
            ends = [(0, 0), *((p.sent_by, p.received_by) for p in stream.more_paths)]
            for place, (sent_by, received_by) in enumerate(ends):
                sent = _in_turn(counts.sent, place, len(ends))
                received = _in_turn(counts.received, place, len(ends))
                self._rise((sender, sent_by), tx=sent)
                self._rise((receiver, received_by), rx=received)
        if self._held_back and self._too_fast(direction.intended_rate_fps):
            self._rise((sender, 0), pauses=self._pause_frames)

    def _rise(self, port: Port, rx: int = 0, tx: int = 0, pauses: int = 0) -> None:
        before = self._counters[port]
        paused = before.pauses[0].count + pauses
        self._counters[port] = _counters(
            before.rx_frames + rx, before.tx_frames + tx, paused
        )


def _ports(pairs: int) -> list[Port]:
    return [(side, number) for side in _SIDES for number in range(pairs)]


def _in_turn(frames: int, place: int, places: int) -> int:
    """How many of them are the one at ``place``'s, if they go round."""
    return (frames - place + places - 1) // places


def _direction(
    trial: TrialRequest,
    direction: DirectionRequest,
    fate: Fate,
    pattern: Pattern,
    arrived: bytearray | None,
) -> DirectionResult:
    counts = [
        Counts(
            direction.frames_of(i, trial.frames(direction)),
            direction.frames_of(i, fate.sent),
            direction.frames_of(i, fate.received),
            damaged=fate.damaged.each(partial(direction.frames_of, i)),
        )
        for i in range(len(direction.streams))
    ]
    if fate.arrived is not None:
        counts = [
            count.which(of_stream(direction, i, fate.arrived))
            for i, count in enumerate(counts)
        ]
    if arrived is not None:
        counts[0] = counts[0].which(arrived)
    expected = direction.expected
    beside = _beside(direction, counts[-1]) if len(expected) < len(counts) else None
    received = sum(count.received for count in counts)
    return DirectionResult(
        name=direction.name,
        intended_rate_fps=direction.rate_fps,
        offered_rate_fps=fate.rate_fps,
        sending_ns=fate.sending_ns,
        tx_full=0,
        lag_ns=histogram([(128, fate.sent)], COARSE_BITS),
        burst_frames=histogram([(1, fate.sent)], COARSE_BITS),
        send_call_ns=histogram([(_SEND_CALL_NS, fate.sent)], COARSE_BITS),
        receive_gap_ns=histogram([(_RECEIVE_GAP_NS, received)], COARSE_BITS),
        delay_floor_ns=_SEND_CALL_NS + _RECEIVE_GAP_NS,
        delay_bound_ns=_SEND_CALL_NS + _RECEIVE_GAP_NS,
        longest_silence=_silence(trial, direction, fate, pattern),
        streams=[
            stream_result(
                trial,
                stream,
                counts[i],
                pattern,
                trial.record.tags if i == 0 else None,
                Schedule(direction, i, counts[i].intended, trial.duration_ns),
            )
            for i, stream in enumerate(expected)
        ],
        beside=beside,
    )


def _beside(direction: DirectionRequest, counts: Counts) -> BesideResult:
    """The simulated device is a router: it forwards no broadcast."""
    is_broadcast = direction.streams[-1].dst_mac == _BROADCAST_MAC
    return BesideResult(
        intended=counts.intended,
        sent=counts.sent,
        received=0 if is_broadcast else counts.received,
    )


def _silence(
    trial: TrialRequest, direction: DirectionRequest, fate: Fate, pattern: Pattern
) -> Silence | None:
    """Where it is known which frames arrived; what need not come ends none."""
    if fate.arrived is None:
        return None
    due = due_times(direction, fate.sent)
    has_beside = len(direction.expected) < len(direction.streams)
    times_ns = [
        at_ns + pattern.delay_ns(frame, fate.sent)
        for frame, at_ns in enumerate(due)
        if fate.arrived[frame] and not (has_beside and is_of(direction, 1, frame))
    ]
    return longest_silence(times_ns, trial.duration_ns)


_OPENING_NS = 128_000


def _is_phase(trial: TrialRequest) -> bool:
    """Of a test on connections: others tell no time."""
    learned = any(d.streams[0].is_learned for d in trial.directions)
    return bool(trial.tcp or trial.learn or learned)


def _began_ns(first_trial: int) -> int:
    """When an engine began: one that goes on with a run, weeks after the one before."""
    return 1_700_000_000 * 10**9 + first_trial * 10**15


def _is_forwarded(dst_mac: str | None) -> bool:
    """Of the device, or of a group (RFC 1112 6.4, RFC 2464 7)."""
    return dst_mac in (None, DUT_MAC) or dst_mac.startswith(_GROUP_MACS)


def _connections(
    trial: TrialRequest, directions: Sequence[DirectionResult]
) -> TcpResult | None:
    """Of the frames that came all that follows: what is lost is lost of them."""
    if trial.tcp is None:
        return None
    (stream,) = directions[0].streams
    came = stream.received
    kinds: tuple[SegmentName, ...] = get_args(SegmentName)
    steps = trial.tcp.steps
    there = [came if n in steps else 0 for n in range(len(kinds))]
    there[kinds.index("response")] *= trial.tcp.response_segments
    sent = [stream.sent if n == steps.start else there[n] for n in range(len(kinds))]
    each = zip(kinds, sent, there, strict=True)
    nothing = TcpEnd(**dict.fromkeys(TcpEnd.model_fields, 0))
    timed = came if len(steps) > 1 else 0
    ends = (_OPENING_NS, _OPENING_NS) if timed else (None, None)
    return TcpResult(
        segments=[
            Segments(
                name=name,
                sent=sent,
                received=received,
                duplicate=0,
                # What it drops it drops each time.
                retransmitted=(sent - received) * trial.tcp.retransmit,
            )
            for name, sent, received in each
        ],
        initiator=nothing,
        responder=nothing,
        first_answer_ns=Histogram(
            count=timed,
            min=ends[0],
            max=ends[1],
            buckets=[(_OPENING_NS, _OPENING_NS, timed)] if timed else [],
        ),
    )


def _names(dns: Dns, queries: int) -> tuple[int, int]:
    """How many are asked for that are in no cache, and have no AAAA."""
    percent = dns.cached.percent if dns.cached else 0
    full, rest = divmod(queries, len(_PLACES))

    def asked(place: tuple[int, int]) -> bool:
        return not _is_of(percent, sum(place) % 100)

    def is_without(place: tuple[int, int]) -> bool:
        return asked(place) and not _is_of(dns.aaaa_percent, place[0])

    own, without = (
        full * sum(map(of, _PLACES)) + sum(map(of, _PLACES[:rest]))
        for of in (asked, is_without)
    )
    return own, without


_PLACES = [(query % 100, query // 100) for query in range(10_000)]
"""Of each ten thousand queries as of the first."""


def _is_of(percent: int, place: int) -> bool:
    return (place + 1) * percent // 100 > place * percent // 100


def _queries(
    trial: TrialRequest, directions: Sequence[DirectionResult]
) -> DnsResult | None:
    """What is lost of them nobody has answered, whom the authority was asked by."""
    if trial.dns is None:
        return None
    (stream,) = directions[0].streams
    own, without = _names(trial.dns, stream.sent)
    nothing = dict.fromkeys(DnsReplies.model_fields, 0)

    def asked(names: int) -> DnsAsked:
        return DnsAsked(names=names, again=0, cached=0, answered=names)

    valid = stream.received + stream.duplicate
    kinds = (own, without) if trial.dns.record == "aaaa" else (0, own)
    return DnsResult(
        replies=DnsReplies(**nothing | {"valid": valid}),
        valid_cached=min(valid, stream.sent - own),
        unknown_replies=0,
        damaged_replies=0,
        asked_aaaa=asked(kinds[0]),
        asked_a=asked(kinds[1]),
        unknown_queries=0,
        damaged_queries=0,
        not_sent=0,
    )


def _failure(
    trial: TrialRequest, request: DirectionRequest, direction: DirectionResult
) -> list[Reason]:
    """Why the direction fails: more lost and late frames than are tolerated."""
    sent, lost, late = (
        sum(getattr(s, key) for s in direction.streams)
        for key in ("sent", "lost", "late")
    )
    if not exceeds_tolerance(trial, request, lost + late):
        return []
    found: dict[ReasonCode, int] = {"frames_lost": lost, "frames_late": late}
    damaged = sum(stream.corrupt for stream in direction.streams)
    more = {"frames_lost": f", {damaged} of them damaged" if damaged else ""}
    return [
        Reason(
            code=code,
            message=f"{direction.name}: {n} of {sent} {_FAILURES[code]}"
            + more.get(code, ""),
        )
        for code, n in found.items()
        if n
    ]


_FAILURES = {
    "frames_lost": "frames lost",
    "frames_late": "frames later than the frame timeout",
}


def _first_tuple(trial: TrialRequest) -> int:
    """Of phase 1."""
    (direction,) = trial.directions
    tuples = direction.streams[0].tuples
    return tuples.first if tuples else 0


def _fits(learn: Learn, table: Learn) -> bool:
    """Whether what is to be learned goes into the table of an earlier trial."""
    keys = {"direction", "ip_version", "entries"}
    return learn.model_dump(include=keys) == table.model_dump(include=keys)


def _state_error(message: str, hint: str = "") -> EngineError:
    return EngineError(message, hint, ERROR_STATE)


def _counters(rx_frames: int = 0, tx_frames: int = 0, pauses: int = 0) -> PortCounters:
    return PortCounters(
        rx_frames=rx_frames,
        tx_frames=tx_frames,
        rx_missed=0,
        rx_errors=0,
        rx_nombuf=0,
        tx_errors=0,
        pauses=[DriverCounter(name="rx_xoff_packets", count=pauses)],
    )


def _port_report(
    port: Port,
    before: PortCounters,
    after: PortCounters,
    directions: list[DirectionResult],
) -> PortReport:
    side, number = port
    arriving = "reverse" if side == "left" else "forward"
    streams = [s for d in directions if d.name == arriving for s in d.streams]
    damaged = sum((s.damaged or Damage() for s in streams), Damage())
    return PortReport(
        name=side,
        number=number,
        before=before,
        after=after,
        neighbour_requests=0,
        foreign=0,
        stale=0,
        misdirected=0,
        corrupt=damaged.total,
        damaged=damaged,
        other_vlan=0,
        fragments=0,
    )


def _progress(
    trial: TrialRequest, directions: list[DirectionResult], end_ns: int
) -> TrialProgress:
    streams = [s for d in directions for s in d.streams]
    return TrialProgress(
        trial_id=trial.trial_id,
        phase="running",
        elapsed_ns=trial.settle_ns + end_ns,
        sent=sum(s.sent for s in streams),
        received=sum(s.received for s in streams),
    )


def _invalid(code: ReasonCode, message: str) -> Verdict:
    return Verdict(kind="invalid", reasons=[Reason(code=code, message=message)])
