"""Runs the cells of a campaign one after another, and loses nothing that was measured.

One engine serves the whole campaign. The results are written after every cell, and
however the run ends: complete, interrupted, or with an error. A run that is resumed
begins at the start, too, but is answered from its journal as far as that goes.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dutperf.config import (
    Campaign,
    Cell,
    Testbed,
    expand,
    notices,
    resolved,
    size_notices,
)
from dutperf.errors import DutperfError, EngineError, InputError, SetupError
from dutperf.procedures.describe import with_conformance
from dutperf.procedures.events import (
    CellStarted,
    Notice,
    OnEvent,
    ReportWritten,
    ResultsChanged,
    RunStarted,
)
from dutperf.procedures.frame_loss import measure_frame_loss
from dutperf.procedures.ipdv import measure_ipdv
from dutperf.procedures.latency import measure_latency
from dutperf.procedures.limits import MaxRate, max_rate
from dutperf.procedures.loads import found_load
from dutperf.procedures.media import beside_media
from dutperf.procedures.numa import far_cores
from dutperf.procedures.pdv import measure_pdv
from dutperf.procedures.runner import TrialRunner
from dutperf.procedures.searching import check_range
from dutperf.procedures.session import (
    EngineOpener,
    EngineStarter,
    TesterEngine,
    main_core,
    open_ports,
    resolve_neighbours,
)
from dutperf.procedures.throughput import measure_throughput
from dutperf.results import (
    CellResult,
    Environment,
    PortRecord,
    ResultsDirectory,
    ResultsFile,
    collect_environment,
    load_environment,
    scalability,
)
from dutperf.results.changes import differences
from dutperf.results.model import ProcedureName

Kind = ProcedureName | Literal["campaign"]

PROCEDURES: dict[ProcedureName, Callable[[TrialRunner, Cell, MaxRate], CellResult]] = {
    "throughput": measure_throughput,
    "frame-loss": measure_frame_loss,
    "latency": measure_latency,
    "pdv": measure_pdv,
    "ipdv": measure_ipdv,
}


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
}
"""Parts of the environment that should be the same in all of a run."""


@dataclass(frozen=True)
class Surroundings:
    """What a run needs from outside; tests give others.

    open_engine: see ``session.EngineOpener``.
    write_report: makes report.html from the stored results, returns its path.
    dut_alive: whether the (lab's) device under test is still there.
    """

    open_engine: EngineOpener
    write_report: Callable[[Path], Path]
    dut_alive: Callable[[], bool] = lambda: True
    sleep: Callable[[float], None] = time.sleep


def run_campaign(
    campaign: Campaign,
    testbed: Testbed,
    around: Surroundings,
    *,
    on_event: OnEvent,
    kind: Kind = "campaign",
    results_dir: Path | None = None,
    resume: Path | None = None,
) -> ResultsFile:
    """Run all cells of ``campaign`` on ``testbed``.

    Args:
        campaign: what to measure.
        testbed: where; the campaign's own testbed or lab was resolved to it.
        around: engine, report, and the rest of the world.
        on_event: is told what happens.
        kind: what the results are called.
        results_dir: where to store them; None: see ``ResultsDirectory.create``.
        resume: the directory of a run to continue, instead of ``results_dir``.

    Raises:
        InputError: found before the first frame was sent; or nothing to resume.
        SetupError, EngineError: machine, lab, DUT or engine are not as needed; what
            was measured before is stored.
        KeyboardInterrupt: so was what was measured before this.
    """
    cells = expand(campaign, testbed)
    asked = resolved(campaign, testbed)
    for text in [*notices(testbed, campaign), *size_notices(testbed, campaign)]:
        on_event(Notice(text))
    with contextlib.ExitStack() as stack:
        directory = None
        if resume:
            directory = ResultsDirectory.resume(resume, campaign.name, asked)
            stack.enter_context(directory)
        start = around.open_engine(testbed, lambda text: on_event(Notice(text)))
        if directory is None:
            directory = ResultsDirectory.create(results_dir, campaign.name)
            stack.enter_context(directory)
        run = _Run(
            campaign,
            testbed,
            around,
            on_event,
            kind,
            directory,
            cells,
            resumed=resume is not None,
        )
        return run.begin(start, asked)


@dataclass
class _Run:
    """One run; ``done`` grows as cells are finished."""

    campaign: Campaign
    testbed: Testbed
    around: Surroundings
    on_event: OnEvent
    kind: Kind
    directory: ResultsDirectory
    cells: list[Cell]
    resumed: bool
    done: list[CellResult] = field(default_factory=list)
    runner: TrialRunner | None = None
    ports: list[PortRecord] = field(default_factory=list)

    def begin(self, start: EngineStarter, asked: dict[str, Any]) -> ResultsFile:
        self.on_event(RunStarted(self.directory.path))
        for text in self.directory.notices:
            self._notify(text)
        results = self.directory.complete_results()
        if results:
            self._notify("the run was complete; nothing is left to measure")
            self.on_event(ResultsChanged(results))
            self._report()
            return results
        self.directory.write_campaign(asked)
        return self._to_the_end(start)

    def _to_the_end(self, start: EngineStarter) -> ResultsFile:
        try:
            with start(self.directory.path / "engine.log") as engine:
                self._measure(engine)
        except InputError:
            self._forget()
            raise
        except BaseException as error:
            # Whatever ended the run, it must not cost what was measured; and a full
            # disk must not hide why the run ended.
            with contextlib.suppress(DutperfError, OSError):
                self._save_what_there_is()
            if isinstance(error, EngineError):
                raise self._explained(error) from error
            raise
        results = self._save(complete=True)
        self._report()
        return results

    def _measure(self, engine: TesterEngine) -> None:
        limits = self._get_ready(engine)
        self.runner = runner = self._runner(engine)
        runner.prepare()
        with _aborting(engine):
            for index, (cell, limit) in enumerate(zip(self.cells, limits, strict=True)):
                self.on_event(CellStarted(cell, index + 1, len(self.cells)))
                load = found_load(cell, limit, self.done)
                found = (
                    load
                    if isinstance(load, CellResult)
                    else PROCEDURES[cell.procedure](runner, cell, load)
                )
                told = beside_media(found, cell, self.ports)
                self.done.append(with_conformance(cell, told))
                if not runner.replaying:
                    self._save(complete=False)
        if runner.replaying:
            raise InputError(
                f"the journal holds {len(self.directory.records)} trials; this run "
                f"needs only the first {runner.finished}",
                "dutperf has changed since the run began; give --output with a new "
                "directory to start anew",
            )

    def _get_ready(self, engine: TesterEngine) -> list[MaxRate]:
        """Open the ports, store the environment, find the DUT."""
        testbed = self.testbed
        ports = open_ports(engine, testbed, self._notify)
        for text in far_cores(ports, testbed.cores):
            self._notify(text)
        environment = collect_environment(
            engine.hello(),
            ports,
            testbed.cores,
            main_core(testbed),
            self.campaign.seed,
            dut=testbed.description,
            namespace=testbed.namespace,
        )
        self._keep(environment)
        self.ports = environment.ports
        limits = [max_rate(cell, ports) for cell in self.cells]
        for cell, limit in zip(self.cells, limits, strict=True):
            check_range(cell, limit)
        resolve_neighbours(engine, testbed, self.cells, self._notify)
        return limits

    def _keep(self, environment: Environment) -> None:
        """The environment of the first trial stays; what changed later is told."""
        if not self.directory.records:
            self.directory.write_environment(environment)
            return
        began_in = load_environment(self.directory.path)
        then, now = (e.model_dump(include=_STEADY) for e in (began_in, environment))
        for change in differences(then, now):
            self._notify(f"not as when the run began: {change}")

    def _notify(self, text: str) -> None:
        self.on_event(Notice(text))

    def _runner(self, engine: TesterEngine) -> TrialRunner:
        return TrialRunner(
            engine,
            self.testbed,
            journal=self.directory.append,
            on_event=self.on_event,
            sleep=self.around.sleep,
            dut_alive=self.around.dut_alive,
            stored=self.directory.records,
        )

    def _save(self, *, complete: bool) -> ResultsFile:
        results = ResultsFile(
            procedure=self.kind,
            name=self.campaign.name,
            created_at=self.directory.created_at,
            complete=complete,
            cells=list(self.done),
            scalability=scalability(self.done),
            trials=list(self.directory.records),
        )
        self.on_event(ResultsChanged(results))
        self.directory.write_results(results)
        return results

    def _forget(self) -> None:
        """Leave no directory that is in the way of the corrected command.

        Input errors come before the first trial; the directory was new or empty.
        """
        if not self.resumed and not self.directory.records:
            shutil.rmtree(self.directory.path, ignore_errors=True)

    def _save_what_there_is(self) -> None:
        # Results of an earlier part of the run stay until they were reached again.
        reached = self.runner is not None and not self.runner.replaying
        if self.directory.records and reached:
            self._save(complete=False)
            self._report()

    def _report(self) -> None:
        self.on_event(ReportWritten(self.around.write_report(self.directory.path)))

    def _explained(self, error: EngineError) -> SetupError:
        """``error``, and what of the run is safe where."""
        safe = self._what_is_safe()
        if not self.around.dut_alive():
            return SetupError(
                "the device under test has gone: the lab's network namespaces were "
                f"deleted ({error.message}); {safe}",
                "do not run 'dutperf lab down' or 'ip netns del' while measuring",
            )
        return EngineError(f"{error.message}; {safe}", error.hint, error.code)

    def _what_is_safe(self) -> str:
        trials, path = len(self.directory.records), self.directory.path
        if not trials:
            return f"nothing was measured; the engine's log is {path / 'engine.log'}"
        cells = f"{len(self.done)} of {len(self.cells)} cells"
        return f"the last finished trial is {trials}; results so far ({cells}): {path}"


@contextlib.contextmanager
def _aborting(engine: TesterEngine) -> Iterator[None]:
    """End the running trial in order when the user interrupts it."""
    try:
        yield
    except KeyboardInterrupt:
        with contextlib.suppress(EngineError):
            engine.abort()
        raise
