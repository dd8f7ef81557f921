"""Which addresses the frames of a cell carry: paper 002, Table 1, and paper 003.

The source is the sender's own address of the version that it sends. The destination is
the receiver's own address if it receives the same version, else its virtual address in
the sender's version, which the device under test translates. Background frames are not
translated: from own address to own address.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from dutperf.config.address_set import AddressSet
from dutperf.config.campaign import Cell
from dutperf.config.placement import destinations, hosts
from dutperf.config.testbed import RealAddress, Testbed
from dutperf.config.versions import version_of
from dutperf.engine.protocol import DirectionName, IpVersion, Side
from dutperf.errors import InputError

StreamName = Literal["foreground", "background"]

_ENDS: dict[DirectionName, tuple[Side, Side]] = {
    "forward": ("left", "right"),
    "reverse": ("right", "left"),
}


@dataclass(frozen=True)
class Flow:
    """Addresses of one stream; ``received_version`` is after the DUT."""

    name: StreamName
    sender: Side
    receiver: Side
    version: IpVersion
    received_version: IpVersion
    source: AddressSet
    destination: AddressSet
    next_hop: str


def directions(cell: Cell) -> list[DirectionName]:
    """The directions that carry frames."""
    return ["forward", "reverse"] if cell.direction == "both" else [cell.direction]


def flows(testbed: Testbed, cell: Cell, direction: DirectionName) -> list[Flow]:
    """The streams of one direction: foreground, and background if there is any.

    Raises:
        InputError: the testbed lacks an address, or a varying field does not fit one.
    """
    sender, receiver = _ENDS[direction]
    names: list[StreamName] = ["foreground"]
    if cell.traffic.has_background:
        names.append("background")
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
        yield hosts(testbed, cell.traffic, side, real.address)


def _flow(
    testbed: Testbed, cell: Cell, name: StreamName, sender: Side, receiver: Side
) -> Flow:
    version = stream_version(cell, name, sender)
    received_version = stream_version(cell, name, receiver)
    source = _real(testbed, cell, sender, version)
    # The receiver is there in any case: the DUT has to find it on its link.
    target = _real(testbed, cell, receiver, received_version).address
    if version != received_version:
        target = _virtual(testbed, cell, receiver, version)
    return Flow(
        name=name,
        sender=sender,
        receiver=receiver,
        version=version,
        received_version=received_version,
        source=hosts(testbed, cell.traffic, sender, source.address),
        destination=destinations(testbed, cell.traffic, receiver, target),
        next_hop=source.gateway,
    )


def _real(testbed: Testbed, cell: Cell, side: Side, version: IpVersion) -> RealAddress:
    real = testbed.sides[side].ip(version)
    if real is None:
        raise InputError(
            f"cell {cell.id}: IPv{version} is sent and received on the {side}, but "
            f"testbed {testbed.name} has no IPv{version} addresses on the {side} side",
            f"add the key {side}.ipv{version} with address (the tester's) and gateway "
            f"(the DUT's) to the testbed{_way_out(cell, version)}",
        )
    return real


def _way_out(cell: Cell, version: IpVersion) -> str:
    if cell.ip == version:
        return f", or take {version} out of ip"
    if cell.traffic.has_background and cell.traffic.background_ip == version:
        return ", or use another background_ip (--background-ip)"
    return ""


def _virtual(testbed: Testbed, cell: Cell, side: Side, version: IpVersion) -> str:
    virtual = testbed.sides[side].virtual(version)
    if virtual is None:
        raise InputError(
            f"cell {cell.id}: the {side} side does not speak IPv{version}, and testbed "
            f"{testbed.name} does not say how IPv{version} senders address it",
            f"add the key {side}.ipv{version}.virtual: the IPv{version} address that "
            f"the device under test translates to the {side} side's own",
        )
    return virtual
