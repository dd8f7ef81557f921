"""Every procedure's method, by the name that the catalogue has."""

from __future__ import annotations

from collections.abc import Mapping

from dutperf.catalogue import ProcedureName
from dutperf.procedures import (
    back_to_back,
    delays,
    frame_loss,
    outage,
    system_recovery,
    throughput,
)
from dutperf.procedures.method import Method
from dutperf.procedures.stateful import connection_rate, table_capacity, teardown_rate

METHODS: Mapping[ProcedureName, Method] = {
    each.name: each
    for each in (
        throughput.METHOD,
        throughput.MULTICAST,
        frame_loss.METHOD,
        back_to_back.METHOD,
        system_recovery.METHOD,
        outage.METHOD,
        delays.LATENCY_METHOD,
        delays.PDV_METHOD,
        delays.IPDV_METHOD,
        connection_rate.METHOD,
        table_capacity.METHOD,
        teardown_rate.METHOD,
    )
}
