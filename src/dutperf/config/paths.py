"""Several ports on a side (RFC 2544 16): which frames go from which port to which one.

    out X, Y, Z from A;  X, Y, Z from B;  X, Y, Z from C      what each input sends
    A-X  B-X  C-X  A-Y  B-Y  C-Y  A-Z  B-Z  C-Z               frame by frame

Frames take the paths in turn, so each input is offered the same rate, all inputs follow
the same sequence, and as many frames in a row as there are ports go to one output.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from dutperf.config.flows import Flow, directions, ends, flows, own_hosts
from dutperf.config.testbed import Testbed
from dutperf.model.fields import KeyedError, Keys, dotted
from dutperf.model.frames import translates
from dutperf.model.hosts import AddressSet, BitField, number
from dutperf.model.specs import OutageSpec
from dutperf.model.traffic import PortPattern
from dutperf.protocol.base import DirectionName, Side, port_name
from dutperf.protocol.stream_parts import differing_bits

if TYPE_CHECKING:  # compat has no use for it, and its commands start fast
    from dutperf.model.cell import Cell


class PathFlows(NamedTuple):
    """The streams of one direction on one path, as ``flows`` has them."""

    sent_by: int
    received_by: int
    flows: list[Flow]


def port_paths(pairs: int, pattern: PortPattern | None) -> list[tuple[int, int]]:
    """Which port sends and which receives, in the order in which frames take them.

    ``pairs``: ports on a side. ``pattern``: mesh, from each port to each one of the
    other side, is the default.
    """
    if pattern == "pairs":
        return [(port, port) for port in range(pairs)]
    return [(k % pairs, k // pairs) for k in range(pairs**2)]


def path_flows(
    testbed: Testbed, cell: Cell, direction: DirectionName
) -> list[PathFlows]:
    """The streams on each path of a direction; of one port on a side there is one.

    Raises:
        InputError: as ``flows``.
    """
    return [
        PathFlows(
            sent_by,
            received_by,
            flows(_as_sent(testbed, direction, path), cell, direction),
        )
        for path in port_paths(testbed.pairs, cell.traffic.port_pattern)
        for sent_by, received_by in [path]
    ]


def _as_sent(
    testbed: Testbed, direction: DirectionName, path: tuple[int, int]
) -> Testbed:
    left, right = path if direction == "forward" else path[::-1]
    return testbed.between(left, right)


def check_paths(testbed: Testbed, cell: Cell) -> None:
    """Refuse what cannot be measured by several ports on a side.

    Raises:
        KeyedError: connections, translation, routes that would have to be told by each
            port, an outage, which the ports that go on would hide, or addresses that
            vary where the ports' differ.
    """
    if testbed.pairs == 1:
        return
    for keys, is_asked, words in (
        (("stateful",), cell.stateful, "connections are opened"),
        (("ip",), translates(cell.ip), "translation is measured"),
        (("traffic", "routes"), cell.traffic.routes != "static", "routes are told"),
        (("procedure",), isinstance(cell.spec, OutageSpec), "outages are measured"),
    ):
        if is_asked:
            raise KeyedError(
                keys,
                f"{words} by one port on each side, and testbed {testbed.name} has "
                f"{testbed.pairs}",
                "leave it out, or take more_ports out of the testbed",
            )
    for direction in directions(cell):
        paths = path_flows(testbed, cell, direction)
        for end in ("source", "destination"):
            _check_variation(cell, paths, direction, end)
    _check_gateways(testbed, cell)


def _check_variation(
    cell: Cell,
    paths: list[PathFlows],
    direction: DirectionName,
    end: Literal["source", "destination"],
) -> None:
    """The same bits vary on all paths, by the same values, and tell none apart."""
    sender, receiver = ends(direction)
    side = sender if end == "source" else receiver
    for stream in range(len(paths[0].flows)):
        ports = {
            path.sent_by if end == "source" else path.received_by: getattr(
                path.flows[stream], end
            )
            for path in paths
        }
        first: AddressSet = ports[0]
        for port, own in ports.items():
            for one, other in zip(first.fields, own.fields, strict=True):
                if one != other:
                    raise _varies(
                        cell, side, port, first, own, one, "but not by the same values"
                    )
                differ = differing_bits([first.base, own.base])
                if differ & one.variation("src_ip").mask(first.bits):
                    raise _varies(
                        cell,
                        side,
                        port,
                        first,
                        own,
                        one,
                        "and are what tells the ports apart",
                    )


def _varies(
    cell: Cell,
    side: Side,
    port: int,
    first: AddressSet,
    own: AddressSet,
    bits: BitField,
    why: str,
) -> KeyedError:
    hosts = cell.traffic.addresses.of(side) is not None and bits == first.fields[0]
    last = bits.offset + bits.width - 1
    return KeyedError(
        ("traffic", "addresses" if hosts else "networks", side),
        f"bits {bits.offset} to {last} vary of {first.base} ({side}) and {own.base} "
        f"({port_name(side, port)}), {why}",
        "give the side's ports addresses that are the same in these bits and differ "
        "in others, or let fewer or other bits vary",
    )


def _check_gateways(testbed: Testbed, cell: Cell) -> None:
    """No port's hosts are the device at another one."""
    for port in testbed.tester_ports:
        view = testbed.between(port.number, port.number)
        for hosts in own_hosts(view, cell, port.side):
            for name, gateway in _gateways(testbed, hosts):
                if hosts.fields and hosts.reaches(number(gateway)):
                    raise KeyedError(
                        ("traffic", "addresses", port.side),
                        f"the addresses of {port.label} from {hosts.lowest} to "
                        f"{hosts.highest} include {gateway}, the device under test "
                        f"itself ({name})",
                        "begin above it, or use another min",
                    )


def _gateways(testbed: Testbed, hosts: AddressSet) -> Iterator[tuple[str, str]]:
    own = {
        real.address
        for p in testbed.tester_ports
        if (real := p.config.ip(hosts.version))
    }
    for port in testbed.tester_ports:
        real = port.config.ip(hosts.version)
        if real and real.gateway and real.gateway not in own:
            keys: Keys = (*port.keys, f"ipv{hosts.version}", "gateway")
            yield dotted(keys), real.gateway
