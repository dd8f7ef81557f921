"""Which networks the device has to know for a cell's frames, and where they lie."""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Iterator

from dutperf.config.address_set import AddressSet, BitField
from dutperf.config.cell import Cell
from dutperf.config.flows import directions, flows
from dutperf.config.testbed import Testbed
from dutperf.packets.rip import Network
from dutperf.protocol import IpVersion, Side

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
