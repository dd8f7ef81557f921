"""What is stored of a stateful device: its table, survivors, how it empties."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from dutperf.protocol.base import DirectionName
from dutperf.protocol.stream_parts import LearnedTuple
from dutperf.results.rate_results import Bound, Spread
from dutperf.results.trial_record import StreamName
from dutperf.results.units import Stored
from dutperf.stats.survival import Policy, Survivors


class CapacityStep(Stored):
    """One number of connections of a capacity search (RFC 9693 4.9)."""

    phase: Literal["first", "doubling", "bisection"]
    connections: int
    rate_per_s: int | None = Field(
        description="validated maximum connection establishment rate; null: none found"
    )
    least_per_s: int = Field(description="the rate that it had to reach")
    held: Literal["held", "too_slow", "full", "collapsed", "unstable"] = Field(
        description="full: not held, and as many were missing at two rates"
    )
    tests: int = Field(description="phase 1 and validation together are one")


class Capacity(Stored):
    """How one search for the capacity of the table ended."""

    connections: int | None = Field(description="held; null: not even the first")
    beyond: int | None = Field(description="not held; null: no such number is known")
    rate_per_s: int | None = Field(description="at ``connections``")
    error: int = Field(description="how close both numbers were to come")
    ending: Literal["found", "nothing_held", "most_held", "unstable", "collapsed"]
    words: str = Field(description="the ending for people")
    steps: list[CapacityStep]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Picture(Survivors):
    """Who survives: which of ``connections`` still worked, when each was tried once.

    They are numbered in the order in which they were opened. A connection whose first
    frame did not arrive was never there. ``border`` is where the living and the lost
    meet, ``strays`` are on its wrong side.
    """

    opened: Annotated[int, Field(description="arrived in phase 1")]
    rate_per_s: Annotated[int, Field(description="at which they were opened")]
    block_connections: Annotated[int, Field(description="how many are in a block")]
    blocks: Annotated[
        list[int], Field(description="survivors of each; the last may be shorter")
    ]
    lost_ranges: Annotated[
        list[tuple[int, int]],
        Field(
            description="[first, how many] of connections lost in a row; the first ones"
        ),
    ]
    more_ranges: Annotated[
        int, Field(description="how many there are beside lost_ranges")
    ]


class Eviction(Stored):
    """What the device does when its table is full, by who survives."""

    policy: Policy
    oldest: Literal["one_by_one", "chunks"] | None = Field(
        description="how the oldest are dropped; null: they are not, or it is not known"
    )
    words: str = Field(description="for people")
    pictures: list[Picture] = Field(description="by rising number of connections")


class Behaviour(Stored):
    """What a NAT does, and whether that is what an RFC asks for."""

    rfc: str
    section: str = Field(description="a requirement, as REQ-1, or a section")
    level: Literal["MUST", "SHOULD", "RECOMMENDED"] | None = Field(
        description="null: it is told, and nothing is asked for"
    )
    asks: str = Field(description="for what, in words")
    verdict: Literal["met", "not met", "cannot tell"] | None
    found: str = Field(description="what was seen, with ends that show it")


LogVerdict = Literal["named", "missing", "wrong", "ambiguous", "duplicate", "late"]


class LogAudit(Stored):
    """What a NAT's log says of the mappings that were seen, all tests together."""

    tests: int
    opened: int = Field(description="connections whose first frame was sent")
    learned: int = Field(
        description="mappings that were seen: of connections, or, where no entry has a "
        "remote end, of inside ends"
    )
    verdicts: dict[LogVerdict, int] = Field(description="how many of those, each one")
    examples: list[str] = Field(description="the first of each verdict but named")
    entries: int = Field(description="of the log, mappings that begin and blocks")
    other: int = Field(description="of those, of no mapping that was seen")
    unread: int = Field(description="lines or records of no mapping, or broken")
    clock_ns: int | None = Field(
        description="median of an entry's time less that of its connection's first "
        "frame: the clocks' difference and how long logging takes; null: no times"
    )
    clock_low_ns: int | None = Field(description="the 1st percentile")
    clock_high_ns: int | None = Field(description="the 99th percentile")


class TeardownRate(Stored):
    """One repeat of RFC 9693 4.8: what it took to delete all connections at once."""

    connections: int
    counted_before: int | None = Field(description="by the device; null: not asked")
    counted_after: int | None
    delete_s: float = Field(description="the bulk_delete hook on the full table")
    empty_s: list[float] = Field(description="the same on the empty table, each time")
    command_s: float = Field(description="median of these: what the command itself is")
    rate_per_s: float | None = Field(description="null: too short to be told from that")
    rfc_rate_per_s: float | None = Field(
        default=None,
        description="N / (B - A) of RFC 9693 4.8, the command itself included",
    )


class CountAt(Stored):
    """What the device said of its table, so long after phase 1 had ended."""

    after_s: float
    connections: int


class Expiry(Stored):
    """One repeat in which connections expired one by one."""

    connections: int
    counts: list[CountAt]
    begins_s: float | None = Field(description="when the first was gone")
    ends_s: float | None = Field(description="when the last was gone; null: not seen")
    rate_per_s: float | None = Field(description="in between")


class TableLimits(Stored):
    """What the device's own hooks showed of its table (RFC 9693 6)."""

    table_size: int | None = Field(
        default=None, description="nf_conntrack_max, state limit or the like"
    )
    hash_size: int | None = Field(default=None, description="buckets of its hash table")


# What is stored of delays: figures, and what each of them is of.


Absent = Literal["lost", "undefined", "invalid"]


class MeasuredValue(Stored):
    """A number, or why there is none.

    lost: so many frames were lost that it is infinite. undefined: nothing arrived
    that it could be taken from. invalid: the trials were.
    """

    value: float | None
    absent: Absent | None = None
    at_most: bool = Field(
        default=False,
        description="an upper bound: much of it may be the tester's own",
    )
    below_ns: float | None = Field(
        default=None,
        description="what the tester's own way takes, by its passport, where that is "
        "more: all that the figure says is that it is below; null: it is not, or "
        "unknown",
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
    repeats: list[MeasuredValue]
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
        "from the buckets of a histogram",
    )
    count: int = Field(description="N, the repeats that the summary is taken from")
    result: MeasuredValue
    percentile_1: MeasuredValue = Field(description="of the repeats (RFC 8219 12)")
    percentile_99: MeasuredValue
    spread: Spread | None = Field(default=None, description="of the repeats")

    @property
    def words(self) -> str:
        """Which of a cell's it is, as findings call it: ``TL, forward``."""
        stream = "" if self.stream == "foreground" else f" {self.stream}"
        return f"{self.name}, {self.direction}{stream}"


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


# What is stored of an outage, by both methods of RFC 6201, and what was done.


class OutageTime(Stored):
    """One direction's outage in one repeat, by both methods of RFC 6201 1.3.

    Times of begin and end are since the first frame was due.
    """

    value_ns: float = Field(description="frames lost / offered rate (RFC 6201 1.3, 1)")
    within_ns: float = Field(
        description="how far it may be wrong: an interval of frames, the sender's "
        "largest lag, and frames lost in the recovery window of a stall of the tester"
    )
    bound: Bound = None
    lost: int = Field(description="frames, in the whole trial")
    longest_lost: int = Field(description="frames, in a row")
    begin_ns: int | None = Field(
        description="when the first of these was due; null: none was lost"
    )
    end_ns: int | None = Field(
        description="when the next one that arrived was due; null: none did, or none "
        "was lost"
    )
    silence_ns: int | None = Field(
        description="from the last frame that arrived before to the first one after "
        "(RFC 6201 1.3, 2), wherever in the trial it was longest; to its end, if none "
        "arrived after; null: not known"
    )


class LostConnection(Stored):
    """A connection that was not back when the trial ended, though sent on twice."""

    connection: int = Field(description="its number, in the order of opening")
    begin_ns: int = Field(description="when its first frame of these was due")
    ends: LearnedTuple | None = Field(
        description="source address and port, destination's, as the responder saw them "
        "last; null: not known"
    )


class ConnectionTenth(Stored):
    """A tenth of the connections, in the order of opening."""

    connections: int
    back: int
    open: int = Field(description="not back when the trial ended")


class ConnectionOutage(Stored):
    """What became of each connection in one repeat, in one direction.

    Each has a frame in each ``turn_ns``: nothing is known of it between two of them.
    Times are since the first frame was due, or frames lost in a row times the turn.
    """

    connections: int
    turn_ns: float = Field(description="an outage is known to within one turn")
    whole: int = Field(description="lost no frame: if out, for less than two turns")
    back: int = Field(description="lost some, and were back when the trial ended")
    died: int = Field(
        description="were not, and two frames or more were missing by then"
    )
    unclear: int = Field(
        description="their last frame is missing, one only: nobody can tell whether "
        "they died"
    )
    moved: int | None = Field(
        description="arrived with another four-tuple than before, which is counted "
        "each time; null: of this direction it cannot be told"
    )
    median_ns: float | None = Field(description="of those back: their longest outage")
    p99_ns: float | None
    longest_ns: float | None
    last_back_ns: float | None = Field(
        description="when the frame was due by which the last of these was back"
    )
    tenths: list[ConnectionTenth]
    named: list[LostConnection] = Field(description="the first that died, at most 64")
    block_ns: float
    out: list[int] = Field(
        description="how many had lost their last frame, at the begin of each block"
    )


class DirectionOutage(Stored):
    """The same in all repeats."""

    direction: DirectionName
    repeats: list[OutageTime | None] = Field(description="null: invalid")
    by_connection: list[ConnectionOutage | None] | None = Field(
        default=None,
        description="of each repeat, null: invalid; null: it was not asked for",
    )


class Action(Stored):
    """A hook that was run while frames were sent."""

    command: list[str]
    host: str | None = None
    repeat: int
    started_ns: int | None = Field(
        description="since the first frame was due; null: not known"
    )
    duration_ns: int


class Outage(Stored):
    """What was sent, what was done meanwhile, and how long each direction was out."""

    trigger_ns: int = Field(description="when something was to happen")
    actions: list[Action] = Field(description="empty: a person was asked to act")
    within_ns: float = Field(description="the largest of all repeats")
    directions: list[DirectionOutage]


# What is stored of a load over time: how long frames were lost after it fell.


class RecoveryTime(Stored):
    """One direction's recovery in one repeat (RFC 2544 26.5)."""

    value_ns: float = Field(
        description="from when the load fell to when the last lost frame was due; 0: "
        "none that was due later was lost"
    )
    within_ns: float = Field(
        description="how much longer it may have taken: until the next frame that "
        "arrived was due, and by how much the sender was late at most"
    )
    bound: Bound = None
    overload_lost: int = Field(description="frames sent until the load fell")
    reduced_lost: int = Field(description="frames sent after it fell")


class DirectionRecovery(Stored):
    """The same in all repeats."""

    direction: DirectionName
    repeats: list[RecoveryTime | None] = Field(description="null: invalid")


class Recovery(Stored):
    """The loads of a system recovery, per direction, and what each direction took."""

    throughput_fps: int
    overload_fps: int
    reduced_fps: int
    overload_ns: int = Field(description="when the load fell, since the trial's start")
    reduced_ns: int = Field(description="how long the reduced load lasted")
    within_ns: float = Field(description="the largest of all repeats")
    directions: list[DirectionRecovery]


# What is stored of a load that lasts for hours: what drifts, and when it was lossy.


class LevelChange(Stored):
    """A series went from one level to another: medians of all between two changes."""

    at_s: float = Field(description="since the begin, in seconds under load")
    before: float
    after: float


class SeriesDrift(Stored):
    """What becomes of one figure in the course of a cell, a value for each trial."""

    name: str = Field(description="p50, p99, loss; or what a hook calls its gauge")
    direction: DirectionName | None = Field(
        default=None, description="of delays; null: it is of all frames, or a gauge"
    )
    unit: Literal["ns", "percent", ""] = Field(
        description="of a gauge none is known but by its name"
    )
    trials: int = Field(description="that have a value")
    median: float
    least: float
    most: float
    per_hour: float | None = Field(
        description="slope of a straight line, per hour under load; null: of too few "
        "trials"
    )
    lower_per_hour: float | None = Field(
        description="95 % interval of the slope; those of all series of a cell hold "
        "together"
    )
    upper_per_hour: float | None
    seen_from_per_hour: float | None = Field(
        description="a slope so large, up or down, would be told in 4 of 5 such runs"
    )
    verdict: Literal["grows", "falls", "steps", "no drift seen", "too few trials"]
    changes: list[LevelChange] = Field(
        default=[], description="where steps fit the series better than a line"
    )


class LossyTrial(Stored):
    """A trial of a cell that lost frames, and when."""

    number: int = Field(description="within the cell, from 1")
    started_at: str = Field(description="ISO 8601, UTC")
    lost: int
    sent: int


class Soak(Stored):
    """One load in trials in a row: what was lost when, and what drifted."""

    trials: int = Field(description="that were run")
    valid: int
    spoilt: list[int] = Field(
        description="numbers of the invalid ones, from 1: at most 100, the first; what "
        "the device lost in these nobody knows"
    )
    sent: int = Field(description="frames of all valid trials and directions")
    lost: int
    lossy: int = Field(description="valid trials that lost a frame")
    losses: list[LossyTrial] = Field(
        description="the first 100 of these and the worst 100, in order"
    )
    under_load_s: float = Field(description="of all trials together")
    took_s: float = Field(
        description="from the first trial's start to the last one's end, by the clock "
        "of the machine; a pause before a run was resumed is in it"
    )
    series: list[SeriesDrift]
    unread: list[str] = Field(
        default=[], description="which lines of hooks are no gauges, and why"
    )
