"""What a trial sends: streams of frames, their varying fields, each direction."""

from __future__ import annotations

import ipaddress
import math
from typing import Annotated, Literal

from pydantic import Field, model_validator

from dutperf.protocol.base import (
    TAG_BYTES,
    DirectionName,
    Encapsulation,
    Ip,
    Ipv4Options,
    Ipv6Headers,
    IpVersion,
    Mac,
    MayHaveSeveralPorts,
    Message,
    MplsLabels,
    VlanTags,
    header_bytes,
)
from dutperf.protocol.stream_parts import (
    MAX_COMBINATIONS,
    MAX_SEQUENCE,
    LearnedTuple,
    MorePaths,
    ReceivedEnd,
    Tuples,
    differing_bits,
)

MAX_FRAMES = 2**40
"""Of one direction in one trial."""
MAX_STEPS = 4096
"""Of a load over time."""
GENERATOR = "splitmix64-counter-3"
"""How the engine draws random values; stored with each result, beside the seed."""

FieldName = Literal[
    "src_mac",
    "dst_mac",
    "vlan_id",
    "flow_label",
    "src_ip",
    "dst_ip",
    "src_port",
    "dst_port",
    "outer_src",
    "outer_src_port",
    "outer_flow_label",
]
VariationMode = Literal["increasing", "decreasing", "random", "enumerate"]
EnumerationOrder = Literal["increasing", "decreasing", "random"]
MAX_FRAME_SIZE = 9720
FrameSize = Annotated[int, Field(ge=64, le=MAX_FRAME_SIZE)]
MAX_SIZES = 64
"""Different ones of a stream: each has buffers of its own."""
FrameSizes = Annotated[list[FrameSize], Field(min_length=1, max_length=MAX_SEQUENCE)]


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

    def mask(self, field_bits: int) -> int:
        """The bits that vary, of a field as wide as ``field_bits``."""
        return ((1 << self.width) - 1) << (field_bits - self.offset - self.width)


class FieldCopy(Message):
    """``width`` bits of a field are in each frame those of another one, ``of``.

    So a tunnel says whose packets are in it, and an address which ports may stand
    beside it (RFC 7596, RFC 7597 6).
    """

    field: FieldName
    offset: Annotated[int, Field(ge=0, le=127)] = 0
    width: Annotated[int, Field(ge=1, le=32)]
    of: FieldName
    of_offset: Annotated[int, Field(ge=0, le=127)] = 0


class StreamRequest(MayHaveSeveralPorts):
    """The frames of one stream: RFC 2544 C.2.6.4 (IPv4) and its IPv6 analogue.

    Frame k of the stream takes path k mod p of its p paths, one and those of
    ``more_paths``, and has the size ``frame_sizes[(k / p) mod n]``: one size, or the
    repeating sequence of an IMIX (RFC 6985).
    """

    id: Annotated[int, Field(ge=0, le=255, description="unique in the trial")]
    name: Literal["foreground", "background", "beside"] = Field(
        default="foreground",
        description="beside: the DUT need not forward them, so only how many were sent "
        "and came is told, apart from the streams",
    )
    syn: bool = Field(
        default=False,
        description="of a stream beside another: SYNs of TCP that nobody answers, "
        "without a tag; of one size, theirs, and from one port to one",
    )
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
    more_paths: MorePaths = Field(
        default=[],
        description="between several ports on a side, in the order in which frames "
        "take them in turn, after the one from port 0 to port 0; no tuples with them",
    )
    src_port: Annotated[int, Field(ge=0, le=65535)] = 0xC020
    dst_port: Annotated[int, Field(ge=0, le=65535)] = 7
    ttl: Annotated[int, Field(ge=1, le=255)] = 10
    received_ttl: Annotated[int, Field(ge=1, le=255)] | None = Field(
        default=None,
        description="TTL or hop limit of frames as they arrive; null: any will do",
    )
    dscp: Annotated[int, Field(ge=0, le=63)] = 0
    flow_label: Annotated[int, Field(ge=0, lt=2**20, description="IPv6 only")] = 0
    df: bool = False
    most_pieces: Annotated[int, Field(ge=1, le=MAX_FRAME_SIZE // 8)] = Field(
        default=1,
        description="in which the DUT may forward an IPv4 frame; from 2 on frames have "
        "identifications, and pieces are put together (RFC 791 3.2), also those of "
        "IPv6 that a translator makes of it (RFC 8200 4.5, RFC 7915 4.1)",
    )
    ipv6_headers: Ipv6Headers = Field(
        default=[],
        description="extension headers in this order, part of frame_sizes: routing and "
        "authentication 24 bytes, others 8; the fragment is all of its packet",
    )
    ipv4_options: Ipv4Options = Field(
        default=[], description="4 bytes each, part of frame_sizes"
    )
    vary: Annotated[list[FieldVariation], Field(max_length=8)] = Field(default=[])
    copies: Annotated[list[FieldCopy], Field(max_length=8)] = Field(
        default=[],
        description="after all that varies; none of bits that vary or that another "
        "one reads or writes",
    )
    src_binding: Literal["own", "another"] | None = Field(
        default=None,
        description="each frame is from a random B4 of the sending port's bindings: "
        "its IPv4 address, a port of its set, its outer address, or another one's. "
        "IPv4 in IPv6 alone; nothing else of that end varies",
    )
    dst_binding: bool = Field(
        default=False,
        description="each frame is for a random B4 of the receiving port's bindings; "
        "one that arrives in another's tunnel is misdirected; no received_end",
    )
    received_end: ReceivedEnd | None = Field(
        default=None,
        description="where what addresses and ports say of each other must hold for "
        "frames as they arrive, too; null: to whatever address they go",
    )
    enumeration_order: EnumerationOrder = Field(
        default="random",
        description="of the variations with mode enumerate; increasing and decreasing "
        "go round, random has each combination once",
    )
    tuples: Tuples | None = Field(
        default=None, description="null: what vary enumerates, each once"
    )

    @model_validator(mode="after")
    def _versions_and_sizes(self) -> StreamRequest:
        for key in ("src_ip", "dst_ip"):
            if ipaddress.ip_address(getattr(self, key)).version != self.ip_version:
                raise ValueError(f"{key} is not an IPv{self.ip_version} address")
        other = "ipv6_headers" if self.ip_version == 4 else "ipv4_options"
        if getattr(self, other):
            raise ValueError(f"{other} are not for streams of IPv{self.ip_version}")
        if self.most_pieces > 1 and (self.ip_version == 6 or self.df):
            raise ValueError(
                "most_pieces must be 1 for IPv6 and with df, which nobody fragments"
            )
        least = minimum_frame_size(self.ip_version) + self.extra_bytes
        if min(self.frame_sizes) < least:
            raise ValueError(
                f"frame size {min(self.frame_sizes)} cannot carry the {TAG_BYTES}-byte "
                f"tag; the smallest IPv{self.ip_version} frame is {least}"
            )
        if len(self.frame_sizes) != len(self.received_frame_sizes):
            raise ValueError("received_frame_sizes needs one size for each frame size")
        if len(set(self.frame_sizes)) > MAX_SIZES:
            raise ValueError(f"frame_sizes are more than {MAX_SIZES} different ones")
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
        for copy in self.copies:
            for field, offset in ((copy.field, copy.offset), (copy.of, copy.of_offset)):
                bits, end = field_bits(field, self.ip_version), offset + copy.width
                if end > bits:
                    raise ValueError(f"copies: {field} has {bits} bits, not {end}")
        if self.combinations > MAX_COMBINATIONS:
            raise ValueError("vary enumerates more than 2^48 combinations")
        return self

    @model_validator(mode="after")
    def _paths_fit(self) -> StreamRequest:
        for number, path in enumerate(self.more_paths):
            try:
                path.check_version(self.ip_version)
            except ValueError as error:
                raise ValueError(f"more_paths[{number}].{error}") from None
        for variation in self.vary:
            if variation.field in {"src_ip", "dst_ip"}:
                bits = field_bits(variation.field, self.ip_version)
                differ = differing_bits(self.on_each_path(variation.field))
                if differ & variation.mask(bits):
                    raise ValueError(
                        f"vary: {variation.field} varies in bits in which the paths "
                        "differ"
                    )
        return self

    @model_validator(mode="after")
    def _tuples_fit(self) -> StreamRequest:
        if self.tuples is None:
            return self
        if self.more_paths:
            raise ValueError("more_paths must be empty with tuples")
        if self.tuples.source != "generated":
            varied = {v.field for v in self.vary} | {c.field for c in self.copies}
            fields = varied & TUPLE_FIELDS
            if fields:
                raise ValueError(
                    f"tuples are {self.tuples.source}: {', '.join(sorted(fields))} "
                    "must not vary"
                )
            if self.tuples.first:
                raise ValueError(
                    f"tuples are {self.tuples.source}: tuples.first must be 0"
                )
            addresses = [a for f in self.tuples.flows for a in (f.src_ip, f.dst_ip)]
            if any((":" in each) != (self.ip_version == 6) for each in addresses):
                raise ValueError("tuples.flows are of another IP version")
        elif not self.enumerates:
            raise ValueError("tuples are generated, but vary enumerates nothing")
        elif self.tuples.first + self.tuples.count > self.combinations:
            raise ValueError(
                f"tuples.first and count, {self.tuples.first} + {self.tuples.count}, "
                f"are more than the {self.combinations} combinations that vary "
                "enumerates"
            )
        return self

    def on_each_path(self, field: Literal["src_ip", "dst_ip"]) -> list[str]:
        """An address as it is before it varies, on each of its paths."""
        return [getattr(path, field) for path in (self, *self.more_paths)]

    @property
    def extra_bytes(self) -> int:
        """What its headers take between IP and UDP."""
        return header_bytes([*self.ipv6_headers, *self.ipv4_options])

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

    def ends_of(self, number: int) -> LearnedTuple:
        """Combination ``number``, as it is sent, of those in increasing order."""
        addresses = {
            field: int(ipaddress.ip_address(getattr(self, field)))
            for field in ("src_ip", "dst_ip")
        }
        ports = {"src_port": self.src_port, "dst_port": self.dst_port}
        for each in (v for v in self.vary if v.mode == "enumerate"):
            number, value = number // each.size, each.min + number % each.size
            if each.field in ports:
                ports[each.field] = value
            else:
                bits = field_bits(each.field, self.ip_version)
                kept = addresses[each.field] & ~each.mask(bits)
                shift = bits - each.offset - each.width
                addresses[each.field] = kept | value << shift
        of = ipaddress.IPv4Address if self.ip_version == 4 else ipaddress.IPv6Address
        source, destination = (str(of(value)) for value in addresses.values())
        return source, ports["src_port"], destination, ports["dst_port"]

    @property
    def longest(self) -> int | None:
        """How many frames it may have at most, when each is another one."""
        limits = []
        ends = self.enumeration_order == "random"  # up and down it goes round
        if ends and self.enumerates and (self.tuples is None or self.is_learned):
            limits.append(self.combinations)
        if self.tuples and self.tuples.takes_each_once:
            limits.append(self.tuples.count)
        return min(limits, default=None)


TUPLE_FIELDS = {"src_ip", "dst_ip", "src_port", "dst_port"}


def field_bits(field: FieldName, ip_version: IpVersion) -> int:
    """Width of a field; 0 for one that the IP version does not have."""
    ip_bits, label_bits = (32, 0) if ip_version == 4 else (128, 20)
    return {
        "src_mac": 48,
        "dst_mac": 48,
        "vlan_id": 12,
        "flow_label": label_bits,
        "src_ip": ip_bits,
        "dst_ip": ip_bits,
        "src_port": 16,
        "dst_port": 16,
        "outer_src": 128,
        "outer_src_port": 16,
        "outer_flow_label": 20,
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


class RateStep(Message):
    """For ``duration_ns`` the load is ``rate_fps``, all streams together; 0: a pause.

    It has ``frames`` frames; number j of them is due j / rate_fps after the step
    begins, whatever was sent before (an absolute schedule).
    """

    rate_fps: Annotated[int, Field(ge=0, le=10**12)]
    duration_ns: Annotated[int, Field(ge=1, le=2**47)]

    @property
    def frames(self) -> int:
        """Rate times duration, rounded."""
        return (self.rate_fps * self.duration_ns + 5 * 10**8) // 10**9


def _first_outer_bit(stream: StreamRequest) -> int:
    """Of the outer source address, the first one that varies or is copied."""
    found = [v.offset for v in stream.vary if v.field == "outer_src"]
    for copy in stream.copies:
        found += [copy.offset] if copy.field == "outer_src" else []
        found += [copy.of_offset] if copy.of == "outer_src" else []
    return min(found, default=128)


class DirectionRequest(Message):
    """What one side sends: a stream, and with a mix a second one, or one beside it."""

    name: DirectionName
    rate_fps: Annotated[int, Field(ge=1, le=10**12, description="all streams together")]
    steps: Annotated[list[RateStep], Field(max_length=MAX_STEPS)] = Field(
        default=[],
        description="the load over time, begun again until the trial's duration is "
        "over, where the last step is cut; rate_fps is the highest of them; empty: "
        "rate_fps throughout",
    )
    vlan: VlanTags = Field(
        default=[],
        description="tags of its frames, outermost first: those of the port that "
        "sends; frame sizes do not count them",
    )
    received_vlan: VlanTags = Field(
        default=[],
        description="those of the port that receives: the DUT may change them",
    )
    mpls: MplsLabels = Field(
        default=[],
        description="labels of its frames, outermost first: those of the port that "
        "sends; frame sizes do not count them",
    )
    received_mpls: MplsLabels = Field(
        default=[],
        description="those of the port that receives: the DUT may change them",
    )
    encapsulation: Encapsulation | None = Field(
        default=None,
        description="outer headers of its frames: those of the port that sends; frame "
        "sizes do not count them",
    )
    received_encapsulation: Encapsulation | None = Field(
        default=None, description="those of the port that receives"
    )
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
    def _fields_are_there(self) -> DirectionRequest:
        for number, stream in enumerate(self.streams):
            touched = {v.field for v in stream.vary}
            touched |= {f for c in stream.copies for f in (c.field, c.of)}
            where = f"streams[{number}].vary has"
            if not self.vlan and "vlan_id" in touched:
                raise ValueError(f"{where} vlan_id, and vlan no tag")
            outer = self.encapsulation
            if "outer_src" in touched and not outer:
                raise ValueError(
                    f"{where} outer_src, and encapsulation no outer header"
                )
            if outer and outer.outer_version == 4 and _first_outer_bit(stream) < 96:
                raise ValueError(
                    f"{where} bits of outer_src before its last 32, which are all of "
                    "IPv4's"
                )
            if "outer_flow_label" in touched and not (
                outer and outer.outer_version == 6
            ):
                raise ValueError(
                    f"{where} outer_flow_label, and encapsulation no outer header of "
                    "IPv6"
                )
            if "outer_src_port" in touched and not (outer and outer.kind == "vxlan"):
                raise ValueError(
                    f"{where} outer_src_port, and encapsulation is not vxlan"
                )
        return self

    @model_validator(mode="after")
    def _received_ends_are_there(self) -> DirectionRequest:
        outer = self.received_encapsulation
        for number, stream in enumerate(self.streams):
            end = stream.received_end
            version = 6 if end and ":" in end.address else 4
            if end and end.outer and not (outer and outer.outer_version == version):
                raise ValueError(
                    f"streams[{number}].received_end is of an outer header, and "
                    "received_encapsulation has none of its version"
                )
        return self

    @model_validator(mode="after")
    def _highest_step(self) -> DirectionRequest:
        highest = max((step.rate_fps for step in self.steps), default=self.rate_fps)
        if highest != self.rate_fps:
            raise ValueError(f"rate_fps must be the highest of steps, {highest}")
        return self

    def frames(self, duration_ns: int) -> int:
        """How many frames it has in a trial of ``duration_ns``.

        At least one, which is due at once if no step has a frame by then.
        """
        return max(1, self.frames_in(duration_ns))

    def frames_in(self, duration_ns: int) -> int:
        """How many frames the first ``duration_ns`` have, to the nearest one."""
        steps = self.steps or [RateStep(rate_fps=self.rate_fps, duration_ns=2**47)]
        period_ns = sum(step.duration_ns for step in steps)
        rounds, left_ns = divmod(duration_ns, period_ns)
        frames = rounds * sum(step.frames for step in steps)
        for step in steps:
            cut = min(step.duration_ns, left_ns)
            if cut:
                frames += RateStep(rate_fps=step.rate_fps, duration_ns=cut).frames
            left_ns -= cut
        return frames

    @model_validator(mode="after")
    def _tuples_of_the_foreground(self) -> DirectionRequest:
        if any(stream.tuples for stream in self.streams[1:]):
            raise ValueError("only the first stream may have tuples")
        return self

    @model_validator(mode="after")
    def _beside_a_stream(self) -> DirectionRequest:
        if self.streams[0].name == "beside":
            raise ValueError("the first stream must not be beside: beside which?")
        return self

    @property
    def expected(self) -> list[StreamRequest]:
        """The streams that the device must forward."""
        return [stream for stream in self.streams if stream.name != "beside"]

    def expected_among(self, total: int) -> int:
        """How many of the first ``total`` frames the device must forward."""
        return sum(self.frames_of(i, total) for i in range(len(self.expected)))

    def frames_of(self, stream: int, total: int) -> int:
        """How many of the first ``total`` frames are of ``streams[stream]``."""
        if self.mix is None:
            return total if stream == 0 else 0
        foreground = foreground_frames(total, self.mix.foreground, self.mix.of)
        return foreground if stream == 0 else total - foreground
