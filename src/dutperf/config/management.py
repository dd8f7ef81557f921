"""Management queries beside the stream (RFC 2544 11.2): whom they are for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dutperf.config.flows import directions, ends
from dutperf.config.problem import KeyedError
from dutperf.config.versions import version_of
from dutperf.protocol import Side

if TYPE_CHECKING:
    from dutperf.config.cell import Cell
    from dutperf.config.testbed import Testbed

_LONGEST_S = 3600
_KEYS = ("traffic", "management")


def asked_at(testbed: Testbed, cell: Cell) -> tuple[Side, str, str]:
    """The port that asks, its address, and the device's there.

    Raises:
        KeyedError: the testbed has no such address, or it is the tester's own.
    """
    side, far = ends(directions(cell)[0])
    version = version_of(cell.ip, side)
    addresses = testbed.sides[side].ip(version)
    if addresses is None or addresses.gateway is None:
        raise KeyedError(
            _KEYS,
            f"asks the device at {side}.ipv{version}.gateway, which the testbed has "
            "not",
            "give that address, or leave the queries out",
        )
    beyond = testbed.sides[far].ip(version)
    if beyond is not None and addresses.gateway == beyond.address:
        raise KeyedError(
            _KEYS,
            f"asks the device at {side}.ipv{version}.gateway, and {addresses.gateway} "
            f"is the tester's own {far} side: no device is there",
            "leave the queries out, or give the device's address",
        )
    return side, addresses.address, addresses.gateway


def check_management(testbed: Testbed, cell: Cell) -> None:
    """Refuse queries that cannot be asked.

    Raises:
        KeyedError: nobody is there to be asked, or the cell's trials cannot have any.
    """
    if not cell.traffic.management:
        return
    if cell.stateful:
        raise KeyedError(
            _KEYS,
            "is not for stateful tests, whose trials are phases of others",
            "leave it out, or measure without connections",
        )
    if cell.spec.trial_duration_s > _LONGEST_S:
        raise KeyedError(
            _KEYS,
            f"is for trials of up to {_LONGEST_S:,} s, a query a second",
            "shorten trial_duration_s (--trial-duration), or leave it out",
        )
    asked_at(testbed, cell)
