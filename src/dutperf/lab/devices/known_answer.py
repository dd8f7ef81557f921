"""``known-answer``: a device of our own that does exactly what it is told.

    tester                             dut
    198.18.0.2     left  == memif == left  198.18.0.1      2001:2::1
    198.19.0.2     right == memif == right 198.19.0.1      2001:2:0:8000::1

dutperf-refdut (docs/known-answer.md) is a router between two ports in shared memory:
no kernel, no wire and no driver is between the engine and the answer. It loses, delays
and reorders as its behaviour says, and keeps an account of every frame.

``known-answer-veth`` is the same behind the kernel's wires: what a path through sockets
changes is seen beside it. ``known-answer-mtus`` has a left link of 9,198 bytes and cuts
what is too long for the right one of 1,500.

``known-answer-2x2`` has two ports on each side, and forwards by the destination to one
of the other side's (``two_by_two``).

``known-answer-nat44``, ``-nat64``, ``-nat66`` and ``-nat46`` are the same program as a
stateful gateway (RFC 9693) with the private side on the left:

    10.0.0.2  2001:2::2  left == 10.0.0.1    2001:2::1
                                 198.19.0.1  2001:2:0:8000::1 == right  198.19.0.2 ...

Its table has a million entries and refuses more; ``dutperf lab set`` with another
``nat`` changes that.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dutperf.config.encapsulation import SideEncapsulation
from dutperf.config.hooks import Hook, Hooks
from dutperf.config.side import (
    Ipv4Side,
    Ipv6Side,
    MemifPort,
    PortKeys,
    SideConfig,
    SideTranslation,
)
from dutperf.lab import asking
from dutperf.lab.devices.device import LabDevice, end_name, lab_side
from dutperf.lab.devices.two_by_two import TWO_BY_TWO, second_port
from dutperf.lab.refdut_socket import control_socket
from dutperf.lab.state import StateFile
from dutperf.protocol import Side


def _end(side: Side, number: int = 0, *, mtu: int = 1500) -> MemifPort:
    socket = StateFile().dut_directory / end_name(side, number)
    return MemifPort(memif=str(socket), mtu=mtu)


def memif_side(
    side: Side,
    ipv4: Ipv4Side,
    ipv6: Ipv6Side | None,
    *,
    mtu: int = 1500,
    more_ports: Sequence[PortKeys] = (),
    encapsulation: SideEncapsulation | None = None,
    translation: SideTranslation | None = None,
) -> SideConfig:
    """The tester's end of the device's shared memory, and the addresses there."""
    port = _end(side, mtu=mtu)
    return SideConfig(
        port=port,
        ipv4=ipv4,
        ipv6=ipv6,
        more_ports=list(more_ports),
        encapsulation=encapsulation,
        translation=translation,
    )


def _asked(*command: str) -> Hook:
    socket = str(control_socket(StateFile().dut_directory))
    program = [sys.executable, "-I", "-S", asking.__file__, socket]
    return Hook(command=[*program, *command], timeout_s=600)


ACCOUNT = _asked()

_LEFT = (
    Ipv4Side(address="198.18.0.2", gateway="198.18.0.1"),
    Ipv6Side(address="2001:2::2", gateway="2001:2::1"),
)
_RIGHT = (
    Ipv4Side(address="198.19.0.2", gateway="198.19.0.1"),
    Ipv6Side(address="2001:2:0:8000::2", gateway="2001:2:0:8000::1"),
)

KNOWN_ANSWER = LabDevice(
    name="known-answer",
    description="dutperf-refdut, a router that does exactly what it is told",
    addresses={
        "left": ("198.18.0.1/24", "2001:2::1/64"),
        "right": ("198.19.0.1/24", "2001:2:0:8000::1/64"),
    },
    left=memif_side("left", *_LEFT),
    right=memif_side("right", *_RIGHT),
    answers=True,
    hooks=Hooks(after_trial=[ACCOUNT]),
)

KNOWN_ANSWER_2X2 = replace(
    KNOWN_ANSWER,
    name="known-answer-2x2",
    description="dutperf-refdut, a router that does exactly what it is told, two ports "
    "on each side",
    addresses=TWO_BY_TWO,
    left=memif_side("left", *_LEFT, more_ports=[second_port("left", _end("left", 1))]),
    right=memif_side(
        "right", *_RIGHT, more_ports=[second_port("right", _end("right", 1))]
    ),
)

KNOWN_ANSWER_VETH = replace(
    KNOWN_ANSWER,
    name="known-answer-veth",
    description="dutperf-refdut, a router that does exactly what it is told, on "
    "packet sockets",
    left=lab_side("left", *_LEFT),
    right=lab_side("right", *_RIGHT),
)

KNOWN_ANSWER_MTUS = replace(
    KNOWN_ANSWER,
    name="known-answer-mtus",
    description="dutperf-refdut, a router that fragments for its right link",
    left=memif_side("left", *_LEFT, mtu=9198),
    behaviour={"forward": {"fragments": {"mtu": 1500}}},
)

NAT_CONNECTIONS = 1_000_000
_PUBLIC_IPV4, _PUBLIC_IPV6 = "198.19.0.1", "2001:2:0:8000::1"
_PREFIX_64 = "64:ff9b::/96"
_PREFIX_46 = "2001:2:0:8000::/96"  # 2001:2:0:8000::c613:42 is 198.19.0.66


def gateway(
    kind: str,
    left: dict[str, str],
    right: dict[str, str],
    prefix: str | None = None,
    responder: str = "2001:2:0:8000::2",
    ports: Mapping[str, Any] | None = None,
) -> LabDevice:
    """A stateful gateway, with the private side on the left.

    Args:
        kind: nat44, nat64, nat66 or nat46.
        left: its virtual addresses, by ``ipv4`` and ``ipv6``: what it is outside.
        right: likewise, of the responder.
        prefix: of 96 bits, for IPv4 addresses in IPv6.
        responder: its IPv6 address.
        ports: of the public address, as ``public`` of a behaviour says; all from 1024.
    """
    nat: dict[str, Any] = {
        "kind": kind,
        "public": {"first_address": left[f"ipv{kind[-1]}"], **(ports or {})},
        "table": {"entries": NAT_CONNECTIONS},
    }
    if prefix:
        nat["prefix"] = prefix
    behaviour: Mapping[str, Any] = {"nat": nat}
    return LabDevice(
        name=f"known-answer-{kind}",
        description=f"dutperf-refdut, a {kind.upper()} gateway that does as told",
        addresses={
            "left": ("10.0.0.1/8", "2001:2::1/64"),
            "right": ("198.19.0.1/24", "2001:2:0:8000::1/64"),
        },
        left=memif_side(
            "left",
            Ipv4Side(address="10.0.0.2", gateway="10.0.0.1", virtual=left.get("ipv4")),
            Ipv6Side(
                address="2001:2::2", gateway="2001:2::1", virtual=left.get("ipv6")
            ),
        ),
        right=memif_side(
            "right",
            Ipv4Side(
                address="198.19.0.2", gateway="198.19.0.1", virtual=right.get("ipv4")
            ),
            Ipv6Side(
                address=responder,
                gateway="2001:2:0:8000::1",
                virtual=right.get("ipv6"),
            ),
        ),
        answers=True,
        behaviour=behaviour,
        hooks=Hooks(
            bulk_delete=_asked("delete"),
            table_count=_asked("connections"),
            after_trial=[_asked("connections"), ACCOUNT],
            is_alive=_asked("connections"),
        ),
    )


GATEWAYS = (
    gateway("nat44", {"ipv4": _PUBLIC_IPV4}, {}),
    gateway("nat64", {"ipv4": _PUBLIC_IPV4}, {"ipv6": "64:ff9b::c613:2"}, _PREFIX_64),
    gateway("nat66", {"ipv6": _PUBLIC_IPV6}, {}),
    gateway(
        "nat46",
        {"ipv6": _PUBLIC_IPV6},
        {"ipv4": "198.19.0.66"},
        _PREFIX_46,
        "2001:2:0:8000::c613:42",
    ),
)
