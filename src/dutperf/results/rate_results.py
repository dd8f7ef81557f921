"""What is stored of rates and losses: repeats, their spread, goals, curves, bounds."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from dutperf.catalogue import Unit
from dutperf.protocol.base import DirectionName
from dutperf.protocol.result_messages import Damage, Reason, VerdictKind
from dutperf.results.units import Stored

Bound = Annotated[
    Literal["lower"] | None,
    Field(description="lower: that much, or more; null: the figure is exact"),
]

BoundCause = Annotated[
    Literal["tester", "disturbed", "held_back", "set", "nominal", "short_tests", "kept"]
    | None,
    Field(
        description="what kept the tester from asking for more. tester: it could not "
        "offer more; disturbed: other work kept it from its CPUs in each attempt; "
        "held_back: something behind a port stopped it; set: the maximum that was set; "
        "nominal: the rate that a virtual link names (what physical media carry is no "
        "bound but the result); short_tests: more passed, but in tests too short to "
        "prove it; kept: no connection was forgotten; null: it is no bound, or trials "
        "that stayed invalid"
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
        description="of the median, no distribution assumed; where repeats are "
        "averaged of the average, by Student's t; null: too few repeats"
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


FindingKind = Literal[
    "modes",
    "shift",
    "drift",
    "unstable",
    "outliers",
    "tester",
    "near_limit",
    "altered",
    "unanswered",
    "routing_fell",
    "misdirected",
    "proxied",
    "contradiction",
    "unusual",
]
NO_COMMON_VALUE: tuple[FindingKind, ...] = (
    "contradiction",
    "modes",
    "shift",
    "drift",
    "unstable",
)
"""Findings that leave no figure for all repeats; the first of them is told."""


class Finding(Stored):
    """What speaks against one figure for all repeats, with the evidence.

    modes: groups with nothing between them. shift: the same, one after the other.
    drift: the value rises or falls from repeat to repeat. unstable: the repeats are too
    far apart. outliers: the first group, and a few repeats far from it. tester: much
    of the figure may be the tester's own, so it is an upper bound.
    near_limit: without a device the tester hardly does more, or not even so much.
    altered: frames that were inspected had another TTL, DSCP or payload than they
    should; the figure counts them as forwarded. unanswered: management queries, so the
    load was not the one that was asked for. routing_fell: the device gave up the
    routing daemon beside the tester as its neighbour. misdirected: frames came
    that are for another port, or another host there. proxied: somebody answered SYNs in
    the place of the tester's other end. contradiction: another result of the run says
    otherwise, or the device's own counters do. unusual: another result makes it
    improbable.
    """

    kind: FindingKind
    of: str = Field(description="of what: throughput; TL, forward; ...")
    message: str
    unit: Unit
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


class Derived(Stored):
    """A figure that follows from the result and others, by a formula of the RFC."""

    name: str = Field(description="of a column")
    meaning: str = Field(description="in a sentence, with the section")
    value: float | None = Field(description="null: what it is made of is not known")
    unit: Literal["s", "frames", "fps", "hosts"]
    bound: Literal["lower", "upper"] | None = Field(
        default=None, description="that much, or more; or less; null: exact"
    )


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
        description="of the maximum load; of the throughput where the test case has a "
        "load"
    )
    load_fps: int
    loss_percent: float | None = Field(
        description="of both directions together; median over the repeats"
    )
    repeats: list[RepeatResult]
    directions: list[DirectionLoss] = Field(
        default=[], description="of bidirectional traffic; empty: one"
    )
    timeouts: list[TimeoutLoss] = Field(default=[])
    spread: Spread | None = Field(default=None, description="of the repeats")

    @property
    def words(self) -> str:
        """What findings on its repeats are of."""
        return f"share of frames that arrived at {self.load_percent:g} % load"

    @property
    def lossy_repeats(self) -> int:
        """In how many repeats frames were lost, whatever the median is."""
        return sum(bool(repeat.value) for repeat in self.repeats)


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


class Media(Stored):
    """What the slower medium carries of a cell's frames (RFC 2544 20, RFC 5180 A.1)."""

    rate_fps: int = Field(description="theoretical maximum frame rate, per direction")
    link_speed_mbps: int = Field(description="of one port")
    ports: int = Field(default=1, description="on a side; ``rate_fps`` is of them all")
    nominal: bool = Field(
        description="the link is virtual: it names a speed, but frames take no time on "
        "it, so the device may be faster"
    )
    share_percent: float | None = Field(
        default=None, description="throughput: what of ``rate_fps`` was reached"
    )

    @model_serializer(mode="wrap")
    def _as_of_one(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = plain(self)
        if self.ports == 1:
            written.pop("ports", None)
        return written

    @property
    def of_ports(self) -> str:
        """``of 2 ports ``, to be said before the speed of each; of one nothing."""
        return f"{self.ports} ports of " if self.ports > 1 else ""


class WireRate(Stored):
    """What a throughput takes of the medium that its sender is on (RFC 5180 A.1).

    Of several ports on a side, of their media together.
    """

    direction: DirectionName
    mbps: float = Field(description="10^6 bits per second, preambles and gaps included")


class ManagementCount(Stored):
    """SNMP queries beside the stream, one a second (RFC 2544 11.2)."""

    asked: int = Field(description="that were sent in the trials that are counted")
    answered: int = Field(description="with a value of each variable")
    wrong: int = Field(
        description="answered with an error, without some values, or damaged"
    )
    slowest_ns: int | None = Field(
        description="from when the query was due to its answer, 0 if that came before "
        "the first frame was due; null: there was none"
    )


class BesideCount(Stored):
    """Frames beside the stream in one direction, over the trials that passed.

    Over all valid trials of the cell, if none did.
    """

    direction: DirectionName
    sent: int
    received: int = Field(description="those that came, though none had to")


class Load(Stored):
    """The load at which something was measured, and where it is from."""

    rate_fps: int = Field(description="per direction")
    asked: str = Field(
        description="frames per second, or for example '90% of throughput'"
    )
    cell: str | None = Field(
        default=None,
        description="id of the throughput test case that found it; null: given",
    )
    words: str = Field(description="what it is, in words")
