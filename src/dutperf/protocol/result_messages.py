"""What a trial gives: counts, delays, stalls and their shadows, ports, a verdict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field, Strict

from dutperf.protocol.base import (
    Count,
    DirectionName,
    Message,
    Nanoseconds,
)
from dutperf.protocol.port_messages import (
    InputQueueDrops,
    NamedPort,
    PortCounters,
    ResolvedNeighbour,
)
from dutperf.protocol.stream_parts import LearnedTuple, Survival, TableResult
from dutperf.protocol.trial_messages import Timeout

VerdictKind = Literal["pass", "fail", "invalid"]
ReasonCode = Literal[
    "frames_lost",
    "frames_late",
    "duplicates",
    "sender_behind",
    "held_back",
    "sender_lag",
    "sender_burst",
    "receiver_lag",
    "receiver_overflow",
    "transmit_errors",
    "link_down",
    "link_changed",
    "neighbour_changed",
    "clock_unstable",
    "flow_control",
    "neighbour_missing",
    "nothing_sent",
    "aborted",
    "stopped_in_error",
    # Of TCP connections:
    "segments_lost",
    "segments_strange",
    "connections_reset",
    "answers_not_sent",
    # Of queries to a DNS64 server:
    "queries_refused",
    "answers_wrong",
    "answers_cached",
    "answers_not_cached",
    # Said by the plan about a trial that the testbed's hooks spoilt:
    "hook_failed",
    # ... and about one in which others had the CPU of a lab's device:
    "device_cpu_taken",
    # Said by the plan about a whole measurement, never by the engine about a trial:
    "max_rate",
    "nothing_forwarded",
    "nothing_passed",
    "unstable",
    "no_throughput",
    "not_overloaded",
    "no_outage",
    "connections_lost",
    "no_power",
    "connections_expire",
    "connections_remain",
    "device_collapsed",
    "too_short",
    "short_tests",
    "table_disagrees",
    "log_incomplete",
    "log_unreadable",
    # Said by the plan about a trial on connections (RFC 9693 4.7):
    "phase1_failed",
    "unexpected_address",
    "not_translated",
    "renumbered",
    "connections_expired",
    "no_connection_rate",
    # Said by older engines of frames that arrived damaged; now they are frames_lost:
    "corrupt_frames",
]


class Reason(Message):
    """One thing that led to a verdict, and what to do about it."""

    code: ReasonCode
    message: str
    hint: str = ""


class Verdict(Message):
    """pass; fail: the DUT lost frames; invalid: the tester cannot tell."""

    kind: VerdictKind
    reasons: list[Reason] = Field(default=[])


class Histogram(Message):
    """Non-empty buckets ``[lowest, highest, count]`` in rising order; exact ends."""

    count: Count
    min: int | None
    max: int | None
    buckets: list[Annotated[tuple[int, int, int], Strict(strict=False)]]


Octet = Annotated[int, Field(ge=0, le=255)] | None

NOTHING = Histogram(count=0, min=None, max=None, buckets=[])


class SlowerThan(Message):
    """How many received frames took longer than a timeout."""

    timeout_ns: Timeout
    frames: Count


class TagResult(Message):
    """Delays of the tagged frames in the order of sending; null: lost."""

    lost: Count
    delays_ns: list[Nanoseconds | None]
    shaded: list[Count] = Field(
        default=[], description="places in the list: in a recovery window"
    )


class Series(Message):
    """Frames by the interval in which they were sent; the rest of ``sent`` was lost."""

    interval_ns: Annotated[int, Field(ge=1)]
    sent: list[Count]
    received: list[Count]

    @property
    def lost(self) -> list[int]:
        """Frames of each interval that never arrived."""
        return [s - r for s, r in zip(self.sent, self.received, strict=True)]


class Stall(Message):
    """The sender was late, and made up for it with a burst; since the trial's start."""

    begin_ns: Nanoseconds = Field(description="the oldest frame that left late was due")
    caught_up_ns: Nanoseconds
    max_lag_ns: Nanoseconds
    away_ns: Nanoseconds = Field(description="longest pause of the sender itself")
    frames: Count = Field(
        description="that left at once instead of evenly: by how much the lag fell"
    )


class Shadow(Message):
    """When the DUT may have suffered from a stall of the tester; by time of sending."""

    begin_ns: Nanoseconds
    end_ns: Nanoseconds | None = Field(description="null: the end of the trial")
    of: Literal["sender", "receiver"]
    may_lose: bool = Field(
        description="a burst, or a receiver's ring that may have overflowed unseen"
    )
    frames: Count | None = Field(
        description="that it can have cost of each direction; null: nobody knows"
    )


class Damage(Message):
    """Frames that arrived damaged, by the first thing that was found wrong."""

    checksum_zero: Count = Field(
        default=0,
        description="IPv6 without a UDP checksum, which hosts drop (RFC 8200 8.1)",
    )
    checksum_wrong: Count = Field(
        default=0, description="of UDP, or of the IPv4 header"
    )
    length: Count = Field(default=0, description="of the IP packet, or UDP's own")
    truncated: Count = Field(
        default=0, description="the frame ends before its IP packet does"
    )
    never_sent: Count = Field(
        default=0, description="whole, with a number that the stream has not"
    )

    def __add__(self, other: Damage) -> Damage:
        """Both together, kind by kind."""
        its = other.by_kind
        return Damage(**{kind: n + its[kind] for kind, n in self.by_kind.items()})

    def each(self, count_of: Callable[[int], int]) -> Damage:
        """Each count replaced by what ``count_of`` makes of it."""
        return Damage(**{kind: count_of(n) for kind, n in self.by_kind.items()})

    @property
    def by_kind(self) -> dict[str, int]:
        """Kind -> how many."""
        return {kind: getattr(self, kind) for kind in type(self).model_fields}

    @property
    def total(self) -> int:
        """Of all kinds."""
        return sum(self.by_kind.values())


class Inspected(Message):
    """Of the frames that were inspected, those with another header or payload."""

    frames: Count = Field(description="that were inspected: see inspect_every")
    ttl: Count = Field(
        default=0, description="TTL or hop limit is not the stream's received_ttl"
    )
    dscp: Count = Field(default=0, description="DSCP is not the one that was sent")
    payload: Count = Field(
        default=0, description="between UDP header and tag, though the checksum holds"
    )
    least_ttl: Octet = Field(default=None, description="null: none was inspected")
    most_ttl: Octet = None
    other_dscp: Octet = Field(
        default=None, description="the last one that was not sent; null: none"
    )


class LossRun(Message):
    """Frames of a stream lost in a row; times since the trial's start, by schedule."""

    first: Count = Field(description="number of the first one, in its stream")
    frames: Annotated[int, Field(ge=1)]
    begin_ns: Nanoseconds = Field(description="when the first one was due")
    last_ns: Nanoseconds = Field(description="when the last one was due")
    end_ns: Nanoseconds | None = Field(
        description="when the next one that arrived was due; null: none did"
    )


class Silence(Message):
    """A time without a frame of the direction; since the trial's start, of arrival."""

    begin_ns: Nanoseconds = Field(
        description="the last frame before arrived, or the first one was due"
    )
    end_ns: Nanoseconds | None = Field(
        description="the next frame arrived; null: none did"
    )


class NamedConnection(Message):
    """A connection that was not back when the trial ended."""

    connection: Count = Field(description="its number, in the order of opening")
    lost: Annotated[int, Field(ge=1)] = Field(description="frames, up to its last one")
    ends: LearnedTuple | None = Field(
        description="as the responder saw it; null: nothing was learned"
    )


class Connections(Message):
    """What became of connections whose frames take turns: frame k is of k mod n.

    One is whole when no frame of it was lost, back when its last one arrived, and open
    when that was lost.
    """

    tenths: Annotated[
        list[Annotated[tuple[Count, Count, Count], Strict(strict=False)]],
        Field(max_length=10),
    ] = Field(description="in the order of opening: how many, back, open")
    back_lost: Histogram = Field(
        description="frames in a row, the longest of each connection that is back"
    )
    open_lost: Histogram = Field(description="up to the last one, of each that is open")
    last_back: Count | None = Field(
        description="the frame by which the last of those back was; null: none is"
    )
    named: list[NamedConnection] = Field(description="the first open ones, at most 64")
    block_frames: Annotated[int, Field(ge=1)]
    out: list[Count] = Field(
        description="how many had lost their last frame, at the begin of each block"
    )


class StreamResult(Message):
    """Exact accounting of one stream; every sent frame is received once or lost."""

    id: int
    name: Literal["foreground", "background"]
    intended: Count
    sent: Count
    received: Count = Field(description="distinct frames received")
    lost: Count = Field(description="sent - received")
    duplicate: Count
    reordered: Count = Field(
        description="arrived after a frame whose number is higher by more than "
        "record.reordering_distance"
    )
    late: Count = Field(description="received, but slower than frame_timeout_ns")
    lost_in_shadow: Count = Field(
        default=0, description="of those lost: sent in a recovery window"
    )
    late_in_shadow: Count = Field(default=0, description="the same of those late")
    slower: list[SlowerThan] = Field(description="for record.frame_timeouts_ns")
    corrupt: Count = Field(
        description="arrived damaged, by the tag's stream: not received, but lost"
    )
    damaged: Damage | None = Field(default=None, description="these by kind")
    inspected: Inspected | None = Field(
        default=None,
        description="what no checksum covers, of every so many frames received, copies "
        "included",
    )
    negative_delays: Count = Field(description="arrived before they left: no delay")
    window_frames: Count | None = Field(
        description="null: each frame has its bit; else how far back those reach"
    )
    unplaced: Count = Field(description="arrived from beyond the window: not received")
    delay_ns: Histogram = Field(
        description="send call's begin to receive call's end, received frames"
    )
    shaded_delay_ns: Histogram = Field(
        default=NOTHING, description="of these: sent in a recovery window"
    )
    ipdv_ns: Histogram | None = Field(
        description="D(i) - D(i-1) of frames sent in a row (RFC 8219 7.3.2)"
    )
    shaded_ipdv_ns: Histogram | None = Field(
        default=None, description="of these: in a recovery window"
    )
    tags: TagResult | None
    series: Series
    loss_runs: Histogram = Field(description="how many frames were lost in a row")
    longest_loss: LossRun | None = Field(
        default=None,
        description="the first of the longest ones; null: nothing was lost, or not "
        "known, with a window",
    )
    last_loss: LossRun | None = Field(
        default=None, description="the last one; null: as longest_loss"
    )
    survival: Survival | None = None
    connections: Connections | None = None


class BesideResult(Message):
    """Frames that the device need not forward; of no sum of the streams' counts."""

    intended: Count
    sent: Count
    received: Count = Field(description="distinct frames that came nevertheless")


class ShareReport(Message):
    """What one of several shares of a direction did."""

    intended: Count = Field(description="frames")
    sent: Count
    sending_ns: Nanoseconds = Field(description="until its last frame's departure")
    max_lag_ns: Nanoseconds
    port_full_ns: Nanoseconds = Field(
        description="how long the port had no room for its frames"
    )
    received: Count = Field(description="distinct frames, by whichever queue they came")
    longest_gap_ns: Nanoseconds = Field(description="as in receive_gap_ns")


class DirectionResult(Message):
    """One direction of a trial."""

    name: DirectionName
    intended_rate_fps: Count
    offered_rate_fps: Annotated[float, Field(ge=0)]
    sending_ns: Nanoseconds = Field(description="first to last frame's departure")
    tx_full: Count = Field(description="times the transmit queue took fewer frames")
    port_full_ns: Nanoseconds = Field(
        default=0, description="how long the port had no room for frames"
    )
    ring_full: Count = Field(
        default=0, description="of those sent: lost, as the device's ring was full"
    )
    lag_ns: Histogram = Field(description="departure - due time, every frame")
    burst_frames: Histogram = Field(description="frames handed to the port at once")
    send_call_ns: Histogram = Field(
        description="stamp to the send call's end, by frame"
    )
    receive_gap_ns: Histogram = Field(
        description="begin of the poll before a frame's to the end of its own, by frame"
    )
    delay_floor_ns: Nanoseconds = Field(
        description="shortest send call and poll: in every delay, the tester's own"
    )
    delay_bound_ns: Nanoseconds = Field(
        description="longest send call and gap: no delay is overstated by more"
    )
    stalls: list[Stall] = Field(default=[], description="of the sender")
    shadows: list[Shadow] = Field(
        default=[], description="in which this direction's frames stood, rising"
    )
    longest_silence: Silence | None = Field(
        default=None,
        description="without a frame of the streams; from the first one's due time on, "
        "and while frames were due",
    )
    by_share: list[ShareReport] = Field(
        default=[], description="empty: the direction's work was not split"
    )
    streams: list[StreamResult] = Field(description="those the device must forward")
    beside: BesideResult | None = Field(
        default=None, description="null: nothing was beside the stream"
    )


class IcmpMessages(Message):
    """ICMP messages of one kind that a port received, neighbour discovery apart."""

    ip_version: Literal[4, 6]
    type: Annotated[int, Field(ge=0, le=255)]
    code: Annotated[int, Field(ge=0, le=255)]
    frames: Annotated[int, Field(ge=1)]


class Answer(Message):
    """What came back to an announcement's port from where it is answered."""

    received_ns: Nanoseconds = Field(description="since the trial's start")
    packet: str = Field(description="from the IP header on, as hexadecimal digits")


class SlowPath(Message):
    """Frames between a port and the program behind its tap, in a trial."""

    to_tap: Count = Field(description="of the foreign ones, and of neighbour messages")
    from_tap: Count = Field(description="left by the port; not among those offered")
    lost: Count = Field(description="had no room on the way, either way")


class PortReport(NamedPort):
    """What a port saw during the trial beside the frames accounted to streams."""

    before: PortCounters
    after: PortCounters
    neighbour_requests: Count = Field(description="ARP/ND requests answered")
    neighbour_conflicts: Count = Field(
        default=0,
        description="ARP/ND messages by which a next hop has another MAC address than "
        "it answered with, or an address of the tester's is somebody else's",
    )
    foreign: Count = Field(description="not this tester's frames")
    icmp: list[IcmpMessages] = Field(
        default=[],
        description="of the foreign ones: ICMP messages, by kind, at most 16 kinds",
    )
    answers: list[Answer] = Field(
        default=[],
        description="of the foreign ones: those that announcements asked for",
    )
    stale: Count = Field(description="frames of an earlier trial")
    misdirected: Count = Field(description="frames that belong to another port")
    untranslated: Count = Field(
        default=0,
        description="data of TCP connections with the initiator's own address, which "
        "the device should have translated: it did not arrive",
    )
    corrupt: Count = Field(
        description="test frames that arrived damaged; also truncated ones of which "
        "nobody can tell whose they are"
    )
    damaged: Damage | None = Field(default=None, description="these by kind")
    other_vlan: Count = Field(
        default=0,
        description="frames whose VLAN tags, MPLS labels or outer headers are not the "
        "port's, or that have none",
    )
    fragments: Count = Field(description="pieces of IP packets")
    reassembled: Count = Field(
        default=0, description="packets of several pieces that were put together"
    )
    incomplete: Count = Field(
        default=0, description="packets of which pieces are missing, of these"
    )
    announced: Count = Field(
        default=0, description="announcements that left, of those that were asked for"
    )
    slow_path: SlowPath | None = Field(
        default=None, description="null: the port has none"
    )
    handed_over: Count = Field(
        default=0,
        description="frames of the trial that came by another share's queue, which "
        "told that share",
    )
    not_taken_over: Count = Field(
        default=0,
        description="of these, those for which that share had no room: lost by the "
        "tester",
    )
    interface_drops: Count = Field(
        default=0,
        description="received, and dropped below the port by the tester's own NIC, "
        "driver or kernel",
    )
    send_drops: Count = Field(
        default=0, description="the port took them, and they never left the tester"
    )
    damaged_on_wire: Count = Field(
        default=0,
        description="came in damaged, beside rx_errors: by the device, the cable or "
        "the NIC",
    )


SegmentName = Literal[
    "syn", "syn_ack", "ack", "request", "response", "fin", "fin_ack", "last_ack"
]


class Segments(Message):
    """Those of one kind, of which each connection has one."""

    name: SegmentName
    sent: Count
    received: Count = Field(description="each connection's first")
    duplicate: Count
    retransmitted: Count = Field(description="beside those sent")


class TcpEnd(Message):
    """What one end of the connections received beside what it waited for."""

    resets: Count
    unknown: Count = Field(description="of no connection of the trial")
    wrong: Count = Field(description="that acknowledged, or held, what nobody had sent")
    damaged: Count = Field(description="whose checksums did not hold")
    renumbered: Count = Field(
        description="with sequence numbers that the device has changed: counted, and "
        "not told apart"
    )
    proxied: Count = Field(
        description="SYN-ACKs of somebody who answers in the responder's place"
    )
    untranslated: Count = Field(
        description="with the initiator's own address, where the device should have "
        "given them another: not taken as received"
    )
    without_stamp: Count = Field(
        description="the trial's frames, or what answers them, without timestamps"
    )
    not_sent: Count = Field(description="answers that the tester had no room for")


class TcpResult(Message):
    """What became of a trial's connections (RFC 8219 8, RFC 3511 5.2 and 5.3)."""

    segments: list[Segments] = Field(description="in the order of a connection")
    initiator: TcpEnd
    responder: TcpEnd
    first_answer_ns: Histogram = Field(
        description="from when a connection's first segment of the trial left to when "
        "its answer came, to 64 ns; of SYNs: how long it took to open (RFC 3511 5.2)"
    )


class DnsReplies(Message):
    """Answers to queries of the trial, by what they are."""

    valid: Count = Field(description="copies, too")
    refused: Count = Field(description="by a response code")
    truncated: Count
    empty: Count = Field(description="without an AAAA")
    wrong_address: Count
    malformed: Count


class DnsAsked(Message):
    """What the authority was asked for, of one type."""

    names: Count = Field(description="each once")
    again: Count
    cached: Count = Field(description="of names that were to be in the server's cache")
    answered: Count = Field(description="of all")


class DnsResult(Message):
    """What became of a trial's queries (RFC 8219 9.2)."""

    replies: DnsReplies
    valid_cached: Count = Field(
        description="of the valid ones, about names that were to be in its cache"
    )
    unknown_replies: Count = Field(description="about no name of the trial")
    damaged_replies: Count = Field(description="whose checksums did not hold")
    asked_aaaa: DnsAsked
    asked_a: DnsAsked
    unknown_queries: Count = Field(
        description="at the authority, about no name of the trial or of another type"
    )
    damaged_queries: Count
    not_sent: Count = Field(
        description="answers of the authority that the tester had no room for"
    )


class TrialResult(Message):
    """One complete trial result."""

    trial_id: int
    verdict: Verdict
    ended_early: bool = Field(
        default=False, description="by stop_when_lost: less was sent than intended"
    )
    shares: Count = Field(
        default=1, description="in which each direction's work was split"
    )
    one_share_because: str | None = Field(
        default=None,
        description="why it was not, although the ports were opened for several",
    )
    directions: list[DirectionResult]
    tcp: TcpResult | None = None
    dns: DnsResult | None = None
    ports: list[PortReport] = Field(
        description="the left ones by their numbers, then the right ones"
    )
    input_queues: list[InputQueueDrops] = Field(
        default=[],
        description="of the whole machine's CPUs, those where something rose; a "
        "virtual port's device has its queues among them",
    )
    input_queue_drops: Count = Field(
        default=0,
        description="of these, what may be the tester's own loss: of no port's "
        "interface_drops, and only where no device is on this machine",
    )
    neighbours: list[ResolvedNeighbour]
    table: TableResult | None = None
    generator: str = Field(description="of the random values; see the seed")
    begin_unix_ns: Count | None = Field(
        default=None,
        description="when the first frame was due, since 1970 by the wall clock; null: "
        "none was",
    )
    total_ns: Nanoseconds
    overhead_ns: Nanoseconds = Field(
        description="the engine's own share: total less learning, waits and sending"
    )
