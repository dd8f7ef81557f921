"""A known-answer device and its tester, both simulated: what each says can be chosen.

The device does as it is told and gives a true account of it; the tester is a FakeEngine
whose device may be another one, so that what it finds is wrong by a known error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from planning import TESTBED, FakeOpener

from dutperf.engine.client import ProgressCallback, ignore_progress
from dutperf.lab.refdut_socket import (
    Behaviour,
    ClassAccount,
    DeviceLossRun,
    DirectionAccount,
    Durations,
    PlainReadings,
    Report,
    TrialAccount,
    WitnessedTimes,
)
from dutperf.protocol.base import DirectionName
from dutperf.protocol.result_messages import DirectionResult, TrialResult
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.run.local_executor import Surroundings
from dutperf.simulation.fake_engine import Delays, Dut, FakeEngine, fixed, perfect
from tools.calibrate.grid import Extent
from tools.calibrate.measuring import Laboratory, Run
from tools.calibrate.model import Point, Row

EXTENT = Extent(quick=True, repeats=2)
NOTHING = Durations(count=0, min=None, max=None, sum=0, buckets=())
DAMAGES: tuple[Any, ...] = (
    "payload",
    "checksum",
    "truncation",
    "checksum_zero",
    "length",
    "number",
)


def all_took(duration_ns: int, frames: int) -> Durations:
    if not frames:
        return NOTHING
    return Durations(
        count=frames,
        min=duration_ns,
        max=duration_ns,
        sum=duration_ns * frames,
        buckets=((duration_ns, duration_ns, frames),),
    )


class SimulatedTester(FakeEngine):
    """Remembers its trials."""

    def __init__(
        self, dut: Dut, delays: Delays, troubles: Mapping[int, BaseException]
    ) -> None:
        super().__init__(dut, delays=delays, troubles=troubles)
        self.done: list[tuple[TrialRequest, TrialResult]] = []

    def hold_back_above(self, rate_fps: float) -> None:
        """From now on somebody lets it send no more than that, and loses nothing."""
        self._dut, self._tester_limit_fps, self._held_back = perfect(), rate_fps, True

    def measure(
        self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        result = super().measure(trial, on_progress)
        self.done.append((trial, result))
        return result


class SimulatedAnswer:
    """``forwards`` and ``delay_ns`` are the truth; ``silent``: no account at all."""

    lets_through = 1.1
    """Times the service rate, where it withholds its descriptors: its ring fills."""

    def __init__(
        self,
        tester: SimulatedTester,
        forwards: Dut,
        delay_ns: int,
        *,
        silent: bool = False,
    ) -> None:
        self.told: list[Behaviour] = []
        self._tester = tester
        self._forwards = forwards
        self._delay_ns = delay_ns
        self._silent = silent

    def configure(self, behaviour: Behaviour) -> None:
        self.told.append(behaviour)
        service = behaviour.get("forward", {}).get("service", {})
        if service.get("withhold"):
            self._forwards = perfect()
            self._tester.hold_back_above(service["rate_fps"] * self.lets_through)

    def report(self, trial_id: int | None = None) -> Report:
        done = self._tester.done[-8:]
        trials = [
            self._account(len(self._tester.done) - len(done) + n, request, result)
            for n, (request, result) in enumerate(done, 1)
            if trial_id in (None, request.trial_id)
        ]
        return Report(
            schema_version=1, trials=() if self._silent else tuple(trials), device={}
        )

    def _account(
        self, run: int, request: TrialRequest, result: TrialResult
    ) -> TrialAccount:
        by_name = {direction.name: direction for direction in result.directions}
        rates = {d.name: d.rate_fps for d in request.directions}

        def of(name: DirectionName) -> DirectionAccount:
            return self.direction(by_name.get(name), rates.get(name, 0))

        lasted = [(d.streams[0].sent - 1) / rates[d.name] for d in result.directions]
        return TrialAccount(
            run=run,
            trial_id=request.trial_id,
            lasted_ns=round(max(lasted) * 1e9),
            forward=of("forward"),
            reverse=of("reverse"),
        )

    def direction(
        self, direction: DirectionResult | None, rate_fps: int
    ) -> DirectionAccount:
        """What is told of one."""
        seen = direction.streams[0].sent if direction else 0
        left = self._forwards(rate_fps, seen) if seen else 0
        return direction_account(seen, left, self._delay_ns)


def direction_account(seen: int, left: int, delay_ns: int = 0) -> DirectionAccount:
    """Of ``seen`` frames the first ``left`` left, the rest found the queue full."""
    lost = DeviceLossRun(
        stream=0, cause="queue", first=left, count=seen - left, from_ns=0, to_ns=0
    )
    return DirectionAccount(
        foreground=_frames(seen, left, delay_ns),
        background=_frames(0, 0, 0),
        readings=PlainReadings(
            read=seen // 64, unreadable=0, wrong_sums=0, other_tags=0
        ),
        own_error_ns=all_took(10, left),
        poll_gap_ns=all_took(20, left),
        rules=(),
        losses=(lost,) if left < seen else (),
        loss_runs_left_out=0,
    )


def _frames(seen: int, left: int, delay_ns: int) -> ClassAccount:
    return ClassAccount(
        seen=seen,
        left=left,
        copies_left=0,
        dropped_by_rule=0,
        dropped_by_queue=seen - left,
        dropped_by_routing=0,
        dropped_by_nat=0,
        delayed=0,
        displaced=0,
        displaced_less=0,
        out_of_order=0,
        corrupted_left=dict.fromkeys(DAMAGES, 0),
        corrupted_copies_left=dict.fromkeys(DAMAGES, 0),
        failed_no_buffer=0,
        failed_refused=0,
        residence_ns=all_took(delay_ns, left),
        witnessed=WitnessedTimes(
            frames=left, sum_ns=left * delay_ns, least_ns=delay_ns, most_ns=delay_ns
        ),
    )


def rows_of(
    point: Point,
    directory: Path,
    *,
    truth: Dut,
    found: Dut,
    delay_ns: int = 200_000,
    stamps: Callable[[int], int] = lambda delay_ns: delay_ns + 500,
    silent: bool = False,
    troubles: Mapping[int, BaseException] = MappingProxyType({}),
    handover_ns: int = 0,
) -> list[Row]:
    """What a calibration says of ``point``, by a tester that finds ``found``."""
    tester = SimulatedTester(found, fixed(stamps(delay_ns)), troubles)
    device = SimulatedAnswer(tester, truth, delay_ns, silent=silent)
    with simulated_run(directory, tester, device, handover_ns) as run:
        run.measure(point)
        return run.end().rows


def simulated_run(
    directory: Path,
    tester: SimulatedTester,
    device: SimulatedAnswer,
    handover_ns: int = 0,
) -> Run:
    """A calibration without frames."""
    around = Surroundings(
        open_engine=FakeOpener(tester),
        write_report=lambda path: path,
        sleep=lambda _seconds: None,
    )
    laboratory = Laboratory(
        plan=lambda _name: TESTBED,
        session=lambda _name: contextlib.nullcontext(TESTBED),
        device=lambda: device,
        examine=lambda: (),
        handover_ns=lambda _cpus: handover_ns,
    )
    return Run(directory, around, lambda _event: None, laboratory)
