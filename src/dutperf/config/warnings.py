"""Legal things that a user should know of before frames are sent."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence

from dutperf.catalogue import PROCEDURES
from dutperf.config.cell_checks import hook_notices
from dutperf.config.deviations import hasty, is_rfc2544_latency, of_further_goals
from dutperf.config.flows import directions, own_hosts, side_versions
from dutperf.config.paths import path_flows
from dutperf.config.phase2 import stateful_notices
from dutperf.config.side import RingPort, port_keys
from dutperf.config.sizes import captured_words, cell_versions, sizes_in
from dutperf.config.testbed import Testbed
from dutperf.model.cell import Cell
from dutperf.model.fields import dotted
from dutperf.model.frames import translates
from dutperf.model.hosts import AddressSet
from dutperf.model.specs import ConnectionRateSpec, LatencySpec
from dutperf.protocol.base import IpVersion
from dutperf.standards import Conformance, Deviation

_BENCHMARK_NETWORKS = {
    4: (ipaddress.ip_network("198.18.0.0/15"), "RFC 2544 C.2.2"),
    6: (ipaddress.ip_network("2001:2::/48"), "RFC 5180 8"),
}
_TRANSLATED = ipaddress.ip_network("64:ff9b::c612:0/111")  # 198.18.0.0/15 by RFC 6052
_FRAGMENTED_ABOVE = 1298
"""Frame with a packet that, translated, no longer fits an IPv6 MTU of 1280 bytes."""


def notices(
    testbed: Testbed, cells: Iterable[Cell], *, in_lab: bool = False
) -> list[str]:
    """Addresses outside the benchmarking networks, frames that get fragmented, phases.

    And what is sent of a capture.

    Those networks: RFC 2544 C.2.2, RFC 5180 8; also within the well-known prefix of
    translators (RFC 6052); no frame can leave a lab. Only what ``cells`` use is named,
    and once.
    """
    found: dict[str, None] = {}
    cells, has_device = list(cells), _has_device(testbed)
    for cell in cells:
        if not in_lab:
            found |= dict.fromkeys(_outside(testbed, cell))
        found |= dict.fromkeys(_fragmented(cell))
        if cell.traffic.pcap:
            found[captured_words(cell)] = None
        if has_device:
            found |= dict.fromkeys(hook_notices(testbed, cell))
    return [*found, *(stateful_notices(cells) if has_device else ())]


def _has_device(testbed: Testbed) -> bool:
    """Crossed ports have none that could forget or keep connections."""
    return not isinstance(testbed.left.port, RingPort)


def _outside(testbed: Testbed, cell: Cell) -> Iterator[str]:
    for key, addresses in _used(testbed, cell):
        network, rfc = _BENCHMARK_NETWORKS[addresses.version]
        is_group = ipaddress.ip_address(addresses.base).is_multicast
        if addresses.within(network) or _translates_benchmark(addresses) or is_group:
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
    if cell.ip in translated or cell.traffic.df or cell.traffic.fragmented:
        return
    if max(sizes_in(cell, 6)) > _FRAGMENTED_ABOVE:
        yield (
            f"{cell.id}: IPv4 frames without DF whose IPv6 packet is longer than 1280 "
            "bytes may be fragmented by a translator (RFC 7915 4), which counts as "
            "loss: set traffic.df (--df), the device's lowest IPv6 MTU, or "
            "traffic.fragmented (--fragmented), which puts them together"
        )


# Which RFC a result conforms to, how far, and if not, why: RFC 2544 5.
#
# Unconditionally: every MUST and SHOULD is met. Conditionally: every MUST is. A result
# that is defined otherwise (a tolerated loss, a frame timeout) is another measure, and
# neither. What is measured in haste, or only bounded, is a look: nobody should quote it
# as the RFC's result, whatever its recommendations allow. What an RFC says in its plain
# text counts as a SHOULD here, because nobody who leaves it out would call that
# unconditional.
#
# Only what one cell can know is judged. How the device was set up, whether enough
# sizes, modifiers and both kinds of address are tested, is in the hands of who runs
# campaigns.


_PHASE2 = "4.7"
"""Of RFC 9693: a procedure of another RFC on connections that were opened."""
_ALL = ("RFC 1242", "RFC 2544")
_BUILT_ON: dict[str, tuple[str, ...]] = {
    "RFC 8219": (*_ALL, "RFC 5180", "RFC 8219"),
    "RFC 9693": ("RFC 9693",),
}
"""Requirements of these count, of others' procedures ``_ALL`` and their own; that of
RFC 4814 for random ports is its own.
"""


def conformance_of(
    cell: Cell, found: Sequence[Deviation], *, valid: bool, bound: bool = False
) -> Conformance:
    """What may be said of a result of ``cell``.

    Args:
        cell: what was measured.
        found: ``deviations(cell)``, and what else turned out.
        valid: whether the tester vouches for the result.
        bound: whether that is only a lower bound.
    """
    rfc = _rfc(cell)
    section = PROCEDURES[cell.procedure].sections.get(rfc, _PHASE2)
    if isinstance(cell.spec, ConnectionRateSpec) and cell.spec.stateful.alpha:
        section = "4.6"
    built_on = _BUILT_ON.get(rfc, (*_ALL, rfc))
    if cell.phase2:
        built_on += _BUILT_ON["RFC 8219"]
    name = f"{rfc} {section}"
    others = of_further_goals(cell)
    counted = [
        s for s in found if s not in others and any(r in s.rfc for r in built_on)
    ]
    defined = [s for s in counted if s.level == "definition"]
    broken = [s for s in counted if s.level == "MUST"]
    if defined:
        told = _listed([s.actual for s in defined])
        of_it = ", of which this is a lower bound" if bound else ""
        said = f"another measure than that of {name}{of_it}: {told}"
        return Conformance(rfc, section, "other_measure", said)
    if not valid:
        said = f"not compliant with {name}: the tester cannot vouch for the result"
        return Conformance(rfc, section, "none", said)
    if looks := [*hasty(cell), *(["a lower bound"] if bound else [])]:
        said = f"exploratory run, not a result by {name}: {', '.join(looks)}"
        return Conformance(rfc, section, "none", said)
    if broken:
        told = _listed([f"{s.requirement} ({s.rfc}, MUST): {s.actual}" for s in broken])
        return Conformance(rfc, section, "none", f"not compliant with {name}: {told}")
    if counted:
        sections = _listed(list(dict.fromkeys(s.rfc for s in counted)))
        said = (
            f"conditionally compliant with {name}: every MUST is met, not every "
            f"recommendation ({sections})"
        )
        return Conformance(rfc, section, "conditional", said)
    said = f"unconditionally compliant with {name}"
    return Conformance(rfc, section, "unconditional", said)


def _rfc(cell: Cell) -> str:
    """Whose procedure it is: of a translator, of IPv6 frames, or the one of 1999."""
    if cell.stateful and not cell.spec.tcp:
        return "RFC 9693"
    sections = PROCEDURES[cell.procedure].sections
    replaced = "RFC 9004" in sections or "RFC 6201" in sections
    if "RFC 2544" not in sections or replaced:
        return next(iter(sections))
    if isinstance(cell.spec, LatencySpec) and not cell.spec.rfc2544_latency:
        return "RFC 8219"
    if translates(cell.ip) and not is_rfc2544_latency(cell):
        return "RFC 8219"
    if 6 in cell_versions(cell) and not translates(cell.ip):
        return "RFC 5180"
    return "RFC 2544"


def _listed(texts: Sequence[str]) -> str:
    return "; ".join(texts)
