"""Whether a cell's frames go through the tunnels of its testbed."""

from __future__ import annotations

from dutperf.config.cell import Cell
from dutperf.config.flows import senders, side_versions
from dutperf.config.problem import KeyedError
from dutperf.config.testbed import Testbed
from dutperf.config.versions import version_of
from dutperf.protocol import Side


def check_tunnels(testbed: Testbed, cell: Cell) -> None:
    """Check that what each side sends may be inside its outer headers, if it has any.

    Raises:
        InputError: names the key that does not go with them.
    """
    _check_spoofed(testbed, cell)
    for name, side in testbed.sides.items():
        own = side.encapsulation
        key = f"{name}.{'encapsulation' if own else 'translation'}"
        if side.map_rule:
            _check_customers(cell, name, key)
        if side.translation and not _is_translated(cell, name):
            raise KeyedError(
                ("ip",),
                f"{key} of testbed {testbed.name} needs IPv6 on that side and IPv4 on "
                f"the other one, not {cell.ip}",
                f"set ip: {'6-4' if name == 'left' else '4-6'}",
            )
        if own or side.translation:
            _check_streams(cell, key)
        for version in side_versions(cell, name):
            if own and not own.carries(version):
                raise KeyedError(
                    ("ip",),
                    f"{key} of testbed {testbed.name} is {own.kind}, and {cell.ip} has "
                    f"IPv{version} there",
                    "choose an ip whose packets are inside, or another kind",
                )


def _check_streams(cell: Cell, key: str) -> None:
    for name, given in (
        ("mix", cell.traffic.has_background),
        ("fragmented", cell.traffic.fragmented),
    ):
        if given:
            raise KeyedError(
                ("traffic", name),
                f"does not go with {key}, which all test frames of that side have, "
                "whole",
                f"leave out traffic.{name}, or {key}",
            )


def _is_translated(cell: Cell, name: Side) -> bool:
    other: Side = "right" if name == "left" else "left"
    return version_of(cell.ip, name) == 6 and version_of(cell.ip, other) == 4


def _check_spoofed(testbed: Testbed, cell: Cell) -> None:
    if not cell.traffic.spoofed_percent:
        return
    for name in senders(cell):
        rule = testbed.sides[name].map_rule
        if rule is None or not rule.psid_bits:
            raise KeyedError(
                ("traffic", "spoofed_percent"),
                f"needs customer edges that share addresses on the {name} side, and "
                f"testbed {testbed.name} has none there",
                f"give the testbed {name}.encapsulation.map or {name}.translation.map, "
                "with more ea_bits than the IPv4 suffix has",
            )


def _check_customers(cell: Cell, side: Side, key: str) -> None:
    """What a MAP rule says of addresses and ports nothing else may say."""
    traffic = cell.traffic
    for keys, given in (
        (("traffic", "addresses", side), traffic.addresses.of(side) is not None),
        (("traffic", "networks", side), traffic.networks.of(side) > 1),
        (("traffic", "flows"), traffic.flows is not None),
        (("stateful",), cell.stateful is not None),
    ):
        if given:
            raise KeyedError(
                keys,
                f"does not go with {key}.map: its rule says which addresses and ports "
                "its customer edges have",
                f"leave out {'.'.join(keys)}, or {key}.map",
            )
