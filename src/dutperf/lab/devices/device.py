"""What the lab has to know of a device under test: data only, no actions."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dutperf.config.hooks import CORES, Hook, Hooks
from dutperf.config.testbed import (
    InterfacePort,
    Ipv4Side,
    Ipv6Side,
    PortKeys,
    Routing,
    SideConfig,
    TesterPort,
)
from dutperf.lab.devices.daemon import Daemon
from dutperf.lab.state import StateFile
from dutperf.protocol import Side

DUT_NAMESPACE = "dut"
_TUNNEL_HOPS = 3
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
    """

    tunnel: str
    ipv4: str
    ipv6: str
    pairs: tuple[tuple[str, str], ...]
    networks: tuple[str, ...]
    prefix: str | None = None


@dataclass(frozen=True)
class Tracking:
    """The kernel's table of connections: its size and the timeout of UDP."""

    connections: int = 1_000_000
    udp_timeout_s: int = 3600


@dataclass(frozen=True)
class LabDevice:
    """One device under test.

    Attributes:
        name: what the user calls it.
        description: what forwards, for reports; the lab adds kernel, CPU and queue.
        addresses: the DUT's own addresses with prefix length, per port: left, right,
            and of several on a side left2, right2, ...
        sysctls: kernel settings of the DUT's namespace, beyond the lab's own.
        left: the tester's addresses there, and the DUT's as seen from there.
        right: likewise.
        networks: those behind the tester, per port: routed to its address there.
        translator: the program that translates between IP versions, if any.
        daemons: programs beside its kernel, in the order in which they start.
        answers: it is the known-answer device: dutperf-refdut; nothing but the wires,
            if it has any, is left for the kernel to do.
        behaviour: what the known-answer device is told at its start, beside routing.
        rules: it is Open vSwitch with DPDK, and these are its OpenFlow rules.
        ruleset: the kernel's packet filter, as nftables' JSON commands.
        filters: how many filters the ruleset has for each IP version, where that can
            be chosen.
        tracking: the kernel keeps connections.
        translates: connections through it get another address; where nothing does,
            those of a stateful test are to come as they were sent.
        hooks: how its state is cleared, its counters are read and it is restarted, as
            of any testbed's device; each command takes milliseconds.
        routing: how its routing daemons speak with their neighbours.
    """

    name: str
    description: str
    addresses: Mapping[str, tuple[str, ...]]
    left: SideConfig
    right: SideConfig
    sysctls: Mapping[str, str] = field(default_factory=dict)
    networks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    translator: Translator | None = None
    daemons: tuple[Daemon, ...] = ()
    answers: bool = False
    behaviour: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    ruleset: tuple[Mapping[str, Any], ...] = ()
    filters: int | None = None
    tracking: Tracking | None = None
    translates: bool = True
    hooks: Hooks = field(default_factory=Hooks)
    routing: Routing = field(default_factory=Routing)

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
        """Whether the kernel forwards, perhaps with a program's help."""
        return not self.answers and not self.rules

    @property
    def translated_hops(self) -> int | None:
        """By how much TTL and hop limit fall of what it translates; None: as of all."""
        return _TUNNEL_HOPS if self.translator else None


def end_name(side: Side, number: int) -> str:
    """What both ends of a wire are called: left, and of several left2, left3, ..."""
    return f"{side}{number + 1}" if number else side


def lab_side(
    side: Side,
    ipv4: Ipv4Side,
    ipv6: Ipv6Side,
    *,
    mtu: int = 1500,
    more_ports: Sequence[PortKeys] = (),
) -> SideConfig:
    """The tester's side of a lab: interfaces are named after their side."""
    port = InterfacePort(interface=side, mtu=mtu)
    return SideConfig(port=port, ipv4=ipv4, ipv6=ipv6, more_ports=list(more_ports))


def in_dut(*command: str) -> Hook:
    """A command in the DUT's network namespace."""
    return Hook(command=["ip", "netns", "exec", DUT_NAMESPACE, *command])


_SET_CORES = Hook(
    command=[sys.executable, "-m", "dutperf.lab.active_cores", CORES], timeout_s=60
)
_RESTART = Hook(command=[sys.executable, "-m", "dutperf.lab.restart"])


def kernel_hooks() -> Hooks:
    """What the DUT's kernel did with the frames of each trial.

    Neighbours and routes stay: a trial is to begin with what the device has learnt (RFC
    2544 C.2.4.1), and Linux keeps no cache of routes. Counters of IP are those of the
    trial, of links those since the lab is up: the kernel sets them back for nobody.
    """
    history = f"NSTAT_HISTORY={StateFile().dut_directory / 'nstat'}"
    return Hooks(
        set_cores=_SET_CORES,
        before_trial=[in_dut("env", history, "nstat", "-n")],
        during_trial=[_RESTART],
        after_trial=[
            in_dut("env", history, "nstat"),
            Hook(command=["ip", "-netns", DUT_NAMESPACE, "-s", "link"]),
        ],
    )


def gateway_hooks() -> Hooks:
    """Empties the kernel's table before a trial; tells of it, and of frames, after."""
    kernel = kernel_hooks()
    names = ("nf_conntrack_max", "nf_conntrack_buckets", *UDP_TIMEOUTS)
    shown = [f"net.netfilter.{name}" for name in names]
    return Hooks(
        set_cores=_SET_CORES,
        bulk_delete=in_dut("conntrack", "-F"),
        table_count=in_dut("conntrack", "-C"),
        before_trial=kernel.before_trial,
        during_trial=[_RESTART],
        after_trial=[
            in_dut("conntrack", "-C"),
            in_dut("conntrack", "-S"),
            in_dut("sysctl", *shown),
            *kernel.after_trial,
        ],
        is_alive=in_dut("true"),
    )
