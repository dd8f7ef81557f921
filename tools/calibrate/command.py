"""``python -m tools calibrate``: its options, and its rows as texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.table import Table
from rich.text import Text

from dutperf.api.places import surroundings
from dutperf.cli import INTERRUPTED, INVALID
from dutperf.cli.console import PatientConsole, show_notice
from dutperf.cli.options import AsJson
from dutperf.cli.terminal import Terminal
from dutperf.errors import InputError
from tools.calibrate.grid import PATHS, QUANTITIES, Extent
from tools.calibrate.measuring import calibrate
from tools.calibrate.model import (
    FILE,
    Calibration,
    FlowControl,
    Row,
    Way,
    load_calibration,
)

T = TypeVar("T", bound=str)
_REPEATS, _QUICK_REPEATS = 3, 2

HEADS = (
    "setting",
    "path",
    "figure",
    "set",
    "account",
    "found",
    "error",
    "worst",
    "spread",
    "allowed",
    "verdict",
)
WORDS = {"setting", "path", "figure", "allowed", "verdict"}
"""Columns that are no figures."""
_UNITS = {"ns": "us"}
"""What is shown for what is stored."""
_WHOLE = {"frames", "connections"}
"""Whose errors are told as they are, not as a share."""
_PATHS: dict[Way, str] = {
    "memory": "memif",
    "af_packet": "AF_PACKET",
    "af_xdp": "AF_XDP",
}

FLOW_HEADS = (
    "device",
    "dropping: account",
    "found",
    "error",
    "flow control: at most",
    "found",
    "held back",
    "a classic tester",
    "really offered",
    "verdict",
)

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
            "give directories that '--output' named",
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


def texts(row: Row) -> tuple[str, ...]:
    """One for each of ``HEADS``."""
    return (
        row.setting,
        _PATHS[row.path],
        f"{row.figure}, {_UNITS.get(row.unit, row.unit)}",
        _figure(row.expected, row.unit),
        _figure(row.account, row.unit),
        _at_least(row.bound) + _figure(row.found, row.unit),
        _error(row.error, row.error_percent, row.unit),
        _error(row.worst, row.worst_percent, row.unit),
        "-" if row.spread_percent is None else f"{row.spread_percent:.2f} %",
        _target(row),
        row.verdict,
    )


def _at_least(bound: str | None) -> str:
    return ">= " if bound else ""


def sections(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Rows of one part of the grid; the same setting on other paths stands beside."""
    for quantity in dict.fromkeys(row.quantity for row in rows):
        own = [row for row in rows if row.quantity == quantity]
        places = {row.setting: n for n, row in reversed(list(enumerate(own)))}
        yield quantity, sorted(own, key=lambda row: (places[row.setting], row.figure))


def flow_texts(row: FlowControl) -> tuple[str, ...]:
    """One for each of ``FLOW_HEADS``; frames per second."""
    found = _figure(row.found_fps, "fps")
    return (
        f"{row.service_fps:,}, {_PATHS[row.path]}",
        _figure(row.dropping.account, "fps"),
        _figure(row.dropping.found, "fps"),
        _error(row.dropping.error, row.dropping.error_percent, "fps"),
        _figure(row.most_fps, "fps"),
        "invalid" if row.found_fps is None else f"{_at_least(row.bound)}{found}",
        f"{row.held_back} of {row.trials} trials",
        _figure(row.classic_fps, "fps"),
        _figure(row.classic_offered_fps, "fps"),
        row.verdict,
    )


def markdown(calibrations: Sequence[Calibration]) -> str:
    """The tables of several runs, one after the other, and what disturbed them."""
    parts = []
    for number, each in enumerate(calibrations, 1):
        parts.append(f"## Run {number}: {each.created_at}\n")
        parts.append(_about(each))
        parts += [
            f"### {quantity}\n\n{_markdown_table(rows)}\n{_misses(rows)}"
            for quantity, rows in sections(each.rows)
        ]
        if each.flow_control:
            parts.append(
                f"### flow control, fps\n\n{_markdown_flow_table(each.flow_control)}"
            )
    return "\n".join(parts)


def _about(each: Calibration) -> str:
    lines = [f"* {key}: {value}" for key, value in each.machine.items()]
    lines += [
        f"* {check.name.replace('_', ' ')}: {check.verdict}: {check.found}"
        for check in each.checks
        if check.is_finding
    ]
    lines += [f"* hand-over between CPUs: {each.handover_ns} ns at most"]
    lines += [_limit(each, name) for name in each.limits_fps]
    lines.append(f"* {each.duration_s:,.0f} s, dutperf {each.dutperf_version}")
    if not each.complete:
        lines.append("* **ended before its last point**")
    return "\n".join(lines) + "\n"


def _limit(each: Calibration, name: str) -> str:
    text = f"* limit, {name}: {each.limits_fps[name]:,} fps"
    safe_fps = each.safe_rates_fps.get(name)
    return text + (f"; safe by the passport: {safe_fps:,}" if safe_fps else "")


def _markdown_table(rows: Sequence[Row]) -> str:
    rule = tuple("---" if head in WORDS else "---:" for head in HEADS)
    return _lines([HEADS, rule, *map(texts, rows)])


def _markdown_flow_table(rows: Sequence[FlowControl]) -> str:
    rule = ("---:",) * len(FLOW_HEADS)
    reasons = "".join(
        f"\n* {row.service_fps:,} fps: {reason}"
        for row in rows
        for reason in row.reasons
    )
    return _lines([FLOW_HEADS, rule, *map(flow_texts, rows)]) + reasons


def _lines(lines: Sequence[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _misses(rows: Sequence[Row]) -> str:
    return "".join(
        f"\n* {row.setting}, {row.figure}: {reason}"
        for row in rows
        for reason in row.reasons
    ) + ("\n" if any(row.reasons for row in rows) else "")


def _figure(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "ns":
        return f"{value / 1000:,.2f}"
    return f"{value:,.1f}" if value % 1 else f"{value:,.0f}"


def _target(row: Row) -> str:
    """A stated error differs from trial to trial: the one that allowed least."""
    if row.unit != "ns" or not row.pairs:
        return row.target
    least, most = min((p.allowed for p in row.pairs), key=lambda a: a[1] - a[0])
    return f"{least / 1000:+,.1f} to {most / 1000:+,.1f}"


def _error(value: float | None, percent: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "ns":
        return f"{value / 1000:+,.2f}"
    if percent is None or unit in _WHOLE:
        return f"{value:+,.0f}" if value else "0"
    return f"{percent:+.2f} %"
