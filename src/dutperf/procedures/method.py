"""What a procedure's own file gives: how it is measured, and how its results are shown.

What the catalogue says of a procedure (``dutperf.catalogue``) is known before anything
is measured. The list of all methods is ``procedures.measurements``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dutperf.catalogue import ProcedureName
from dutperf.charts.cells import CellView
from dutperf.charts.chart import Chart
from dutperf.charts.text import sentence
from dutperf.model.cell import Cell
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.trials import DeviceTrials, Trials
from dutperf.results import TrialRecord
from dutperf.results.model import CellResult
from dutperf.tables.result_tables import result_table
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import Table


@dataclass(frozen=True)
class OnStreams:
    """By trials of streams, which may be phase 2 of a stateful test (RFC 9693 4.7)."""

    measure: Callable[[Trials, Cell, MaxRate], CellResult]


@dataclass(frozen=True)
class OnConnections:
    """By trials that are phases of a stateful test themselves."""

    measure: Callable[[DeviceTrials, Cell, MaxRate], CellResult]


@dataclass(frozen=True)
class Panel:
    """What the report has of one cell: the trial that tells most, if one counts."""

    cell: CellView
    trial: TrialRecord | None = None
    charts: tuple[Chart, ...] = ()


@dataclass(frozen=True)
class Section:
    """A section of the report, of the template ``id`` with ``.j2`` beside this file."""

    id: str
    panel: Callable[[CellView], Panel]


@dataclass(frozen=True)
class Method:
    """How a procedure is measured and shown; what is left out is as for a rate.

    Attributes:
        trials: asks for what is measured, and concludes.
        meaning: what the figure says of the device, as a part of a sentence.
        table: a row for each cell of those that may stand together.
        tables: what else one cell has.
        section: of its cells in the report, beside those that all have.
    """

    name: ProcedureName
    trials: OnStreams | OnConnections
    meaning: Callable[[CellView], str] = lambda cell: sentence(cell.name)
    table: Callable[[str, Sequence[Subject]], Table] = result_table
    tables: Callable[[Subject], Iterable[Table]] = lambda _: ()
    section: Section | None = None
