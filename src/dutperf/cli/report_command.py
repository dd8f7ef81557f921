"""``dutperf report``: the pages of stored results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dutperf.cli.failures import PatientConsole
from dutperf.report import OVERVIEW, write_overview, write_report


def report(
    directories: Annotated[
        list[Path], typer.Argument(metavar="DIRECTORY...", help="results directories")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"an overview of all; of several directories: {OVERVIEW}",
        ),
    ] = None,
) -> None:
    """Make report.html again from stored results; of several runs an overview, too."""
    reports = [write_report(directory) for directory in directories]
    if output is not None or len(directories) > 1:
        reports.append(write_overview(directories, output or Path(OVERVIEW)))
    PatientConsole().out(reports[-1], highlight=False)
