"""Runs a campaign and shows it, however it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import typer

from dutperf.cli import INTERRUPTED, INVALID
from dutperf.cli.console import PatientConsole, show_notice
from dutperf.cli.options import DISPLAY, Display
from dutperf.cli.summary import (
    show_all,
    show_json,
    show_summary,
    show_with_deviations,
)
from dutperf.cli.terminal import Terminal
from dutperf.cli.testbeds import (
    check_testbed,
    dut_alive,
    open_testbed,
    planned_testbeds,
    watch_dut,
)
from dutperf.config import Campaign, Testbed
from dutperf.doctor import Check
from dutperf.doctor.checks import examine
from dutperf.errors import DutperfError, defect
from dutperf.passport.keeping import directory
from dutperf.passport.making import Maker
from dutperf.procedures.events import OnEvent
from dutperf.report import write_report
from dutperf.results import CellResult, ResultsFile
from dutperf.routing.speaker import open_speaker
from dutperf.run.campaign_run import ExecutorMaker, Kind, run_campaign
from dutperf.run.engine_session import prepare_engine
from dutperf.run.local_executor import LocalExecutor, Surroundings, no_passport
from dutperf.run.openings import openings_of

Show = Callable[[PatientConsole, ResultsFile, Path | None], None]
"""Prints results, and where the report is, if there is one."""


def measure(
    campaign: Campaign,
    *,
    kind: Kind,
    output: Path | None,
    display: Display,
    resume: Path | None = None,
    make_executor: ExecutorMaker = LocalExecutor,
) -> None:
    """Measure, show progress on standard error and the results on standard output.

    Raises:
        DutperfError: as ``run_campaign``; and for anything unexpected.
        typer.Exit: with the exit code, unless it is 0.
    """
    results = watched(
        lambda on_event: _run(campaign, on_event, kind, output, resume, make_executor),
        _shown(display),
        display,
    )
    if results and _falls_short(results.cells, display):
        raise typer.Exit(INVALID)


def measured(
    campaign: Campaign,
    kind: Kind,
    output: Path | None,
    resume: Path | None,
    show: Show,
    display: Display = DISPLAY,
) -> ResultsFile | None:
    """Measure and show progress; the results, which ``show`` gets, too.

    Raises:
        DutperfError, typer.Exit: see ``watched``.
    """
    return watched(
        lambda on_event: _run(campaign, on_event, kind, output, resume), show, display
    )


def _shown(display: Display) -> Show:
    if display.as_json:
        return show_json
    if display.verbose:
        return show_all
    return show_with_deviations if display.deviations else show_summary


def _falls_short(cells: Sequence[CellResult], display: Display) -> bool:
    """Whether a result is invalid; or, if that was asked for, only a lower bound."""
    if any(cell.verdict == "invalid" for cell in cells):
        return True
    open_end = [c.id for c in cells if c.bound or any(g.bound for g in c.goals)]
    if open_end and display.exact:
        show_notice(f"--exact: only a lower bound: {', '.join(open_end)}")
        return True
    return False


def watched(
    run: Callable[[OnEvent], object], show: Show, display: Display = DISPLAY
) -> ResultsFile | None:
    """Run a campaign; ``show`` gets what was measured, however the run ends.

    Raises:
        DutperfError: as ``run``; and for anything unexpected.
        typer.Exit: when it was interrupted.
    """
    console = PatientConsole(stderr=True)
    with Terminal(console, plain=display.plain, verbose=display.verbose) as terminal:
        try:
            run(terminal.on_event)
        except KeyboardInterrupt:
            terminal.say_interrupted()
            raise typer.Exit(INTERRUPTED) from None
        except DutperfError:
            raise
        except Exception as error:
            raise defect(error, terminal.directory) from error
        finally:
            terminal.stop()
            if terminal.results is not None:
                show(PatientConsole(), terminal.results, terminal.report)
    return terminal.results


def _examined(testbed: Testbed, offset_ns: int) -> list[Check]:
    """What can be seen without watching, and what the engine saw."""
    return examine(testbed, seconds=0, before=False, offset=lambda _cpus: offset_ns)


def _run(
    campaign: Campaign,
    on_event: OnEvent,
    kind: Kind,
    output: Path | None,
    resume: Path | None,
    make_executor: ExecutorMaker = LocalExecutor,
) -> ResultsFile:
    return run_campaign(
        campaign,
        planned_testbeds(campaign),
        surroundings(),
        on_event=on_event,
        kind=kind if len(campaign.procedures) == 1 else "campaign",
        results_dir=output,
        resume=resume,
        make_executor=make_executor,
    )


def surroundings() -> Surroundings:
    """All that a run of a user's has around it."""
    kept = directory()
    return Surroundings(
        open_engine=prepare_engine,
        write_report=write_report,
        check_testbed=check_testbed,
        open_testbed=open_testbed,
        dut_alive=dut_alive,
        watch_dut=watch_dut,
        openings=openings_of,
        examine=_examined,
        passport=Maker(kept, open_testbed) if kept else no_passport,
        speaking=open_speaker,
    )
