"""Every procedure's method, by the name that the catalogue has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from dutperf.catalogue import ProcedureName
from dutperf.procedures import (
    back_to_back,
    delays,
    dns64,
    frame_loss,
    outage,
    power,
    soak,
    system_recovery,
    throughput,
)
from dutperf.procedures.method import Method
from dutperf.procedures.stateful import (
    connection_rate,
    idle_timeout,
    nat_behaviour,
    nat_log,
    port_limit,
    table_capacity,
    tcp_connections,
    teardown_rate,
)
from dutperf.results import Scalability, SweepResult
from dutperf.tables.connection_tables import phase_table, transport_table
from dutperf.tables.question_tables import answers
from dutperf.tables.rate_tables import (
    goal_table,
    media_table,
    passport_table,
    timeout_table,
)
from dutperf.tables.result_tables import alike, curve_table, result_table
from dutperf.tables.scalability_tables import growths, swept
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import Table

METHODS: Mapping[ProcedureName, Method] = {
    each.name: each
    for each in (
        throughput.METHOD,
        throughput.MULTICAST,
        dns64.METHOD,
        dns64.PLAIN,
        frame_loss.METHOD,
        back_to_back.METHOD,
        system_recovery.METHOD,
        outage.METHOD,
        power.METHOD,
        soak.METHOD,
        delays.LATENCY_METHOD,
        delays.PDV_METHOD,
        delays.IPDV_METHOD,
        tcp_connections.RATE,
        tcp_connections.CAPACITY,
        tcp_connections.REQUESTS,
        tcp_connections.TEARDOWN,
        tcp_connections.HALF_OPEN,
        idle_timeout.METHOD,
        nat_behaviour.METHOD,
        port_limit.METHOD,
        nat_log.METHOD,
        connection_rate.METHOD,
        table_capacity.METHOD,
        teardown_rate.METHOD,
    )
}


# All tables of a run, in the order in which they are shown.


def tables(
    cells: Sequence[Subject],
    scalability: Sequence[Scalability],
    sweeps: Sequence[SweepResult] = (),
) -> Iterator[Table]:
    """Those that have a row.

    Args:
        cells: of the run, also those it ended in.
        scalability: as stored.
        sweeps: likewise.
    """
    found = [answer.table for answer in answers(cells)]
    found += (table for table, _ in result_tables(cells))
    beside = [
        media_table(cells),
        transport_table(cells),
        dns64.share_table(cells),
        phase_table(cells),
        passport_table(cells),
    ]
    found += filter(None, beside)
    for cell in cells:
        found += _of_cell(cell)
    found += (growth.table for growth in growths(scalability, cells))
    found += (sweep.table for sweep in swept(sweeps, cells))
    yield from (table for table in found if table.rows)


share_chart = dns64.share_chart
"""What goes with a table over several cells of one procedure."""


def result_tables(cells: Sequence[Subject]) -> Iterator[tuple[Table, list[Subject]]]:
    """The result of each cell, and what stands in each table.

    The first of a procedure has its name as key, others a number.
    """
    numbers: Counter[str] = Counter()
    for group in alike(cells):
        procedure = group[0].procedure
        numbers[procedure] += 1
        number = numbers[procedure]
        key = procedure if number == 1 else f"{procedure}-{number}"
        made = METHODS[procedure].table if procedure else result_table
        yield made(key, group), group


def _of_cell(cell: Subject) -> Iterator[Table]:
    result = cell.result
    if result is None:
        return
    if result.points:
        yield curve_table(cell)
    if result.goals:
        yield goal_table(cell)
    if result.timeouts or any(point.timeouts for point in result.points):
        yield timeout_table(cell)
    yield from METHODS[result.procedure].tables(cell)
