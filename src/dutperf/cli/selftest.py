"""``dutperf selftest``: the tester measured by itself, its two ports crossed.

What is found is the tester's own limit: a device that is measured near it is not what
limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from dutperf.bench.stateful_limits import (
    DIRECTIONS,
    SelftestSettings,
    fell_short,
    run_selftest,
)
from dutperf.cli.exit_codes import INVALID
from dutperf.cli.measuring import watched
from dutperf.cli.options import AsJson, Output
from dutperf.cli.summary import show_json
from dutperf.cli.table_print import entry_text
from dutperf.errors import InputError
from dutperf.results import CellResult, ResultsFile, spread_of, valued
from dutperf.tables.figures import count

_ROWS = {
    "connection-rate": "phase 1: each frame another four-tuple, learned",
    "both": "phase 2, both directions, per direction",
    "forward": "phase 2, initiator to responder",
    "reverse": "phase 2, responder to initiator",
}


Stateful = Annotated[
    bool,
    typer.Option("--stateful", help="connections and learned four-tuples (RFC 9693)"),
]
Connections = Annotated[
    list[int] | None,
    typer.Option(
        min=1,
        max=2**32,
        metavar="N",
        help="how many; repeat the option for several; 12 bytes of memory each, "
        "IPv6 36",
        show_default="4000000",
    ),
]
Ip = Annotated[int, typer.Option(min=4, max=6, help="IP version, 4 or 6")]
Cpus = Annotated[
    str, typer.Option(metavar="CPU[,CPU]", help="CPUs that send and receive")
]
Phase1Rate = Annotated[
    int,
    typer.Option(
        "--phase1-rate", min=1, metavar="FPS", help="of phase 1 before phase 2"
    ),
]
TrialDuration = Annotated[
    float,
    typer.Option(
        "--trial-duration", min=0.05, max=3600, metavar="S", help="of phase 2"
    ),
]
Width = Annotated[
    str, typer.Option(metavar="WIDTH", help="of each search, like 1% or 1000")
]
Repeats = Annotated[
    int, typer.Option(min=1, max=1000, metavar="N", help="of each search")
]


def selftest(
    stateful: Stateful = False,
    connections: Connections = None,
    ip: Ip = 4,
    cpus: Cpus = "0",
    phase1_rate_fps: Phase1Rate = 2_000_000,
    trial_duration_s: TrialDuration = 1.0,
    resolution: Width = "2%",
    repeats: Repeats = 3,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """What the tester itself can do: its two ports crossed, no device between them."""
    if not stateful:
        raise InputError(
            "selftest measures stateful traffic only: give --stateful",
            "for what each kind of frame costs: dutperf bench",
        )
    if ip not in {4, 6}:
        raise InputError(f"--ip: {ip} is no IP version", "give 4 or 6")
    settings = SelftestSettings(
        connections=tuple(connections or [4_000_000]),
        ip=ip,
        cpus=_numbers(cpus),
        phase1_rate_fps=phase1_rate_fps,
        trial_duration_s=trial_duration_s,
        resolution=resolution,
        repeats=repeats,
    )
    results = watched(
        lambda on_event: run_selftest(settings, output, on_event),
        show_json if as_json else _show,
    )
    if results and any(map(fell_short, results.cells)):
        raise typer.Exit(INVALID)


def _numbers(cpus: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in cpus.split(","))
    except ValueError:
        raise InputError(
            f"--cpus: {cpus[:40]!r} is no list of CPU numbers", "give one, or 0,1"
        ) from None


def _show(console: Console, results: ResultsFile, report: Path | None) -> None:
    console.print(_table(results.cells))
    for cell in filter(fell_short, results.cells):
        for reason in cell.reasons:
            console.print(f"{cell.id}: {reason.message}", markup=False, soft_wrap=True)
    if report:
        console.print(str(report), markup=False, soft_wrap=True)


def _table(cells: Sequence[CellResult]) -> Table:
    table = Table(title="The tester's own limits, stateful (ports crossed)")
    table.add_column("frames", overflow="fold")
    for name in ("four-tuples", "table, MiB", "median fps", "1st", "99th", "spread, N"):
        table.add_column(name, justify="right")
    for row in _rows(cells):
        table.add_row(*row)
    return table


def _rows(cells: Sequence[CellResult]) -> Iterator[list[str]]:
    for key, words in _ROWS.items():
        for cell in cells:
            if key not in {cell.procedure, cell.parameters.get("direction")}:
                continue
            if key in DIRECTIONS and cell.procedure == "connection-rate":
                continue
            yield [words, *_figures(cell)]


def _figures(cell: CellResult) -> list[str]:
    connections = cell.parameters.get("connections")
    opened = connections if isinstance(connections, int) else 0
    bytes_each = 12 if cell.parameters.get("ip_right") == 4 else 36
    memory = f"{opened * bytes_each / 2**20:,.1f}"
    # What ends at the tester's limit is no lower bound here, but what is looked for.
    spread = spread_of(valued(cell.repeats)[0])
    if cell.median is None or spread is None:
        return [f"{opened:,}", memory, "-", "-", "-", "-"]
    return [
        f"{opened:,}",
        memory,
        entry_text(count(cell.median)),
        entry_text(count(spread.percentile_1)),
        entry_text(count(spread.percentile_99)),
        f"{spread.dispersion_percent:.1f} %, {spread.count}",
    ]
