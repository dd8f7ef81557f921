"""What is stored in ``results.json``: a run, and what each of its cells gave.

What the parts of a cell's result are stands in ``rate_results``, ``delay_results`` and
``connection_results``, what a trial is in ``trial_record``. Reports read these and
nothing else, so a report can be made again years later. The schema version rises with
every change that an old reader would misread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

from pydantic import Field, SerializerFunctionWrapHandler, field_serializer

from dutperf import __version__
from dutperf.catalogue import PROCEDURES, Family, ProcedureName, Unit
from dutperf.model.cell import Cell
from dutperf.model.procedure_keys import SweptKey
from dutperf.model.rate_specs import LossKeys, RateSearchKeys
from dutperf.protocol.result_messages import Reason, VerdictKind
from dutperf.results.details import (
    Behaviour,
    Capacity,
    DelayRecord,
    Eviction,
    Expiry,
    FrameCount,
    LogAudit,
    Measure,
    Outage,
    Recovery,
    Soak,
    TableLimits,
    TeardownRate,
)
from dutperf.results.passport import PassportUse
from dutperf.results.power_results import Power
from dutperf.results.rate_results import (
    NO_COMMON_VALUE,
    BesideCount,
    Bound,
    BoundCause,
    DamageFigure,
    Derived,
    Finding,
    FindingKind,
    GoalResult,
    Load,
    LoadPoint,
    ManagementCount,
    Media,
    RepeatResult,
    Settlement,
    Spread,
    TimeoutLoss,
    WireRate,
    Withdrawal,
)
from dutperf.results.trial_record import Earlier, TrialRecord
from dutperf.results.units import Stored
from dutperf.standards import Conformance, Deviation

RESULTS_SCHEMA_VERSION: Final = 3

SchemaVersion = Literal[3]


class QueueLoad(Stored):
    """What one CPU, or queue, of the device took in one trial."""

    queue: str = Field(description="its name; of interrupts the line's, with the CPU")
    frames: int | None = Field(default=None, description="null: they are not counted")
    interrupts: int | None = Field(default=None, description="null: likewise")

    @property
    def count(self) -> int:
        """Frames, or interrupts."""
        return self.frames or self.interrupts or 0

    @property
    def among(self) -> str:
        """What it has a share of: CPUs and queues have the same frames."""
        return "interrupts" if self.interrupts is not None else self.queue.split()[-2]


class CellResult(Stored):
    """The result of one cell: ``median`` over ``repeats``, in ``unit``.

    Where the catalogue says that repeats are averaged, ``median`` is their average.

    ``bound`` is that of the median, and of all that is made of it (sum, shares).

    throughput: frames per second, per direction. connection-rate: new connections per
    second; teardown-rate: deleted ones. table-capacity: connections. frame-loss:
    percent lost at the highest load; the whole curve is in ``points``. latency: TL,
    pdv: PDV, ipdv: the largest IPDV, each of the foreground and of the direction where
    it is larger, null if infinite; everything is in ``measures``. system-recovery:
    nanoseconds, of the direction that takes longer; both are in ``recovery``. outage:
    the same, in ``outage``. power: nanojoules per bit at 100 % load; the loads are in
    ``power``.
    the same, in ``outage``. soak: percent lost of all frames; when, and what drifted,
    is in ``soak``.
    """

    id: str
    cell: Cell = Field(description="what was measured, whole")
    place: str | None = Field(
        default=None, description="name of its lab or testbed; null: not recorded"
    )
    series: str | None = Field(
        default=None,
        description="name of what it has in common with test cases of other frame "
        "sizes and numbers of flows; null: it has no such number",
    )
    procedure: ProcedureName
    quantity: str = Field(description="what the median is, in words")
    parameters: dict[str, str | int | float | bool | None] = Field(
        description="the same as people read it, and the rates that were found for it"
    )
    median: float | None
    bound: Bound = None
    bound_cause: BoundCause = None
    unit: Unit
    repeats: list[RepeatResult]
    verdict: VerdictKind = Field(description="pass: measured; invalid: not proven")
    reasons: list[Reason] = Field(default=[])
    deviations: list[Deviation] = Field(default=[])
    conformance: Conformance | None = Field(
        default=None, description="with what the RFCs ask for"
    )
    points: list[LoadPoint] = Field(default=[])
    derived: list[Derived] = Field(
        default=[], description="what the RFC wants to be calculated of the result"
    )
    timeouts: list[TimeoutLoss] = Field(
        default=[], description="throughput: in the trials at the rate that passed"
    )
    damage: DamageFigure | None = Field(
        default=None,
        description="throughput that damaged frames alone limited: how fast it is but "
        "for them",
    )
    sum_fps: float | None = Field(
        default=None,
        description="throughput: of all directions together; ``median`` is of each",
    )
    wire: list[WireRate] = Field(
        default=[], description="throughput: of each direction"
    )
    media: Media | None = Field(
        default=None, description="null: a port did not tell its speed"
    )
    load: Load | None = Field(
        default=None,
        description="latency, pdv, ipdv: null if it was not recorded; frame-loss: the "
        "throughput that 100 % is, null if it is the maximum load; system-recovery: "
        "the throughput that the overload is a share of",
    )
    recovery: Recovery | None = Field(
        default=None, description="system-recovery; null: no repeat is valid"
    )
    outage: Outage | None = Field(
        default=None, description="outage; null: no repeat is valid"
    )
    power: Power | None = Field(
        default=None, description="power; null: nothing was sent"
    )
    soak: Soak | None = Field(default=None, description="soak; null: no trial is valid")
    beside: list[BesideCount] = Field(
        default=[], description="frames beside the stream (RFC 2544 11.1, RFC 5180 5.3)"
    )
    management: ManagementCount | None = Field(
        default=None, description="null: the device was not asked anything"
    )
    queues: list[QueueLoad] = Field(
        default=[],
        description="of a sweep: how the device's CPUs, or queues, shared the fastest "
        "trial that passed, by what hooks printed; empty: none of them tells",
    )
    unread: list[str] = Field(
        default=[],
        description="which hooks print such counts that could not be read, and why",
    )
    measures: list[Measure] = Field(default=[])
    frames: list[FrameCount] = Field(default=[])
    delays: DelayRecord | None = None
    findings: list[Finding] = Field(
        default=[], description="what speaks against one figure for all repeats"
    )
    earlier: Earlier | None = Field(
        default=None,
        description="of the test that began with most, and all waits together; null: "
        "as in the trials",
    )
    spread: Spread | None = Field(
        default=None,
        description="throughput, frame-loss: of ``repeats``; null: nothing was "
        "measured; delays: see ``measures``",
    )
    settled: Settlement | None = Field(
        default=None, description="throughput with repeats auto"
    )
    withdrawn: Withdrawal | None = Field(
        default=None,
        description="throughput: repeats that do not count and are not in ``repeats``; "
        "null: all do",
    )
    verified_by: int | None = Field(
        default=None,
        description="loads passed after losses that were repeated, because others had "
        "the device's CPU: so many trials there were at most; null: each loss counted",
    )
    goals: list[GoalResult] = Field(
        default=[],
        description="throughput by MLRsearch; the median is the first one's lower_fps",
    )
    capacity: list[Capacity] = Field(
        default=[], description="table-capacity: the search of each repeat"
    )
    eviction: Eviction | None = Field(
        default=None,
        description="table-capacity, and connection-rate whose validation lost frames",
    )
    behaviour: list[Behaviour] = Field(
        default=[], description="nat-behaviour: each thing that was looked at"
    )
    log: LogAudit | None = Field(
        default=None, description="nat-log: all its tests together"
    )
    teardown: list[TeardownRate] = Field(
        default=[], description="teardown-rate: each repeat"
    )
    expiry: list[Expiry] = Field(
        default=[], description="teardown-rate with expiry: each repeat"
    )
    limits: TableLimits | None = Field(
        default=None, description="of a stateful device, if its hooks show them"
    )
    passport: PassportUse | None = Field(
        default=None,
        description="what the tester can do without a device; null: unknown",
    )

    @property
    def family(self) -> Family:
        """Of its procedure."""
        return PROCEDURES[self.procedure].family

    @property
    def max_load_fps(self) -> int | None:
        """The rate that 100 % stands for, which is stored in ``parameters`` alone."""
        told = self.parameters.get("max_load_fps")
        return told if isinstance(told, int) else None

    @property
    def within_ns(self) -> float | None:
        """How much longer a time may be than is told, at most."""
        timed = self.recovery or self.outage
        return timed.within_ns if timed else None

    def doubts(self, what: str = "") -> list[FindingKind]:
        """What leaves a figure no value that all its repeats have, the worst first.

        ``what``: of several figures which, as findings call it; else of any, and of a
        curve that of its highest load.
        """
        if self.points and not what:
            what = max(self.points, key=lambda point: point.load_percent).words
        kinds = {
            finding.kind
            for finding in self.findings
            if not what or finding.of == what or finding.kind == "contradiction"
        }
        return [kind for kind in NO_COMMON_VALUE if kind in kinds]


class ScalabilityPoint(Stored):
    """One result with so many network flows (RFC 8219 10.2)."""

    flows: int = Field(description="n, in each direction")
    cell: str
    rate_fps: float | None = Field(description="the applied frame rate, per direction")
    value: float | None = Field(description="Xn; null: invalid, or infinite")
    at_least: bool = Field(default=False, description="it is a lower bound")
    degradation_percent: float | None = Field(
        description="(Xn - X1) / X1 * 100 where lower is better, (X1 - Xn) / X1 * 100 "
        "where higher is: above 0 is worse than one flow; null: n is 1, or Xn or "
        "X1 is not known, at least, or 0"
    )
    lower_percent: float | None = Field(
        default=None,
        description="the least that the degradation may be by what the repeats differ; "
        "all intervals of a run hold together with 95 %; null: too few repeats, or "
        "they have no common value, or it is not known",
    )
    upper_percent: float | None = Field(default=None, description="the most")


class Scalability(Stored):
    """One benchmark value over the number of network flows (RFC 8219 10.2)."""

    procedure: ProcedureName
    name: str = Field(description="of the value: throughput; TL, forward; ...")
    unit: Literal["fps", "percent", "frames", "ns"]
    better: Literal["higher", "lower"]
    series: str = Field(
        description="what all its test cases have in common, but the size"
    )
    frame_size: str
    varied: str = Field(description="what the flows differ in")
    rate_per_flow_fps: int | None = Field(
        default=None,
        description="the load is so much for each flow (RFC 8219 10.2.2); null: all "
        "flows share it (10.2.1)",
    )
    points: list[ScalabilityPoint]


class SweptPoint(Stored):
    """One result of a sweep."""

    number: int = Field(description="of what is swept")
    cell: str
    value: float | None = Field(description="null: it has none")
    low: float | None = Field(
        description="the least that it may be, by what its repeats differ and how fine "
        "the search is; null: it has no value"
    )
    high: float | None = Field(description="the most; null: nobody knows")
    queues: list[QueueLoad] = Field(
        default=[], description="of the test case: see there"
    )
    unread: list[str] = Field(default=[], description="likewise")


class SweepResult(Stored):
    """One benchmark over a number that was swept, and where it reaches its plateau."""

    procedure: ProcedureName
    name: str = Field(description="of the value: throughput, ...")
    unit: Unit
    key: SweptKey = Field(description="what was swept")
    series: str = Field(description="what all its test cases have in common")
    within_percent: float = Field(
        description="so near the plateau a result counts as on it"
    )
    plateau: float | None = Field(
        description="the median at the three largest numbers; null: it has none"
    )
    knee: int | None = Field(
        description="the smallest number from which on all results are on the plateau; "
        "null: there is no knee"
    )
    knee_above: int | None = Field(
        description="the largest one whose result is surely not on it; null: none is"
    )
    knee_until: int | None = Field(
        description="the smallest one from which on all results surely are"
    )
    words: str = Field(description="the knee, or why there is none")
    points: list[SweptPoint]


class NotMeasured(Stored):
    """A cell that has no result, because its testbed could not be measured."""

    id: str
    place: str
    message: str
    hint: str = ""


class RunPart(Stored):
    """A further part of a resumed run, and what was not as in its first one."""

    first_trial: int = Field(description="number of the first trial that it measured")
    started_at: str = Field(description="ISO 8601, UTC")
    place: str | None = Field(default=None, description="null: the run has one")
    changes: list[str] = Field(description="for example 'kernel: was 6.1, is 6.6'")


class ResultsFile(Stored):
    """``results.json``; the command line's ``--json`` prints it without ``trials``."""

    schema_version: SchemaVersion = RESULTS_SCHEMA_VERSION
    dutperf_version: str = Field(default=__version__, description="who wrote it")
    procedure: ProcedureName | Literal["campaign"]
    name: str
    created_at: str
    complete: bool = Field(description="false: the run was interrupted")
    cells: list[CellResult]
    scalability: list[Scalability] = Field(
        default=[], description="of test cases with a number of flows"
    )
    sweeps: list[SweepResult] = Field(
        default=[], description="of procedures with the key sweep"
    )
    not_measured: list[NotMeasured] = Field(
        default=[], description="at testbeds that could not be measured to the end"
    )
    parts: list[RunPart] = Field(
        default=[], description="of a run that was resumed: those after the first"
    )
    trials: Sequence[TrialRecord] = Field(default=[])

    @field_serializer("trials", mode="wrap")
    def _wherever_they_are(
        self, trials: Sequence[TrialRecord], plain: SerializerFunctionWrapHandler
    ) -> Any:  # noqa: ANN401 - as pydantic has it
        return plain(list(trials))


# What makes stored results one measure: how they were judged, and of which traffic.
#
# RFC 2544 judges by no frame lost, ever.


def comparable(cell: Cell) -> dict[str, object]:
    """What makes a cell the measure that it is: key to value, dots between levels.

    Names, waits, seeds, the number of repeats and how fine a search is are not in it:
    they say how sure a figure is, not what it is of. All else is, what is added to
    specs and traffic later, too. Not set is a value.
    """
    told = cell.model_dump(mode="json", exclude=_CELL_UNCOMPARED)
    spec = told.pop("spec")
    (traffic,) = spec.pop("traffic")
    for key in _SPEC_UNCOMPARED:
        spec.pop(key, None)
    traffic.pop("name")
    return dict(_flat(spec | {"traffic": traffic} | told, ""))


_CELL_UNCOMPARED: Any = {
    **dict.fromkeys(("id", "testbed", "series", "seed"), True),
    **dict.fromkeys(("throughput_cell", "connection_cell"), True),
    "stateful": {
        *("numbers", "is_emptied", "untold", "translates"),
        *("dut_timeout_s", "phase2_after_ms", "error"),
    },
}
_SPEC_UNCOMPARED = (
    "testbeds",
    "frame_size",
    "direction",
    "flows",
    "sweep",
    "stateful",
    "percentiles",
    "settle_wait_s",
    "restabilise_wait_s",
    "residual_wait_s",
    "max_rate_fps",
    "lag_limit_ms",
    "burst_limit",
    "resolution",
    "step",
    "repeats",
    "interval_width",
    "max_repeats",
    "timeout_sweep_ms",
    "early_stop",
    "rate_fps",
    "throughput_fps",
    "load_percent",
    "load_step_percent",
)
"""Frame size, direction, flows and connections are the cell's own; loads are compared
by what they came to (``CellResult.load``, ``points``).
"""


def _flat(value: object, name: str) -> Iterator[tuple[str, object]]:
    if not isinstance(value, dict) or not value:
        yield name, value
        return
    for key, each in value.items():
        yield from _flat(each, f"{name}.{key}" if name else key)


def is_by_the_book(result: CellResult) -> bool:
    """Whether nothing lets a lossy rate pass, or makes of late frames lost ones."""
    lossy = any(goal.loss_ratio or goal.exceed_ratio for goal in result.goals[:1])
    verified = result.verified_by is not None
    spec = result.cell.spec
    late = isinstance(spec, LossKeys) and spec.frame_timeout_ms
    tolerant = isinstance(spec, RateSearchKeys) and spec.loss_tolerance_percent
    tries = getattr(spec, "verify_trials", None)
    return not (lossy or verified or late or tolerant or tries)
