"""A trial as it is asked for (``trial.run``): complete, immutable, checked."""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import Field, model_validator

from dutperf.protocol.base import Count, Mac, Message, Nanoseconds, Side, Wait
from dutperf.protocol.stream_messages import (
    MAX_FRAMES,
    DirectionRequest,
    minimum_frame_size,
)
from dutperf.protocol.stream_parts import MAX_SURVIVAL_BLOCKS, Learn

# Frames beside a trial's streams: routing updates and management queries.


MAX_ANNOUNCEMENTS = 4096
_LONGEST_PACKET = 1500


class Announcement(Message):
    """A frame that one port sends once, beside all streams, and that nobody counts.

    RFC 2544 7: routing updates and the like are not among the frames that are offered.
    """

    port: Side = Field(description="which sends it, with its own MAC and VLAN tags")
    at_ns: Wait | None = Field(
        default=None,
        description="after the trial's start; null: before the wait for the device to "
        "settle (RFC 2544 23)",
    )
    dst_mac: Mac | None = Field(
        default=None,
        description="null: of the neighbour whose address the packet is for",
    )
    packet: Annotated[
        str,
        Field(
            pattern=r"^[46]([0-9a-f])([0-9a-f]{2})*$",
            min_length=2 * 20,
            max_length=2 * _LONGEST_PACKET,
            description="from the IP header on, as hexadecimal digits",
        ),
    ]
    answered_from: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None,
        description="UDP port: what comes back from it to this port is kept, two "
        "packets for each such announcement; null: nothing is; the same in all",
    )


Timeout = Annotated[int, Field(ge=1, le=2**47)]
MAX_TIMEOUTS = 16
MAX_SERIES = 2**16
"""Intervals of a time series."""
_SERIES_INTERVAL_NS = 100_000_000


def series_interval_ns(duration_ns: int) -> int:
    """A tenth of a second, or what divides a very long trial often enough."""
    return max(_SERIES_INTERVAL_NS, -(-duration_ns // MAX_SERIES))


class TagPlan(Message):
    """``count`` frames whose exact delays are kept (RFC 8219 7.2).

    They are frames of each direction's foreground stream, one in each of ``count``
    equal parts of what is left of the duration after ``first_ns``, at a place drawn
    from the seed (see ``tagged_frames``); a single one is the first of them.
    """

    first_ns: Wait = 60_000_000_000
    count: Annotated[int, Field(ge=1, le=1_000_000)] = 50_000


class Record(Message):
    """What a trial records beside its counts."""

    frame_timeouts_ns: Annotated[list[Timeout], Field(max_length=MAX_TIMEOUTS)] = Field(
        default=[], description="count the frames slower than each of these; rising"
    )
    tags: TagPlan | None = None
    ipdv: bool = False
    fine_delays: bool = Field(
        default=False,
        description="buckets of delays in the result: as wide as 0.1 % of the distance "
        "from the smallest of the first delays, otherwise 3.2 %; of variations, from 0",
    )
    series_interval_ns: Annotated[int, Field(ge=1_000_000, le=2**47)] = 100_000_000
    reordering_distance: Annotated[int, Field(ge=0, lt=2**40)] = Field(
        default=0,
        description="how much higher the number of a frame that arrived before may be",
    )
    tracking_mb: Annotated[int, Field(ge=1, le=2**20)] = Field(
        default=1024,
        description="memory for one bit a frame, per stream; beyond it a window slides",
    )
    survival_blocks: Annotated[int, Field(ge=0, le=MAX_SURVIVAL_BLOCKS)] = Field(
        default=0, description="blocks of frames to count the arrived ones in; 0: none"
    )
    connection_blocks: Annotated[int, Field(ge=0, le=MAX_SURVIVAL_BLOCKS)] = Field(
        default=0,
        description="tell what became of each connection, and how many were out at the "
        "begin of each block of frames; 0: do not",
    )

    @model_validator(mode="after")
    def _rising(self) -> Record:
        timeouts = self.frame_timeouts_ns
        if any(b <= a for a, b in itertools.pairwise(timeouts)):
            raise ValueError("frame_timeouts_ns must rise")
        return self


ConnectionBegin = Literal["syn", "ack", "request", "fin"]
ConnectionEnd = Literal["half_open", "opened", "answered", "closed"]
MIN_MSS = 536
"""RFC 9293 3.7.1."""
MAX_MSS = 8960
MAX_OBJECT_BYTES = 65_000
"""With the header of its response it fits the window that is offered."""
MAX_RETRANSMISSIONS = 5
_OPTIONS_BYTES = 12
"""What a segment's timestamps and the header of a response take of an MSS."""
_FIRST: dict[ConnectionBegin, int] = {"syn": 0, "ack": 2, "request": 3, "fin": 5}
_AFTER: dict[ConnectionEnd, int] = {
    "half_open": 2,
    "opened": 3,
    "answered": 5,
    "closed": 8,
}
_ENDS: dict[ConnectionBegin, tuple[ConnectionEnd, ...]] = {
    "syn": ("half_open", "opened", "answered", "closed"),
    "ack": ("opened",),
    "request": ("answered", "closed"),
    "fin": ("closed",),
}


class Tcp(Message):
    """The trial's frames are segments of connections (RFC 8219 8).

    Frame k is the SYN of connection k, from the four-tuple that a UDP frame k would
    have, or a later segment of its initiator. The other side answers it, and this side
    that, as far as ``until`` says; one segment of each kind, of the response as many as
    it takes, none sent twice but by ``retransmit``.
    """

    begin: ConnectionBegin = Field(
        default="syn",
        description="what the frames are: SYNs, or of connections that another trial "
        "has opened ACKs, GETs of HTTP/1.1 or FINs",
    )
    until: ConnectionEnd = Field(
        default="answered",
        description="half_open: SYN and SYN-ACK; opened: the ACK, too; answered: a GET "
        "of HTTP/1.1 and its response after them; closed: both sides' FIN, too",
    )
    opened_by: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None, description="id of the trial that did; none: this one does"
    )
    asked: Annotated[int, Field(ge=0, le=1000)] = Field(
        default=0, description="GETs answered on each connection before"
    )
    translated: bool = Field(
        default=False,
        description="what comes with the initiator's own address has passed a gateway "
        "untranslated, and did not arrive",
    )
    mss: Annotated[int, Field(ge=MIN_MSS, le=MAX_MSS)] = 1460
    object_bytes: Annotated[int, Field(ge=0, le=MAX_OBJECT_BYTES)] = Field(
        default=64,
        description="of a response, which is as many segments as it takes, all at once",
    )

    retransmit: Annotated[int, Field(ge=0, le=MAX_RETRANSMISSIONS)] = Field(
        default=0,
        description="how often a connection's initiator sends again what is not "
        "answered (RFC 6298); what comes again is answered again",
    )
    rto_ns: Annotated[int, Field(ge=10**6, le=60 * 10**9)] = Field(
        default=10**9,
        description="after when a connection's first segment was due; twice as long "
        "each time",
    )

    @property
    def retransmits_ns(self) -> int:
        """How long after its first segment a connection may still send again."""
        return self.rto_ns * ((1 << self.retransmit) - 1)

    @property
    def steps(self) -> range:
        """Which of the eight segments of a connection there are, in their order."""
        return range(_FIRST[self.begin], _AFTER[self.until])

    @model_validator(mode="after")
    def _fits(self) -> Tcp:
        if self.until not in _ENDS[self.begin]:
            ends = " or ".join(_ENDS[self.begin])
            raise ValueError(f"what begins with {self.begin} goes until {ends}")
        if (self.begin == "syn") == (self.opened_by is not None):
            raise ValueError("opened_by goes with what begins after the SYN")
        if self.asked and self.begin in ("syn", "ack"):
            raise ValueError("asked goes with request and fin")
        return self

    @property
    def response_segments(self) -> int:
        """How many a response is."""
        header = f"HTTP/1.1 200 OK\r\nContent-Length: {self.object_bytes}\r\n\r\n"
        return -(-(len(header) + self.object_bytes) // (self.mss - _OPTIONS_BYTES))


class TcpData(Message):
    """The trial's foreground is data on TCP connections that another trial has opened.

    What has learned four-tuples is of their responder, all else of their initiator.
    Each frame is a segment with the tag at its end, somewhere in the window that the
    other end has offered; nobody acknowledges it.
    """

    opened_by: Annotated[int, Field(ge=1, le=65535)] = Field(
        description="id of the trial that did"
    )
    translated: bool = Field(default=False, description="as of tcp")


class CachedNames(Message):
    """Names that the server has in its cache; some of the queries ask for them.

    They are those of another trial; each is asked for again and again, in their order.
    """

    names: Annotated[int, Field(ge=0, le=65535)] = Field(description="in all of them")
    count: Annotated[int, Field(ge=1, le=2**30)] = Field(
        description="how many there are: at least a 65,536th of the queries"
    )
    percent: Annotated[int, Field(ge=1, le=100)] = Field(
        description="of each hundred queries so many; it does not depend on which "
        "names have an AAAA"
    )


class Dns(Message):
    """The trial's frames are queries to a DNS server (of DNS64: RFC 8219 9).

    Query k asks for the ``record`` of the name that says ``names`` and k. The other
    side is the authority for these names: each has one A, from 10.0.0.0 on, and a share
    of them an AAAA. A query has arrived, where it was sent, once it is answered by the
    AAAA that the name has, or by the one that is made of its A; or by its A.
    """

    names: Annotated[int, Field(ge=0, le=65535)] = Field(
        description="in all names of the trial: those of another trial are others"
    )
    aaaa_percent: Annotated[int, Field(ge=0, le=100)] = Field(
        default=0, description="of each hundred names so many have an AAAA"
    )
    prefix: str = Field(
        description="IPv6 address whose bits behind prefix_length are 0: what the "
        "device puts before an A (RFC 6052)"
    )
    prefix_length: Literal[32, 40, 48, 56, 64, 96] = Field(
        default=96, description="in bits (RFC 6052 2.2)"
    )
    record: Literal["aaaa", "a"] = Field(
        default="aaaa", description="what queries ask for"
    )
    fills: bool = Field(
        default=False,
        description="the server may have names of the trial in its cache: it is asked "
        "so that it has them for others",
    )
    cached: CachedNames | None = Field(
        default=None, description="null: each query asks for another name"
    )


QUERY_LONGER_BYTES = 26
"""A query about such a name has 44 bytes, the tag 18."""
DATA_LONGER_BYTES = 24
"""TCP with timestamps has 32 bytes, UDP 8."""


class TrialRequest(Message):
    """One complete trial (RFC 2544 23)."""

    trial_id: Annotated[int, Field(ge=1, le=65535)]
    duration_ns: Annotated[int, Field(ge=1, le=2**47)]
    settle_ns: Wait = Field(
        default=2_000_000_000, description="wait after the learning frames"
    )
    residual_wait_ns: Wait = 2_000_000_000
    burst_limit: Annotated[int, Field(ge=1, le=64)] = 32
    lag_limit_ns: Wait = Field(
        default=10_000_000, description="how far behind its schedule a sender may be"
    )
    verify_checksums: bool = True
    inspect_every: Annotated[int, Field(ge=0, le=10**9)] = Field(
        default=61,
        description="every so many frames that arrive whole, the first one included, "
        "are inspected: what no checksum covers; 0: none",
    )
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    frame_timeout_ns: Timeout | None = Field(
        default=None, description="a slower frame is late: the DUT fails (paper 004)"
    )
    loss_tolerance_ppb: Annotated[int, Field(ge=0, lt=10**9)] = Field(
        default=0,
        description="parts per billion of a direction's intended frames, lost or late, "
        "to pass",
    )
    stop_when_lost: bool = Field(
        default=False,
        description="end sending once more frames than are tolerated seem to be lost",
    )
    tcp: Tcp | None = Field(default=None, description="null: frames are of UDP")
    tcp_data: TcpData | None = Field(
        default=None, description="null: the foreground is of UDP, or of tcp"
    )
    dns: Dns | None = Field(default=None, description="null: frames are no queries")
    record: Record = Record()
    learn: Learn | None = None
    announcements: Annotated[
        list[Announcement], Field(max_length=MAX_ANNOUNCEMENTS)
    ] = Field(default=[])
    not_before_ns: Wait = Field(
        default=0,
        description="wait so long after the start of the trial that made the table",
    )
    directions: Annotated[list[DirectionRequest], Field(min_length=1, max_length=2)]

    @model_validator(mode="after")
    def _distinct(self) -> TrialRequest:
        names = [d.name for d in self.directions]
        ids = [s.id for d in self.directions for s in d.streams]
        if len(set(names)) != len(names) or len(set(ids)) != len(ids):
            raise ValueError("direction names and stream ids must each be different")
        return self

    @model_validator(mode="after")
    def _data_fits(self) -> TrialRequest:
        if self.tcp_data is None:
            return self
        if self.tcp:
            raise ValueError(
                "tcp_data does not go with tcp, which has its own segments"
            )
        for direction in self.directions:
            stream = direction.streams[0]
            least = minimum_frame_size(stream.ip_version) + DATA_LONGER_BYTES
            if stream.extra_bytes or min(stream.frame_sizes) < least:
                raise ValueError(
                    f"tcp_data: the smallest IPv{stream.ip_version} frame with room "
                    f"for the tag is {least}, without options or extension headers"
                )
        return self

    def frames(self, direction: DirectionRequest) -> int:
        """Frames of one direction: rate times duration, rounded, at least one."""
        return direction.frames(self.duration_ns)

    @model_validator(mode="after")
    def _announced_in_time(self) -> TrialRequest:
        times_ns = (each.at_ns for each in self.announcements if each.at_ns is not None)
        if max(times_ns, default=0) >= self.duration_ns:
            raise ValueError("an announcement is due after the trial's end")
        return self

    @model_validator(mode="after")
    def _countable(self) -> TrialRequest:
        for direction in self.directions:
            frames = self.frames(direction)
            for index, stream in enumerate(direction.streams):
                needed = direction.frames_of(index, frames)
                if stream.longest is not None and stream.longest < needed:
                    raise ValueError(
                        f"{direction.name}: {stream.longest} combinations are "
                        f"fewer than the {needed} frames that enumerate them"
                    )
            if frames > MAX_FRAMES:
                raise ValueError(
                    f"{direction.name}: rate_fps and duration_ns make {frames} frames, "
                    f"more than 2^40"
                )
        return self

    @model_validator(mode="after")
    def _learnable(self) -> TrialRequest:
        learn = self.learn
        if learn is None:
            return self
        directions = {d.name: d for d in self.directions}
        if learn.direction not in directions:
            raise ValueError(f"learn.direction: nothing is sent {learn.direction}")
        direction = directions[learn.direction]
        stream = direction.streams[0]
        if stream.more_paths:
            raise ValueError(
                f"learn.direction: what is sent {learn.direction} has several paths"
            )
        if stream.is_learned:
            raise ValueError(
                f"learn.direction: what is sent {learn.direction} was learned before"
            )
        if learn.keep:
            return self
        if self.not_before_ns or any(d.streams[0].is_learned for d in self.directions):
            raise ValueError("learn.keep: a new table has nothing to send, nor a start")
        frames = direction.frames_of(0, self.frames(direction))
        if learn.entries > frames:
            raise ValueError(
                f"learn.entries: {frames} frames cannot fill {learn.entries} entries"
            )
        return self

    @model_validator(mode="after")
    def _survival_fits(self) -> TrialRequest:
        asked = [
            key
            for key in ("survival_blocks", "connection_blocks")
            if getattr(self.record, key)
        ]
        if not asked:
            return self
        bits = self.record.tracking_mb * 2**23
        for direction in self.directions:
            frames = self.frames(direction)
            for index in range(len(direction.streams)):
                if direction.frames_of(index, frames) > bits:
                    raise ValueError(
                        f"record.{asked[0]} needs a bit for each frame: raise "
                        f"record.tracking_mb above {self.record.tracking_mb}"
                    )
        return self

    @model_validator(mode="after")
    def _connections_take_turns(self) -> TrialRequest:
        if self.record.connection_blocks == 0:
            return self
        for direction in self.directions:
            tuples = direction.streams[0].tuples
            turns = tuples and self.learn and tuples.count == self.learn.entries
            if not (tuples and turns and tuples.order == "increasing"):
                raise ValueError(
                    "record.connection_blocks needs learn, and foregrounds of "
                    "increasing tuples, as many as its entries"
                )
        return self

    @model_validator(mode="after")
    def _recordable(self) -> TrialRequest:
        intervals = -(-self.duration_ns // self.record.series_interval_ns)
        if intervals > MAX_SERIES:
            raise ValueError(
                f"record.series_interval_ns makes {intervals} intervals of the "
                f"duration, more than {MAX_SERIES}"
            )
        tags = self.record.tags
        if tags is None:
            return self
        if tags.first_ns >= self.duration_ns:
            raise ValueError("record.tags.first_ns is not before the end of the trial")
        for direction in self.directions:
            frames = direction.frames_of(0, self.frames(direction))
            before = frames * tags.first_ns // self.duration_ns
            if direction.steps:
                before = direction.frames_of(0, direction.frames_in(tags.first_ns))
            taggable = frames - before
            if taggable < tags.count:
                raise ValueError(
                    f"record.tags.count: {direction.name} has {taggable} foreground "
                    f"frames after first_ns, fewer than {tags.count}"
                )
        return self


class TrialProgress(Message):
    """Notification ``trial.progress``, about twice a second."""

    trial_id: int
    phase: Literal["learning", "settling", "running"]
    elapsed_ns: Nanoseconds
    sent: Count
    received: Count


# Which frames of a stream are tagged, as in the engine's ``tag_spread.h``.
#
# Of the frames after ``first_ns``, one in each of as many equal strata as there are
# tags, at a place in it that is drawn from the trial's seed, the stream and the tag's
# number. A single tag is the first of these frames.


_WORD = 2**64 - 1
_STEP, _MIX1, _MIX2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_GROUP = 2**32 - 4
"""Beside the groups of all that varies in frames."""


def tagged_frames(
    plan: TagPlan, *, frames: int, duration_ns: int, seed: int, stream: int
) -> tuple[int, ...]:
    """Numbers of the tagged ones among ``frames`` of the stream with id ``stream``."""
    first = frames * plan.first_ns // duration_ns
    return _tagged(first, frames - first, plan.count, _key(seed, stream))


@lru_cache(maxsize=16)
def _tagged(first: int, span: int, count: int, key: int) -> tuple[int, ...]:
    begins = [first + tag * span // count for tag in range(count + 1)]
    if count == 1:
        return (first,)
    return tuple(
        begins[tag] + (_draw(key, tag) * (begins[tag + 1] - begins[tag]) >> 64)
        for tag in range(count)
    )


def _key(seed: int, stream: int) -> int:
    return _mix(_mix(seed + _STEP & _WORD) ^ _mix((stream << 32) + _GROUP + 1))


def _draw(key: int, number: int) -> int:
    return _mix(key + number * _STEP & _WORD)


def _mix(x: int) -> int:
    x = (x ^ x >> 30) * _MIX1 & _WORD
    x = (x ^ x >> 27) * _MIX2 & _WORD
    return x ^ x >> 31
