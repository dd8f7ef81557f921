"""How each procedure is measured: what the catalogue names, by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from dutperf.catalogue import ProcedureName
from dutperf.model.cell import Cell
from dutperf.procedures.back_to_back import measure_back_to_back
from dutperf.procedures.delays import ipdv_plan, latency_plan, measure_delays, pdv_plan
from dutperf.procedures.frame_loss import measure_frame_loss
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.outage import measure_outage
from dutperf.procedures.stateful.connection_rate import measure_connection_rate
from dutperf.procedures.stateful.table_capacity import measure_table_capacity
from dutperf.procedures.stateful.teardown_rate import measure_teardown_rate
from dutperf.procedures.system_recovery import measure_system_recovery
from dutperf.procedures.throughput import measure_throughput
from dutperf.procedures.trials import DeviceTrials, Trials
from dutperf.results.model import CellResult


@dataclass(frozen=True)
class OnStreams:
    """By trials of streams, which may be phase 2 of a stateful test (RFC 9693 4.7)."""

    measure: Callable[[Trials, Cell, MaxRate], CellResult]


@dataclass(frozen=True)
class OnConnections:
    """By trials that are phases of a stateful test themselves."""

    measure: Callable[[DeviceTrials, Cell, MaxRate], CellResult]


MEASUREMENTS: Mapping[ProcedureName, OnStreams | OnConnections] = {
    "throughput": OnStreams(measure_throughput),
    "frame-loss": OnStreams(measure_frame_loss),
    "back-to-back": OnStreams(measure_back_to_back),
    "system-recovery": OnStreams(measure_system_recovery),
    "outage": OnStreams(measure_outage),
    "latency": OnStreams(partial(measure_delays, latency_plan)),
    "pdv": OnStreams(partial(measure_delays, pdv_plan)),
    "ipdv": OnStreams(partial(measure_delays, ipdv_plan)),
    "connection-rate": OnConnections(measure_connection_rate),
    "table-capacity": OnConnections(measure_table_capacity),
    "teardown-rate": OnConnections(measure_teardown_rate),
}
