"""Legal things that a user should know of before frames are sent."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator

from dutperf.config.address_set import AddressSet
from dutperf.config.cell import Cell
from dutperf.config.flows import directions, own_hosts, side_versions
from dutperf.config.hooks_needed import hook_notices
from dutperf.config.paths import path_flows
from dutperf.config.phase2 import stateful_notices
from dutperf.config.problem import dotted
from dutperf.config.side import port_keys
from dutperf.config.sizes import sizes_in
from dutperf.config.testbed import RingPort, Testbed
from dutperf.protocol import IpVersion

_BENCHMARK_NETWORKS = {
    4: (ipaddress.ip_network("198.18.0.0/15"), "RFC 2544 C.2.2"),
    6: (ipaddress.ip_network("2001:2::/48"), "RFC 5180 8"),
}
_TRANSLATED = ipaddress.ip_network("64:ff9b::c612:0/111")  # 198.18.0.0/15 by RFC 6052
_FRAGMENTED_ABOVE = 1298
"""Frame with a packet that, translated, no longer fits an IPv6 MTU of 1280 bytes."""


def notices(testbed: Testbed, cells: Iterable[Cell]) -> list[str]:
    """Addresses outside the benchmarking networks, frames that get fragmented, phases.

    Those networks: RFC 2544 C.2.2, RFC 5180 8; also within the well-known prefix of
    translators (RFC 6052). Only what ``cells`` use is named, and once.
    """
    found: dict[str, None] = {}
    for cell in cells:
        found |= dict.fromkeys(_outside(testbed, cell))
        found |= dict.fromkeys(_fragmented(cell))
        if _has_device(testbed):
            found |= dict.fromkeys(stateful_notices(cell))
            found |= dict.fromkeys(hook_notices(testbed, cell))
    return list(found)


def _has_device(testbed: Testbed) -> bool:
    """Crossed ports have none that could forget or keep connections."""
    return not isinstance(testbed.left.port, RingPort)


def _outside(testbed: Testbed, cell: Cell) -> Iterator[str]:
    for key, addresses in _used(testbed, cell):
        network, rfc = _BENCHMARK_NETWORKS[addresses.version]
        if addresses.within(network) or _translates_benchmark(addresses):
            continue
        shown = addresses.lowest
        if addresses.fields:
            shown += f" to {addresses.highest}"
        yield (
            f"{key} {shown} is outside {network}, the network reserved for "
            f"benchmarking ({rfc}): make sure that no frame can leave the test setup"
        )


def _used(testbed: Testbed, cell: Cell) -> Iterator[tuple[str, AddressSet]]:
    """Key and addresses of everything that is in the cell's frames, or asked for."""
    for port in testbed.tester_ports:
        name, view = dotted(port.keys), testbed.between(port.number, port.number)
        for hosts in own_hosts(view, cell, port.side):
            yield f"{name}.ipv{hosts.version}.address", hosts
        for version in side_versions(cell, port.side):
            real = port.config.ip(version)
            if real and real.gateway:
                yield f"{name}.ipv{version}.gateway", AddressSet(real.gateway)
    for direction in directions(cell):
        for path in path_flows(testbed, cell, direction):
            for flow in path.flows:
                virtual = flow.version != flow.received_version
                kind = "virtual" if virtual else "address"
                name = dotted(port_keys(flow.receiver, path.received_by))
                yield f"{name}.ipv{flow.version}.{kind}", flow.destination


def _translates_benchmark(addresses: AddressSet) -> bool:
    return addresses.version == 6 and addresses.within(_TRANSLATED)


def _fragmented(cell: Cell) -> Iterator[str]:
    """RFC 7915 4: without DF a translator cuts what may not fit an IPv6 link."""
    translated: set[IpVersion] = {6, 4}
    if cell.ip in translated or cell.traffic.df:
        return
    if max(sizes_in(cell, 6)) > _FRAGMENTED_ABOVE:
        yield (
            f"{cell.id}: IPv4 frames without DF whose IPv6 packet is longer than 1280 "
            "bytes may be fragmented by a translator (RFC 7915 4), which counts as "
            "loss: set traffic.df (--df), or the device's lowest IPv6 MTU"
        )
