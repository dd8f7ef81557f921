"""Which neighbours of the device the daemon is: one for each port and IP version."""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dutperf.config.cell_checks import speaks, told_from
from dutperf.config.flows import directions, flows, side_versions
from dutperf.config.testbed import Testbed
from dutperf.model.cell import Cell
from dutperf.model.hosts import AddressSet, BitField
from dutperf.packets import Network
from dutperf.protocol.base import IpVersion, RoutingDaemonProtocol, Side

# Which networks the device has to know for a cell's frames, and where they lie.


_HOST_BITS: dict[IpVersion, int] = {4: 8, 6: 64}


def networks_behind(testbed: Testbed, cell: Cell) -> dict[Side, list[Network]]:
    """Of each side those (/24 or /64) to which frames go that arrive there; in order.

    Raises:
        InputError: as ``flows``.
    """
    found: dict[Side, list[Network]] = {"left": [], "right": []}
    for direction in directions(cell):
        for flow in flows(testbed, cell, direction):
            found[flow.receiver] += networks(flow.destination, flow.version)
    return {side: list(dict.fromkeys(listed)) for side, listed in found.items()}


def networks(addresses: AddressSet, version: IpVersion) -> Iterator[Network]:
    """Of /24 or /64, all in which an address lies; some twice."""
    bits = addresses.bits - _HOST_BITS[version]
    values = [[*_values(field, bits)] for field in addresses.fields]
    for chosen in itertools.product(*values):
        address = addresses.with_values(list(chosen))
        yield ipaddress.ip_network(f"{address}/{bits}", strict=False)


def _values(field: BitField, network_bits: int) -> Iterator[int]:
    """One for each network that ``field`` makes."""
    host_bits = max(0, field.offset + field.width - network_bits)
    for network in range(field.min >> host_bits, (field.max >> host_bits) + 1):
        yield network << host_bits


@dataclass(frozen=True, order=True)
class Session:
    """The daemon as the device's neighbour behind one port, for one IP version.

    Attributes:
        side: the port's.
        version: of the routes.
        protocol: by which they are told.
    """

    side: Side
    version: IpVersion
    protocol: RoutingDaemonProtocol

    @property
    def name(self) -> str:
        """In the daemon's configuration and answers."""
        return f"{self.side}_{self.protocol}{self.version}"

    @property
    def words(self) -> str:
        """What people call it."""
        if self.protocol == "ospf":
            return "OSPFv2" if self.version == 4 else "OSPFv3"
        return f"BGP for IPv{self.version}"


@dataclass(frozen=True)
class Host:
    """The tester on one side, as the daemon is it.

    Attributes:
        addresses: its own with prefix lengths, of IPv6 a link-local one, too.
        mtu: of the link.
    """

    addresses: tuple[str, ...]
    mtu: int


Told = Mapping[Session, Sequence[Network]]
"""What each session tells."""


def sessions_of(cells: Sequence[Cell]) -> list[Session]:
    """Those that the cells need together: they stay from cell to cell."""
    sides: tuple[Side, ...] = ("left", "right")
    return sorted(
        {
            Session(side, version, protocol)
            for cell in cells
            if (protocol := speaks(cell)) is not None
            for side in sides
            for version in side_versions(cell, side)
        }
    )


def told_in(testbed: Testbed, cell: Cell) -> dict[Session, list[Network]]:
    """What a trial of ``cell`` needs; nothing where no daemon speaks.

    Raises:
        InputError: as ``flows``.
    """
    protocol = speaks(cell)
    if protocol is None:
        return {}
    told: dict[Session, list[Network]] = {}
    for side, networks in networks_behind(testbed, cell).items():
        for network in networks:
            session = Session(side, network.version, protocol)
            told.setdefault(session, []).append(network)
    return told


def hosts_of(testbed: Testbed, sessions: Sequence[Session]) -> dict[Side, Host]:
    """The tester on each side that has a session."""
    return {
        side: Host(tuple(_addresses(testbed, side)), testbed.sides[side].mtu)
        for side in sorted({session.side for session in sessions})
    }


def _addresses(testbed: Testbed, side: Side) -> Iterator[str]:
    own = testbed.sides[side]
    if ipv4 := own.ip(4):
        yield f"{ipv4.address}/{testbed.routing.prefix_length}"
    if ipv6 := own.ip(6):
        yield f"{ipv6.address}/64"
        yield f"{told_from(testbed, side, 6)}/64"
