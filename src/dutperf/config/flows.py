"""Which addresses the frames of a cell carry: paper 002, Table 1, and paper 003.

The source is the sender's own address of the version that it sends. The destination is
the receiver's own address if it receives the same version, else its virtual address in
the sender's version, which the device under test translates. Background frames are not
translated: from own address to own address.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dutperf.config.address_set import AddressSet
from dutperf.config.placement import destinations, hosts
from dutperf.config.problem import KeyedError, Keys
from dutperf.config.testbed import RealAddress, Testbed
from dutperf.config.versions import IpVersions, version_of
from dutperf.protocol import DirectionName, IpVersion, Side

if TYPE_CHECKING:  # compat has no use for it, and its commands start fast
    from dutperf.config.cell import Cell

StreamName = Literal["foreground", "background", "beside"]

_ENDS: dict[DirectionName, tuple[Side, Side]] = {
    "forward": ("left", "right"),
    "reverse": ("right", "left"),
}


@dataclass(frozen=True)
class Flow:
    """Addresses of one stream; ``received_version`` is after the DUT.

    With ``next_hop_mac`` nobody is asked for ``next_hop``, which may be anybody then.
    """

    name: StreamName
    sender: Side
    receiver: Side
    version: IpVersion
    received_version: IpVersion
    source: AddressSet
    destination: AddressSet
    next_hop: str
    next_hop_mac: str | None


def directions(cell: Cell) -> list[DirectionName]:
    """The directions that carry frames."""
    return ["forward", "reverse"] if cell.direction == "both" else [cell.direction]


def ends(direction: DirectionName) -> tuple[Side, Side]:
    """The side that sends, and the one that receives."""
    return _ENDS[direction]


def senders(cell: Cell) -> set[Side]:
    """The sides from which the tester sends the cell's frames."""
    return {ends(direction)[0] for direction in directions(cell)}


def flows(testbed: Testbed, cell: Cell, direction: DirectionName) -> list[Flow]:
    """The streams of one direction: foreground, and what is beside it if anything is.

    Raises:
        InputError: the testbed lacks an address, or a varying field does not fit one.
    """
    sender, receiver = _ENDS[direction]
    names: list[StreamName] = ["foreground"]
    if cell.traffic.has_background:
        names.append("background")
    if cell.traffic.beside:
        names.append("beside")
    return [_flow(testbed, cell, name, sender, receiver) for name in names]


def stream_version(cell: Cell, name: StreamName, side: Side) -> IpVersion:
    """IP version of a stream's frames on ``side`` of the device under test."""
    if name == "background":
        return cell.traffic.background_ip
    return version_of(cell.ip, side)


def side_versions(cell: Cell, side: Side) -> list[IpVersion]:
    """All IP versions of the frames on ``side``."""
    versions = {stream_version(cell, "foreground", side)}
    if cell.traffic.has_background:
        versions.add(cell.traffic.background_ip)
    return sorted(versions)


def own_hosts(testbed: Testbed, cell: Cell, side: Side) -> Iterator[AddressSet]:
    """The addresses that the tester has on ``side``, one set an IP version.

    Raises:
        InputError: as ``flows``.
    """
    for version in side_versions(cell, side):
        real = _real(testbed, cell, side, version)
        if testbed.sides[side].translation:  # customer edges are behind it
            yield AddressSet(real.address)
        else:
            yield hosts(testbed, cell.traffic, side, real.address)


def _flow(
    testbed: Testbed, cell: Cell, name: StreamName, sender: Side, receiver: Side
) -> Flow:
    version = stream_version(cell, name, sender)
    received_version = stream_version(cell, name, receiver)
    side = testbed.sides[sender]
    real = _real(testbed, cell, sender, version).address
    source = side.edge if side.translation and side.edge else real
    # The receiver is there in any case: the DUT has to find it on its link.
    target = _real(testbed, cell, receiver, received_version).address
    translated = version != received_version
    if translated:
        target = _virtual(testbed, cell, receiver, version)
    sources = hosts(testbed, cell.traffic, sender, source)
    if name == "beside" and cell.traffic.spoofed_percent:
        sources = AddressSet(source)
    if translated and cell.stateful and cell.stateful.initiator == receiver:
        # All its hosts are behind one address, the device's own.
        destination = AddressSet(target)
    else:
        destination = destinations(testbed, cell.traffic, receiver, target)
    return Flow(
        name=name,
        sender=sender,
        receiver=receiver,
        version=version,
        received_version=received_version,
        source=sources,
        destination=destination,
        next_hop=side.next_hop(version) or destination.base,
        next_hop_mac=side.next_hop_mac,
    )


def _real(testbed: Testbed, cell: Cell, side: Side, version: IpVersion) -> RealAddress:
    real = testbed.sides[side].ip(version)
    if real is None:
        keys: Keys = ("ip",)
        asked, way_out = _named(cell.ip), f"take {cell.ip} out of ip"
        if version != version_of(cell.ip, side):
            keys = ("traffic", "background_ip")
            asked = f"IPv{version} background"
            way_out = "use another background_ip (--background-ip)"
        raise KeyedError(
            keys,
            f"{asked} is asked for, but testbed {testbed.name} has no IPv{version} "
            f"addresses on the {side} side",
            f"add the key {side}.ipv{version} with address (the tester) and gateway "
            f"(the device under test) to the testbed, or {way_out}",
        )
    return real


def _named(ip: IpVersions) -> str:
    return ip if isinstance(ip, str) else f"IPv{ip}"


def _virtual(testbed: Testbed, cell: Cell, side: Side, version: IpVersion) -> str:
    virtual = testbed.sides[side].virtual(version)
    if virtual is None:
        raise KeyedError(
            ("ip",),
            f"{cell.ip} sends IPv{version} to the {side} side, which receives IPv"
            f"{version_of(cell.ip, side)}, but testbed {testbed.name} does not say "
            f"which IPv{version} address stands for it",
            f"add the key {side}.ipv{version}.virtual: the address that the device "
            f"under test translates to {side}.ipv{version_of(cell.ip, side)}.address",
        )
    return virtual
