"""Measures one testbed after another on this machine; each has an engine of its own.

Of a run that is resumed, first all that the journal tells is taken from it. A testbed
whose cells are all in the journal is not opened again; what cannot be the same run is
refused before the first frame.

A testbed that cannot be measured, or not to its end, is told as such; the others are
independent of it and are measured all the same. Only what would hit them, too, ends the
run: nothing can be stored any more, the user interrupts, or dutperf has a defect.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from dutperf.config import PlannedTestbed, Testbed, between
from dutperf.config.testbed import PowerMeter
from dutperf.errors import DutperfError, InputError, StorageError
from dutperf.model.cell import Cell
from dutperf.procedures.bursts import beside_bursts, shaped_trials
from dutperf.procedures.cell_results import (
    with_beside,
    with_conformance,
    with_management,
)
from dutperf.procedures.cpu_contention import DeviceWatch, beside_repeated
from dutperf.procedures.events import CellStarted, Notice, OnEvent, TestbedStarted
from dutperf.procedures.first_frames import is_tried_first, try_first_frames
from dutperf.procedures.fixed_load import found_load, unmeasured
from dutperf.procedures.max_rate import MaxRate, check_links, max_rate
from dutperf.procedures.measurements import METHODS
from dutperf.procedures.method import OnConnections
from dutperf.procedures.passport_use import beside_passport, first_load_fps
from dutperf.procedures.scalability import next_of_sweeps
from dutperf.procedures.searching import check_range
from dutperf.procedures.stateful.phased import too_fast, trials_of, with_phase1_rate
from dutperf.procedures.stateful.table_capacity import beside_limits
from dutperf.procedures.tester_limit import (
    at_line_rate,
    beside_media,
    burst_peak,
    with_probed,
)
from dutperf.protocol.result_messages import Reason
from dutperf.results import (
    CellResult,
    Environment,
    NotMeasured,
    PortRecord,
    ResultsDirectory,
    TrialRecord,
    collect_environment,
)
from dutperf.results.device_words import (
    beside_altered,
    beside_misdirected,
    beside_proxied,
    beside_routing,
)
from dutperf.results.environment import MachineCheck, differences, listed
from dutperf.results.model import RunPart
from dutperf.results.passport import Passport
from dutperf.results.queue_loads import beside_queues
from dutperf.results.server_counts import beside_server_counts
from dutperf.routing import Speaker, Speaking, no_speaker
from dutperf.run import (
    Job,
    JournalEndsError,
    OnOutcome,
    RunStore,
    TestbedsError,
    by_testbed,
)
from dutperf.run.engine_session import (
    EngineOpener,
    TesterEngine,
    aborting,
    far_cores,
    main_core,
    open_ports,
    resolve_neighbours,
)
from dutperf.run.metering import open_meter
from dutperf.run.openings import ConnectionsRemainError, Openings, beside_earlier
from dutperf.run.trial_runner import Metering, TrialRunner, explaining

# The environment of a testbed's first trial stays; later changes are put beside.


_STEADY = {
    "dutperf_version",
    "engine_version",
    "dpdk_version",
    "kernel",
    "cpu_model",
    "cores_used",
    "main_core",
    "governor",
    "turbo",
    "dut",
    "stands_in",
}
"""Parts of the environment that should be the same in all of a run."""


def keep_environment(
    store: RunStore,
    environment: Environment,
    stored: Sequence[TrialRecord],
    notify: Callable[[str], None],
) -> None:
    """Store ``environment``, of the testbed that ``stored`` was measured at, if at all.

    Raises:
        InputError: the ports are not of the kind that the run began with.
    """
    began_in = store.environment(environment.place)
    if stored and began_in is None:
        notify("no environment is stored any more of where the run began")
    if not stored or began_in is None:
        store.write_environment(environment)
        return
    then, now = (_ports(e) for e in (began_in, environment))
    if changed := differences(then, now):
        raise InputError(
            f"the ports are not those that the run began with:\n{listed(changed, 3)}",
            "bring them back, or give --output with a new directory to start anew",
        )
    then, now = (e.model_dump(include=_STEADY) for e in (began_in, environment))
    changes = differences(then, now)
    for change in changes:
        notify(f"not as when the run began: {change}")
    part = RunPart(
        first_trial=len(store.records) + 1,
        started_at=environment.started_at,
        place=environment.place,
        changes=changes,
    )
    # A part that ended before its first trial has measured nothing.
    parts = [p for p in began_in.parts if p.first_trial < part.first_trial]
    store.write_environment(began_in.model_copy(update={"parts": [*parts, part]}))


def _ports(environment: Environment) -> dict[str, dict[str, object]]:
    """What of its ports decides how frames are sent and received."""
    return {
        port.label: port.model_dump(include={"driver", "kernel_driver", "mtu"})
        for port in environment.ports
    }


def measure_cell(
    runner: TrialRunner,
    cell: Cell,
    limit: MaxRate,
    done: Sequence[CellResult] = (),
    ports: Sequence[PortRecord] = (),
) -> CellResult:
    """Measure ``cell``, or tell why it cannot be.

    Args:
        runner: runs its trials.
        cell: what to measure.
        limit: the highest load.
        done: results of earlier cells, whose rates it may be measured at.
        ports: the tester's; what virtual ones can offer is found first.
    """
    method = METHODS[cell.procedure].trials
    if isinstance(method, OnConnections):
        return method.measure(runner, cell, limit)
    ready = with_phase1_rate(cell, limit, done)
    if isinstance(ready, CellResult):
        return ready
    for text in too_fast(ready, done):
        runner.on_event(Notice(text))
    load = found_load(ready, limit, done)
    if isinstance(load, CellResult):
        return load
    if is_tried_first(ready):
        troubles = try_first_frames(runner, ready, load.rate_fps)
        if troubles:
            return unmeasured(ready, load, *troubles)
    load = with_probed(runner, ready, load, ports)
    peak = burst_peak(runner, ready, load, ports)
    trials = shaped_trials(trials_of(ready, runner), ready, peak)
    return beside_bursts(method.measure(trials, ready, load), ready, peak)


def _as_it_stands(planned: PlannedTestbed) -> AbstractContextManager[Testbed]:
    return contextlib.nullcontext(planned.testbed)


PassportMaker = Callable[
    [PlannedTestbed, Sequence[Cell], Callable[[str], None]], Passport | None
]


def no_passport(
    _planned: PlannedTestbed, _cells: Sequence[Cell], _notify: Callable[[str], None]
) -> None:
    """Nobody knows what the tester can do itself."""


TestbedOpener = Callable[[PlannedTestbed], AbstractContextManager[Testbed]]


@dataclass(frozen=True)
class Surroundings:
    """What a run needs from outside; tests give others.

    open_engine: see ``session.EngineOpener``.
    write_report: makes report.html from the stored results, returns its path.
    check_testbed: raises SetupError if something stands in the way of opening it.
    open_testbed: a lab is up inside the context; gives the testbed as it is then.
    dut_alive: whether the (lab's) device under test is still there.
    watch_dut: tells who else has the device's CPU; None: nobody knows where it works.
    openings: which connections the device may still know; None: nobody remembers.
    examine: what of the machine may touch the results; it is told how far the clocks
        of the engine's cores may be apart, in nanoseconds.
    passport: what the tester can do itself with the cells' frames; None: nobody knows.
    speaking: opens what tells the device routes, where cells ask for that.
    meter: opens what tells the device's power, likewise.
    """

    open_engine: EngineOpener
    write_report: Callable[[Path], Path]
    check_testbed: Callable[[PlannedTestbed], None] = lambda _planned: None
    open_testbed: TestbedOpener = _as_it_stands
    dut_alive: Callable[[PlannedTestbed], bool] = lambda _planned: True
    watch_dut: Callable[[PlannedTestbed], DeviceWatch | None] = lambda _planned: None
    sleep: Callable[[float], None] = time.sleep
    openings: Callable[[Testbed], Openings | None] = lambda _testbed: None
    examine: Callable[[Testbed, int], Sequence[MachineCheck]] = lambda _testbed, _ns: ()
    passport: PassportMaker = no_passport
    speaking: Speaking = no_speaker
    meter: Callable[[PowerMeter], Metering] = open_meter


@dataclass(frozen=True)
class LocalExecutor:
    """An ``Executor``; its journal is that of the results directory."""

    around: Surroundings
    directory: ResultsDirectory
    on_event: OnEvent

    def run(self, jobs: Sequence[Job], on_outcome: OnOutcome) -> None:
        """See ``Executor``.

        Raises:
            InputError: the journal is of another run. Nothing was sent.
            SetupError: one of the testbeds to open will be in nobody's reach. Likewise.
        """
        visits = visits_of(jobs, self.around, self.directory, self.on_event)
        known = [visit.answer_from_journal() for visit in visits]
        for visit, results in zip(visits, known, strict=True):
            if results is None:
                self.around.check_testbed(visit.planned)
        failed: dict[str, DutperfError] = {}
        for visit, results in zip(visits, known, strict=True):
            try:
                visit.measure(on_outcome, results)
            except StorageError:
                raise
            except DutperfError as error:
                if len(visits) == 1:
                    raise
                failed[visit.planned.name] = error
                visit.give_up(on_outcome, error)
        if failed:
            raise joined(failed)


_ANEW = (
    "dutperf has changed since the run began; give --output with a new directory to "
    "start anew"
)


def visits_of(
    jobs: Sequence[Job], around: Surroundings, store: RunStore, on_event: OnEvent
) -> list[Visit]:
    """One for each testbed of ``jobs``, in their order.

    Raises:
        InputError: the journal is of another run.
    """
    known = {job.cell.id for job in jobs}
    adding = {job.cell.testbed for job in jobs if job.cell.grows}
    for cell in store.records.cells:
        if cell not in known:
            first = store.records.of([cell])[0]
            if first.place in adding:
                continue  # that of a sweep; else the trials are not all used up
            raise InputError(
                f"trial {first.number} of the journal is of a test case that this "
                f"campaign does not have: {cell}",
                _ANEW,
            )
    visits: list[Visit] = []
    for group in by_testbed(jobs):
        before = sum(len(visit.jobs) for visit in visits)
        visits.append(Visit(around, store, on_event, group, before, len(jobs)))
    return visits


class Visit:
    """The jobs of one testbed: ``before`` others come before them, ``count`` in all.

    Where there is no other testbed, nothing that is told or stored bears its name.
    """

    def __init__(
        self,
        around: Surroundings,
        store: RunStore,
        on_event: OnEvent,
        jobs: Sequence[Job],
        before: int,
        count: int,
    ) -> None:
        self.planned = jobs[0].planned
        self.jobs = list(jobs)
        """Those that were asked for, and those that its sweeps have added so far."""
        self.before, self.count = before, count
        self.name = self.planned.name if len(jobs) < count else None
        self._asked = [job.cell.id for job in jobs]
        self._around, self._store, self._on_event = around, store, on_event
        self._stored = self._of_journal()
        self._told: set[str] = set()
        self._passport: Passport | None = None

    def _of_journal(self) -> list[TrialRecord]:
        """Its trials, those of cells that were added among them."""
        records, cells = self._store.records, list(self._asked)
        if any(job.cell.grows for job in self.jobs):
            here = self.jobs[0].cell.testbed
            others = [cell for cell in records.cells if cell not in set(cells)]
            cells += [c for c in others if records.of([c])[0].place == here]
        return records.of(cells)

    def answer_from_journal(self) -> list[CellResult] | None:
        """All results, if the journal holds all trials; nothing is opened.

        Raises:
            InputError: it holds those of another run.
        """
        results: list[CellResult] = []
        try:
            for result in self.told_by_journal():
                results.append(result)  # noqa: PERF402 - those before the end count
        except JournalEndsError:
            if self._store.environment(self.name) and self._stored:
                self._leave_out_elsewhere(self.jobs[len(results)].cell)
            return None
        return results

    def told_by_journal(
        self, ended: Mapping[str, Reason] | None = None
    ) -> Iterator[CellResult]:
        """The result of each job, made of the journal; nothing is opened.

        Args:
            ended: see ``TrialRunner``.

        Raises:
            JournalEndsError: it holds no more than what these follow from.
            InputError: it holds trials of another run.
        """
        environment = self._store.environment(self.name)
        if environment is None or not (self._stored or ended):
            raise JournalEndsError
        self._passport = environment.passport
        runner = self._runner(None, self.planned.testbed, ended=ended)
        yield from self._results(runner, environment.ports)
        self._check_used_up(runner)

    def _leave_out_elsewhere(self, cell: Cell) -> None:
        """One whose begin was measured at an equal testbed is measured as a whole."""
        here = self._store.stands_in
        self._stored = [
            r for r in self._stored if r.cell != cell.id or r.stands_in == here
        ]

    def measure(self, on_outcome: OnOutcome, known: list[CellResult] | None) -> None:
        """Measure all jobs at the testbed, if they are not known.

        Raises:
            DutperfError: it cannot be done, or not to the end.
        """
        if self.name:
            self._on_event(TestbedStarted(self.planned.name, len(self.jobs)))
        if known is not None:
            self._notify("all of its trials are in the journal; it is not opened again")
            for result in known:
                self.tell(on_outcome, result)
            return
        if not self._stored:
            cells = [job.cell for job in self.jobs]
            self._passport = self._around.passport(self.planned, cells, self._notify)
        with contextlib.ExitStack() as stack:
            asks = any(job.cell.traffic.management for job in self.jobs)
            self.planned.testbed.check_secrets(queries=asks)
            testbed = stack.enter_context(self._around.open_testbed(self.planned))
            speaker = stack.enter_context(self._speaker(testbed))
            start = self._around.open_engine(testbed, self._notify)
            log = self._store.engine_log(self.name)
            engine = stack.enter_context(start(log))
            alive = partial(self._around.dut_alive, self.planned)
            with explaining(alive), aborting(engine):
                self._measure(engine, testbed, speaker, on_outcome)

    def give_up(self, on_outcome: OnOutcome, error: DutperfError) -> None:
        """Tell of all jobs without a result why they have none."""
        for job in self.jobs:
            if job.cell.id not in self._told:
                on_outcome(
                    NotMeasured(
                        id=job.cell.id,
                        place=self.planned.name,
                        message=error.message,
                        hint=error.hint,
                    )
                )
        self._notify(f"not measured to the end: {error.message}")

    def _speaker(self, testbed: Testbed) -> AbstractContextManager[Speaker | None]:
        cells = [job.cell for job in self.jobs]
        return self._around.speaking(testbed, cells, main_core(testbed), self._notify)

    def _measure(
        self,
        engine: TesterEngine,
        testbed: Testbed,
        speaker: Speaker | None,
        on_outcome: OnOutcome,
    ) -> None:
        ports = self._open(engine, testbed, speaker)
        self._limits(ports)
        cells = [job.cell for job in self.jobs]
        resolve_neighbours(engine, testbed, cells, self._notify)
        if speaker:
            speaker.begin()
        runner = self._runner(engine, testbed, speaker)
        runner.prepare()
        for result in self._results(runner, ports):
            self.tell(on_outcome, result)
        self._check_used_up(runner)

    def _open(
        self, engine: TesterEngine, testbed: Testbed, speaker: Speaker | None
    ) -> list[PortRecord]:
        """Open the ports, store the environment."""
        taps = speaker.taps if speaker else None
        ports = open_ports(engine, testbed, self._notify, taps)
        check_links(testbed, ports, [job.cell for job in self.jobs])
        for text in far_cores(ports, testbed.cores):
            self._notify(text)
        hello = engine.hello()
        environment = collect_environment(
            hello,
            ports,
            testbed.cores,
            main_core(testbed),
            self.jobs[0].cell.seed,
            dut=testbed.description,
            device=testbed.device.told,
            namespace=testbed.namespace,
            place=self.name,
            checks=self._around.examine(testbed, hello.clock_offset_ns),
            passport=self._passport,
            stands_in=self._store.stands_in,
        )
        keep_environment(self._store, environment, self._stored, self._notify)
        return environment.ports

    def _limits(self, ports: Sequence[PortRecord]) -> list[MaxRate]:
        return [self._limit(job, ports) for job in self.jobs]

    def _limit(self, job: Job, ports: Sequence[PortRecord]) -> MaxRate:
        limit = replace(
            at_line_rate(max_rate(job.cell, ports), job.cell, ports),
            begin_fps=first_load_fps(job.cell, self._passport),
        )
        check_range(job.cell, limit)
        return limit

    def _runner(
        self,
        engine: TesterEngine | None,
        testbed: Testbed,
        speaker: Speaker | None = None,
        ended: Mapping[str, Reason] | None = None,
    ) -> TrialRunner:
        return TrialRunner(
            engine,
            testbed,
            journal=self._store.append,
            on_event=self._on_event if engine else _ignore,
            sleep=self._around.sleep,
            dut_alive=lambda: self._around.dut_alive(self.planned),
            device=self._around.watch_dut(self.planned) if engine else None,
            openings=self._openings(testbed) if engine else None,
            speaker=speaker,
            meter=self._meter(testbed) if engine else None,
            stored=self._stored,
            elsewhere=len(self._store.records) - len(self._stored),
            ended=ended,
        )

    def _meter(self, testbed: Testbed) -> Metering | None:
        """For cells whose trials are metered alone."""
        is_asked = any(job.cell.spec.is_metered for job in self.jobs)
        return self._around.meter(testbed.power) if is_asked and testbed.power else None

    def _openings(self, testbed: Testbed) -> Openings | None:
        """Of cells that open connections alone."""
        if not any(job.cell.stateful for job in self.jobs):
            return None
        return self._around.openings(testbed)

    def _results(
        self, runner: TrialRunner, ports: Sequence[PortRecord]
    ) -> Iterator[CellResult]:
        self.jobs = self.jobs[: len(self._asked)]
        limits = self._limits(ports)
        done: list[CellResult] = []
        while job := self._next(done):
            number = len(done)
            limit = limits[number] if number < len(limits) else self._limit(job, ports)
            index = self.before + number + 1
            count = max(self.count, index)
            runner.on_event(CellStarted(job.cell, index, count, limit.begin_fps))
            try:
                result = measure_cell(runner, job.cell, limit, done, ports)
            except ConnectionsRemainError as error:
                result = unmeasured(job.cell, limit, error.reason)
            records = self._store.records.of([job.cell.id])
            result = beside_earlier(result, records)
            result = beside_repeated(beside_media(result, job.cell, ports), records)
            result = with_conformance(job.cell, result)
            result = beside_limits(result, records)
            result = with_beside(result, job.cell, records)
            result = with_management(result, job.cell, records)
            result = beside_altered(result, records)
            result = beside_queues(result, records)
            result = beside_routing(result, records)
            result = beside_misdirected(result, records)
            result = beside_proxied(result, records)
            result = beside_server_counts(result, records)
            result = beside_passport(result, job.cell, self._passport, records)
            belongs = {"place": job.planned.name, "series": job.cell.series}
            done.append(result.model_copy(update=belongs))
            yield done[-1]

    def _next(self, done: Sequence[CellResult]) -> Job | None:
        """The job after those that are done; one more of a sweep when all are."""
        if len(done) == len(self.jobs):
            found = next_of_sweeps(done, self._asked)
            if found is None:
                return None
            of = next(job.cell for job in self.jobs if job.cell.id == found[0])
            cell = between(of, self.planned.testbed, found[1])
            self.jobs.append(self.jobs[0].model_copy(update={"cell": cell}))
        return self.jobs[len(done)]

    def tell(self, on_outcome: OnOutcome, result: CellResult) -> None:
        """Tell the outcome of one of its jobs."""
        self._told.add(result.id)
        on_outcome(result)

    def _check_used_up(self, runner: TrialRunner) -> None:
        if runner.replaying:
            of = f" of {self.name}" if self.name else ""
            raise InputError(
                f"the journal holds {len(self._stored)} trials{of}; this run needs "
                f"only the first {runner.finished}",
                _ANEW,
            )

    def _notify(self, text: str) -> None:
        self._on_event(Notice(f"{self.name}: {text}" if self.name else text))


def _ignore(_event: object) -> None:
    pass


def joined(failed: dict[str, DutperfError]) -> TestbedsError:
    """What of each testbed made it fail, as one error."""
    return TestbedsError(
        "\n".join(f"{name}: {error.message}" for name, error in failed.items()),
        "\n".join(dict.fromkeys(e.hint for e in failed.values() if e.hint)),
        max(error.exit_code for error in failed.values()),
    )
