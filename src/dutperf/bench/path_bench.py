"""The tester's own limit on a whole path, and where its time goes.

For each port driver in turn, round after round, two searches with short trials:

1. The highest rate with a *valid* trial: the tester kept up, whatever the device lost.
2. Up to that, the highest rate without loss. Little loss is verified: a rate fails
   when several trials in a row lose frames (ETSI GS NFV-TST 009, binary search with
   loss verification), as a lab's device shares its CPU with everything else.

Invalid trials are repeated within a bound; the medians of the rounds count. At the
valid rate, or a little below, a longer trial follows while a profiler watches the CPUs
of worker and device.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from dutperf import stats
from dutperf.bench.path_profile import (
    DUT_RULES,
    WORKER_RULES,
    CpuProfile,
    StackSample,
    cpu_profile,
)
from dutperf.config.side import InterfacePort, SideConfig
from dutperf.config.testbed import Testbed
from dutperf.errors import EngineError, InputError
from dutperf.model.cell import Cell
from dutperf.model.procedure_keys import SearchedKeys
from dutperf.procedures.events import (
    CellStarted,
    Event,
    IntervalNarrowed,
    Notice,
    OnEvent,
    TrialMoved,
)
from dutperf.procedures.max_rate import MaxRate, max_rate
from dutperf.procedures.searching import offered_fps, outcome
from dutperf.procedures.trials import Ask
from dutperf.protocol.methods import ERROR_ENVIRONMENT
from dutperf.protocol.result_messages import DirectionResult, VerdictKind
from dutperf.results.trial_record import TrialRecord
from dutperf.run.engine_session import (
    EngineOpener,
    TesterEngine,
    open_ports,
    resolve_neighbours,
)
from dutperf.run.trial_runner import TrialRunner
from dutperf.search import (
    Conclusion,
    Measure,
    Outcome,
    Resolution,
    SearchResult,
    attempted,
)
from dutperf.search.binary import binary_search

PathDriver = Literal["af_xdp", "af_packet"]
PATH_DRIVERS: tuple[PathDriver, ...] = ("af_xdp", "af_packet")

ATTEMPTS = 5
"""How often an invalid trial is run at most."""
VERIFICATIONS = 3
"""How many trials in a row must lose frames for a rate to fail: TST 009's max(r)."""
MUCH_LOSS_PERCENT = 5.0
"""Not worth a second trial: TST 009's z."""
RESOLUTION = "3%"
PROFILE_DURATIONS = 4
"""The profiled trial's duration, in those of the search; but see the next."""
PROFILE_LEAST_S = 2.0
"""The profiler begins with the first news of the trial, and needs some samples."""
_PROFILE_ATTEMPTS = 6
_PROFILE_STEP_PERCENT = 5
_MAX_TRIALS = 60


class Profiler(Protocol):
    """See ``profile.PerfProfiler``."""

    trouble: str

    def start(self) -> None: ...  # noqa: D102
    def finish(self) -> list[StackSample]: ...  # noqa: D102


@dataclass(frozen=True)
class PathSettings:
    """``worker_cpu`` and ``device_cpu`` (None: unknown) are those to profile."""

    rounds: int
    worker_cpu: int
    device_cpu: int | None


@dataclass(frozen=True)
class Rate:
    """The highest rate that held, frames per second and direction.

    ``median_fps`` is None when no trial of any round held; a round in which none held
    counts as 0.
    """

    median_fps: int | None
    rounds_fps: list[int]
    conclusions: list[Conclusion]


@dataclass(frozen=True)
class TrialFigures:
    """One trial in short; of two directions the worse one's figure."""

    rate_fps: int
    purpose: Literal["valid", "lossless", "profile"]
    verdict: VerdictKind
    reasons: list[str]
    offered_fps: float
    lost_percent: float
    burst_mean: float
    lag_p50_ns: int
    lag_p99_ns: int
    lag_max_ns: int


@dataclass(frozen=True)
class DriverResult:
    """What one driver does; ``unusable`` says why it was not measured, if so.

    ``profiled`` is the longer trial; ``worker`` and ``device`` are what the profiler
    saw meanwhile, or ``profiler_trouble`` why it saw nothing.
    """

    driver: PathDriver
    unusable: str = ""
    valid: Rate | None = None
    lossless: Rate | None = None
    profiled: TrialFigures | None = None
    worker: CpuProfile | None = None
    device: CpuProfile | None = None
    profiler_trouble: str = ""
    trials: list[TrialFigures] = field(default_factory=list)


@dataclass(frozen=True)
class PathSurroundings:
    """What a bench needs from outside; tests give others."""

    open_engine: EngineOpener
    profiler: Profiler
    dut_alive: Callable[[], bool] = lambda: True
    sleep: Callable[[float], None] = time.sleep


def bench_path(
    testbed: Testbed,
    cell: Cell,
    drivers: Sequence[PathDriver],
    settings: PathSettings,
    around: PathSurroundings,
    on_event: OnEvent,
) -> list[DriverResult]:
    """Bench the path of ``testbed`` with each of ``drivers``.

    A driver that does not work here is skipped if there are others.

    Raises:
        InputError: the testbed's ports have no choice of drivers.
        EngineError, SetupError: see ``TrialRunner.run``; the only driver is unusable.
    """
    results = []
    for index, driver in enumerate(drivers):
        own = cell.model_copy(update={"id": f"{driver}, {cell.id}"})
        on_event(CellStarted(own, index + 1, len(drivers)))
        try:
            bench = _DriverBench(with_driver(testbed, driver), own, settings, around)
            results.append(bench.run(driver, on_event))
        except EngineError as error:
            if error.rpc_code != ERROR_ENVIRONMENT or len(drivers) == 1:
                raise
            on_event(Notice(f"{driver} does not work here: {error.message}"))
            results.append(DriverResult(driver, unusable=error.message))
    return results


def with_driver(testbed: Testbed, driver: PathDriver) -> Testbed:
    """``testbed`` with both its interfaces opened by ``driver``.

    Raises:
        InputError: a port is no kernel interface, or there are several on a side.
    """
    if testbed.pairs > 1:
        raise InputError(
            f"testbed {testbed.name} has {testbed.pairs} ports on each side",
            "the path bench compares drivers by one on each side: leave more_ports out",
        )
    sides: dict[str, SideConfig] = {}
    for name, side in testbed.sides.items():
        if not isinstance(side.port, InterfacePort):
            raise InputError(
                f"testbed {testbed.name}: the {name} port is no kernel interface",
                "the path bench compares drivers of kernel interfaces: use a lab",
            )
        port = side.port.model_copy(update={"driver": driver})
        sides[name] = side.model_copy(update={"port": port})
    return testbed.model_copy(update=sides)


@dataclass
class _DriverBench:
    """One driver's engine, searches and profile; ``figures`` grows with the trials."""

    testbed: Testbed
    cell: Cell
    settings: PathSettings
    around: PathSurroundings
    figures: list[TrialFigures] = field(default_factory=list)

    def run(self, driver: PathDriver, on_event: OnEvent) -> DriverResult:
        def notify(text: str) -> None:
            on_event(Notice(text))

        start = self.around.open_engine(self.testbed, notify)
        with (
            tempfile.TemporaryDirectory(prefix="dutperf-bench-") as directory,
            start(Path(directory) / "engine.log") as engine,
        ):
            limit = max_rate(self.cell, open_ports(engine, self.testbed, notify).ports)
            resolve_neighbours(engine, self.testbed, [self.cell], lambda _text: None)
            return self._measure(driver, engine, limit, on_event)

    def _measure(
        self,
        driver: PathDriver,
        engine: TesterEngine,
        limit: MaxRate,
        on_event: OnEvent,
    ) -> DriverResult:
        sampling = _Sampling(self.around.profiler, on_event)
        runner = TrialRunner(
            engine,
            self.testbed,
            journal=lambda _record: None,
            on_event=sampling.on_event,
            sleep=self.around.sleep,
            dut_alive=self.around.dut_alive,
        )
        valid, lossless = self._rates(runner, limit)
        samples: list[StackSample] = []
        profiled = None
        if valid.median_fps is not None:
            profiled, samples = self._profile(runner, valid.median_fps, sampling)
        worker_cpu, device_cpu = self.settings.worker_cpu, self.settings.device_cpu
        return DriverResult(
            driver,
            valid=valid,
            lossless=lossless,
            profiled=profiled,
            worker=cpu_profile(samples, worker_cpu, WORKER_RULES),
            device=None
            if device_cpu is None
            else cpu_profile(samples, device_cpu, DUT_RULES),
            profiler_trouble=self.around.profiler.trouble,
            trials=self.figures,
        )

    def _rates(self, runner: TrialRunner, limit: MaxRate) -> tuple[Rate, Rate]:
        valid, lossless = [], []
        for repeat in range(1, self.settings.rounds + 1):
            kept_up = self._trials(runner, "valid", 2 * repeat - 1)
            valid.append(self._search(runner, valid_as_pass(kept_up), limit.rate_fps))
            if valid[-1].rate_fps is not None:
                passed = self._trials(runner, "lossless", 2 * repeat)
                verified = loss_verified(passed, self._lost_little)
                lossless.append(self._search(runner, verified, valid[-1].rate_fps))
        return _rate(valid), _rate(lossless)

    def _trials(
        self, runner: TrialRunner, purpose: Literal["valid", "lossless"], repeat: int
    ) -> Measure:
        def measure(rate_fps: int, duration_s: float) -> Outcome:
            record = runner.run(
                Ask(self.cell, rate_fps, repeat=repeat, duration_s=duration_s)
            )
            self.figures.append(_figures(record, purpose))
            return outcome(record.result)

        return measure

    def _lost_little(self) -> bool:
        return self.figures[-1].lost_percent <= MUCH_LOSS_PERCENT

    def _search(
        self, runner: TrialRunner, measure: Measure, max_rate_fps: int
    ) -> SearchResult:
        return binary_search(
            measure,
            max_rate_fps=max_rate_fps,
            duration_s=self.cell.spec.trial_duration_s,
            resolution=Resolution.parse(self.cell.spec_of(SearchedKeys).resolution),
            attempts=ATTEMPTS,
            max_trials=_MAX_TRIALS,
            on_step=lambda step: runner.on_event(
                IntervalNarrowed(step.lower_fps, step.upper_fps)
            ),
        )

    def _profile(
        self, runner: TrialRunner, rate_fps: int, sampling: _Sampling
    ) -> tuple[TrialFigures, list[StackSample]]:
        """A longer trial is harder to get through: each other attempt is slower."""
        duration_s = max(
            PROFILE_LEAST_S, PROFILE_DURATIONS * self.cell.spec.trial_duration_s
        )

        def profiled(attempt: int) -> tuple[TrialFigures, list[StackSample]]:
            percent = 100 - attempt // 2 * _PROFILE_STEP_PERCENT
            sampling.wanted = True
            try:
                record = runner.run(
                    Ask(
                        self.cell,
                        rate_fps * percent // 100,
                        repeat=2 * self.settings.rounds + 1,
                        duration_s=duration_s,
                    )
                )
            finally:
                samples = sampling.end()
            self.figures.append(_figures(record, "profile"))
            return self.figures[-1], samples

        trials = map(profiled, range(_PROFILE_ATTEMPTS))
        return attempted(trials, lambda tried: tried[-1][0].verdict == "invalid")[-1]


class _Sampling:
    """Starts the profiler when the frames of a trial are being sent."""

    def __init__(self, profiler: Profiler, on_event: OnEvent) -> None:
        self.wanted = False
        self._profiler = profiler
        self._on_event = on_event

    def on_event(self, event: Event) -> None:
        if (
            self.wanted
            and isinstance(event, TrialMoved)
            and event.progress.phase == "running"
        ):
            self._profiler.start()
            self.wanted = False
        self._on_event(event)

    def end(self) -> list[StackSample]:
        self.wanted = False
        return self._profiler.finish()


def valid_as_pass(measure: Measure) -> Measure:
    """A trial in which the device lost frames is as good as any that is valid."""

    def kept_up(rate_fps: int, duration_s: float) -> Outcome:
        found = measure(rate_fps, duration_s)
        return Outcome("pass") if found.verdict == "fail" else found

    return kept_up


def loss_verified(
    measure: Measure, lost_little: Callable[[], bool], trials: int = VERIFICATIONS
) -> Measure:
    """A rate fails when ``trials`` trials in a row lose frames, or one loses many.

    ``lost_little`` tells of the trial that was measured last.
    """

    def verified(rate_fps: int, duration_s: float) -> Outcome:
        found = measure(rate_fps, duration_s)
        for _ in range(trials - 1):
            if found.verdict != "fail" or not lost_little():
                break
            found = measure(rate_fps, duration_s)
        return found

    return verified


def _rate(found: Sequence[SearchResult]) -> Rate:
    rounds = [result.rate_fps or 0 for result in found]
    held = any(rounds)
    return Rate(
        median_fps=int(stats.median(rounds)) if held else None,
        rounds_fps=rounds,
        conclusions=[result.conclusion for result in found],
    )


def _figures(
    record: TrialRecord, purpose: Literal["valid", "lossless", "profile"]
) -> TrialFigures:
    result = record.result
    directions = [d for d in result.directions if d.lag_ns.count]

    def lag_ns(hundredths: int) -> int:
        return max(
            (
                stats.histogram_percentile(d.lag_ns.buckets, hundredths)
                for d in directions
            ),
            default=0,
        )

    return TrialFigures(
        rate_fps=record.load_fps,
        purpose=purpose,
        verdict=result.verdict.kind,
        reasons=sorted({reason.code for reason in result.verdict.reasons}),
        offered_fps=round(offered_fps(result), 1),
        lost_percent=round(max(map(_lost_percent, result.directions)), 4),
        burst_mean=round(max(map(_burst_mean, directions), default=0.0), 2),
        lag_p50_ns=lag_ns(50),
        lag_p99_ns=lag_ns(99),
        lag_max_ns=lag_ns(100),
    )


def _lost_percent(direction: DirectionResult) -> float:
    sent = sum(stream.sent for stream in direction.streams)
    lost = sum(stream.lost for stream in direction.streams)
    return 100 * lost / sent if sent else 0.0


def _burst_mean(direction: DirectionResult) -> float:
    """Each burst counts once; ``lag_ns`` counts every frame."""
    bursts = sum(count for _, _, count in direction.burst_frames.buckets)
    return direction.lag_ns.count / bursts if bursts else 0.0
