"""``dutperf serve``: the runs below a directory as local web pages."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from dutperf.cli.exit_codes import INTERRUPTED
from dutperf.cli.failures import PatientConsole
from dutperf.cli.testbeds import planned_testbeds
from dutperf.config import expand, load_campaign
from dutperf.errors import DutperfError
from dutperf.interruption import TERMINATE
from dutperf.model.cell import Cell
from dutperf.results import stored_campaign


def serve_command(
    directory: Annotated[
        Path, typer.Argument(metavar="DIRECTORY", help="runs below it are shown")
    ] = Path("results"),
    host: Annotated[
        str,
        typer.Option(
            metavar="HOST", help="where to listen; beyond this machine with a token"
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="0: any that is free")
    ] = 8219,
) -> None:
    """Show runs in a browser: their reports, comparisons, and the one that goes on."""
    # The web framework is loaded by nobody else.
    from dutperf.comparison.output import render  # noqa: PLC0415
    from dutperf.serve.server import serve  # noqa: PLC0415

    with _ended_by_signals():
        serve(directory, host, port, compare=render, planned=_planned, tell=_tell)


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Nothing is written, so nothing waits for readers, or for a page half made."""
    signals = (signal.SIGINT, *TERMINATE)
    before = {each: signal.signal(each, _leave) for each in signals}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _leave(_signum: int, _frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


def _tell(address: str) -> None:
    console = PatientConsole()
    console.out(address, highlight=False)
    console.file.flush()


def _planned(directory: Path) -> Sequence[Cell]:
    """Nothing where the campaign is lost, or is of another dutperf."""
    try:
        campaign = load_campaign(stored_campaign(directory), stored=True)
        return expand(campaign, *(at.testbed for at in planned_testbeds(campaign)))
    except DutperfError:
        return ()
