"""The messages between plan and engine: the one source of both languages' view.

JSON-RPC 2.0, one message a line, over a Unix socket. The JSON schemas in
``protocol/schema`` are generated from these models (``python -m
dutperf.engine.schema``), the golden messages in ``protocol/golden`` are parsed by
tests in Python and in C++. Ranges are those of ``engine/src/control/messages.cc``.

Conventions: names are RFC 1242/2285 terms, units stand last (``_ns``, ``_fps``). Frame
sizes include the 4-byte FCS (RFC 1242 3.5). "forward" is left to right. Rates and
counts are per direction. Unknown keys are errors on both sides, and so are values of
another JSON type: no number in a string, no 1 for true.
"""

from __future__ import annotations

import ipaddress
import itertools
import math
from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field, Strict, field_validator, model_validator

from dutperf.engine.message import (
    Count as Count,
)
from dutperf.engine.message import (
    DirectionName as DirectionName,
)
from dutperf.engine.message import (
    Driver as Driver,
)
from dutperf.engine.message import (
    Ip as Ip,
)
from dutperf.engine.message import (
    IpVersion as IpVersion,
)
from dutperf.engine.message import (
    Mac as Mac,
)
from dutperf.engine.message import (
    Message as Message,
)
from dutperf.engine.message import (
    Nanoseconds as Nanoseconds,
)
from dutperf.engine.message import (
    Side as Side,
)
from dutperf.engine.message import (
    Wait as Wait,
)
from dutperf.engine.message import (
    WhenFull as WhenFull,
)
from dutperf.engine.tuples import (
    MAX_COMBINATIONS,
    MAX_SURVIVAL_BLOCKS,
)
from dutperf.engine.tuples import (
    ExpectedAddresses as ExpectedAddresses,
)
from dutperf.engine.tuples import (
    Learn as Learn,
)
from dutperf.engine.tuples import (
    Survival as Survival,
)
from dutperf.engine.tuples import (
    TableResult as TableResult,
)
from dutperf.engine.tuples import (
    Tuples as Tuples,
)

PROTOCOL_VERSION = 2
TAG_BYTES = 18
"""The wire tag: magic 2, trial 2, stream 1, flags 1, sequence 6, stamp 6."""

GENERATOR = "splitmix64-counter-3"
"""How the engine draws random values; stored with each result, beside the seed."""
MAX_FRAMES = 2**40
"""Of one direction in one trial."""


# --- engine.hello ---------------------------------------------------------------------


class HelloResult(Message):
    """What the engine is and what it runs on."""

    engine_version: str
    dpdk_version: str
    protocol_version: int
    tsc_hz: Count
    worker_cpus: list[int] = Field(description="CPU of each worker, in role order")
    main_cpu: int
    hugepages: bool
    memory_mb: Count
    drivers: list[Driver]
    clock_offset_ns: Nanoseconds = Field(
        description="how far the workers' clocks may be apart, as measured at start"
    )


# --- ports.open, ports.status ---------------------------------------------------------


class PortSpec(Message):
    """One port of the tester. ``device`` is an interface, a PCI address or a socket."""

    name: Side
    driver: Driver
    device: str = ""
    mac: Mac | None = Field(
        default=None, description="own MAC; default: the device's, or one made up"
    )
    memif_role: Literal["server", "client"] = "client"
    memif_id: Annotated[int, Field(ge=0, lt=2**32)] = 0
    mtu: Annotated[int, Field(ge=68, le=9702)] = 1500
    rx_descriptors: Annotated[int, Field(ge=64, le=32768)] = 8192
    tx_descriptors: Annotated[int, Field(ge=64, le=32768)] = 4096
    in_flight_frames: Annotated[int, Field(ge=64, le=32768)] = Field(
        default=16384,
        description="kernel interfaces: frames on their way to the device or in its "
        "queue; a power of 2",
    )
    when_full: WhenFull = Field(
        default="wait",
        description="frames for which the queue behind the port has no room: wait, "
        "or are lost there",
    )

    @field_validator("in_flight_frames")
    @classmethod
    def _power_of_2(cls, frames: int) -> int:
        if frames & (frames - 1):
            raise ValueError("in_flight_frames must be a power of 2")
        return frames


class PortsOpenParams(Message):
    """Opens both ports; queues and offloads are set once, for all trials."""

    ports: Annotated[list[PortSpec], Field(min_length=2, max_length=2)]
    link_timeout_ns: Wait = 5_000_000_000

    @model_validator(mode="after")
    def _both_sides(self) -> PortsOpenParams:
        if self.ports[0].name == self.ports[1].name:
            raise ValueError("ports must be one left and one right")
        return self


class DriverCounter(Message):
    """A counter that the driver gave its name."""

    name: str
    count: Count


class KernelCounters(Message):
    """What the kernel counts at the interface behind a port, and at its sockets."""

    rx_missed: Count = Field(description="the NIC had no room")
    rx_fifo: Count = Field(description="the same, as some drivers call it")
    rx_over: Count = Field(description="the same, as others do")
    rx_nohandler: Count = Field(description="nobody took it")
    rx_dropped: Count = Field(
        description="by the driver, at an input queue, or of a protocol nobody speaks"
    )
    rx_crc: Count = Field(description="came in damaged: wrong checksum")
    rx_frame: Count = Field(description="came in damaged: no whole number of bytes")
    rx_length: Count = Field(description="came in damaged: wrong length")
    tx_errors: Count
    tx_dropped: Count
    queue_dropped: Count = Field(
        description="by the queue discipline on the way out, modulo 2^32"
    )
    driver: list[DriverCounter] = Field(
        description="the driver's own counters of drops on receive (ethtool -S)"
    )
    socket_full: Count = Field(description="the packet socket's ring was full")
    xdp_dropped: Count = Field(description="the AF_XDP socket had no buffer")
    xdp_ring_full: Count = Field(description="the AF_XDP socket's ring was full")
    xdp_fill_ring_empty: Count = Field(
        description="in copy mode in xdp_dropped already; in zero copy no frames"
    )


class InputQueueDrops(Message):
    """Of one CPU's input queue, during the trial (/proc/net/softnet_stat)."""

    cpu: Count
    dropped: Count = Field(description="frames that it had no room for")
    time_squeeze: Count = Field(description="times that work was left for later")


class PortCounters(Message):
    """The port's own counters since it was opened."""

    rx_frames: Count
    tx_frames: Count
    rx_missed: Count = Field(description="dropped: receive queue full (imissed)")
    rx_errors: Count = Field(description="came in damaged, as the port counts it")
    rx_nombuf: Count = Field(description="dropped: no receive buffer")
    tx_errors: Count
    kernel: KernelCounters | None = Field(
        default=None, description="null: no kernel interface, or an old file"
    )


class PortStatus(Message):
    """One open port."""

    name: Side
    driver: Driver
    device: str
    mac: Mac
    link_up: bool
    link_speed_mbps: Count | None = Field(description="null: the port does not say")
    full_duplex: bool
    flow_control: Literal["on", "off", "unknown"]
    numa_node: int | None
    mtu: Count
    dpdk_name: str = Field(description="name of the DPDK driver")
    in_flight_frames: Count | None = Field(
        default=None,
        description="on their way to the device or in its queue at most; null: unknown",
    )
    counters: PortCounters


class PortsResult(Message):
    """Answer of ``ports.open`` and ``ports.status``."""

    ports: list[PortStatus]


# --- neighbours.set -------------------------------------------------------------------


class AddressRange(Message):
    """``count`` addresses: first, first + 2^shift, first + 2 * 2^shift, ..."""

    first: Ip
    count: Annotated[int, Field(ge=1, le=65536)] = 1
    shift: Annotated[int, Field(ge=0, le=127)] = 0


class PortNeighbours(Message):
    """What a port answers ARP and ND for, and whom it has to find."""

    port: Side
    own: Annotated[list[AddressRange], Field(max_length=65536)]
    resolve: Annotated[list[Ip], Field(max_length=65536)] = Field(
        description="next hops; asked from the first own address"
    )


class NeighboursParams(Message):
    """Replaces all earlier neighbour settings, then resolves all next hops."""

    ports: Annotated[list[PortNeighbours], Field(max_length=2)]
    timeout_ns: Wait = 3_000_000_000

    @model_validator(mode="after")
    def _distinct(self) -> NeighboursParams:
        if len({p.port for p in self.ports}) != len(self.ports):
            raise ValueError("each port may stand once")
        return self


class ResolvedNeighbour(Message):
    """One next hop; ``mac`` is null when nobody answered within the timeout."""

    port: Side
    ip: Ip
    mac: Mac | None
    duration_ns: Nanoseconds


class NeighboursResult(Message):
    """All next hops, in the order asked for."""

    neighbours: list[ResolvedNeighbour]


# --- trial.run ------------------------------------------------------------------------


FieldName = Literal[
    "src_mac", "dst_mac", "flow_label", "src_ip", "dst_ip", "src_port", "dst_port"
]
VariationMode = Literal["increasing", "decreasing", "random", "enumerate"]
EnumerationOrder = Literal["increasing", "decreasing", "random"]
FrameSize = Annotated[int, Field(ge=64, le=9720)]
FrameSizes = Annotated[list[FrameSize], Field(min_length=1, max_length=64)]


class FieldVariation(Message):
    """``width`` bits of a field take the values min..max from frame to frame.

    ``offset`` counts bits from the field's most significant one. Values are a pure
    function of the trial's seed, the stream and the frame's number in its stream.
    """

    field: FieldName
    offset: Annotated[int, Field(ge=0, le=127)] = 0
    width: Annotated[int, Field(ge=1, le=32)]
    min: Annotated[int, Field(ge=0, lt=2**32)]
    max: Annotated[int, Field(ge=0, lt=2**32)]
    mode: VariationMode = "random"

    @model_validator(mode="after")
    def _range_fits(self) -> FieldVariation:
        if self.min > self.max or self.max >= 2**self.width:
            raise ValueError("min <= max < 2^width does not hold")
        return self

    @property
    def size(self) -> int:
        """Number of values."""
        return self.max - self.min + 1


class StreamRequest(Message):
    """The frames of one stream: RFC 2544 C.2.6.4 (IPv4) and its IPv6 analogue.

    Frame k of the stream has the size ``frame_sizes[k mod n]``: one size, or the
    repeating sequence of an IMIX (RFC 6985).
    """

    id: Annotated[int, Field(ge=0, le=255, description="unique in the trial")]
    name: Literal["foreground", "background"] = "foreground"
    ip_version: IpVersion
    frame_sizes: FrameSizes
    received_frame_sizes: FrameSizes = Field(
        description="one for each of frame_sizes: the DUT may translate"
    )
    src_ip: Ip
    dst_ip: Ip
    next_hop: Ip = Field(description="whose MAC the frames carry; resolved before")
    src_mac: Mac | None = Field(default=None, description="default: the port's")
    dst_mac: Mac | None = Field(default=None, description="default: the next hop's")
    src_port: Annotated[int, Field(ge=0, le=65535)] = 0xC020
    dst_port: Annotated[int, Field(ge=0, le=65535)] = 7
    ttl: Annotated[int, Field(ge=1, le=255)] = 10
    dscp: Annotated[int, Field(ge=0, le=63)] = 0
    flow_label: Annotated[int, Field(ge=0, lt=2**20, description="IPv6 only")] = 0
    df: bool = False
    vary: Annotated[list[FieldVariation], Field(max_length=8)] = Field(default=[])
    enumeration_order: EnumerationOrder = Field(
        default="random", description="of the variations with mode enumerate"
    )
    tuples: Tuples | None = Field(
        default=None, description="null: what vary enumerates, each once"
    )

    @model_validator(mode="after")
    def _versions_and_sizes(self) -> StreamRequest:
        for key in ("src_ip", "dst_ip"):
            if ipaddress.ip_address(getattr(self, key)).version != self.ip_version:
                raise ValueError(f"{key} is not an IPv{self.ip_version} address")
        least = minimum_frame_size(self.ip_version)
        if min(self.frame_sizes) < least:
            raise ValueError(
                f"frame size {min(self.frame_sizes)} cannot carry the {TAG_BYTES}-byte "
                f"tag; the smallest IPv{self.ip_version} frame is {least}"
            )
        if len(self.frame_sizes) != len(self.received_frame_sizes):
            raise ValueError("received_frame_sizes needs one size for each frame size")
        return self

    @model_validator(mode="after")
    def _variations_fit(self) -> StreamRequest:
        taken: list[tuple[str, int, int]] = []
        for variation in self.vary:
            end = variation.offset + variation.width
            bits = field_bits(variation.field, self.ip_version)
            if end > bits:
                raise ValueError(f"{variation.field} has {bits} bits, not {end}")
            for field, other_start, other_end in taken:
                overlaps = variation.offset < other_end and other_start < end
                if field == variation.field and overlaps:
                    raise ValueError(f"two variations of {field} overlap")
            taken.append((variation.field, variation.offset, end))
        if self.combinations > MAX_COMBINATIONS:
            raise ValueError("vary enumerates more than 2^48 combinations")
        return self

    @model_validator(mode="after")
    def _tuples_fit(self) -> StreamRequest:
        if self.tuples is None:
            return self
        if self.tuples.source == "learned":
            fields = {v.field for v in self.vary} & _TUPLE_FIELDS
            if fields:
                raise ValueError(
                    f"tuples are learned: {', '.join(sorted(fields))} must not vary"
                )
            if self.tuples.first:
                raise ValueError("tuples are learned: tuples.first must be 0")
        elif not self.enumerates:
            raise ValueError("tuples are generated, but vary enumerates nothing")
        elif self.tuples.first + self.tuples.count > self.combinations:
            raise ValueError(
                f"tuples.first and count, {self.tuples.first} + {self.tuples.count}, "
                f"are more than the {self.combinations} combinations that vary "
                "enumerates"
            )
        return self

    @property
    def enumerates(self) -> bool:
        """Whether the frames have numbers of an enumeration."""
        return any(v.mode == "enumerate" for v in self.vary)

    @property
    def is_learned(self) -> bool:
        """Whether the frames' addresses and ports come from the engine's table."""
        return self.tuples is not None and self.tuples.source == "learned"

    @property
    def combinations(self) -> int:
        """Number of combinations of the enumerated variations."""
        sizes = (v.size for v in self.vary if v.mode == "enumerate")
        return math.prod(sizes)

    @property
    def longest(self) -> int | None:
        """How many frames it may have at most, when each is another one."""
        limits = []
        if self.enumerates and (self.tuples is None or self.is_learned):
            limits.append(self.combinations)
        if self.tuples and self.tuples.takes_each_once:
            limits.append(self.tuples.count)
        return min(limits, default=None)


_TUPLE_FIELDS = {"src_ip", "dst_ip", "src_port", "dst_port"}


def field_bits(field: FieldName, ip_version: IpVersion) -> int:
    """Width of a field; 0 for one that the IP version does not have."""
    ip_bits, label_bits = (32, 0) if ip_version == 4 else (128, 20)
    return {
        "src_mac": 48,
        "dst_mac": 48,
        "flow_label": label_bits,
        "src_ip": ip_bits,
        "dst_ip": ip_bits,
        "src_port": 16,
        "dst_port": 16,
    }[field]


def minimum_frame_size(ip_version: IpVersion) -> int:
    """Smallest frame with room for the tag: 64 (IPv4), 84 (IPv6, RFC 8219 5.1.1)."""
    return 64 if ip_version == 4 else 84


class Mix(Message):
    """``foreground`` of ``of`` consecutive frames, spread evenly (RFC 8219 5.3)."""

    foreground: Annotated[int, Field(ge=1, le=10**6)]
    of: Annotated[int, Field(ge=1, le=10**6)]


def foreground_frames(total: int, m: int, n: int) -> int:
    """How many of the first ``total`` frames are foreground in a mix of m of n.

    Frame i is foreground iff (i * m) mod n < m.
    """
    return (total - 1) * m // n + 1 if total else 0


class DirectionRequest(Message):
    """What one side sends: the foreground stream, and with a mix the background's."""

    name: DirectionName
    rate_fps: Annotated[int, Field(ge=1, le=10**12, description="all streams together")]
    streams: Annotated[list[StreamRequest], Field(min_length=1, max_length=2)]
    mix: Mix | None = None

    @model_validator(mode="after")
    def _mix_fits(self) -> DirectionRequest:
        m, n = (self.mix.foreground, self.mix.of) if self.mix else (1, 1)
        if math.gcd(m, n) != 1:
            raise ValueError("mix must be in lowest terms")
        if m > n or (m < n) != (len(self.streams) == 2):
            raise ValueError(
                "mix must leave frames to the second stream, just when there is one"
            )
        return self

    @model_validator(mode="after")
    def _tuples_of_the_foreground(self) -> DirectionRequest:
        if any(stream.tuples for stream in self.streams[1:]):
            raise ValueError("only the first stream may have tuples")
        return self

    def frames_of(self, stream: int, total: int) -> int:
        """How many of the first ``total`` frames are of ``streams[stream]``."""
        mix = self.mix or Mix(foreground=1, of=1)
        foreground = foreground_frames(total, mix.foreground, mix.of)
        return foreground if stream == 0 else total - foreground


Timeout = Annotated[int, Field(ge=1, le=2**47)]
MAX_TIMEOUTS = 16
MAX_SERIES = 2**16
"""Intervals of a time series."""


class TagPlan(Message):
    """``count`` frames whose exact delays are kept (RFC 8219 7.2).

    They are frames of each direction's foreground stream, one in each of ``count``
    equal parts of what is left of the duration after ``first_ns``, at a place drawn
    from the seed (see ``tagging``); a single one is the first of them.
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

    @model_validator(mode="after")
    def _rising(self) -> Record:
        timeouts = self.frame_timeouts_ns
        if any(b <= a for a, b in itertools.pairwise(timeouts)):
            raise ValueError("frame_timeouts_ns must rise")
        return self


class TrialRequest(Message):
    """One complete trial (RFC 2544 23)."""

    trial_id: Annotated[int, Field(ge=1, le=65535)]
    duration_ns: Annotated[int, Field(ge=1_000_000, le=2**47)]
    settle_ns: Wait = Field(
        default=2_000_000_000, description="wait after the learning frames"
    )
    residual_wait_ns: Wait = 2_000_000_000
    burst_limit: Annotated[int, Field(ge=1, le=64)] = 32
    lag_limit_ns: Wait = Field(
        default=10_000_000, description="how far behind its schedule a sender may be"
    )
    verify_checksums: bool = True
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
    record: Record = Record()
    learn: Learn | None = None
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

    def frames(self, direction: DirectionRequest) -> int:
        """Frames of one direction: rate times duration, rounded, at least one."""
        return max(1, (direction.rate_fps * self.duration_ns + 5 * 10**8) // 10**9)

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
        if stream.is_learned or not stream.enumerates:
            raise ValueError(
                f"learn.direction: the frames sent {learn.direction} have no numbers; "
                f"vary must enumerate"
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
        if self.record.survival_blocks == 0:
            return self
        bits = self.record.tracking_mb * 2**23
        for direction in self.directions:
            frames = self.frames(direction)
            for index in range(len(direction.streams)):
                if direction.frames_of(index, frames) > bits:
                    raise ValueError(
                        f"record.survival_blocks needs a bit for each frame: raise "
                        f"record.tracking_mb above {self.record.tracking_mb}"
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
            taggable = frames - frames * tags.first_ns // self.duration_ns
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
    "connections_expire",
    "connections_remain",
    "device_collapsed",
    "too_short",
    "short_tests",
    "table_disagrees",
    # Said by the plan about a trial on connections (RFC 9693 4.7):
    "phase1_failed",
    "unexpected_address",
    "not_translated",
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
        default=[], description="places in the list: in the shadow of a tester's stall"
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
        default=0, description="of those lost: sent in the shadow of a tester's stall"
    )
    late_in_shadow: Count = Field(default=0, description="the same of those late")
    slower: list[SlowerThan] = Field(description="for record.frame_timeouts_ns")
    corrupt: Count = Field(
        description="arrived damaged, by the tag's stream: not received, but lost"
    )
    damaged: Damage | None = Field(
        default=None, description="these by kind; null: of an older file"
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
        default=NOTHING, description="of these: sent in the shadow of a tester's stall"
    )
    ipdv_ns: Histogram | None = Field(
        description="D(i) - D(i-1) of frames sent in a row (RFC 8219 7.3.2)"
    )
    shaded_ipdv_ns: Histogram | None = Field(
        default=None, description="of these: in the shadow of a tester's stall"
    )
    tags: TagResult | None
    series: Series
    loss_runs: Histogram = Field(description="how many frames were lost in a row")
    survival: Survival | None = None


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
    streams: list[StreamResult]


class PortReport(Message):
    """What a port saw during the trial beside the frames accounted to streams."""

    name: Side
    before: PortCounters
    after: PortCounters
    neighbour_requests: Count = Field(description="ARP/ND requests answered")
    neighbour_conflicts: Count = Field(
        default=0,
        description="ARP/ND messages by which a next hop has another MAC address than "
        "before the trial, or an address of the tester's is somebody else's",
    )
    foreign: Count = Field(description="not this tester's frames")
    stale: Count = Field(description="frames of an earlier trial")
    misdirected: Count = Field(description="frames that belong to the other port")
    corrupt: Count = Field(
        description="test frames that arrived damaged; also truncated ones of which "
        "nobody can tell whose they are"
    )
    damaged: Damage | None = Field(
        default=None, description="these by kind; null: of an older file"
    )
    fragments: Count = Field(description="pieces of IP packets")
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


class TrialResult(Message):
    """One complete trial result."""

    trial_id: int
    verdict: Verdict
    ended_early: bool = Field(
        default=False, description="by stop_when_lost: less was sent than intended"
    )
    directions: list[DirectionResult]
    ports: list[PortReport]
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
        "none was, or of an older engine",
    )
    total_ns: Nanoseconds
    overhead_ns: Nanoseconds = Field(
        description="the engine's own share: total less learning, waits and sending"
    )


# --- frames.preview -------------------------------------------------------------------


class PreviewParams(Message):
    """Writes each direction's first ``count`` frames to ``path``; sends nothing."""

    trial: TrialRequest
    count: Annotated[int, Field(ge=1, le=1_000_000)]
    path: str


class PreviewResult(Message):
    """How many frames the pcap holds."""

    frames: Count


# --- errors ---------------------------------------------------------------------------


class ErrorData(Message):
    """``data`` of a JSON-RPC error: what to do."""

    hint: str = ""


ERROR_PARSE = -32700
ERROR_INVALID_REQUEST = -32600
ERROR_UNKNOWN_METHOD = -32601
ERROR_INVALID_PARAMS = -32602
ERROR_INTERNAL = -32603
ERROR_ENVIRONMENT = 1
"""A device, memory or privilege is missing."""
ERROR_STATE = 2
"""The call does not fit the engine's state (ports not open, trial running)."""

METHODS: dict[str, tuple[type[Message] | None, type[Message] | None]] = {
    "engine.hello": (None, HelloResult),
    "ports.open": (PortsOpenParams, PortsResult),
    "ports.status": (None, PortsResult),
    "neighbours.set": (NeighboursParams, NeighboursResult),
    "trial.run": (TrialRequest, TrialResult),
    "trial.abort": (None, None),
    "table.drop": (None, None),
    "frames.preview": (PreviewParams, PreviewResult),
    "engine.shutdown": (None, None),
}
"""Method -> (params, result); None: an empty object. Names are part of the design."""
