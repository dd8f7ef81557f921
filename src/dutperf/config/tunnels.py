"""Whether a cell's frames go through the tunnels of its testbed."""

from __future__ import annotations

from dutperf.config.cell import Cell
from dutperf.config.flows import side_versions
from dutperf.config.problem import KeyedError
from dutperf.config.testbed import Testbed
from dutperf.protocol import Side


def check_tunnels(testbed: Testbed, cell: Cell) -> None:
    """Check that what each side sends may be inside its outer headers, if it has any.

    Raises:
        InputError: names the key that does not go with them.
    """
    for name, side in testbed.sides.items():
        own = side.encapsulation
        if own is None:
            continue
        key = f"{name}.encapsulation"
        traffic = cell.traffic
        if own.map:
            _check_customers(cell, name, key)
        for name_of_it, given in (
            ("mix", traffic.has_background),
            ("fragmented", traffic.fragmented),
        ):
            if given:
                raise KeyedError(
                    ("traffic", name_of_it),
                    f"does not go with {key}: all test frames of that side are inside "
                    "its outer headers, whole",
                    f"leave out traffic.{name_of_it}, or {key}",
                )
        for version in side_versions(cell, name):
            if not own.carries(version):
                raise KeyedError(
                    ("ip",),
                    f"{key} of testbed {testbed.name} is {own.kind}, and {cell.ip} has "
                    f"IPv{version} there",
                    "choose an ip whose packets are inside, or another kind",
                )


def _check_customers(cell: Cell, side: Side, key: str) -> None:
    """What a MAP rule says of addresses and ports nothing else may say."""
    traffic = cell.traffic
    for keys, given in (
        (("traffic", "addresses", side), traffic.addresses.of(side) is not None),
        (("traffic", "networks", side), traffic.networks.of(side) > 1),
        (("stateful",), cell.stateful is not None),
    ):
        if given:
            raise KeyedError(
                keys,
                f"does not go with {key}.map: its rule says which addresses and ports "
                "its customer edges have",
                f"leave out {'.'.join(keys)}, or {key}.map",
            )
