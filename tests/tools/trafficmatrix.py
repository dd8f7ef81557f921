"""Trials of all kinds, made by hypothesis, and what their frames must look like.

Versions, sizes, variations, enumerations, background: everything that a request can
say, in any combination. The same trials at every run.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from livetools import ENDS, MACS
from readers import Seen

from dutperf.protocol.base import DirectionName, IpVersion, Side
from dutperf.protocol.stream_messages import (
    DirectionRequest,
    EnumerationOrder,
    FieldName,
    FieldVariation,
    Mix,
    StreamRequest,
    VariationMode,
    field_bits,
    minimum_frame_size,
)
from dutperf.protocol.trial_messages import TrialRequest

FRAMES = 60
"""Of one direction of a trial."""
RATE_FPS = 7 * FRAMES
VERSIONS: tuple[IpVersion, ...] = get_args(IpVersion)
# The others vary in a tag and in outer headers, which these ports have none of.
FIELDS: tuple[FieldName, ...] = tuple(
    name
    for name in get_args(FieldName)
    if name not in ("vlan_id", "outer_src", "outer_src_port", "outer_flow_label")
)
MODES: tuple[VariationMode, ...] = get_args(VariationMode)
ORDERS: tuple[EnumerationOrder, ...] = get_args(EnumerationOrder)
MIXES = [(9, 10), (1, 2), (1, 10), (3, 7)]
StreamName = Literal["foreground", "background"]


@st.composite
def variations(draw: st.DrawFn, version: IpVersion) -> FieldVariation:
    names = [name for name in FIELDS if field_bits(name, version)]
    field = draw(st.sampled_from(names))
    bits = field_bits(field, version)
    width = draw(st.integers(1, min(bits, 32)))
    offset = draw(st.integers(0, bits - width))
    ends = st.integers(0, 2**width - 1) | st.sampled_from([0, 2**width - 1])
    low, high = sorted((draw(ends), draw(ends)))
    mode = draw(st.sampled_from(MODES))
    return FieldVariation(
        field=field, offset=offset, width=width, min=low, max=high, mode=mode
    )


def fitting(candidates: list[FieldVariation]) -> list[FieldVariation]:
    """As many as may stand together: no overlap, not too many or few combinations."""
    chosen: list[FieldVariation] = []
    for variation in candidates:
        end = variation.offset + variation.width
        if any(
            v.field == variation.field
            and variation.offset < v.offset + v.width
            and v.offset < end
            for v in chosen
        ):
            continue
        if combinations([*chosen, variation]) <= 2**48:
            chosen.append(variation)
    if combinations(chosen) < FRAMES:
        return [v for v in chosen if v.mode != "enumerate"]
    return chosen


def combinations(chosen: list[FieldVariation]) -> int:
    return math.prod(v.size for v in chosen if v.mode == "enumerate")


@st.composite
def streams(
    draw: st.DrawFn, direction: DirectionName, number: int, name: StreamName
) -> StreamRequest:
    version = draw(st.sampled_from(VERSIONS))
    least = minimum_frame_size(version)
    sizes = draw(
        st.lists(
            st.integers(least, 1518) | st.sampled_from([least, least + 1, 1518]),
            min_size=1,
            max_size=5,
        )
    )
    left, right = ENDS[version]
    wanted = [draw(variations(version)) for _ in range(draw(st.integers(0, 8)))]
    addresses = st.ip_addresses(v=version).map(str)
    macs = st.none() | st.binary(min_size=6, max_size=6).map(lambda raw: raw.hex(":"))
    ports = st.integers(0, 65535)
    return StreamRequest(
        id=number,
        name=name,
        ip_version=version,
        frame_sizes=sizes,
        received_frame_sizes=sizes,
        src_ip=draw(addresses),
        dst_ip=draw(addresses),
        next_hop=right if direction == "forward" else left,
        src_mac=draw(macs),
        dst_mac=draw(macs),
        src_port=draw(ports),
        dst_port=draw(ports),
        ttl=draw(st.integers(1, 255)),
        dscp=draw(st.integers(0, 63)),
        flow_label=draw(st.integers(0, 2**20 - 1)) if version == 6 else 0,
        df=version == 4 and draw(st.booleans()),
        vary=fitting(wanted),
        enumeration_order=draw(st.sampled_from(ORDERS)),
    )


@st.composite
def directions(draw: st.DrawFn, name: DirectionName) -> DirectionRequest:
    first = 10 if name == "forward" else 20
    both = [draw(streams(name, first, "foreground"))]
    mix = draw(st.none() | st.sampled_from(MIXES))
    if mix:
        both.append(draw(streams(name, first + 1, "background")))
    return DirectionRequest(
        name=name,
        rate_fps=RATE_FPS,
        streams=both,
        mix=Mix(foreground=mix[0], of=mix[1]) if mix else None,
    )


@st.composite
def trials(draw: st.DrawFn) -> TrialRequest:
    names: list[DirectionName] = draw(
        st.sampled_from([["forward"], ["reverse"], ["forward", "reverse"]])
    )
    return TrialRequest(
        trial_id=draw(st.integers(1, 65535)),
        duration_ns=FRAMES * 10**9 // RATE_FPS,
        seed=draw(st.integers(0, 2**63 - 1)),
        directions=[draw(directions(name)) for name in names],
    )


def made_trials(count: int) -> list[TrialRequest]:
    """``count`` different trials, the same at every call."""
    made: list[TrialRequest] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(trials())
    def collect(trial: TrialRequest) -> None:
        made.append(trial)

    collect()
    return made


@dataclass(frozen=True)
class Expected:
    """A frame that a trial must contain: which one of which stream."""

    direction: DirectionRequest
    stream: StreamRequest
    number: int
    """In its stream; from 0."""
    place: int
    """In its direction; from 0."""
    between: bool
    """Due half an interval later, between those of the other direction."""

    @property
    def size(self) -> int:
        sizes = self.stream.frame_sizes
        return sizes[self.number % len(sizes)]

    @property
    def due_ns(self) -> int:
        halves = 2 * self.place + self.between
        return -(-halves * 10**9 // (2 * self.direction.rate_fps))

    def fixed(self) -> dict[FieldName, int]:
        """The fields as the request has them, before anything varies."""
        stream = self.stream
        sides: tuple[Side, Side] = ("left", "right")
        sender, receiver = sides if self.direction.name == "forward" else sides[::-1]
        fields: dict[FieldName, int] = {
            "src_mac": _mac(stream.src_mac or MACS[sender]),
            "dst_mac": _mac(stream.dst_mac or MACS[receiver]),
            "src_ip": int(ipaddress.ip_address(stream.src_ip)),
            "dst_ip": int(ipaddress.ip_address(stream.dst_ip)),
            "src_port": stream.src_port,
            "dst_port": stream.dst_port,
        }
        if stream.ip_version == 6:
            fields["flow_label"] = stream.flow_label
        return fields

    def shift(self, variation: FieldVariation) -> int:
        bits = field_bits(variation.field, self.stream.ip_version)
        return bits - variation.offset - variation.width

    def carried(self, variation: FieldVariation, seen: Seen) -> int:
        """The value that ``seen`` has where ``variation`` is."""
        value = seen.fields[variation.field] >> self.shift(variation)
        return value & ((1 << variation.width) - 1)

    def varied(self, seen: Seen) -> dict[FieldName, int]:
        """The fields as requested, but with the values that ``seen`` carries."""
        fields = self.fixed()
        for variation in self.stream.vary:
            shift = self.shift(variation)
            fields[variation.field] &= ~(((1 << variation.width) - 1) << shift)
            fields[variation.field] |= self.carried(variation, seen) << shift
        return fields

    def in_enumeration(self, seen: Seen) -> int:
        """Which combination ``seen`` carries; the first variation changes fastest."""
        place = 0
        for v in reversed(self.stream.vary):
            if v.mode == "enumerate":
                place = place * v.size + self.carried(v, seen) - v.min
        return place


def _mac(text: str) -> int:
    return int(text.replace(":", ""), 16)


def expected_frames(trial: TrialRequest, count: int) -> list[Expected]:
    """The first ``count`` frames of each direction, by the definitions."""
    return [
        frame for way in trial.directions for frame in _of_direction(trial, way, count)
    ]


def _of_direction(
    trial: TrialRequest, direction: DirectionRequest, count: int
) -> Iterator[Expected]:
    m, n = (direction.mix.foreground, direction.mix.of) if direction.mix else (1, 1)
    numbers = [0, 0]
    between = direction.name == "reverse" and len(trial.directions) == 2
    for place in range(min(count, trial.frames(direction))):
        index = 0 if place * m % n < m else 1
        stream = direction.streams[index]
        yield Expected(direction, stream, numbers[index], place, between)
        numbers[index] += 1
