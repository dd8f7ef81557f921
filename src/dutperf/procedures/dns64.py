"""How fast a DNS64 server resolves (RFC 8219 9.2), by the search of the throughput.

A trial's frames are queries, each about a name of its own, which nobody has asked for
before; it passes if each is answered in time by the AAAA that its name has to have. The
tester is the authority, too, so it tells what the server asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

from dutperf.charts.cells import CellView
from dutperf.charts.text import whole
from dutperf.procedures.method import Method, OnStreams
from dutperf.procedures.throughput import measure_throughput
from dutperf.procedures.trials import best_and_next
from dutperf.protocol.result_messages import DnsResult
from dutperf.results.trial_record import TrialRecord
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import Column, Columns, Table, count, heads, rows


def _meaning(cell: CellView) -> str:
    dns = cell.spec.dns if cell.spec else None
    if dns is None:
        return ""
    share = f"{dns.aaaa_percent} % of them with" if dns.aaaa_percent else "without"
    return f"Each query about another name, {share} an AAAA; none cached"


_Told = tuple[TrialRecord, DnsResult]


def _wrong(line: _Told) -> str:
    replies = line[1].replies.model_dump()
    told = [
        f"{whole(number)} {name.replace('_', ' ')}"
        for name, number in replies.items()
        if number and name != "valid"
    ]
    return ", ".join(told) or "none"


_COLUMNS: Columns[_Told] = (
    (Column("trial", "Its number."), lambda line: count(line[0].number)),
    (
        Column("rate", "Of queries.", "queries/s"),
        lambda line: count(line[0].load_fps),
    ),
    (
        Column("sent", "Each about another name."),
        lambda line: count(line[0].result.directions[0].streams[0].sent),
    ),
    (
        Column("answered", "Validly, in time or not.", tone="strong"),
        lambda line: count(line[0].result.directions[0].streams[0].received),
    ),
    (Column("other answers", "And what they were.", words=True), _wrong),
    (
        Column("AAAA asked for", "Of the authority: names."),
        lambda line: count(line[1].asked_aaaa.names),
    ),
    (
        Column("A asked for", "Likewise."),
        lambda line: count(line[1].asked_a.names),
    ),
    (
        Column("asked again", "Of both, for names that were asked for before."),
        lambda line: count(line[1].asked_aaaa.again + line[1].asked_a.again),
    ),
)


def _tables(cell: Subject) -> Iterator[Table]:
    told = [(t, t.result.dns) for t in best_and_next(cell.trials) if t.result.dns]
    yield Table(
        key=f"queries-{cell.id}",
        title=f"{cell.id}: queries at the highest rate that passed, and at the next",
        columns=heads(_COLUMNS),
        rows=rows(_COLUMNS, told),
        detail=True,
    )


METHOD = Method("dns64", OnStreams(measure_throughput), _meaning, tables=_tables)
