"""The view ``results``: a row for each figure of each cell."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dutperf.catalogue import Unit
from dutperf.query.columns import Column, View, of_run
from dutperf.query.figures import StoredFigure, figures_of
from dutperf.query.runs import Run
from dutperf.results import CellResult
from dutperf.results.rate_results import BesideCount, ManagementCount
from dutperf.tables import Subject
from dutperf.visible import visible_json


@dataclass(frozen=True)
class Row:
    """One figure, and the run it is of."""

    run: Run
    figure: StoredFigure

    @property
    def cell(self) -> Subject:
        """Whose figure it is."""
        return self.figure.cell

    def stored(self, of: Callable[[CellResult], object]) -> object:
        """What the cell's result has."""
        return self.cell.result and of(self.cell.result)

    def setting(self, key: str) -> object:
        """What was asked for; None: it was not."""
        return self.cell.settings.get(key)

    def beside(self, of: Callable[[BesideCount], int]) -> int | None:
        """Frames beside the stream, in the figure's directions; None: none were."""
        counts = self.cell.result.beside if self.cell.result else []
        own = [c for c in counts if self.figure.direction in ("both", c.direction)]
        return sum(map(of, own)) if own else None

    def management(self, of: Callable[[ManagementCount], int | None]) -> int | None:
        """Of the queries in the cell's trials; None: the device was not asked."""
        count = self.cell.result and self.cell.result.management
        return of(count) if count else None

    def at_least(self, share: float | None) -> object:
        """A share of something that was not exact is not either."""
        return share if self.figure.limit is None else None


def _value(unit: Unit) -> Callable[[Row], object]:
    """The figure, in the column of its unit."""
    return lambda row: row.figure.value if row.figure.unit == unit else None


def _rows(run: Run) -> Iterator[Row]:
    for cell in run.cells:
        yield from (Row(run, figure) for figure in figures_of(cell))


def _word(text: str) -> str | None:
    return text or None


_WHICH: tuple[Column[Row], ...] = (
    *of_run(lambda row: row.run),
    Column(
        "device",
        "VARCHAR",
        "Name of the lab or testbed.",
        lambda row: _word(row.cell.testbed),
    ),
    Column("cell", "VARCHAR", "Id of the cell in its run.", lambda row: row.cell.id),
    Column("procedure", "VARCHAR", "As the command.", lambda row: row.cell.procedure),
    Column(
        "ip",
        "VARCHAR",
        "IP versions of the frames, left and right: 4, 6, 6-4, 4-6.",
        lambda row: row.setting("ip"),
    ),
    Column(
        "frame_size",
        "BIGINT",
        "Bytes with FCS, as asked for; null: a mix of sizes.",
        lambda row: row.cell.frame_size,
    ),
    Column(
        "sizes",
        "VARCHAR",
        "The same in words: both sides of a translator, the name of a mix.",
        lambda row: row.cell.sizes,
    ),
    Column(
        "traffic",
        "VARCHAR",
        "Label of the traffic profile; null: that of the RFC.",
        lambda row: _word(row.cell.setting_text("traffic")),
    ),
    Column(
        "broadcast_percent",
        "DOUBLE",
        "Broadcast frames in the load, in percent; null: none.",
        lambda row: row.cell.beside_percent("broadcast"),
    ),
    Column(
        "hop_by_hop_percent",
        "DOUBLE",
        "Frames with a hop-by-hop header in the load, in percent; null: none.",
        lambda row: row.cell.beside_percent("hop-by-hop"),
    ),
    Column(
        "spoofed_percent",
        "DOUBLE",
        "Frames with another customer edge's address in the load, in percent; null: "
        "none.",
        lambda row: row.cell.beside_percent("spoofed"),
    ),
    Column(
        "flows",
        "BIGINT",
        "Network flows in each direction, where that was chosen.",
        lambda row: row.cell.flows,
    ),
    Column(
        "connections",
        "BIGINT",
        "That a stateful test opened.",
        lambda row: row.cell.connections,
    ),
    Column(
        "judged",
        "VARCHAR",
        "What makes the figure another one than the RFC's; null: nothing.",
        lambda row: _word(row.cell.judged),
    ),
)
_FIGURE: tuple[Column[Row], ...] = (
    Column(
        "figure",
        "VARCHAR",
        "What the figure is: throughput, frame loss, TL, WCL, PDV, ...",
        lambda row: row.figure.name,
    ),
    Column(
        "direction",
        "VARCHAR",
        "Of its frames: both, forward, reverse.",
        lambda row: _word(row.figure.direction),
    ),
    Column(
        "stream",
        "VARCHAR",
        "Of delays: foreground or background.",
        lambda row: _word(row.figure.stream),
    ),
    Column(
        "load_percent",
        "DOUBLE",
        "Of a loss curve: the load, in percent of the maximum or the throughput.",
        lambda row: row.figure.load_percent,
    ),
    Column(
        "load_fps",
        "DOUBLE",
        "The load at which loss or delay was measured, or the overload; per direction.",
        lambda row: row.figure.load_fps,
    ),
    Column("rate_fps", "DOUBLE", "Throughput, frames/s per direction.", _value("fps")),
    Column("loss_percent", "DOUBLE", "Frame loss at the load.", _value("percent")),
    Column(
        "burst_frames",
        "DOUBLE",
        "Longest burst without loss, per direction.",
        _value("frames"),
    ),
    Column(
        "delay_ns",
        "DOUBLE",
        "Latency, PDV, IPDV, recovery, outage; infinite: too many frames were lost.",
        _value("ns"),
    ),
    Column(
        "connections_per_s",
        "DOUBLE",
        "Connections opened or torn down in a second.",
        _value("connections/s"),
    ),
    Column(
        "capacity_connections",
        "DOUBLE",
        "Connections that the device's table holds.",
        _value("connections"),
    ),
    Column(
        "bound",
        "VARCHAR",
        "lower: the figure is that much, or more; upper: or less; below: less; "
        "null: it is exact.",
        lambda row: row.figure.limit,
    ),
    Column(
        "bound_cause",
        "VARCHAR",
        "What kept the tester from asking for more: tester, set, nominal, ...",
        lambda row: (
            row.stored(lambda cell: cell.bound_cause)
            if row.figure.limit == "lower"
            else None
        ),
    ),
    Column(
        "verdict",
        "VARCHAR",
        "pass: there is a figure that may be quoted; invalid: there is none.",
        lambda row: "invalid" if row.figure.absent == "invalid" else row.cell.state,
    ),
)
_REPEATS: tuple[Column[Row], ...] = (
    Column(
        "interval_lower",
        "DOUBLE",
        "Lower end of the interval of the median, in the figure's unit; null: too few "
        "repeats.",
        lambda row: row.figure.interval("interval_lower"),
    ),
    Column(
        "interval_upper",
        "DOUBLE",
        "Its upper end; null also where it may be higher.",
        lambda row: row.figure.interval("interval_upper"),
    ),
    Column(
        "dispersion_percent",
        "DOUBLE",
        "(99th - 1st percentile) / median of the repeats.",
        lambda row: row.figure.dispersion_percent,
    ),
    Column(
        "repeats",
        "DOUBLE[]",
        "Each valid repeat, in the figure's unit.",
        lambda row: list(row.figure.repeats),
    ),
    Column(
        "repeats_at_least",
        "BIGINT",
        "How many of these are lower bounds.",
        lambda row: row.figure.at_least,
    ),
)
_BESIDE: tuple[Column[Row], ...] = (
    Column(
        "trials",
        "BIGINT",
        "That the cell took.",
        lambda row: row.cell.trial_count,
    ),
    Column(
        "passport_percent",
        "DOUBLE",
        "The rate in percent of what is safe for the tester; null: nobody knew.",
        lambda row: row.stored(
            lambda cell: cell.passport and cell.passport.share_percent
        ),
    ),
    Column(
        "media_percent",
        "DOUBLE",
        "The throughput in percent of what the medium carries; null: no medium.",
        lambda row: row.stored(lambda cell: cell.media and cell.media.share_percent),
    ),
    Column(
        "beside_sent_frames",
        "BIGINT",
        "Such frames beside the stream, in the figure's directions and the trials that "
        "passed; null: none.",
        lambda row: row.beside(lambda count: count.sent),
    ),
    Column(
        "beside_received_frames",
        "BIGINT",
        "Of these: that came, though none had to.",
        lambda row: row.beside(lambda count: count.received),
    ),
    Column(
        "queries_asked",
        "BIGINT",
        "SNMP queries in the trials that passed; null: without management.",
        lambda row: row.management(lambda count: count.asked),
    ),
    Column(
        "queries_answered",
        "BIGINT",
        "Of these: with a value of each variable.",
        lambda row: row.management(lambda count: count.answered),
    ),
    Column(
        "queries_wrong",
        "BIGINT",
        "Answered with an error, without some values, or damaged.",
        lambda row: row.management(lambda count: count.wrong),
    ),
    Column(
        "queries_slowest_ns",
        "BIGINT",
        "The slowest answer, from when its query was due; null: none came.",
        lambda row: row.management(lambda count: count.slowest_ns),
    ),
    Column(
        "quantity",
        "VARCHAR",
        "What the result of the cell is, in words.",
        lambda row: row.stored(lambda cell: cell.quantity),
    ),
    Column(
        "conformance",
        "VARCHAR",
        "unconditional, conditional, none, other_measure (RFC 2544 5).",
        lambda row: row.stored(
            lambda cell: cell.conformance and cell.conformance.status
        ),
    ),
    Column(
        "settings",
        "JSON",
        "All settings of the cell: settings->>'trial_duration_s'.",
        lambda row: visible_json(json.dumps(dict(row.cell.settings))),
    ),
)
RESULTS = View(
    "results",
    "A row for each figure: a loss curve has one for each load, delays one for each "
    "measure, direction and stream.",
    (*_WHICH, *_FIGURE, *_REPEATS, *_BESIDE),
    _rows,
)
