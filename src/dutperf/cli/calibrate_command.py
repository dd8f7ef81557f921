"""``dutperf calibrate``: what the tester finds of a device whose answer is known."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.table import Table
from rich.text import Text

from dutperf.calibration.grid import PATHS, QUANTITIES, Extent
from dutperf.calibration.measuring import FILE, calibrate, load_calibration
from dutperf.calibration.model import Calibration, Row
from dutperf.calibration.tables import (
    FLOW_HEADS,
    HEADS,
    WORDS,
    flow_texts,
    markdown,
    sections,
    texts,
)
from dutperf.cli.exit_codes import INTERRUPTED, INVALID
from dutperf.cli.failures import PatientConsole, show_notice
from dutperf.cli.measuring import surroundings
from dutperf.cli.options import AsJson
from dutperf.cli.terminal import Terminal
from dutperf.errors import InputError

T = TypeVar("T", bound=str)
_REPEATS, _QUICK_REPEATS = 3, 2

Quick = Annotated[
    bool, typer.Option("--quick", help="a small part of the grid, about two minutes")
]
Only = Annotated[
    str | None,
    typer.Option(
        metavar="PART,...", help=f"parts of the grid: {', '.join(QUANTITIES)}"
    ),
]
Paths = Annotated[
    str | None,
    typer.Option(
        "--path",
        metavar="PATH,...",
        help=f"how frames get to the device: {', '.join(PATHS)}; default: all, quick "
        "memory",
    ),
]
Repeats = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=100,
        metavar="N",
        help=f"of each point; default: {_REPEATS}, quick {_QUICK_REPEATS}",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="where the runs and calibration.json go, new or empty; default: "
        "results/calibration-TIME",
    ),
]
Stored = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[DIR]...",
        help="measure nothing: show the calibrations that are stored there",
    ),
]
Markdown = Annotated[
    bool, typer.Option("--markdown", help="show those of DIR as Markdown")
]


def calibrate_command(
    stored: Stored = None,
    quick: Quick = False,
    only: Only = None,
    paths: Paths = None,
    repeats: Repeats = None,
    output: Output = None,
    as_markdown: Markdown = False,
    as_json: AsJson = False,
) -> None:
    """Measure the known-answer device, and say how far off the figures are.

    The reference is the device's own account of each trial. Ends with 1 if anything is
    off by more than its target.
    """
    if stored or as_markdown:
        _show_stored(stored or [], as_markdown=as_markdown, as_json=as_json)
        return
    directory = output or Path("results") / f"calibration-{_now()}"
    extent = Extent(quick, repeats or (_QUICK_REPEATS if quick else _REPEATS))
    with Terminal(PatientConsole(stderr=True)) as terminal:
        try:
            found = calibrate(
                directory,
                _chosen("--only", only, QUANTITIES, QUANTITIES),
                _chosen("--path", paths, PATHS, PATHS[:1] if quick else PATHS),
                extent,
                surroundings(),
                terminal.on_event,
            )
        except KeyboardInterrupt:
            terminal.stop()
            show_notice(f"interrupted; what was measured is in {directory}")
            raise typer.Exit(INTERRUPTED) from None
    _show(found, as_json=as_json)
    if not as_json:
        PatientConsole().out(str(directory / FILE), highlight=False)
    if found.missed:
        raise typer.Exit(INVALID)


def _chosen(
    option: str, asked: str | None, known: Sequence[T], usual: Sequence[T]
) -> list[T]:
    """Those of ``known`` that were asked for, in its order.

    Raises:
        InputError: there is no such one.
    """
    if asked is None:
        return list(usual)
    names = [name.strip() for name in asked.split(",")]
    for name in names:
        if name not in known:
            raise InputError(
                f"{option}: there is no {name[:40]!r}",
                f"give some of {', '.join(known)}",
            )
    return [name for name in known if name in names]


def _show_stored(paths: list[Path], *, as_markdown: bool, as_json: bool) -> None:
    if not paths:
        raise InputError(
            "--markdown: of which calibration?",
            "give directories that 'dutperf calibrate --output' made",
        )
    found = [load_calibration(path) for path in paths]
    if as_markdown:
        PatientConsole().out(markdown(found), highlight=False)
        return
    for each in found:
        _show(each, as_json=as_json)


def _show(found: Calibration, *, as_json: bool) -> None:
    if as_json:
        PatientConsole().out(found.model_dump_json(indent=1), highlight=False)
        return
    console = PatientConsole()
    for name, rows in sections(found.rows):
        console.print(_table(name, rows))
        for row in rows:
            for reason in row.reasons:
                console.print(
                    f"{row.point}, {row.figure}: {reason}",
                    markup=False,
                    soft_wrap=True,
                )
    if found.flow_control:
        table = Table(title="flow control, fps")
        for head in FLOW_HEADS:
            table.add_column(head, justify="right", overflow="fold")
        for each in found.flow_control:
            table.add_row(*map(Text, flow_texts(each)))
        console.print(table)
    count = len(found.rows) + len(found.flow_control)
    coarse = f", {found.coarse} coarse" if found.coarse else ""
    console.print(
        f"{count} rows, {found.missed} missed{coarse}; {found.duration_s:.0f} s",
        highlight=False,
    )


def _table(title: str, rows: list[Row]) -> Table:
    table = Table(title=title)
    for head in HEADS:
        if head in WORDS:
            table.add_column(head, overflow="fold")
        else:
            table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, texts(row)))
    return table


def _now() -> str:
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
