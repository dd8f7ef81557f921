"""What is stored: ``results.json``, and the trial records of ``journal.jsonl``.

Reports read these and nothing else, so a report can be made again years later. The
schema version rises with every change that an old reader would misread.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dutperf import __version__
from dutperf.catalogue import ProcedureName
from dutperf.protocol import (
    Damage,
    DirectionName,
    Reason,
    Side,
    TrialRequest,
    TrialResult,
    VerdictKind,
)
from dutperf.results.connection_results import (
    Capacity,
    Eviction,
    Expiry,
    TableLimits,
    TeardownRate,
)
from dutperf.results.stored import Stored

RESULTS_SCHEMA_VERSION = 2
SchemaVersion = Literal[2]
StreamName = Literal["foreground", "background"]
TrialRole = Literal["trial", "first_frames", "probe", "phase1", "validation", "damage"]


HookMoment = Literal[
    "before_campaign",
    "bulk_delete",
    "before_trial",
    "table_count",
    "teardown",
    "after_trial",
    "is_alive",
    "restart",
]


class HookRun(Stored):
    """One hook of the testbed: its last attempt."""

    moment: HookMoment
    command: list[str]
    host: str | None = Field(description="over ssh; null: the tester's machine")
    attempts: int = Field(ge=1)
    exit_code: int | None = Field(description="null: it did not end by itself")
    ended: str = Field(description="how, in words")
    output: str = Field(description="what it printed, errors included; the beginning")
    duration_s: float
    after_s: float | None = Field(
        default=None,
        description="teardown-rate: when it began, seconds after the trial's end",
    )

    @property
    def succeeded(self) -> bool:
        """Whether it did what it should."""
        return self.exit_code == 0


class DeviceCpu(Stored):
    """The CPU time that others took from a lab's device in one trial."""

    taken_ns: int = Field(
        description="how long other processes, or the host of a virtual machine, had "
        "its CPU while it wanted to run"
    )
    queue_frames: int = Field(description="that wait for it without being lost")
    bridged_ns: int = Field(
        description="in which so many arrive, at the trial's rate, all directions"
    )


class DeviceDrops(Stored):
    """What a lab's device dropped in one trial, where its kernel counts it.

    They decide nothing: what was lost is lost wherever it was.
    """

    input_queue: int = Field(description="its CPU's input queue had no room")
    interfaces: dict[Side, dict[str, int]] = Field(
        description="its interfaces' counters, those that rose"
    )


class Earlier(Stored):
    """What a device may have known when a test began whose table no hook empties."""

    connections: int = Field(description="of earlier tests, not timed out yet")
    waited_s: float = Field(description="until it had forgotten enough of them")


class TrialRecord(Stored):
    """One finished trial; appended to the journal before the next one starts."""

    number: int = Field(ge=1, description="1-based position in the campaign")
    cell: str = Field(description="id of the cell it was run for")
    repeat: int = Field(ge=1, description="1-based repeat within the cell")
    attempt: int = Field(ge=1, description="2 and up: an invalid trial run again")
    load_fps: int = Field(description="intended load, per direction")
    started_at: str = Field(description="ISO 8601, UTC")
    request: TrialRequest
    result: TrialResult
    hooks: list[HookRun] = Field(
        default=[],
        description="what ran before and after; the first of a run, or of a part that "
        "was resumed, has the campaign's",
    )
    role: TrialRole = Field(
        default="trial",
        description="first_frames tell whether the device forwards at all; a probe "
        "what the tester's ports can offer: to a MAC address that nobody has, so its "
        "verdict says nothing; of stateful tests: phase1 opens connections for the "
        "trial that follows, validation tells which were left after it; damage: of the "
        "second search, for which damaged frames count as received; none of these is "
        "one of the cell's trials itself",
    )
    device_cpu: DeviceCpu | None = Field(
        default=None,
        description="null: nobody knows where the device works, or an old file",
    )
    device_drops: DeviceDrops | None = Field(
        default=None, description="null: no lab, or an old file"
    )
    earlier: Earlier | None = Field(
        default=None,
        description="of phase 1 if no hook empties the table: it opened other "
        "connections than these; null: a hook does, or an old file",
    )
    delays_recorded: bool = Field(
        default=True,
        description="false: of schema version 1, which had no delays, no loss by time "
        "and no causes beside counts; what stands there instead means nothing",
    )


class Deviation(Stored):
    """One point in which the run did less than the standard asks for."""

    rfc: str = Field(description="for example 'RFC 2544 24'")
    requirement: str
    actual: str
    level: Literal["definition", "MUST", "SHOULD", "text"] | None = Field(
        default=None,
        description="how the RFC says it; definition: it is what the quantity is; "
        "text: without a MUST or SHOULD; null: of older files",
    )


class Conformance(Stored):
    """What may be said of a result in the words of RFC 2544 5."""

    rfc: str = Field(description="whose procedure it is, for example 'RFC 2544'")
    section: str
    status: Literal["unconditional", "conditional", "none", "other_measure"] = Field(
        description="unconditional: every MUST and SHOULD is met; conditional: every "
        "MUST is; other_measure: it is defined otherwise and must not be called so"
    )
    statement: str = Field(description="in words, with the reasons")


Bound = Annotated[
    Literal["lower"] | None,
    Field(description="lower: that much, or more; null: the figure is exact"),
]
BoundCause = Annotated[
    Literal["tester", "disturbed", "held_back", "set", "nominal"] | None,
    Field(
        description="what kept the tester from asking for more. tester: it could not "
        "offer more; disturbed: other work kept it from its CPUs in each attempt; "
        "held_back: something behind a port stopped it; set: the maximum that was set; "
        "nominal: the rate that a virtual link names (what physical media carry is no "
        "bound but the result); null: it is no bound, or trials that stayed invalid, "
        "or it is of an older file"
    ),
]


class RepeatResult(Stored):
    """One repeat: ``value`` is null when it could not be measured."""

    value: float | None
    verdict: VerdictKind
    bound: Bound = None
    bound_cause: BoundCause = None
    reasons: list[Reason] = Field(default=[])
    trials: int = Field(description="number of trials it took")


SpreadFigure = Literal[
    "median",
    "percentile_1",
    "percentile_99",
    "minimum",
    "maximum",
    "interval_lower",
    "interval_upper",
]


class Spread(Stored):
    """Several repeats of one value in numbers (RFC 8219 12); null: infinite, or none.

    Kept beside the repeats, which it is made of, for those who read the file without
    dutperf. A delay is infinite where too many frames were lost.
    """

    count: int = Field(description="N, the repeats that count")
    median: float | None
    percentile_1: float | None
    percentile_99: float | None
    minimum: float | None
    maximum: float | None
    dispersion_percent: float | None = Field(
        description="(99th - 1st percentile) / median; null: infinite, or a median of "
        "0, or one of the three is a lower bound"
    )
    interval_lower: float | None = Field(
        description="of the median, no distribution assumed; null: too few repeats"
    )
    interval_upper: float | None
    interval_percent: float | None = Field(
        description="how often such an interval holds the median, if repeats are "
        "independent of each other"
    )
    lower_bounds: list[SpreadFigure] = Field(
        default=[],
        description="which of the figures may be higher, because repeats may be: those "
        "that are not the same with all such repeats infinite",
    )


class ValueGroup(Stored):
    """Repeats whose values lie together."""

    repeats: list[int] = Field(description="their numbers, from 1")
    lowest: float
    highest: float


FindingKind = Literal["modes", "shift", "drift", "unstable", "outliers", "tester"]


class Finding(Stored):
    """What speaks against one figure for all repeats, with the evidence.

    modes: groups with nothing between them. shift: the same, one after the other.
    drift: the value rises or falls from repeat to repeat. unstable: the repeats are too
    far apart. outliers: the first group, and a few repeats far from it. tester: no
    small part of the figure may be the tester's own, so it is an upper bound.
    """

    kind: FindingKind
    of: str = Field(description="of what: throughput; TL, forward; ...")
    message: str
    unit: Literal["fps", "percent", "ns", "connections/s", "connections"]
    groups: list[ValueGroup] = Field(default=[])
    numbers: dict[str, float] = Field(
        default={}, description="what the message is made of, see docs/repeats.md"
    )


class Settlement(Stored):
    """How ``repeats: auto`` ended; the interval is in the cell's ``spread``."""

    width: str = Field(description="asked for, '1%' of the median or fps")
    max_repeats: int
    looks: int = Field(
        description="how often the interval was looked at; the looks share the 5 %"
    )
    reached: bool = Field(description="false: it was wider still, at the last look")


class Withdrawal(Stored):
    """Repeats that do not count (docs/repeats.md).

    They only measured the two rates at which all before had ended, and the last of them
    found that the device has no such sharp limit. All repeats of the cell are classic.
    """

    repeats: list[int] = Field(description="their numbers in the journal")
    trials: int = Field(description="that they took, in sum")


class GoalResult(Stored):
    """One goal of MLRsearch (RFC 9971 4.6 to 4.8); rates per direction.

    Only a regular result has both bounds within the goal's width; otherwise the reasons
    say why, and bounds must be shown as irregular. ``bound``: that of ``lower_fps``, if
    there is no upper one.
    """

    name: str = Field(description="what is tolerated, in words")
    loss_ratio: float = Field(description="of a trial's frames, all directions")
    exceed_ratio: float = Field(description="in how much of the time more may be lost")
    final_duration_s: float = Field(description="of a trial that counts in full")
    duration_sum_s: float = Field(description="that decides about a load")
    initial_duration_s: float = Field(description="of the shortest trials")
    width: float = Field(description="(upper - lower) / upper bound, at most")
    lower_fps: int | None = Field(description="relevant lower bound")
    upper_fps: int | None = Field(description="relevant upper bound")
    conditional_fps: int | None = Field(
        description="conditional throughput: what was forwarded at the lower bound"
    )
    regular: bool
    bound: Bound = None
    bound_cause: BoundCause = None
    verdict: VerdictKind
    reasons: list[Reason] = Field(default=[])


class TimeoutLoss(Stored):
    """What is lost if frames slower than a timeout count as lost (paper 004).

    All timeouts of one load are counted in the same trials.
    """

    timeout_ns: int
    loss_percent: float | None = Field(description="median over the repeats")
    repeats: list[float | None] = Field(description="percent; null: invalid")


class DirectionLoss(Stored):
    """What one direction lost, of its own frames, in the trials of one load."""

    direction: DirectionName
    loss_percent: float | None = Field(description="median over the repeats")
    repeats: list[float | None] = Field(description="percent; null: invalid")


class LoadPoint(Stored):
    """One point of a frame loss curve (RFC 2544 26.3).

    ``loss_percent`` holds late frames where there is a frame timeout.
    """

    load_percent: float = Field(
        description="of the maximum load; of the throughput where the cell has a load"
    )
    load_fps: int
    loss_percent: float | None = Field(
        description="of both directions together; median over the repeats"
    )
    repeats: list[RepeatResult]
    directions: list[DirectionLoss] = Field(
        default=[], description="of bidirectional traffic; empty: one, or older files"
    )
    timeouts: list[TimeoutLoss] = Field(default=[])
    spread: Spread | None = Field(default=None, description="null: of older files")


class DamagedFrames(Stored):
    """Frames of one direction that arrived damaged, over several trials."""

    direction: DirectionName
    sent: int
    damaged: Damage = Field(default=Damage(), description="by kind")


class DamageFigure(Stored):
    """What a throughput search finds if damaged frames count as received.

    It is another measure, made where damage alone kept the lowest rate that failed from
    passing. ``value`` is of one search, null if it could not be measured.
    """

    quantity: str = Field(
        default="rate per direction, damaged frames counted as received",
        description="what the value is, in words; never a throughput of RFC 2544",
    )
    value: float | None = Field(description="fps, per direction")
    verdict: VerdictKind
    bound: Bound = None
    bound_cause: BoundCause = None
    reasons: list[Reason] = Field(default=[])
    exhausted: bool = Field(
        default=False,
        description="it ended because it had measured as many trials as the search "
        "before it: the value is a lower bound",
    )
    trials: int = Field(description="that it measured, in addition to those reused")
    reused: int = Field(description="trials of the search before it")
    frames: list[DamagedFrames] = Field(
        description="directions with damaged frames, over its trials up to the value; "
        "if there are none, over those of the search before it"
    )


Absent = Literal["lost", "undefined", "invalid"]


class Figure(Stored):
    """A number, or why there is none.

    lost: so many frames were lost that it is infinite. undefined: nothing arrived
    that it could be taken from. invalid: the trials were.
    """

    value: float | None
    absent: Absent | None = None
    at_most: bool = Field(
        default=False,
        description="an upper bound: no small part of it may be the tester's own",
    )


class Measure(Stored):
    """One measured quantity of one stream: a figure for each repeat, and their summary.

    A cell of latency has TL and WCL of each direction and stream, and so on: all that
    a table or chart needs, without any knowledge of the procedure. Repeats that are
    "lost" are ranked as infinite; "undefined" and "invalid" ones are left out.
    """

    name: str = Field(description="short, for example TL, WCL, PDV, IPDV max")
    quantity: str = Field(description="what it is, in words, with the RFC's section")
    direction: DirectionName
    stream: StreamName = "foreground"
    unit: Literal["ns"] = "ns"
    summary: Literal["median", "mean"] = Field(
        default="median", description="what ``result`` is of the repeats"
    )
    repeats: list[Figure]
    samples: list[int] = Field(
        description="what each repeat's figure is taken from: how many frames, tags or "
        "pairs, lost tags included; 0: invalid"
    )
    lost: list[int] = Field(
        description="how many of each repeat's samples were lost: ranked as infinite"
    )
    rounding_ns: float | None = Field(
        default=None,
        description="how much too large a repeat's figure is at most, as it is read "
        "from the buckets of a histogram; null: of older files",
    )
    count: int = Field(description="N, the repeats that the summary is taken from")
    result: Figure
    percentile_1: Figure = Field(description="of the repeats (RFC 8219 12)")
    percentile_99: Figure
    spread: Spread | None = Field(default=None, description="null: of older files")


class FrameCount(Stored):
    """Frames of one stream, over the trials that a cell's figures come from."""

    direction: DirectionName
    stream: StreamName = "foreground"
    sent: int
    received: int
    lost: int
    late: int = Field(description="slower than the frame timeout, if there is one")
    negative_delays: int = Field(description="a defect of the tester's clocks")


class DelayRecord(Stored):
    """What a cell's delays are, and how far they may be wrong.

    A delay is never understated; the tester's own share is at least ``floor_ns`` and at
    most ``bound_ns``: truth lies within [delay - bound, delay].
    """

    definition: str
    resolution: str = Field(description="how finely values are told")
    floor_ns: int = Field(description="smallest of all trials and directions")
    bound_ns: int = Field(description="largest of all trials and directions")
    usual_bound_ns: int | None = Field(
        default=None,
        description="the same of 998 in 1000 frames of each trial and direction: the "
        "99.9th percentiles of the send calls and of the gaps between polls, together",
    )


class Media(Stored):
    """What the slower medium carries of a cell's frames (RFC 2544 20, RFC 5180 A.1)."""

    rate_fps: int = Field(description="theoretical maximum frame rate, per direction")
    link_speed_mbps: int
    nominal: bool = Field(
        description="the link is virtual: it names a speed, but frames take no time on "
        "it, so the device may be faster"
    )
    share_percent: float | None = Field(
        default=None, description="throughput: what of ``rate_fps`` was reached"
    )


class WireRate(Stored):
    """What a throughput takes of the medium that its sender is on (RFC 5180 A.1)."""

    direction: DirectionName
    mbps: float = Field(description="10^6 bits per second, preambles and gaps included")


class Load(Stored):
    """The load at which something was measured, and where it is from."""

    rate_fps: int = Field(description="per direction")
    asked: str = Field(
        description="frames per second, or for example '90% of throughput'"
    )
    cell: str | None = Field(
        default=None, description="id of the throughput cell that found it; null: given"
    )
    words: str = Field(description="what it is, in words")


class CellResult(Stored):
    """The result of one cell: ``median`` over ``repeats``, in ``unit``.

    ``bound`` is that of the median, and of all that is made of it (sum, shares).

    throughput: frames per second, per direction. connection-rate: new connections per
    second; teardown-rate: deleted ones. table-capacity: connections. frame-loss:
    percent lost at the highest load; the whole curve is in ``points``. latency: TL,
    pdv: PDV, ipdv: the largest IPDV, each of the foreground and of the direction where
    it is larger, null if infinite; everything is in ``measures``.
    """

    id: str
    place: str | None = Field(
        default=None, description="name of its lab or testbed; null: not recorded"
    )
    procedure: ProcedureName
    quantity: str = Field(description="what the median is, in words")
    parameters: dict[str, str | int | float | bool | None]
    median: float | None
    bound: Bound = None
    bound_cause: BoundCause = None
    unit: Literal["fps", "percent", "ns", "connections/s", "connections"]
    repeats: list[RepeatResult]
    verdict: VerdictKind = Field(description="pass: measured; invalid: not proven")
    reasons: list[Reason] = Field(default=[])
    deviations: list[Deviation] = Field(default=[])
    conformance: Conformance | None = Field(default=None, description="of older files")
    points: list[LoadPoint] = Field(default=[])
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
        default=[], description="throughput: of each direction; empty: of older files"
    )
    media: Media | None = Field(
        default=None, description="null: a port did not tell its speed, or an old file"
    )
    load: Load | None = Field(
        default=None,
        description="latency, pdv, ipdv: null if it was not recorded; frame-loss: the "
        "throughput that 100 % is, null if it is the maximum load",
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
        "measured, or an older file; delays: see ``measures``",
    )
    settled: Settlement | None = Field(
        default=None, description="throughput with repeats auto"
    )
    withdrawn: Withdrawal | None = Field(
        default=None,
        description="throughput: repeats that do not count and are not in ``repeats``; "
        "null: all do",
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
    teardown: list[TeardownRate] = Field(
        default=[], description="teardown-rate: each repeat"
    )
    expiry: list[Expiry] = Field(
        default=[], description="teardown-rate with expiry: each repeat"
    )
    limits: TableLimits | None = Field(
        default=None, description="of a stateful device, if its hooks show them"
    )


class ScalabilityPoint(Stored):
    """One result with so many network flows (RFC 8219 10.2.1)."""

    flows: int = Field(description="n, in each direction")
    cell: str
    rate_fps: float | None = Field(description="the applied frame rate, per direction")
    value: float | None = Field(description="Xn; null: invalid, or infinite")
    at_least: bool = Field(default=False, description="throughput: it is a lower bound")
    degradation_percent: float | None = Field(
        description="(Xn - X1) / X1 * 100 where lower is better, (X1 - Xn) / X1 * 100 "
        "where higher is: above 0 is worse than one flow; null: n is 1, or Xn or "
        "X1 is not known, at least, or 0"
    )


class Scalability(Stored):
    """One benchmark value over the number of network flows (RFC 8219 10.2.1)."""

    procedure: ProcedureName
    name: str = Field(description="of the value: throughput; TL, forward; ...")
    unit: Literal["fps", "percent", "ns"]
    better: Literal["higher", "lower"]
    series: str = Field(description="what all its cells have in common, but the size")
    frame_size: str
    varied: str = Field(description="what the flows differ in")
    points: list[ScalabilityPoint]


class NotMeasured(Stored):
    """A cell that has no result, because its place could not be measured."""

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

    schema_version: SchemaVersion = 2
    dutperf_version: str = Field(default=__version__, description="who wrote it")
    procedure: ProcedureName | Literal["campaign"]
    name: str
    created_at: str
    complete: bool = Field(description="false: the run was interrupted")
    cells: list[CellResult]
    scalability: list[Scalability] = Field(
        default=[], description="of cells with a number of flows"
    )
    not_measured: list[NotMeasured] = Field(
        default=[], description="at places that could not be measured to the end"
    )
    parts: list[RunPart] = Field(
        default=[], description="of a run that was resumed: those after the first"
    )
    trials: list[TrialRecord] = Field(default=[])
