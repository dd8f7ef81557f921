"""TCP connections that stay (RFC 8219 8, RFC 3511 5.2, 5.4 to 5.6).

Opened in one trial, used in another: the tests, searches and results are those of
RFC 9693, of segments in place of UDP frames (``establishing.use``).

procedure          opened until   used by   looked for
tcp-capacity       ACK            GET       how many are held
tcp-half-open      SYN-ACK        ACK       how many are held
tcp-request-rate   ACK            GET       how fast they are used
tcp-teardown-rate  ACK            FIN       how fast they are used
"""

from __future__ import annotations

from functools import partial

from dutperf.charts.cells import CellView
from dutperf.charts.text import whole
from dutperf.procedures.method import Method, OnConnections
from dutperf.procedures.stateful.connection_rate import measure_connection_rate
from dutperf.procedures.stateful.table_capacity import (
    capacity_tables,
    measure_table_capacity,
)
from dutperf.tables.connection_tables import connection_table


def _used(what: str, cell: CellView) -> str:
    return f"{what}, of {whole(cell.connections)} open TCP connections"


CAPACITY = Method(
    "tcp-capacity",
    OnConnections(
        partial(
            measure_table_capacity,
            quantity="concurrent TCP connections, a GET answered on each (RFC 3511 "
            "5.2)",
        )
    ),
    lambda _: "TCP connections held open at once",
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
    lambda _: "Half-open TCP connections held at once",
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
