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
of the other side's (``linux.TWO_BY_TWO``).

``known-answer-nat44``, ``-nat64``, ``-nat66`` and ``-nat46`` are the same program as a
stateful gateway (RFC 9693) with the private side on the left:

    10.0.0.2  2001:2::2  left == 10.0.0.1    2001:2::1
                                 198.19.0.1  2001:2:0:8000::1 == right  198.19.0.2 ...

Its table has a million entries and refuses more; ``dutperf lab set`` with another
``nat`` changes that. ``known-answer-dns64`` is a DNS64 server (RFC 6147).
"""

from __future__ import annotations

import ipaddress
import json
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from dutperf.config.campaign import IN_FLIGHT_FRAMES
from dutperf.config.encapsulation import (
    EDGE_KEYS,
    BindingFile,
    BindingRule,
    EdgeRule,
    MapRule,
    SharingRule,
    SideEncapsulation,
    SixRdDomain,
)
from dutperf.config.side import (
    InterfacePort,
    Ipv4Side,
    Ipv6Side,
    MemifPort,
    Port,
    PortKeys,
    SideConfig,
    SideTranslation,
)
from dutperf.config.testbed import Hook, Hooks
from dutperf.errors import InputError, SetupError
from dutperf.lab import asking
from dutperf.lab.devices.device import (
    LEFT_IPV4,
    LEFT_IPV6,
    RIGHT_IPV4,
    RIGHT_IPV6,
    ProgramDevice,
    end_name,
    lab_side,
)
from dutperf.lab.devices.linux import TWO_BY_TWO, second_port
from dutperf.lab.processes import CpuPlan, Programs
from dutperf.lab.refdut_socket import (
    Behaviour,
    KnownAnswer,
    control_socket,
    note_queue,
    queue_told,
    with_tables,
)
from dutperf.lab.state import StateFile
from dutperf.programs import find_engine
from dutperf.protocol.base import Encapsulation, Side, VlanTag

PROGRAM = "dutperf-refdut"
_TABLE = "binding_table"
RING_FRAMES = 4096
"""Of a port in shared memory, on the device's side as on ours: engine/src/dpdk."""


@dataclass(frozen=True)
class KnownAnswerDevice(ProgramDevice):
    """dutperf-refdut; ``behaviour``: what it is told at its start, beside routing."""

    takes: ClassVar[str] = "behaviour"

    behaviour: Behaviour = field(default_factory=dict)

    def side(self, name: Side, behaviour: Behaviour | None) -> SideConfig:
        """With the VLAN tags and outer headers that it is told to have there."""
        side = super().side(name, behaviour)
        told = behaviour or {}
        vlan = told.get("vlan", {}).get(name, [])
        tags = [VlanTag.model_validate(tag) for tag in vlan]
        tunnel = told.get("encapsulation", {}).get(name)
        update: dict[str, Any] = {"vlan": tags} if tags else {}
        if tunnel:
            devices = Encapsulation.model_validate(tunnel)
            rules = {
                key: told[key][name] for key in EDGE_KEYS if name in told.get(key, {})
            }
            if "file" in rules.get(_TABLE, {}):
                rules[_TABLE] = BindingFile.model_validate(rules[_TABLE]).located(
                    Path.cwd()
                )
            update["encapsulation"] = SideEncapsulation.at_other_end(devices, rules)
        return side.model_copy(update=update)

    def check_behaviour(self, behaviour: Behaviour) -> None:
        """Has the program read it, and do nothing; needs no root.

        Raises:
            InputError: it is no behaviour; says what the program said.
            SetupError: it has not been built.
        """
        done = subprocess.run(
            [str(check_program()), "--check"],
            input=json.dumps(with_tables(behaviour)),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            return
        message, _, hint = done.stderr.strip().partition("\nhint: ")
        raise InputError(
            f"behaviour: {message.removeprefix('error: ')}",
            hint or "docs/known-answer.md describes every key",
        )

    def tell(self, directory: Path, behaviour: Behaviour) -> None:
        """Configures it; its routing stays unless ``behaviour`` says otherwise."""
        KnownAnswer(control_socket(directory)).configure(behaviour)

    def check_programs(self, cpus: CpuPlan) -> None:
        """Its own, too."""
        super().check_programs(cpus)
        check_program()

    def start(self, cpus: CpuPlan, programs: Programs) -> None:
        """Starts it as a router with its addresses and waits until it answers.

        Raises:
            SetupError: it did not start; says what it said.
        """
        directory = programs.directory
        config = directory / "behaviour.json"
        told = {"routing": _routing(self), **self.behaviour}
        config.write_text(json.dumps(with_tables(told)), "utf-8")
        log = log_of(directory)
        log.unlink(missing_ok=True)
        control = control_socket(directory)
        note_queue(control, self.behaviour)
        ports = self.tester_ports.values()
        programs.start(
            [
                str(check_program()),
                *(f"--{port.side}={_port(port.config.port)}" for port in ports),
                f"--config={config}",
                f"--control={control}",
                f"--mtu={max(self.left.port.mtu, self.right.port.mtu)}",
                f"--cpu={cpus.worker if cpus.dut is None else cpus.dut}",
            ],
            lambda: _listens(control),
            namespace=self.namespaces[0],
            name="the known-answer device",
            log=log,
            hint="it needs the memory that dutperf-engine needs, and root",
        )

    def queue_frames(self) -> int:
        """Those of its ports."""
        return IN_FLIGHT_FRAMES if self.wired else RING_FRAMES

    def own_frames(self, directory: Path) -> int | None:
        """Those of its service's queue."""
        return queue_told(control_socket(directory))


def log_of(directory: Path) -> Path:
    """Its log; not among its files, as it outlives the lab, until the next one."""
    return directory.parent / "known-answer.log"


def check_program() -> Path:
    """The program of the engine's own build.

    Raises:
        SetupError: it has not been built.
    """
    program = find_engine().with_name(PROGRAM)
    if not program.is_file():
        raise SetupError(
            f"the program {PROGRAM} is not found beside the engine, in "
            f"{program.parent}",
            "build it: run 'make setup' in dutperf's source tree",
        )
    return program


def _routing(device: KnownAnswerDevice) -> dict[str, Any]:
    """Its own addresses by port; of a side's further ports in lists of their own."""
    own = {
        end: [str(ipaddress.ip_interface(text).ip) for text in device.addresses[end]]
        for end in device.tester_ports
    }
    found: dict[str, Any] = {}
    for end, port in device.tester_ports.items():
        if port.number:
            found.setdefault(f"more_{port.side}", []).append(own[end])
        else:
            found[port.side] = own[end]
    return found


def _port(port: Port) -> str:
    """Its own end; interfaces have the same name at both ends of a wire."""
    if isinstance(port, MemifPort):
        return f"memif:{port.memif}"
    assert isinstance(port, InterfacePort), "the lab's own devices have no others"  # noqa: S101
    return f"af_packet:{port.interface}"


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(str(path)) == 0


def _end(side: Side, number: int = 0, *, mtu: int = 1500) -> MemifPort:
    socket = StateFile().dut_directory / end_name(side, number)
    return MemifPort(memif=str(socket), mtu=mtu)


def memif_side(
    side: Side,
    ipv4: Ipv4Side | None,
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
    LEFT_IPV4,
    LEFT_IPV6,
)
_RIGHT = (
    RIGHT_IPV4,
    RIGHT_IPV6,
)

KNOWN_ANSWER = KnownAnswerDevice(
    name="known-answer",
    description="dutperf-refdut, a router that does exactly what it is told",
    addresses={
        "left": ("198.18.0.1/24", "2001:2::1/64"),
        "right": ("198.19.0.1/24", "2001:2:0:8000::1/64"),
    },
    left=memif_side("left", *_LEFT),
    right=memif_side("right", *_RIGHT),
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
) -> KnownAnswerDevice:
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
    return KnownAnswerDevice(
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


DNS64 = replace(
    KNOWN_ANSWER,
    name="known-answer-dns64",
    description="dutperf-refdut, a DNS64 server that does as told",
    left=memif_side("left", None, LEFT_IPV6),
    behaviour={"dns64": {"authority": "198.19.0.2", "prefix": _PREFIX_64}},
)


# ``known-answer-map-...``: both boxes of MAP-E and MAP-T (RFC 7597, 7599).
# ``known-answer-lw4o6``: the lwAFTR of lw4o6 (RFC 7596). ``known-answer-6rd``: the
# border relay of 6rd (RFC 5969).
#
# The rule is that of the RFCs' examples: 192.0.2.0/24 is shared by 65,536 customer
# edges (CE) of 2001:db8::/40, 256 to an address, by 8 bits of the port behind its first
# 6.
#
# ``known-answer-map-e`` and ``-map-t`` are the border relay (BR): the tester is all
# edges on the left, the IPv4 internet on the right. It takes nothing whose IPv6 address
# does not say what address and port do, and sends each packet to the edge that has
# these.
#
# ``known-answer-map-e-ce`` and ``-map-t-ce`` are the edge 192.0.2.18, PSID 0x34, a
# stateful gateway with the 252 ports of its set: behind it 10.0.0.0/8 on the left, the
# relay on the right.
#
# ``known-answer-lw4o6`` is such a relay by a binding table of 65,536 B4s, numbered:
# each has a /64 of 2001:db8::/48, and 256 of the ports of one of these addresses.
# ``known-answer-lw4o6-b4`` is the B4 of 192.0.2.18, PSID 0x34, with its 256 ports.
#
# ``known-answer-6rd``: the edges are 10.0.0.0/16, each with a /48 of 2001:db8::/32.
# ``known-answer-6rd-ce`` is one, stateless, of a domain in the networks for
# benchmarking: 10.0.0.18, whose own network is 2001:2:0:4120::/60, on the left.


RULE = MapRule(ipv6_prefix="2001:db8::/40", ipv4_prefix="192.0.2.0/24", ea_bits=16)
BINDINGS = BindingRule(
    first_b4="2001:db8::1/64", ipv4_prefix="192.0.2.0/24", psid_length=8
)
DOMAIN = SixRdDomain(ipv6_prefix="2001:db8::/32", ipv4_prefix="10.0.0.0/16")
_PSID = 0x34
_SHARED = "192.0.2.18"
_EDGE = RULE.address(_SHARED, _PSID)
_B4 = BINDINGS.address(_SHARED, _PSID)
_CUSTOMERS = SixRdDomain(ipv6_prefix="2001:2:0:4000::/52", ipv4_prefix="10.0.0.0/24")
_CUSTOMER = "2001:2:0:4120::2"
"""A host behind the edge of 6rd, which has the address in its prefix."""
_RELAY = "2001:2::1"
_PREFIX = "64:ff9b::/96"
_FAR = "2001:2:0:8000::"
"""Of the edges' lab: the default mapping rule's prefix is that of the right link."""

_OF_EDGES = Ipv6Side(address="2001:2::2", gateway=_RELAY)
_INTERNET = RIGHT_IPV4
_OWN = "dutperf's own device, whose speed is no device's result: dutperf-refdut"
_RELAYS = "border relay of 65,536 customer edges"


def _relay(
    name: str, what: str, key: str, rule: EdgeRule, edges: Ipv4Side, ipv6: Ipv6Side
) -> KnownAnswerDevice:
    """By the tunnels of the edges of ``rule``, which ``key`` is of.

    Args:
        name: after ``known-answer-``.
        what: it is.
        key: of tester and device.
        rule: with the same keys in both.
        edges: the tester's IPv4 addresses where the edges are.
        ipv6: and those of IPv6; one of both is an edge's.
    """
    four = rule.inner_version == 4
    own = edges.address if four else ipv6.address
    assert own  # noqa: S101
    ends = {
        "kind": "ip",
        "local": ipv6.gateway if four else edges.gateway,
        "remote": rule.edge_of(own),
        "remote_bits": rule.common_bits,
    }
    kind = "ipv4-in-ipv6" if four else "ipv6-in-ipv4"
    return replace(
        KNOWN_ANSWER,
        name=f"known-answer-{name}",
        description=f"{_OWN}, {what}",
        left=memif_side(
            "left",
            edges,
            ipv6,
            encapsulation=SideEncapsulation.model_validate({"kind": kind, key: rule}),
        ),
        right=memif_side(
            "right", _INTERNET if four else None, None if four else RIGHT_IPV6
        ),
        behaviour={"encapsulation": {"left": ends}, key: {"left": rule.model_dump()}},
    )


_OF_RULE = Ipv4Side(address="192.0.2.1")
MAP_E = _relay("map-e", f"a MAP-E {_RELAYS}", "map", RULE, _OF_RULE, _OF_EDGES)
LW4O6 = _relay(
    "lw4o6", "an lwAFTR of 65,536 B4s", "binding_table", BINDINGS, _OF_RULE, _OF_EDGES
)
SIXRD = _relay(
    "6rd",
    f"a 6rd {_RELAYS}",
    "sixrd",
    DOMAIN,
    LEFT_IPV4,
    Ipv6Side(address="2001:db8:1::1"),
)

MAP_T = replace(
    KNOWN_ANSWER,
    name="known-answer-map-t",
    description=f"{_OWN}, a MAP-T {_RELAYS}",
    left=memif_side(
        "left",
        Ipv4Side(virtual="192.0.2.1"),
        _OF_EDGES,
        translation=SideTranslation(map=RULE),
    ),
    right=memif_side("right", _INTERNET, Ipv6Side(virtual="64:ff9b::c613:2")),
    behaviour={"translation": {"left": {**RULE.model_dump(), "prefix": _PREFIX}}},
)


def _ports(rule: SharingRule) -> dict[str, Any]:
    """The set of the one edge that the device is."""
    bits = {"psid_offset": rule.psid_offset, "psid_bits": rule.psid_bits}
    return {"port_set": {**bits, "psid": _PSID}}


def _tunnel_of_edge(local: str, remote: str) -> dict[str, Any]:
    return {
        "encapsulation": {"right": {"kind": "ip", "local": local, "remote": remote}}
    }


def _edge(name: str, what: str, rule: SharingRule, own: str) -> KnownAnswerDevice:
    """A NAT44 of an edge's ports before the tunnel to its relay, the tester.

    Args:
        name: after ``known-answer-``.
        what: it is.
        rule: whose edge it is.
        own: its end of the tunnel.
    """
    nat = gateway("nat44", {"ipv4": _SHARED}, {}, ports=_ports(rule))
    tunnel = SideEncapsulation(kind="ipv4-in-ipv6", remote=own)
    return replace(
        nat,
        name=f"known-answer-{name}",
        description=f"{_OWN}, {what}",
        right=nat.right.model_copy(update={"encapsulation": tunnel}),
        behaviour={**nat.behaviour, **_tunnel_of_edge(own, f"{_FAR}2")},
    )


MAP_E_EDGE = _edge("map-e-ce", "a MAP-E customer edge with 252 ports", RULE, _EDGE)
LW4O6_B4 = _edge("lw4o6-b4", "a B4 of lw4o6 with 256 ports", BINDINGS, _B4)

MAP_T_EDGE = replace(
    gateway(
        "nat46",
        {"ipv6": _EDGE},
        {"ipv4": "198.19.0.66"},
        f"{_FAR}/96",
        f"{_FAR}c613:42",
        _ports(RULE),
    ),
    name="known-answer-map-t-ce",
    description=f"{_OWN}, a MAP-T customer edge with 252 ports",
)

SIXRD_EDGE = replace(
    KNOWN_ANSWER,
    name="known-answer-6rd-ce",
    description=f"{_OWN}, a 6rd customer edge",
    addresses={
        "left": ("2001:2:0:4120::1/60",),
        "right": KNOWN_ANSWER.addresses["right"],
    },
    left=memif_side(
        "left", None, Ipv6Side(address=_CUSTOMER, gateway="2001:2:0:4120::1")
    ),
    right=memif_side(
        "right",
        RIGHT_IPV4,
        Ipv6Side(address="2001:2:0:8000::2"),
        encapsulation=SideEncapsulation(
            kind="ipv6-in-ipv4", remote=_CUSTOMERS.edge_of(_CUSTOMER)
        ),
    ),
    behaviour=_tunnel_of_edge(_CUSTOMERS.edge_of(_CUSTOMER), str(RIGHT_IPV4.address)),
)

EDGE_BOXES = (
    MAP_E,
    MAP_T,
    MAP_E_EDGE,
    MAP_T_EDGE,
    LW4O6,
    LW4O6_B4,
    SIXRD,
    SIXRD_EDGE,
)
