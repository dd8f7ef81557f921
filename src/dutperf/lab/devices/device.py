"""What the lab has to know of a device under test: data only, no actions."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel

from dutperf.config.hooks import CORES, Hook, Hooks
from dutperf.config.side import (
    InterfacePort,
    Ipv4Side,
    Ipv6Side,
    SideConfig,
    TesterPort,
)
from dutperf.config.testbed import Routing
from dutperf.lab.devices.daemons import Daemon
from dutperf.lab.netns import CHAIN, DUT, NAMESPACES, TESTER, named
from dutperf.lab.state import StateFile
from dutperf.programs import in_namespace
from dutperf.protocol import Side

INNER = "inner"
"""The wire between two boxes, at both ends."""
INNER_MTU = 2000
"""A frame of 1,518 bytes has room there, and 100 bytes of headers around it, too."""
TUNNEL_HOPS = 3
"""The kernel takes one on the way into the tunnel and out of it, TAYGA one between."""
UDP_TIMEOUTS = ("nf_conntrack_udp_timeout", "nf_conntrack_udp_timeout_stream")


@dataclass(frozen=True)
class Translator:
    """TAYGA: a process that translates what the DUT's kernel routes into its tunnel.

    Attributes:
        tunnel: name of its tun device.
        ipv4: TAYGA's own address, for the ICMP errors that it sends.
        ipv6: likewise.
        pairs: IPv4 and IPv6 address of each host, as the two sides know it.
        networks: what is routed into the tunnel.
        prefix: IPv6 addresses that stand for IPv4 ones (RFC 6052), if it has one.
        mtu: of the tunnel, if not 1,500: IPv4 packets are 20 bytes longer in IPv6.
    """

    tunnel: str
    ipv4: str
    ipv6: str
    pairs: tuple[tuple[str, str], ...]
    networks: tuple[str, ...]
    prefix: str | None = None
    mtu: int | None = None


@dataclass(frozen=True)
class Tracking:
    """The kernel's table of connections: its size and the timeout of UDP."""

    connections: int = 1_000_000
    udp_timeout_s: int = 3600


@dataclass(frozen=True)
class Way:
    """How a box hands packets to the other one, and takes those that come from there.

    Attributes:
        name: for the device's description.
        link: what it needs, as ``ip link add name`` takes it; None: the wire alone.
        commands: of ip(8), once that link is there.
    """

    name: str = ""
    link: str | None = None
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Box:
    """What is in one network namespace of the device, beside its ports' addresses.

    Attributes:
        translator: the program that translates between IP versions, if any.
        ruleset: the kernel's packet filter, as nftables' JSON commands.
        inner: its addresses on the wire between two boxes.
        ways: to the other box; the lab takes the first one that the kernel has.
    """

    translator: Translator | None = None
    ruleset: tuple[Mapping[str, Any], ...] = ()
    inner: tuple[str, ...] = ()
    ways: tuple[Way, ...] = ()


@dataclass(frozen=True)
class LabDevice:
    """One device under test.

    Attributes:
        name: what the user calls it.
        description: what forwards, for reports; the lab adds kernel, CPU and queue.
        addresses: the DUT's own addresses with prefix length, per port: left, right,
            and of several on a side left2, right2, ...
        boxes: one, or two in a chain (RFC 8219 4.2, dual DUT): the first has the left
            ports, the second the right ones, and a wire is between them.
        sysctls: kernel settings of the DUT's namespaces, beyond the lab's own.
        left: the tester's addresses there, and the DUT's as seen from there.
        right: likewise.
        networks: those behind the tester, per port: routed to its address there.
        daemons: programs beside its kernel, in the order in which they start.
        answers: it is the known-answer device: dutperf-refdut; nothing but the wires,
            if it has any, is left for the kernel to do.
        behaviour: what the known-answer device is told at its start, beside routing.
        rules: it is Open vSwitch with DPDK, and these are its OpenFlow rules.
        guest: it is a virtual machine, whose kernel has the addresses and networks.
        filters: how many filters the ruleset has for each IP version, where that can
            be chosen.
        tracking: the kernel keeps connections, that of the last box.
        translates: connections through it get another address; where nothing does,
            those of a stateful test are to come as they were sent.
        hooks: how its state is cleared, its counters are read and it is restarted, as
            of any testbed's device; each command takes milliseconds.
        routing: how its routing daemons speak with their neighbours.
        hops: by how much TTL and hop limit fall, where that is not as of one router.
        own_name: of the lab that it is in, of several at once: see ``at``.
    """

    name: str
    description: str
    addresses: Mapping[str, tuple[str, ...]]
    left: SideConfig
    right: SideConfig
    boxes: tuple[Box, ...] = (Box(),)
    sysctls: Mapping[str, str] = field(default_factory=dict)
    networks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    daemons: tuple[Daemon, ...] = ()
    answers: bool = False
    behaviour: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    guest: bool = False
    filters: int | None = None
    tracking: Tracking | None = None
    translates: bool = True
    hooks: Hooks = field(default_factory=Hooks)
    routing: Routing = field(default_factory=Routing)
    hops: int | None = None
    own_name: str | None = None

    def at(self, own_name: str | None) -> LabDevice:
        """The same in the lab of that name: namespaces, sockets and files of its own.

        Interfaces have the same names in all labs: each namespace has its own.
        """
        if own_name is None:
            return self
        return replace(
            self,
            own_name=own_name,
            left=_moved(self.left, own_name),
            right=_moved(self.right, own_name),
            hooks=_moved(self.hooks, own_name),
        )

    @property
    def tester(self) -> str:
        """The tester's namespace."""
        return named(TESTER, self.own_name)

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Those of its boxes, in their order."""
        return tuple(named(each, self.own_name) for each in CHAIN[: len(self.boxes)])

    @property
    def homes(self) -> dict[str, str]:
        """The namespaces of its ports, by their names."""
        ends = {"left": self.namespaces[0], "right": self.namespaces[-1]}
        return {end: ends[port.side] for end, port in self.tester_ports.items()}

    @property
    def interfaces(self) -> dict[str, tuple[str, ...]]:
        """The ends of wires in each of its namespaces."""
        inner = (INNER,) if len(self.boxes) > 1 else ()
        return {
            name: (*(end for end, home in self.homes.items() if home == name), *inner)
            for name in self.namespaces
        }

    @property
    def translators(self) -> dict[str, Translator]:
        """The programs that translate between IP versions, by namespace."""
        named = zip(self.namespaces, self.boxes, strict=True)
        return {name: box.translator for name, box in named if box.translator}

    @property
    def tester_ports(self) -> dict[str, TesterPort]:
        """The tester's ports by the names of the device's own, left, left2, right."""
        sides: dict[Side, SideConfig] = {"left": self.left, "right": self.right}
        return {
            end_name(side, number): TesterPort(side, number, port)
            for side, config in sides.items()
            for number, port in enumerate(config.ports)
        }

    @property
    def wired(self) -> bool:
        """Whether it is behind the kernel's wires, and not behind shared memory."""
        return isinstance(self.left.port, InterfacePort)

    @property
    def is_kernel(self) -> bool:
        """Whether this computer's kernel forwards, perhaps with a program's help."""
        return not (self.answers or self.rules or self.guest)

    @property
    def translated_hops(self) -> int | None:
        """By how much TTL and hop limit fall of what it translates; None: as of all."""
        return TUNNEL_HOPS if self.translators else None


_Model = TypeVar("_Model", bound=BaseModel)


def _moved(model: _Model, name: str) -> _Model:
    """``model`` of the nameless lab as it is in the lab of that name."""
    fields = {key: _moved_value(value, name) for key, value in model}
    return model.model_copy(update=fields)


def _moved_value(value: Any, name: str) -> Any:  # noqa: ANN401 - whatever models hold
    match value:
        case str():
            if value in NAMESPACES:
                return named(value, name)
            return value.replace(
                f"{StateFile().home}/", f"{StateFile(name=name).home}/"
            )
        case BaseModel():
            return _moved(value, name)
        case list():
            return [_moved_value(each, name) for each in value]
    return value


def end_name(side: Side, number: int) -> str:
    """What both ends of a wire are called: left, and of several left2, left3, ..."""
    return f"{side}{number + 1}" if number else side


def lab_side(
    side: Side, ipv4: Ipv4Side, ipv6: Ipv6Side | None, *, mtu: int = 1500
) -> SideConfig:
    """The tester's side of a lab: interfaces are named after their side."""
    return SideConfig(port=InterfacePort(interface=side, mtu=mtu), ipv4=ipv4, ipv6=ipv6)


def _inside(namespace: str, *command: str) -> Hook:
    return Hook(command=in_namespace(namespace, *command))


def _program(name: str, *arguments: str) -> list[str]:
    """One of ours, which is told whose lab it is about."""
    return [
        sys.executable,
        "-m",
        f"dutperf.lab.{name}",
        str(StateFile().path),
        *arguments,
    ]


_SET_CORES = Hook(command=_program("active_cores", CORES), timeout_s=60)
_RESTART = Hook(command=_program("restart"))


def kernel_hooks(namespaces: Sequence[str] = (DUT,)) -> Hooks:
    """What the DUT's kernel did with the frames of each trial, in each of its boxes.

    Neighbours and routes stay: a trial is to begin with what the device has learnt (RFC
    2544 C.2.4.1), and Linux keeps no cache of routes. Counters of IP are those of the
    trial, of links those since the lab is up: the kernel sets them back for nobody.
    """
    before, after = [], []
    for name in namespaces:
        history = f"NSTAT_HISTORY={StateFile().dut_directory / f'nstat-{name}'}"
        before.append(_inside(name, "env", history, "nstat", "-n"))
        after.append(_inside(name, "env", history, "nstat"))
        after.append(Hook(command=["ip", "-netns", name, "-s", "link"]))
    return Hooks(
        set_cores=_SET_CORES,
        before_trial=before,
        during_trial=[_RESTART],
        after_trial=after,
    )


def gateway_hooks(namespaces: Sequence[str] = (DUT,)) -> Hooks:
    """Empties the kernel's table before a trial; tells of it, and of frames, after.

    The table is that of the last box.
    """
    kernel = kernel_hooks(namespaces)
    in_gateway = partial(_inside, namespaces[-1])
    names = ("nf_conntrack_max", "nf_conntrack_buckets", *UDP_TIMEOUTS)
    shown = [f"net.netfilter.{name}" for name in names]
    return Hooks(
        set_cores=_SET_CORES,
        bulk_delete=in_gateway("conntrack", "-F"),
        table_count=in_gateway("conntrack", "-C"),
        before_trial=kernel.before_trial,
        during_trial=[_RESTART],
        after_trial=[
            in_gateway("conntrack", "-C"),
            in_gateway("conntrack", "-S"),
            in_gateway("sysctl", *shown),
            *kernel.after_trial,
        ],
        is_alive=in_gateway("true"),
    )
