"""``dutperf export-histograms``: delays for the tools of HdrHistogram."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dutperf.cli.failures import PatientConsole
from dutperf.report import export_histograms


def export_histograms_command(
    directory: Annotated[
        Path, typer.Argument(metavar="RESULTS", help="a results directory")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="DIR",
            help="where to write; default: histograms in the results directory",
        ),
    ] = None,
) -> None:
    """Write the delays of each trial as an HdrHistogram log (.hlog)."""
    written = export_histograms(directory, out or directory / "histograms")
    console = PatientConsole()
    for path in written:
        console.out(path, highlight=False)
