"""TCP connections that stay (RFC 8219 8, RFC 3511 5.2, 5.4 to 5.6), and that come.

Opened in one trial, used in another: the tests, searches and results are those of
RFC 9693, of segments in place of UDP frames (``establishing.use``).

procedure          opened until   used by   looked for
tcp-capacity       ACK            GET       how many are held
tcp-half-open      SYN-ACK        ACK       how many are held
tcp-request-rate   ACK            GET       how fast they are used
tcp-teardown-rate  ACK            FIN       how fast they are used
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from dutperf import stats
from dutperf.charts.cells import CellView
from dutperf.charts.text import whole
from dutperf.procedures.method import Method, OnConnections, OnStreams, Panel, Section
from dutperf.procedures.stateful.connection_rate import measure_connection_rate
from dutperf.procedures.stateful.table_capacity import (
    capacity_tables,
    measure_table_capacity,
)
from dutperf.procedures.throughput import measure_throughput
from dutperf.procedures.trials import best_and_next
from dutperf.protocol.result_messages import Histogram, Segments
from dutperf.results.trial_record import TrialRecord
from dutperf.tables.connection_tables import connection_table
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import (
    Column,
    Columns,
    Table,
    count,
    duration,
    heads,
    rows,
)


def _used(what: str, cell: CellView) -> str:
    told = f"{what}, of {whole(cell.connections)} open TCP connections"
    return told + _again(cell)


def _held(what: str, cell: CellView) -> str:
    return what + _again(cell)


def _again(cell: CellView) -> str:
    """That lost segments are sent again: another measure (RFC 6298)."""
    tcp = cell.spec.tcp if cell.spec else None
    if not tcp or not tcp.retransmit:
        return ""
    times = "once" if tcp.retransmit == 1 else f"up to {tcp.retransmit} times"
    return f"; what was lost was sent again, {times}"


CAPACITY = Method(
    "tcp-capacity",
    OnConnections(
        partial(
            measure_table_capacity,
            quantity="concurrent TCP connections, a GET answered on each (RFC 3511 "
            "5.2)",
        )
    ),
    partial(_held, "TCP connections held open at once"),
    connection_table,
    capacity_tables,
)
HALF_OPEN = Method(
    "tcp-half-open",
    OnConnections(
        partial(
            measure_table_capacity,
            quantity="half-open TCP connections, of each its late ACK let through",
        )
    ),
    partial(_held, "Half-open TCP connections held at once"),
    connection_table,
    capacity_tables,
)
REQUESTS = Method(
    "tcp-request-rate",
    OnConnections(
        partial(
            measure_connection_rate,
            quantity="GETs answered a second, one on each open TCP connection",
        )
    ),
    partial(_used, "GETs answered"),
    connection_table,
)
TEARDOWN = Method(
    "tcp-teardown-rate",
    OnConnections(
        partial(
            measure_connection_rate,
            quantity="TCP connections closed a second, by FIN of both sides (RFC 3511 "
            "5.4)",
        )
    ),
    partial(_used, "Closed by FIN"),
    connection_table,
)


# TCP connections that come and go (RFC 8219 8, RFC 3511 5.3): how fast they may.
#
# The search is that of the throughput, over SYNs: a trial passes if no segment of any
# connection is lost (docs/tcp.md). What is shown beside: where the segments of the
# first rate that failed were lost, and how long connections took to open at the one
# that passed (RFC 3511 5.2).


_OF_EACH = {
    "opened": "was opened",
    "answered": "was opened, and its GET answered",
    "closed": "was opened, its GET answered, and closed",
}
_WORDS = {
    "syn": "SYN",
    "syn_ack": "SYN-ACK",
    "ack": "ACK",
    "request": "request",
    "response": "response",
    "fin": "FIN",
    "fin_ack": "FIN of the responder",
    "last_ack": "last ACK",
}


def _meaning(cell: CellView) -> str:
    tcp = cell.spec.tcp if cell.spec else None
    if not tcp:
        return ""
    return f"Each TCP connection {_OF_EACH[tcp.until]}" + _again(cell)


_Line = tuple[TrialRecord, Segments]
_SEGMENTS: Columns[_Line] = (
    (
        Column("trial", "Its number."),
        lambda line: count(line[0].number) if line[1].name == "syn" else "",
    ),
    (
        Column("rate", "Of new connections.", "connections/s"),
        lambda line: count(line[0].load_fps) if line[1].name == "syn" else "",
    ),
    (
        Column("segment", "In the order of a connection.", words=True),
        lambda line: _WORDS[line[1].name],
    ),
    (Column("sent", "One of each connection."), lambda line: count(line[1].sent)),
    (
        Column("lost", "Did not come to the other end.", tone="strong"),
        lambda line: count(line[1].sent - line[1].received),
    ),
    (
        Column("came again", "Nobody answers them, but where they are sent again."),
        lambda line: count(line[1].duplicate),
    ),
    (
        Column("sent again", "With --retransmit, beside those sent."),
        lambda line: count(line[1].retransmitted),
    ),
)


_OPENINGS: Columns[Histogram] = (
    (Column("connections", "Whose SYN-ACK came."), lambda times: count(times.count)),
    (Column("shortest", "SYN to SYN-ACK."), lambda times: duration(times.min)),
    (
        Column("median", "To 1 % or 64 ns.", tone="strong"),
        lambda times: duration(stats.histogram_percentile(times.buckets, 50)),
    ),
    (
        Column("99 %", "So many did not take longer."),
        lambda times: duration(stats.histogram_percentile(times.buckets, 99)),
    ),
    (Column("longest", "SYN to SYN-ACK."), lambda times: duration(times.max)),
)


def _tables(cell: Subject) -> Iterator[Table]:
    told = list(best_and_next(cell.trials))
    lines = [(t, each) for t in told if t.result.tcp for each in t.result.tcp.segments]
    yield Table(
        key=f"segments-{cell.id}",
        title=f"{cell.id}: segments at the highest rate that passed, and at the next",
        columns=heads(_SEGMENTS),
        rows=rows(_SEGMENTS, lines),
        detail=True,
    )
    times = [
        t.result.tcp.first_answer_ns
        for t in told
        if t.result.tcp and t.result.verdict.kind == "pass"
    ]
    yield Table(
        key=f"openings-{cell.id}",
        title=f"{cell.id}: time to open a connection (RFC 3511 5.2)",
        columns=heads(_OPENINGS),
        rows=rows(_OPENINGS, [each for each in times if each.count]),
        detail=True,
    )


def _panel(cell: CellView) -> Panel:
    return Panel(cell, next(best_and_next(cell.trials), None))


RATE = Method(
    "tcp-connection-rate",
    OnStreams(measure_throughput),
    _meaning,
    tables=_tables,
    section=Section("tcp", _panel),
)
