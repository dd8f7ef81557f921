"""siitperf.conf and a command line as trials of the engine.

Which frames they send is that of papers 000 to 003; where dutperf does better, or
otherwise, docs/siitperf.md says it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pydantic import ValidationError

from dutperf.compat.command_line import Arguments, Phase1
from dutperf.compat.conf import (
    ENDS,
    LETTERS,
    Conf,
    ConfSide,
    Mode,
    Range,
    addresses_of,
)
from dutperf.errors import InputError
from dutperf.model.hosts import AddressSet, BitField, number
from dutperf.protocol.base import DirectionName, IpVersion, Side
from dutperf.protocol.port_messages import (
    AddressRange,
    NeighboursParams,
    PortNeighbours,
)
from dutperf.protocol.stream_messages import (
    DirectionRequest,
    EnumerationOrder,
    FieldVariation,
    Mix,
    StreamRequest,
    foreground_frames,
)
from dutperf.protocol.stream_parts import Learn, TupleOrder, Tuples
from dutperf.protocol.trial_messages import (
    Record,
    TagPlan,
    TrialRequest,
    series_interval_ns,
)

MS = 1_000_000
S = 1_000_000_000
SETTLE_NS = 100 * MS
"""After the next hops have answered; siitperf waits 2 s, and asks nobody."""

_SHORTER = 20  # bytes: an IPv4 header is as much shorter than one of IPv6
_NETWORK_BITS = 8
_NETWORK_PLACE: dict[IpVersion, int] = {4: 16, 6: 56}
_NONE: dict[IpVersion, str] = {4: "0.0.0.0", 6: "::"}  # noqa: S104 - no address
_FIXED_PORTS = (0xC020, 7)  # RFC 2544 C.2.6.4
_ORDERS: dict[Mode, EnumerationOrder] = {
    "increasing": "increasing",
    "decreasing": "decreasing",
    "random": "random",
}
_IDS: dict[DirectionName, int] = {"forward": 0, "reverse": 2}
_ANSWERS: dict[Mode, TupleOrder] = {
    "fixed": "first",
    "increasing": "increasing",
    "decreasing": "decreasing",
    "random": "random",
}

Gateways = dict[tuple[Side, IpVersion], str]
"""The device's own addresses, as far as a testbed or lab tells them."""


@dataclass(frozen=True)
class Requests:
    """What one command runs, in order: ``phase1`` of stateful ones, and the trial.

    Phase 1 is alone where neither direction is active.
    """

    phase1: TrialRequest | None
    main: TrialRequest | None


def trial_requests(
    conf: Conf, arguments: Arguments, gateways: Gateways, *, seed: int, first_id: int
) -> Requests:
    """The trials of one command.

    Args:
        conf: the file.
        arguments: the command line.
        gateways: who is asked for the MAC addresses that the file does not have.
        seed: of all that is drawn.
        first_id: of the first trial; tells its frames from those of earlier commands.

    Raises:
        InputError: the file and the command line do not fit each other.
    """
    phase1 = arguments.phase1
    if phase1 and phase1.entries == 1 and conf.responder_tuples != "fixed":
        raise conf.error("Responder-tuples", "must be 0 with one entry (M is 1)")
    make = _Maker(conf, arguments, gateways, seed)
    try:
        if arguments.phase1 is None:
            return Requests(None, make.main(first_id))
        main = make.main(first_id % 65535 + 1) if conf.active else None
        return Requests(make.phase1(first_id), main)
    except ValidationError as error:
        reason = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
        raise InputError(f"{conf.path}: {reason}") from None


def neighbours(
    conf: Conf, gateways: Gateways, *, background: bool = False
) -> NeighboursParams:
    """The tester answers for all its addresses, and asks whom a testbed tells.

    So the device knows the tester before the first frame, and the link is known to
    work. Of an IP version that no frame has, hosts do not vary: their range was made
    for the other one, and may hold the device's own address.
    """
    return NeighboursParams(
        ports=[
            PortNeighbours(
                port=name,
                own=list(_own(conf, name, gateways, background=background)),
                resolve=_asked(conf, name, gateways),
            )
            for name in conf.sides
        ]
    )


def _own(
    conf: Conf, name: Side, gateways: Gateways, *, background: bool
) -> Iterator[AddressRange]:
    """All addresses of a side but the device's, where a range goes over that."""
    side = conf.sides[name]
    for version, real in side.real.items():
        yield AddressRange(first=real)
        if version != side.version and not (background and version == 6):
            continue
        for field in _host_bits(side, version):
            for part in _around(
                AddressSet(real, (field,)), gateways.get((name, version))
            ):
                shift = part.bits - field.offset - field.width
                (bits,) = part.fields
                count = bits.max - bits.min + 1
                yield AddressRange(first=part.lowest, count=count, shift=shift)


def _around(hosts: AddressSet, device: str | None) -> list[AddressSet]:
    """``hosts`` without ``device``."""
    (bits,) = hosts.fields
    if device is None or not hosts.reaches(number(device)):
        return [hosts]
    place = AddressSet(device).value(bits)
    ends = ((bits.min, place - 1), (place + 1, bits.max))
    return [
        AddressSet(hosts.base, (bits._replace(min=least, max=most),))
        for least, most in ends
        if least <= most
    ]


def _asked(conf: Conf, name: Side, gateways: Gateways) -> list[str]:
    """Next hops of the versions that the side sends, background among them."""
    return [
        gateways[name, version]
        for version in dict.fromkeys((conf.sides[name].version, 6))
        if (name, version) in gateways and version in conf.sides[name].real
    ]


@dataclass(frozen=True)
class _Maker:
    conf: Conf
    arguments: Arguments
    gateways: Gateways
    seed: int

    def main(self, trial_id: int) -> TrialRequest:
        """The trial that the command is for; phase 2 of a stateful one."""
        given, phase1 = self.arguments, self.arguments.phase1
        timeout_ms = given.frame_timeout_ms
        goes_on = self.conf.initiating in self.conf.active
        return TrialRequest(
            trial_id=trial_id,
            duration_ns=given.duration_s * S,
            settle_ns=0 if phase1 else self._settle_ns,
            residual_wait_ns=given.timeout_ms * MS,
            seed=self.seed,
            frame_timeout_ns=timeout_ms * MS if timeout_ms else None,
            record=self._record(given.duration_s * S),
            learn=self._learn(phase1, keep=True) if phase1 and goes_on else None,
            not_before_ns=phase1.gap_ms * MS if phase1 else 0,
            directions=[
                self._direction(name, given.rate_fps, self._foreground(name))
                for name in self.conf.active
            ],
        )

    def phase1(self, trial_id: int) -> TrialRequest:
        """The initiator alone opens connections (RFC 9693 4.2)."""
        phase1 = self.arguments.phase1
        assert phase1  # noqa: S101 - of stateful files alone
        name = self.conf.initiating
        duration_ns = max(MS, round(phase1.frames * S / phase1.rate_fps))
        return TrialRequest(
            trial_id=trial_id,
            duration_ns=duration_ns,
            settle_ns=self._settle_ns,
            residual_wait_ns=phase1.timeout_ms * MS,
            seed=self.seed,
            record=Record(series_interval_ns=series_interval_ns(duration_ns)),
            learn=self._learn(phase1, keep=False),
            directions=[self._direction(name, phase1.rate_fps, self._opening(name))],
        )

    @property
    def _settle_ns(self) -> int:
        return SETTLE_NS if self.gateways else 0

    def _record(self, duration_ns: int) -> Record:
        given = self.arguments
        return Record(
            tags=TagPlan(first_ns=given.first_tag_s * S, count=given.tags)
            if given.tags
            else None,
            fine_delays=given.command == "pdv",
            series_interval_ns=series_interval_ns(duration_ns),
        )

    def _learn(self, phase1: Phase1, *, keep: bool) -> Learn:
        responder = ENDS[self.conf.initiating][1]
        return Learn(
            direction=self.conf.initiating,
            ip_version=self.conf.sides[responder].version,
            entries=phase1.entries,
            keep=keep,
        )

    def _direction(
        self, name: DirectionName, rate_fps: int, foreground: StreamRequest
    ) -> DirectionRequest:
        m, n = self.arguments.m, self.arguments.n
        streams = [foreground] if m else []
        if m < n:
            streams.append(self._background(name))
        mix = Mix(foreground=m, of=n) if 0 < m < n else None
        return DirectionRequest(name=name, rate_fps=rate_fps, streams=streams, mix=mix)

    def _foreground(self, name: DirectionName) -> StreamRequest:
        plain = self._plain(name)
        phase1 = self.arguments.phase1
        if phase1 is None:
            return plain
        if name != self.conf.initiating:
            return self._answers(plain, phase1)
        order = self._again
        if order is None:
            return plain
        opened = foreground_frames(phase1.frames, self.arguments.m, self.arguments.n)
        # Where phase 1 went round, four-tuples are fewer than its frames.
        count = min(opened, self.conf.combinations)
        tuples = Tuples(source="generated", count=count, order=order)
        return self._enumerated(plain, {"tuples": tuples})

    def _opening(self, name: DirectionName) -> StreamRequest:
        plain = self._plain(name)
        return self._enumerated(plain, {}) if self.conf.enumerates else plain

    def _answers(self, plain: StreamRequest, phase1: Phase1) -> StreamRequest:
        """What was learned; an entry that is empty must not fit by chance."""
        order = _ANSWERS[self.conf.responder_tuples]
        tuples = Tuples(source="learned", count=phase1.entries, order=order)
        changes = {"vary": [], "dst_port": 0, "tuples": tuples}
        return StreamRequest.model_validate(plain.model_dump() | changes)

    @property
    def _again(self) -> TupleOrder | None:
        """In which order phase 2 takes the four-tuples of phase 1; None: it does not.

        As the fields that were enumerated go on in phase 2: pseudorandom if one does.
        """
        conf = self.conf
        if not conf.enumerates:
            return None
        modes = {field.mode for field in conf.enumerated} - {"fixed"}
        for order in ("random", "increasing", "decreasing"):
            if order in modes:
                return _ANSWERS[order]
        return None

    def _enumerated(
        self, plain: StreamRequest, changes: dict[str, object]
    ) -> StreamRequest:
        """Ports or addresses in all their combinations; up and down they go round."""
        conf = self.conf
        order = next(
            _ORDERS[mode]
            for mode in (conf.enumerate_ports, conf.enumerate_addresses)
            if mode != "fixed"
        )
        data = plain.model_dump()
        vary = [
            field
            | ({"mode": "enumerate"} if self._is_enumerated(field["field"]) else {})
            for field in data["vary"]
        ]
        if conf.enumerate_ports != "fixed":
            ports = conf.directions[conf.initiating]
            # They are enumerated also if phase 2 has fixed ones.
            vary = [f for f in vary if f["field"] not in ("src_port", "dst_port")]
            vary = [
                *_enumerated_ports(ports.source_ports, "src_port"),
                *_enumerated_ports(ports.destination_ports, "dst_port"),
                *vary,
            ]
            data["src_port"] = ports.source_ports.least
            data["dst_port"] = ports.destination_ports.least
        data |= {"vary": vary, "enumeration_order": order} | changes
        return StreamRequest.model_validate(data)

    def _is_enumerated(self, field: str) -> bool:
        return (
            field in ("src_ip", "dst_ip") and self.conf.enumerate_addresses != "fixed"
        )

    def _plain(self, name: DirectionName) -> StreamRequest:
        """A responder may have no addresses: those that are learned replace them."""
        (_, source), (_, destination) = addresses_of(self.conf, name)
        none = _NONE[self.conf.sides[ENDS[name][0]].version]
        return self._stream(name, source or none, destination or none, background=False)

    def _background(self, name: DirectionName) -> StreamRequest:
        """IPv6 in any case, from real address to real address."""
        sender, receiver = (self.conf.sides[side] for side in ENDS[name])
        for side, own in zip(
            "LR" if name == "forward" else "RL", (sender, receiver), strict=True
        ):
            if 6 not in own.real:
                raise self.conf.error(
                    f"IPv6-{side}-Real", "is missing: background frames (m < n) need it"
                )
        return self._stream(name, sender.real[6], receiver.real[6], background=True)

    def _stream(
        self, name: DirectionName, source: str, destination: str, *, background: bool
    ) -> StreamRequest:
        conf = self.conf
        (sending, sender), (_, receiver) = (
            (side, conf.sides[side]) for side in ENDS[name]
        )
        version: IpVersion = 6 if background else sender.version
        arrives: IpVersion = 6 if background else receiver.version
        ports = conf.directions[name]
        return StreamRequest(
            id=_IDS[name] + background,
            name="background" if background else "foreground",
            ip_version=version,
            frame_sizes=[self._size(version)],
            received_frame_sizes=[self._size(arrives)],
            src_ip=source,
            dst_ip=destination,
            # With a MAC address of the file nobody is asked for it.
            next_hop=self._next_hop(sending, version, destination),
            src_mac=sender.tester_mac,
            dst_mac=sender.device_mac,
            src_port=_first_port(ports.source_ports, _FIXED_PORTS[0]),
            dst_port=_first_port(ports.destination_ports, _FIXED_PORTS[1]),
            vary=[
                *_port(ports.source_ports, "src_port"),
                *_port(ports.destination_ports, "dst_port"),
                *(b.variation("src_ip") for b in _host_bits(sender, version)),
                *(
                    b.variation("dst_ip")
                    for b in (
                        *_host_bits(receiver, version),
                        *_network_bits(receiver, version, destination),
                    )
                ),
            ],
        )

    def _next_hop(self, side: Side, version: IpVersion, destination: str) -> str:
        if self.conf.sides[side].device_mac:
            return destination
        letter = LETTERS[side]
        if version not in self.conf.sides[side].real:
            raise self.conf.error(
                f"MAC-{letter}-DUT",
                f"is missing, and without IPv{version}-{letter}-Real nobody can be "
                "asked for it",
            )
        known = self.gateways.get((side, version))
        if known is None:
            raise self.conf.error(
                f"MAC-{letter}-DUT",
                f"is missing, and no testbed tells the device's IPv{version} address "
                f"on the {side} to ask for it",
            )
        return known

    def _size(self, version: IpVersion) -> int:
        return self.arguments.ipv6_size - (_SHORTER if version == 4 else 0)


def _first_port(ports: Range, fixed: int) -> int:
    return ports.least if ports.varies else fixed


def _port(ports: Range, field: Literal["src_port", "dst_port"]) -> list[FieldVariation]:
    if ports.mode == "fixed":
        return []
    least, most = ports.least, ports.most
    return [FieldVariation(field=field, width=16, min=least, max=most, mode=ports.mode)]


def _host_bits(side: ConfSide, version: IpVersion) -> list[BitField]:
    hosts = side.hosts
    if hosts.mode == "fixed":
        return []
    return [BitField(8 * side.offset[version], 16, hosts.least, hosts.most, hosts.mode)]


def _enumerated_ports(
    ports: Range, field: Literal["src_port", "dst_port"]
) -> list[dict[str, object]]:
    return [
        FieldVariation(
            field=field, width=16, min=ports.least, max=ports.most, mode="enumerate"
        ).model_dump()
    ]


def _network_bits(
    receiver: ConfSide, version: IpVersion, destination: str
) -> list[BitField]:
    """RFC 2544 12: from the address's own network on; from 0 where that is too far."""
    count = receiver.networks
    if count == 1:
        return []
    bits = BitField(_NETWORK_PLACE[version], _NETWORK_BITS, 0, count - 1, "random")
    own = AddressSet(destination).value(bits)
    first = own if own + count <= 2**_NETWORK_BITS else 0
    return [bits._replace(min=first, max=first + count - 1)]
