"""Runs a campaign and shows it, however it ends."""

from __future__ import annotations

from pathlib import Path

import typer

from dutperf.cli.failures import PatientConsole, defect
from dutperf.cli.main import INTERRUPTED
from dutperf.cli.places import dut_alive, open_place, places_of
from dutperf.cli.summary import show_json, show_summary
from dutperf.cli.terminal import Terminal
from dutperf.config import Campaign
from dutperf.errors import DutperfError
from dutperf.procedures.campaign import Kind, run_campaign
from dutperf.procedures.executor import Surroundings
from dutperf.procedures.session import prepare_engine
from dutperf.report import write_report
from dutperf.results import ResultsFile

INVALID = 1


def measure(
    campaign: Campaign,
    *,
    kind: Kind,
    output: Path | None,
    as_json: bool,
    resume: Path | None = None,
) -> None:
    """Measure, show progress on standard error and the results on standard output.

    Raises:
        DutperfError: as ``run_campaign``; and for anything unexpected.
        typer.Exit: with the exit code, unless it is 0.
    """
    with Terminal(PatientConsole(stderr=True)) as terminal:
        try:
            _run(campaign, terminal, kind, output, resume)
        except KeyboardInterrupt:
            terminal.say_interrupted()
            raise typer.Exit(INTERRUPTED) from None
        except DutperfError:
            raise
        except Exception as error:
            raise defect(error, terminal.directory) from error
        finally:
            terminal.stop()
            _show(terminal, as_json)
    if terminal.results and any(c.verdict == "invalid" for c in terminal.results.cells):
        raise typer.Exit(INVALID)


def _run(
    campaign: Campaign,
    terminal: Terminal,
    kind: Kind,
    output: Path | None,
    resume: Path | None,
) -> ResultsFile:
    around = Surroundings(
        open_engine=prepare_engine,
        write_report=write_report,
        open_place=open_place,
        dut_alive=dut_alive,
    )
    return run_campaign(
        campaign,
        places_of(campaign),
        around,
        on_event=terminal.on_event,
        kind=kind if len(campaign.procedures) == 1 else "campaign",
        results_dir=output,
        resume=resume,
    )


def _show(terminal: Terminal, as_json: bool) -> None:
    """Whatever was measured, also when the run ended early or the disk is full."""
    if terminal.results is None:
        return
    console = PatientConsole()
    if as_json:
        show_json(console, terminal.results)
    else:
        show_summary(console, terminal.results, terminal.report)
