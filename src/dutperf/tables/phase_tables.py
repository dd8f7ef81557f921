"""Cells on open connections (RFC 9693 4.7): what was opened, when, and forwarded."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dutperf.protocol import DirectionName, DirectionResult
from dutperf.tables.connection_tables import PORTS, addresses
from dutperf.tables.figures import Entry, Value, count, number
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import Column, Columns, Table, heads, rows

_WAYS: tuple[DirectionName, ...] = ("forward", "reverse")
_TIMES: Sequence[tuple[Column, str]] = (
    (Column("R", "Rate of phase 1, which opens them.", "fps"), "phase1_rate"),
    (Column("T", "Wait for the last frame of phase 1.", "ms"), "timeout_ms"),
    (Column("D", "From phase 1's start to phase 2's.", "ms"), "phase2_after_ms"),
    (
        Column("needed timeout", "Of the device, 10 % to spare.", "s"),
        "needed_dut_timeout_s",
    ),
    (Column("known timeout", "Of the device, as it was given.", "s"), "dut_timeout_s"),
)


def phase_table(cells: Sequence[Subject]) -> Table | None:
    """One of all such cells, if there are any."""
    phased = [cell for cell in cells if cell.settings.get("phase1_rate") is not None]
    if not phased:
        return None
    columns: Columns[Subject] = (
        (
            Column("traffic", "Procedure and frames.", "", 4, words=True),
            lambda cell: cell.title,
        ),
        (
            Column("order", "Who opens, and answers how.", "", 4, True, True, "muted"),
            lambda cell: (
                f"initiator {cell.setting_text('initiator')}, "
                f"responder's order {cell.setting_text('responder_order')}"
            ),
        ),
        (
            Column("connections", "N: opened before each trial."),
            lambda cell: count(cell.connections),
        ),
        *PORTS,
        *addresses(phased),
        *((head, _setting(key)) for head, key in _TIMES),
        *(
            (
                Column(
                    f"forwarded, {way}",
                    "What it received in the fastest trial that passed.",
                    "fps",
                    spared=2,
                    below=way != _WAYS[0],
                ),
                _forwarded(way),
            )
            for way in _WAYS
        ),
    )
    return Table(
        key="phases",
        title="Connections opened before each trial (RFC 9693 4.7)",
        columns=heads(columns),
        rows=rows(columns, phased, lambda cell: cell.id),
        detail=True,
    )


def _setting(key: str) -> Callable[[Subject], Entry]:
    return lambda cell: number(cell.settings.get(key))


def _forwarded(way: DirectionName) -> Callable[[Subject], Entry]:
    """In the last trial at the highest load that passed, where that is known."""

    def entry(cell: Subject) -> Value:
        passed = [t for t in cell.counting_trials if t.result.verdict.kind == "pass"]
        if not passed or not cell.measured:
            return count(None)
        trial = max(passed, key=lambda t: (t.load_fps, t.number))
        duration_s = trial.request.duration_ns / 1e9
        found = [d for d in trial.result.directions if d.name == way]
        return count(_received(found[0]) / duration_s if found else None)

    return entry


def _received(direction: DirectionResult) -> int:
    return sum(stream.received for stream in direction.streams)
