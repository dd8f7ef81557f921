"""Streams as TRex describes them, and what the engine is told for them.

A packet is whatever ``bytes()`` makes of it: Scapy's, or bytes. A field engine is read
into fields that vary; MAC addresses that the packet does not name are the ports'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from dutperf.api.frames import FrameTemplate, Load
from dutperf.errors import InputError
from dutperf.protocol.stream_messages import FieldName, FieldVariation, VariationMode

_NO_MAC = "00:00:00:00:00:00"
_OPERATIONS: dict[str, VariationMode] = {
    "inc": "increasing",
    "dec": "decreasing",
    "random": "random",
}
_MOST_SIZES = 64
"""Of a sequence of sizes."""

Operation = Literal["inc", "dec", "random"]


def refused(what: str, hint: str = "") -> InputError:
    """What the interface asks for and cannot be done exactly."""
    return InputError(f"STL: {what}", hint, "STL")


def _only(where: str, given: dict[str, Any]) -> None:
    """Further arguments of TRex's: named, unless they ask for nothing."""
    for name, value in given.items():
        if value not in (None, False, 0, 1, ""):
            raise refused(f"{where}({name}={value!r}) is not there")


class STLTXCont:
    """Sends until the end. Rates of its own are parts of the port's."""

    total_pkts: int | None = None

    def __init__(
        self,
        bps_L1: float | None = None,  # noqa: N803 - TRex's names
        bps_L2: float | None = None,  # noqa: N803
        pps: float | None = None,
        percentage: float | None = None,
    ) -> None:
        given = {"pps": pps, "percentage": percentage, "bps": bps_L1 or bps_L2}
        known = {name: value for name, value in given.items() if value is not None}
        if len(known) > 1:
            raise refused("a mode has one rate", "pps, percentage or bps_L1")
        self.pps = pps
        self.percentage = percentage
        self.bps_l1, self.bps_l2 = bps_L1, bps_L2
        if not known:
            self.pps = 1.0

    def rate_fps(self, frame_size: int, line_bps: float) -> float:
        """Frames a second of frames of that size with FCS, on such a line."""
        wire_bits = (frame_size + 20) * 8
        if self.pps is not None:
            return self.pps
        if self.percentage is not None:
            return line_bps * self.percentage / 100 / wire_bits
        if self.bps_l1 is not None:
            return self.bps_l1 / wire_bits
        return (self.bps_l2 or 0) / (frame_size * 8)


class STLTXSingleBurst(STLTXCont):
    """Sends so many packets, and ends."""

    def __init__(self, total_pkts: int = 1, **rates: float) -> None:
        super().__init__(**rates)
        if total_pkts < 1:
            raise refused(f"STLTXSingleBurst(total_pkts={total_pkts})", "1 or more")
        self.total_pkts = total_pkts


@dataclass(frozen=True)
class STLFlowStats:
    """Packets of the stream are counted apart."""

    pg_id: int


class STLFlowLatencyStats(STLFlowStats):
    """So are their delays. All frames have the time in them, so it costs nothing."""


# Field engines.


@dataclass(frozen=True)
class STLVmFlowVar:
    """A variable that takes other values from packet to packet."""

    name: str
    min_value: int | str = 0
    max_value: int | str = 255
    size: int = 4
    op: Operation = "inc"
    init_value: int | None = None
    step: int = 1


@dataclass(frozen=True)
class STLVmWrFlowVar:
    """Where a variable stands: ``IP.src``, ``UDP.sport``, ... or an offset."""

    fv_name: str
    pkt_offset: str | int
    offset_fixup: int = 0
    add_val: int = 0
    is_big: bool = True


@dataclass(frozen=True)
class STLVmFixIpv4:
    """Checksums: they always hold."""

    offset: str | int = "IP"


class STLScVmRaw:
    """A field engine as a list of its steps."""

    def __init__(self, list_of_commands: Iterable[object] = (), **more: Any) -> None:  # noqa: ANN401 - TRex's
        _only("STLScVmRaw", more)
        self.commands = list(list_of_commands)


class STLVM(STLScVmRaw):
    """The same, step by step."""

    def var(self, name: str, **keys: Any) -> None:  # noqa: ANN401 - of STLVmFlowVar
        """A variable."""
        self.commands.append(STLVmFlowVar(name, **keys))

    def write(self, fv_name: str, pkt_offset: str | int, **keys: Any) -> None:  # noqa: ANN401
        """Where it stands."""
        self.commands.append(STLVmWrFlowVar(fv_name, pkt_offset, **keys))

    def fix_chksum(self, offset: str | int = "IP") -> None:
        """They always hold."""
        self.commands.append(STLVmFixIpv4(offset))


class STLPktBuilder:
    """A packet, and its field engine."""

    def __init__(
        self,
        pkt: object = None,
        vm: STLScVmRaw | Sequence[object] | None = None,
        pkt_buffer: bytes | None = None,
        **more: Any,  # noqa: ANN401 - TRex's
    ) -> None:
        _only("STLPktBuilder", more)
        frame, self._named = _frame(pkt_buffer if pkt is None else pkt)
        self._template = FrameTemplate.of(frame)
        self._vm = vm if isinstance(vm, STLScVmRaw) or vm is None else STLScVmRaw(vm)

    def template(self) -> FrameTemplate:
        """What the engine is told."""
        keys = {
            name: value if name in self._named else None
            for name, value in (
                ("src_mac", self._template.src_mac),
                ("dst_mac", self._template.dst_mac),
            )
        }
        vary = tuple(_variations(self._vm, self._template)) if self._vm else ()
        fields = {**vars(self._template), **keys, "vary": vary}
        return FrameTemplate(**fields)


def _frame(packet: object) -> tuple[bytes, set[str]]:
    """The packet's bytes, and which MAC addresses it names itself.

    Scapy would ask the machine's own links for those that it does not.
    """
    if isinstance(packet, bytes | bytearray):
        return bytes(packet), {"src_mac", "dst_mac"}
    fields = getattr(packet, "fields", None)
    if not isinstance(fields, dict) or not hasattr(packet, "copy"):
        raise refused(f"a packet is Scapy's or bytes, not {type(packet).__name__}")
    copy, named = packet.copy(), set()
    for key, name in (("src", "src_mac"), ("dst", "dst_mac")):
        if fields.get(key) is None:
            setattr(copy, key, _NO_MAC)
        else:
            named.add(name)
    return bytes(copy), named


def _variations(vm: STLScVmRaw, of: FrameTemplate) -> Iterator[FieldVariation]:
    variables: dict[str, STLVmFlowVar] = {}
    for command in vm.commands:
        match command:
            case STLVmFlowVar():
                variables[command.name] = command
            case STLVmWrFlowVar():
                if command.fv_name not in variables:
                    raise refused(f"the field engine has no {command.fv_name!r}")
                yield _variation(variables[command.fv_name], command, of)
            case STLVmFixIpv4():
                pass  # they always hold
            case _:
                name = type(command).__name__
                raise refused(f"a field engine with {name} is not there")


_FIELDS: dict[str, tuple[FieldName, int]] = {
    "IP.src": ("src_ip", 32),
    "IP.dst": ("dst_ip", 32),
    "IPv6.src": ("src_ip", 128),
    "IPv6.dst": ("dst_ip", 128),
    "UDP.sport": ("src_port", 16),
    "UDP.dport": ("dst_port", 16),
}


def _variation(
    variable: STLVmFlowVar, write: STLVmWrFlowVar, of: FrameTemplate
) -> FieldVariation:
    where = write.pkt_offset
    if not isinstance(where, str) or where not in _FIELDS:
        raise refused(
            f"the field engine writes to {where!r}", f"it can: {', '.join(_FIELDS)}"
        )
    if not write.is_big or write.add_val:
        raise refused("STLVmWrFlowVar with add_val or is_big=False is not there")
    if variable.step != 1 or variable.init_value not in (None, variable.min_value):
        raise refused(f"the variable {variable.name!r} has a step or an init_value")
    if variable.op not in _OPERATIONS:
        raise refused(f"the operation {variable.op!r}", ", ".join(_OPERATIONS))
    name, bits = _FIELDS[where]
    if where.startswith("IP") and (bits == 32) != (of.ip_version == 4):
        raise refused(f"the field engine writes {where}, of another IP version")
    width = 8 * variable.size
    offset = 8 * write.offset_fixup
    if not 0 <= offset <= bits - width:
        raise refused(f"{variable.size} bytes at {where} are more than it has")
    least, most = (_value(v) for v in (variable.min_value, variable.max_value))
    if not 0 <= least <= most < 1 << width:
        raise refused(
            f"the variable {variable.name!r} has values from {least} to {most} in "
            f"{variable.size} bytes"
        )
    return FieldVariation(
        field=name,
        offset=offset,
        width=width,
        min=least,
        max=most,
        mode=_OPERATIONS[variable.op],
    )


def _value(value: int | str) -> int:
    if isinstance(value, int):
        return value
    parts = value.split(".")
    if len(parts) != 4 or not all(part.isdecimal() for part in parts):
        raise refused(f"{value!r} is no number and no IPv4 address")
    return int.from_bytes(bytes(int(part) for part in parts), "big")


# Streams of a port.


class STLStream:
    """Packets of one kind on a port."""

    def __init__(
        self,
        name: str | None = None,
        packet: STLPktBuilder | None = None,
        mode: STLTXCont | None = None,
        flow_stats: STLFlowStats | None = None,
        **more: Any,  # noqa: ANN401 - TRex's
    ) -> None:
        isg = more.pop("isg", 0)
        if isg:
            # TRex's examples spread streams of a mix by it; frames of a mix are
            # interleaved evenly here.
            more["isg"] = None
        _only("STLStream", more)
        if packet is None:
            raise refused("a stream without a packet")
        self.name = name
        self.packet = packet
        self.mode = mode or STLTXCont()
        self.flow_stats = flow_stats


class STLProfile:
    """Some streams."""

    def __init__(self, streams: STLStream | Sequence[STLStream]) -> None:
        self.streams = [streams] if isinstance(streams, STLStream) else list(streams)

    def get_streams(self) -> list[STLStream]:
        """These."""
        return self.streams


@dataclass
class PortStreams:
    """What a port is to send: all of its streams, as one load."""

    streams: list[STLStream] = field(default_factory=list)

    def load(self, times: Fraction, line_bps: float) -> Load:
        """The load with all rates multiplied.

        Raises:
            InputError: these streams are not what the engine can send at once.
        """
        templates = [stream.packet.template() for stream in self.streams]
        rates = [
            _simple(stream.mode.rate_fps(template.frame_size, line_bps)) * times
            for stream, template in zip(self.streams, templates, strict=True)
        ]
        total = sum(rates)
        if total < 1:
            raise refused(f"a port with {float(total):g} packets a second", "1 or more")
        first = templates[0]
        if len(templates) == 1:
            return Load([first], round(total))
        if all(each.sized(first.frame_size) == first for each in templates):
            self._check_uncounted()
            return Load([first], round(total), sizes=list(_in_turn(templates, rates)))
        if len(templates) > 2:
            raise refused(
                f"{len(templates)} streams of a port that differ in more than size",
                "two are sent, one between the other's frames",
            )
        share = rates[0] / total
        if share.denominator > 10**6:
            raise refused("two rates without a common measure", "take rounder ones")
        return Load(templates, round(total), share=share.as_integer_ratio())

    def _check_uncounted(self) -> None:
        if any(stream.flow_stats for stream in self.streams):
            raise refused(
                "flow_stats of streams that differ in size only",
                "they are sent as one stream of several sizes",
            )


def _in_turn(
    templates: Sequence[FrameTemplate], rates: Sequence[Fraction]
) -> Iterator[int]:
    """Sizes one after the other, each as often as its rate says, spread evenly."""
    least = min(rates)
    counts = [rate / least for rate in rates]
    scale = 1
    for count in counts:
        scale = scale * count.denominator // _common(scale, count.denominator)
    wholes = [int(count * scale) for count in counts]
    if sum(wholes) > _MOST_SIZES:
        raise refused(
            f"a mix of {sum(wholes)} packets", f"at most {_MOST_SIZES} until it repeats"
        )
    due = sorted(
        ((place + 0.5) / whole, number)
        for number, whole in enumerate(wholes)
        for place in range(whole)
    )
    for _, number in due:
        yield templates[number].frame_size


def _simple(rate_fps: float) -> Fraction:
    return Fraction(rate_fps).limit_denominator(10**6)


def _common(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a
