"""Where to measure, and a campaign that is run there and shown, however it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import typer

from dutperf.api.places import planned_testbeds, surroundings
from dutperf.cli import INTERRUPTED, INVALID, WORSE
from dutperf.cli.console import PatientConsole, show_notice
from dutperf.cli.options import DISPLAY, Display
from dutperf.cli.summary import (
    show_all,
    show_json,
    show_judged,
    show_summary,
    show_with_deviations,
)
from dutperf.cli.terminal import Terminal
from dutperf.config import (
    Campaign,
)
from dutperf.config.campaign import requiring
from dutperf.errors import DutperfError, InputError, defect
from dutperf.model.requirements import requirement
from dutperf.procedures.events import OnEvent
from dutperf.procedures.requirements import Case, Judged, judged, junit
from dutperf.results import CellResult, ResultsFile
from dutperf.results.storage import write_atomically
from dutperf.run.campaign_run import ExecutorMaker, Kind, run_campaign
from dutperf.run.local_executor import LocalExecutor

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
    required = [requirement(text) for text in display.require or ()]
    asked = campaign if resume else requiring(campaign, display.require or ())
    if display.junit:
        _check_junit(display.junit, [*asked.require, *required])
    results = watched(
        lambda on_event: _run(asked, on_event, kind, output, resume, make_executor),
        _shown(display),
        display,
    )
    if results is None:
        return
    found = judged([*campaign.requirements, *required], results.cells)
    show_judged(PatientConsole(stderr=display.as_json), found)
    if display.junit:
        write_atomically(display.junit, _as_junit(asked.name, found))
    if any(each.outcome == "not met" for each in found):
        raise typer.Exit(WORSE)
    cannot_tell = any(each.outcome == "cannot tell" for each in found)
    if cannot_tell or _falls_short(results.cells, display):
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


def _check_junit(file: Path, required: Sequence[object]) -> None:
    """Nothing is measured for a file that cannot be written, or has nothing in it."""
    if not required:
        raise InputError(
            "--junit is for what is required, and nothing is",
            "add --require, or the key require to the campaign",
        )
    if file.is_dir() or not file.absolute().parent.is_dir():
        raise InputError(
            f"--junit {file}: cannot be a file there", "make the directory"
        )


def _as_junit(name: str, found: Sequence[Judged]) -> str:
    """A test case for each figure that something is required of."""
    cases = [
        Case(
            f"{each.requirement.words}: {each.cell}",
            f"dutperf.{name}",
            failure=each.found if each.outcome == "not met" else "",
            skipped=f"cannot tell: {each.found}"
            if each.outcome == "cannot tell"
            else "",
        )
        for each in found
    ]
    return junit(f"dutperf {name}", cases)


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
