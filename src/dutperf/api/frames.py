"""Frames by their own headers, for who describes them otherwise than a campaign does.

What the interfaces of other testers have in common: a frame as a template, fields that
vary, and a rate for each side. Of such a frame all is kept but the payload, which is
the engine's: by its tag each frame is accounted for.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from dutperf.api.traffic import Trial, check_duration, check_whole
from dutperf.errors import InputError
from dutperf.model.hosts import AddressSet, BitField
from dutperf.procedures.trials import Ask
from dutperf.protocol.base import DirectionName, IpVersion, Side
from dutperf.protocol.port_messages import AddressRange
from dutperf.protocol.stream_messages import (
    DirectionRequest,
    FieldVariation,
    Mix,
    RateStep,
    StreamRequest,
)
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.run.streaming import OpenStream, check_rate

_SENDERS: dict[DirectionName, Side] = {"forward": "left", "reverse": "right"}
_IDS: dict[DirectionName, int] = {"forward": 0, "reverse": 2}
_ETHERNET, _FCS, _TAG = 14, 4, 18
_TYPES: dict[int, IpVersion] = {0x0800: 4, 0x86DD: 6}
_UDP = 17
_LEAST_S = 1e-6
"""A burst of one frame ends at once."""
_HEADERS: dict[IpVersion, int] = {4: 20, 6: 40}
_DF, _PIECE = 0x4000, 0x3FFF


@dataclass(frozen=True)
class FrameTemplate:
    """One kind of frames: headers, size, and which of their fields vary.

    Attributes:
        frame_size: bytes with FCS.
        src_mac, dst_mac: None: the port's own, and its next hop's.
        vary: fields that take other values from frame to frame.
    """

    frame_size: int
    ip_version: IpVersion
    src_ip: str
    dst_ip: str
    src_port: int
    dst_port: int
    src_mac: str | None = None
    dst_mac: str | None = None
    ttl: int = 64
    dscp: int = 0
    df: bool = False
    flow_label: int = 0
    vary: tuple[FieldVariation, ...] = field(default=())

    @classmethod
    def of(cls, frame: bytes, where: str = "packet") -> FrameTemplate:
        """The template that ``frame`` is, without its FCS.

        Raises:
            InputError: it is none; names what the engine cannot send.
        """
        try:
            return _parsed(frame, where)
        except struct.error:
            raise _cannot(where, "ends before its headers do", "") from None

    def sized(self, frame_size: int) -> FrameTemplate:
        """The same with another size."""
        return replace(self, frame_size=frame_size)


def _cannot(where: str, what: str, hint: str) -> InputError:
    return InputError(f"{where}: {what}", hint, where)


def _parsed(frame: bytes, where: str) -> FrameTemplate:
    (ether_type,) = struct.unpack_from("!H", frame, 12)
    version = _TYPES.get(ether_type)
    if version is None:
        raise _cannot(
            where,
            f"is of Ethernet type 0x{ether_type:04x}",
            "IPv4 or IPv6 right behind the MAC addresses; tags are keys of a testbed",
        )
    ip, headers = frame[_ETHERNET:], _HEADERS[version]
    keys: dict[str, Any]
    if version == 4:
        first, tos, length, _, flags, ttl, protocol = struct.unpack_from("!BBHHHBB", ip)
        if first != 0x45 or flags & _PIECE:
            raise _cannot(
                where, "has IPv4 options or is a piece", "send a whole, plain packet"
            )
        _check_ecn(where, tos & 3)
        source, destination = ip[12:16], ip[16:20]
        keys = {"ttl": ttl, "dscp": tos >> 2, "df": bool(flags & _DF)}
    else:
        word, length, protocol, ttl = struct.unpack_from("!IHBB", ip)
        length += headers
        _check_ecn(where, word >> 20 & 3)
        source, destination = ip[8:24], ip[24:40]
        keys = {
            "ttl": ttl,
            "dscp": word >> 22 & 0x3F,
            "flow_label": word & 0xFFFFF,
        }
    if protocol != _UDP:
        raise _cannot(
            where,
            f"is of IP protocol {protocol}",
            "UDP is what the tester accounts for, frame by frame",
        )
    src_port, dst_port = struct.unpack_from("!HH", ip, headers)
    if len(ip) < length or length < headers + 8 + _TAG:
        raise _cannot(
            where,
            f"has {length - headers - 8} bytes of payload",
            f"the tester's tag takes {_TAG}: {headers + 8 + _TAG + _ETHERNET} bytes "
            "without FCS at least",
        )
    return FrameTemplate(
        frame_size=_ETHERNET + length + _FCS,
        ip_version=version,
        src_ip=str(ipaddress.ip_address(source)),
        dst_ip=str(ipaddress.ip_address(destination)),
        src_port=src_port,
        dst_port=dst_port,
        src_mac=frame[6:12].hex(":"),
        dst_mac=frame[:6].hex(":"),
        **keys,
    )


def _check_ecn(where: str, bits: int) -> None:
    if bits:
        raise _cannot(where, f"has the ECN bits {bits:02b}", "frames are sent with 00")


@dataclass(frozen=True)
class Load:
    """What one direction sends: one template or two, and how often.

    Attributes:
        templates: the first one, and perhaps another between its frames.
        rate_fps: of all together.
        share: of the first: so many of so many frames.
        sizes: of the first in turn, instead of its own.
        steps: bursts and pauses, again and again; ``rate_fps`` is the highest of them.
    """

    templates: Sequence[FrameTemplate]
    rate_fps: int
    share: tuple[int, int] = (1, 1)
    sizes: Sequence[int] = ()
    steps: Sequence[RateStep] = ()


Loads = Mapping[DirectionName, Load]


def own_addresses(loads: Loads) -> dict[Side, list[AddressRange]]:
    """Whom the tester answers for on each side: who sends there."""
    return {
        _SENDERS[name]: [
            each for template in load.templates for each in _sources(template)
        ]
        for name, load in loads.items()
    }


def _sources(template: FrameTemplate) -> Iterator[AddressRange]:
    varying = [each for each in template.vary if each.field == "src_ip"]
    if not varying:
        yield AddressRange(first=template.src_ip)
    for each in varying:
        bits = BitField(each.offset, each.width, each.min, each.max, "random")
        hosts = AddressSet(template.src_ip, (bits,))
        yield AddressRange(
            first=hosts.lowest,
            count=each.max - each.min + 1,
            shift=hosts.bits - each.offset - each.width,
        )


class OpenFrames:
    """Ports that are ready for frames of templates; ``Tester.frames`` opens it."""

    def __init__(
        self, stream: OpenStream, next_hops: Mapping[Side, dict[int, str]]
    ) -> None:
        self._stream = stream
        self._next_hops = next_hops

    @property
    def max_rate_fps(self) -> int:
        """Of a direction: the media's, for frames of 64 bytes."""
        return self._stream.limit.rate_fps

    def stop(self) -> None:
        """The trial that runs sends no more, and counts what it has sent."""
        self._stream.stop_piece()

    def trial(self, loads: Loads, duration_s: float) -> Trial:
        """Send, wait for late frames, judge.

        Raises:
            InputError: the engine cannot send that; nothing was sent.
            SetupError: device or engine are not as needed.
        """
        check_duration(duration_s, _LEAST_S)
        if not loads:
            raise _cannot("loads", "are empty", "give forward, reverse or both")
        for name, load in loads.items():
            check_whole(f"{name}.rate_fps", load.rate_fps)
            check_rate(load.rate_fps, self._stream.limit, f"{name}.rate_fps")
        directions = [self._direction(name, load) for name, load in loads.items()]

        def shape(request: TrialRequest) -> TrialRequest:
            changed = request.model_dump() | {"directions": directions}
            try:
                return TrialRequest.model_validate(changed)
            except ValidationError as error:
                raise _refused("frames", error) from None

        ask = Ask(
            self._stream.cell,
            max(load.rate_fps for load in loads.values()),
            duration_s=duration_s,
            shape=shape,
            attempts=1,
        )
        return Trial.of(self._stream.trials.run(ask))

    def _direction(self, name: DirectionName, load: Load) -> DirectionRequest:
        m, n = load.share
        try:
            streams = [
                self._stream_of(name, number, template, load)
                for number, template in enumerate(load.templates)
            ]
            return DirectionRequest(
                name=name,
                rate_fps=load.rate_fps,
                steps=list(load.steps),
                streams=streams,
                mix=Mix(foreground=m, of=n) if len(streams) > 1 else None,
            )
        except ValidationError as error:
            raise _refused(name, error) from None

    def _stream_of(
        self, name: DirectionName, number: int, of: FrameTemplate, load: Load
    ) -> StreamRequest:
        sizes = list(load.sizes) if load.sizes and not number else [of.frame_size]
        hop = self._next_hops[_SENDERS[name]].get(of.ip_version)
        if hop is None and of.dst_mac is None:
            raise _cannot(
                name,
                f"the testbed has no IPv{of.ip_version} gateway on the "
                f"{_SENDERS[name]}, and the frame no destination MAC address",
                "give it one",
            )
        return StreamRequest(
            id=_IDS[name] + number,
            name="background" if number else "foreground",
            ip_version=of.ip_version,
            frame_sizes=sizes,
            received_frame_sizes=sizes,
            src_ip=of.src_ip,
            dst_ip=of.dst_ip,
            next_hop=hop or of.dst_ip,
            src_mac=of.src_mac,
            dst_mac=of.dst_mac,
            src_port=of.src_port,
            dst_port=of.dst_port,
            ttl=of.ttl,
            dscp=of.dscp,
            df=of.df,
            flow_label=of.flow_label,
            vary=list(of.vary),
        )


def _refused(where: str, error: ValidationError) -> InputError:
    first = error.errors()[0]
    keys = ".".join(str(part) for part in first["loc"])
    said = str(first["msg"]).removeprefix("Value error, ")
    return _cannot(".".join(filter(None, (where, keys))), said, "")
