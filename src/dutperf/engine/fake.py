"""An engine without packets: trials against a simulated device under test.

    engine = FakeEngine(step(250_000))
    engine.measure(trial).verdict

No time passes and nothing is opened, so procedures, campaigns and the command line
can be tried and tested anywhere. The results are complete: counters, histograms and
port statistics agree with each other as the real engine's do.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from typing import get_args

from dutperf.engine.measurer import ProgressCallback, ignore_progress
from dutperf.engine.protocol import (
    ERROR_ENVIRONMENT,
    GENERATOR,
    PROTOCOL_VERSION,
    DirectionRequest,
    DirectionResult,
    Driver,
    HelloResult,
    Histogram,
    NeighboursParams,
    NeighboursResult,
    PortCounters,
    PortReport,
    PortSpec,
    PortsResult,
    PortStatus,
    PreviewParams,
    PreviewResult,
    Reason,
    ReasonCode,
    ResolvedNeighbour,
    Side,
    StreamResult,
    TrialProgress,
    TrialRequest,
    TrialResult,
    Verdict,
)
from dutperf.errors import EngineError

Dut = Callable[[float, int], int]
"""(rate in frames per second, frames sent) -> frames forwarded, one direction."""

_SIDES: tuple[Side, Side] = ("left", "right")
_GIVE_UP_SHARE = 10
"""A sender that is hopelessly behind gives up after this part of the trial."""


def perfect() -> Dut:
    """A wire: forwards everything."""
    return lambda _rate_fps, frames: frames


def step(limit_fps: float) -> Dut:
    """Forwards everything up to ``limit_fps`` and that many above."""

    def forward(rate_fps: float, frames: int) -> int:
        return frames if rate_fps <= limit_fps else int(frames * limit_fps / rate_fps)

    return forward


def noisy(limit_fps: float, *, one_in: int, seed: int = 1) -> Dut:
    """Like ``step``, but loses a single frame in about one of ``one_in`` trials."""
    draw = random.Random(seed)  # noqa: S311 - simulated noise, not a secret
    forward = step(limit_fps)

    def forward_most(rate_fps: float, frames: int) -> int:
        lost = 1 if draw.randrange(one_in) == 0 else 0
        return max(forward(rate_fps, frames) - lost, 0)

    return forward_most


class FakeEngine:
    """Implements everything that a campaign asks of an engine.

    Args:
        dut: the simulated device, the same for both directions.
        tester_limit_fps: the fastest rate the tester can offer; None: any.
        troubles: call number of ``measure`` (from 1) -> what happens instead of a
            measurement: a reason makes the trial invalid, an exception is raised.
        link_speed_mbps: what the ports say; None: nothing.
        refused: drivers that ``open_ports`` refuses, as on a kernel without them.
        silent: next hops that nobody answers for.
    """

    def __init__(
        self,
        dut: Dut,
        *,
        tester_limit_fps: float | None = None,
        troubles: Mapping[int, ReasonCode | BaseException] | None = None,
        link_speed_mbps: int | None = 10_000,
        refused: Collection[Driver] = (),
        silent: Collection[str] = (),
    ) -> None:
        self.trials: list[TrialRequest] = []
        self.previews: list[PreviewParams] = []
        self.aborted = False
        self._dut = dut
        self._tester_limit_fps = tester_limit_fps
        self._troubles = dict(troubles or {})
        self._link_speed_mbps = link_speed_mbps
        self._refused = refused
        self._silent = silent
        self._ports: list[PortSpec] = []
        self._counters = {side: _counters() for side in _SIDES}

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
        )

    def open_ports(self, ports: list[PortSpec]) -> PortsResult:
        """Accept every driver that is not in ``refused``."""
        for port in ports:
            if port.driver in self._refused:
                raise EngineError(
                    f"{port.name}: {port.driver} does not work on {port.device}",
                    code=ERROR_ENVIRONMENT,
                )
        self._ports = list(ports)
        return self.port_status()

    def port_status(self) -> PortsResult:
        """Links are up, flow control is off."""
        return PortsResult(ports=[self._status(port) for port in self._ports])

    def set_neighbours(self, params: NeighboursParams) -> NeighboursResult:
        """Resolve everything that is not in ``silent``."""
        found = [
            ResolvedNeighbour(
                port=port.port,
                ip=ip,
                mac=None if ip in self._silent else "02:00:00:00:01:01",
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
        directions = [self._direction(trial, d) for d in trial.directions]
        on_progress(_progress(trial, directions))
        before = dict(self._counters)
        for direction in directions:
            self._count(direction)
        return TrialResult(
            trial_id=trial.trial_id,
            verdict=self._verdict(trial, trouble, directions),
            directions=directions,
            ports=[_port_report(s, before[s], self._counters[s]) for s in _SIDES],
            neighbours=[],
            generator=GENERATOR,
            total_ns=trial.settle_ns + trial.duration_ns + trial.residual_wait_ns,
            overhead_ns=0,
        )

    def preview(self, params: PreviewParams) -> PreviewResult:
        """Say that the frames were written; write none."""
        self.previews.append(params)
        trial = params.trial
        frames = [min(params.count, trial.frames(d)) for d in trial.directions]
        return PreviewResult(frames=sum(frames))

    def abort(self) -> None:
        """Remember that it was asked to."""
        self.aborted = True

    def _status(self, port: PortSpec) -> PortStatus:
        return PortStatus(
            name=port.name,
            driver=port.driver,
            device=port.device,
            mac=port.mac or "02:00:00:00:00:01",
            link_up=True,
            link_speed_mbps=self._link_speed_mbps,
            full_duplex=True,
            flow_control="off",
            numa_node=None,
            mtu=port.mtu,
            dpdk_name="fake",
            counters=self._counters[port.name],
        )

    def _too_fast(self, rate_fps: int) -> bool:
        return self._tester_limit_fps is not None and rate_fps > self._tester_limit_fps

    def _direction(
        self, trial: TrialRequest, direction: DirectionRequest
    ) -> DirectionResult:
        rate_fps, intended = direction.rate_fps, trial.frames(direction)
        offered_fps, sent, sending_ns = float(rate_fps), intended, trial.duration_ns
        if self._tester_limit_fps is not None and self._too_fast(rate_fps):
            offered_fps = float(self._tester_limit_fps)
            sending_ns = trial.duration_ns // _GIVE_UP_SHARE
            sent = int(offered_fps * sending_ns / 1e9)
        received = self._dut(offered_fps, sent)
        return DirectionResult(
            name=direction.name,
            intended_rate_fps=rate_fps,
            offered_rate_fps=offered_fps,
            sending_ns=sending_ns,
            tx_full=0,
            lag_ns=_all_in_one_bucket(sent, 128),
            burst_frames=_all_in_one_bucket(sent, 1),
            streams=_streams(direction, intended, sent, received),
        )

    def _verdict(
        self,
        trial: TrialRequest,
        trouble: ReasonCode | None,
        directions: list[DirectionResult],
    ) -> Verdict:
        if trouble:
            return _invalid(trouble, "simulated")
        if any(self._too_fast(d.rate_fps) for d in trial.directions):
            return _invalid("sender_behind", "the simulated tester is not that fast")
        lost = sum(s.lost for d in directions for s in d.streams)
        if lost:
            reason = Reason(code="frames_lost", message=f"{lost} frames lost")
            return Verdict(kind="fail", reasons=[reason])
        return Verdict(kind="pass")

    def _count(self, direction: DirectionResult) -> None:
        sender, receiver = _SIDES if direction.name == "forward" else _SIDES[::-1]
        sent = sum(s.sent for s in direction.streams)
        received = sum(s.received for s in direction.streams)
        counters = self._counters
        counters[sender] = _counters(
            counters[sender].rx_frames, counters[sender].tx_frames + sent
        )
        counters[receiver] = _counters(
            counters[receiver].rx_frames + received, counters[receiver].tx_frames
        )


def _streams(
    direction: DirectionRequest, intended: int, sent: int, received: int
) -> list[StreamResult]:
    """The direction's counts by stream; the DUT loses the last frames, so of both."""
    results = []
    for index, stream in enumerate(direction.streams):
        sent_here = direction.frames_of(index, sent)
        received_here = direction.frames_of(index, received)
        results.append(
            StreamResult(
                id=stream.id,
                name=stream.name,
                intended=direction.frames_of(index, intended),
                sent=sent_here,
                received=received_here,
                lost=sent_here - received_here,
                duplicate=0,
                reordered=0,
            )
        )
    return results


def _counters(rx_frames: int = 0, tx_frames: int = 0) -> PortCounters:
    return PortCounters(
        rx_frames=rx_frames,
        tx_frames=tx_frames,
        rx_missed=0,
        rx_errors=0,
        rx_nombuf=0,
        tx_errors=0,
    )


def _port_report(side: Side, before: PortCounters, after: PortCounters) -> PortReport:
    return PortReport(
        name=side,
        before=before,
        after=after,
        neighbour_requests=0,
        foreign=0,
        stale=0,
        misdirected=0,
        corrupt=0,
    )


def _progress(trial: TrialRequest, directions: list[DirectionResult]) -> TrialProgress:
    streams = [s for d in directions for s in d.streams]
    return TrialProgress(
        trial_id=trial.trial_id,
        phase="running",
        elapsed_ns=trial.settle_ns + trial.duration_ns,
        sent=sum(s.sent for s in streams),
        received=sum(s.received for s in streams),
    )


def _all_in_one_bucket(count: int, value: int) -> Histogram:
    if count == 0:
        return Histogram(count=0, min=None, max=None, buckets=[])
    return Histogram(count=count, min=value, max=value, buckets=[(value, value, count)])


def _invalid(code: ReasonCode, message: str) -> Verdict:
    return Verdict(kind="invalid", reasons=[Reason(code=code, message=message)])
