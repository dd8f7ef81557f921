"""A device under test: data, and hooks by which a device of another kind differs.

Without another's word it is this computer's kernel that forwards, perhaps with a
program's help. Whoever makes, describes, watches or restarts a device asks its hooks.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import BaseModel

from dutperf.config.encapsulation import SideEncapsulation
from dutperf.config.side import (
    InterfacePort,
    Ipv4Side,
    Ipv6Side,
    SideConfig,
    TesterPort,
)
from dutperf.config.testbed import DeviceFacts, Hooks, NatLog, Routing
from dutperf.errors import SetupError
from dutperf.lab import device_cpu, machine, netns, topology
from dutperf.lab.netns import CHAIN, NAMESPACES, TESTER, name_in_lab
from dutperf.lab.state import LabState, StateFile
from dutperf.protocol.base import Side

if TYPE_CHECKING:
    from dutperf.lab.devices.daemons import Daemon
    from dutperf.lab.devices.nftables import Tracking
    from dutperf.lab.devices.translators import Translator
    from dutperf.lab.processes import CpuPlan, Process, Programs
    from dutperf.lab.refdut_socket import Behaviour

TUNNEL_HOPS = 3
"""The kernel takes one on the way into the tunnel and out of it, TAYGA one between."""
UDP_TIMEOUTS = ("nf_conntrack_udp_timeout", "nf_conntrack_udp_timeout_stream")


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
        routes: over that wire, as ip(8) takes them.
        ways: to the other box; the lab takes the first one that the kernel has.
    """

    translator: Translator | None = None
    ruleset: tuple[Mapping[str, Any], ...] = ()
    inner: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()
    ways: tuple[Way, ...] = ()


def restart_links(device: LabDevice, _old: Sequence[Process], _new: Programs) -> str:
    """What most devices of the kernel have for a restart."""
    topology.restart_links(device)
    return "both ports were set down and up, and the routes added"


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
        told: what else the kernel is told of a port that is up, as ip(8) takes it.
        daemons: programs beside its kernel, in the order in which they start.
        tracking: the kernel keeps connections, that of the last box.
        translates: connections through it get another address; where nothing does,
            those of a stateful test are to come as they were sent.
        hooks: how its state is cleared, its counters are read and it is restarted, as
            of any testbed's device; each command takes milliseconds.
        nat_log: where its log of mappings is, if it has one.
        restarts: what is done when it is restarted (RFC 6201 4.2, a reset of
            software), with its processes and a way to start them again; what that was.
        routing: how its routing daemons speak with their neighbours.
        hops: by how much TTL and hop limit fall, where that is not as of one router.
        ipv6_hops: the same of native IPv6, where it is another number.
        own_name: of the lab that it is in, of several at once: see ``at``.
    """

    takes: ClassVar[str | None] = None
    """What is chosen of it when it is brought up: ``rules`` or ``behaviour``."""

    name: str
    description: str
    addresses: Mapping[str, tuple[str, ...]]
    left: SideConfig
    right: SideConfig
    boxes: tuple[Box, ...] = (Box(),)
    sysctls: Mapping[str, str] = field(default_factory=dict)
    networks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    told: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    daemons: tuple[Daemon, ...] = ()
    tracking: Tracking | None = None
    translates: bool = True
    hooks: Hooks = field(default_factory=Hooks)
    nat_log: NatLog | None = None
    restarts: Callable[[LabDevice, Sequence[Process], Programs], str] = restart_links
    routing: Routing = field(default_factory=Routing)
    hops: int | None = None
    ipv6_hops: int | None = None
    own_name: str | None = None

    # Where it is

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
            nat_log=self.nat_log and _moved(self.nat_log, own_name),
        )

    @property
    def tester(self) -> str:
        """The tester's namespace."""
        return name_in_lab(TESTER, self.own_name)

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Those of its boxes, in their order."""
        return tuple(
            name_in_lab(each, self.own_name) for each in CHAIN[: len(self.boxes)]
        )

    @property
    def homes(self) -> dict[str, str]:
        """The namespaces of its ports, by their names."""
        ends = {"left": self.namespaces[0], "right": self.namespaces[-1]}
        return {end: ends[port.side] for end, port in self.tester_ports.items()}

    @property
    def interfaces(self) -> dict[str, tuple[str, ...]]:
        """The ends of wires in each of its namespaces."""
        inner = (topology.INNER,) if len(self.boxes) > 1 else ()
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
    def translated_hops(self) -> int | None:
        """By how much TTL and hop limit fall of what it translates; None: as of all."""
        return TUNNEL_HOPS if self.translators else None

    # How it is made

    def with_rules(self, _rules: int) -> LabDevice:
        """The same with so many filters, where it ``takes`` them."""
        return self

    def side(self, name: Side, _behaviour: Behaviour | None) -> SideConfig:
        """The tester's side there, where it is told that at its start."""
        return {"left": self.left, "right": self.right}[name]

    def check_behaviour(self, behaviour: Behaviour) -> None:
        """Raises InputError if it cannot be told that, where it ``takes`` one."""

    def tell(self, directory: Path, behaviour: Behaviour) -> None:
        """Tells it, where it ``takes`` one and is up; its files are in ``directory``.

        Raises:
            InputError: it is no behaviour.
            SetupError: the device does not answer.
        """

    def check_programs(self, cpus: CpuPlan) -> None:
        """Raises SetupError, which says what to install, if a program is missing."""
        helpers: list[Translator | Daemon] = [*self.translators.values(), *self.daemons]
        for each in helpers:
            netns.check_program(each.program, each.package)
        if self.daemons or (self.wired and cpus.receive is not None):
            netns.check_program("ethtool", "ethtool")

    def changes(self, cpus: CpuPlan) -> machine.Changes:
        """What it needs of the whole machine; nothing is changed yet."""
        needed = self.tracking.needs() if self.tracking else ()
        return replace(machine.queue_changes(cpus.dut), needed=needed)

    def check_changes(self, changes: machine.Changes) -> None:
        """Raises SetupError if the machine has changed, but not as it needs."""

    def set_up(self, namespace: str, ends: Sequence[str], cpus: CpuPlan) -> None:
        """Sets up its ends of wires in one of its namespaces."""
        topology.set_up_forwarding(self, namespace, ends, cpus)

    def begin(self) -> None:
        """What its kernel is told once all wires are up, before they are quiet."""
        for end, home in self.homes.items():
            netns.run_ip(home, topology.told(self, end))
        if self.daemons:
            topology.sum_what_it_says(self)
        self.load_rules()

    def load_rules(self) -> None:
        """Gives it its rules alone, and the timeouts of what they make it track.

        Raises:
            SetupError: it did not take them; what it had stays.
        """
        for namespace, box in zip(self.namespaces, self.boxes, strict=True):
            refused = (
                netns.replace_ruleset(namespace, box.ruleset) if box.ruleset else ""
            )
            if refused:
                raise SetupError(
                    f"cannot load the rules of {self.name}: {refused}",
                    "it needs a kernel with nftables (CONFIG_NF_TABLES), and for NAT "
                    "CONFIG_NFT_NAT",
                )
        if self.tracking:
            self.tracking.set_timeouts(self.namespaces[-1])

    def start(self, cpus: CpuPlan, programs: Programs) -> None:
        """Has it forward, once its namespaces and wires are there and quiet.

        Raises:
            SetupError: it does not start; the caller removes what was made so far.
        """
        if len(self.boxes) > 1:
            topology.join(self, cpus)
        for home, translator in self.translators.items():
            translator.start(home, programs)
        for daemon in self.daemons:
            daemon.start(self.namespaces[0], programs)

    # What is said of it

    def planned(self, cpus: CpuPlan) -> list[str]:
        """What it would be, in parts of a sentence; nothing is up."""
        received = cpus.receive if self.wired else None
        return [
            *self.software(),
            *topology.receiving(received),
            self.place(cpus),
            *([self.tracking.planned()] if self.tracking else []),
        ]

    def present(self, state: LabState) -> list[str]:
        """What it is now, in the lab of ``state``."""
        return [
            *self.software(now=True),
            *topology.ways_now(self),
            *topology.shared(state),
            *topology.receiving(state.receive_cpu),
            *self.place_now(state),
        ]

    def software(self, *, now: bool = False) -> list[str]:  # noqa: ARG002 - for others
        """What forwards; as planned, or as it is ``now``."""
        return [self.description, f"kernel {platform.release()}"]

    def place(self, cpus: CpuPlan) -> str:
        """Where it works, as planned."""
        return cpus.describe()

    def place_now(self, state: LabState) -> Iterator[str]:
        """Where it works, and what it has there."""
        yield topology.steering(self, state)
        if self.tracking:
            yield self.tracking.present(self.namespaces[-1])
        yield machine.describe_queue(state.dut_cpu, state.settings, state.priorities)

    def filters_now(self) -> list[int]:
        """How many filters it has, for each IP version, where it ``takes`` them."""
        return []

    def facts(self, cpus: CpuPlan) -> DeviceFacts:
        """Its parameters (RFC 9693 6)."""
        return topology.facts(self, cpus)

    # What is seen of it in a trial

    def kernel_threads(self, cpu: int) -> list[int]:
        """The kernel's threads on its CPU that work for it, beside its processes."""
        thread = machine.server_of(cpu)
        return [] if thread is None else [thread.pid]

    def queue_frames(self) -> int:
        """How many frames wait in front of it without being lost."""
        frames = [machine.queue_length() or machine.QUEUE_FRAMES]
        frames += [each.queue_frames(home) for home, each in self.translators.items()]
        if any(daemon.answers for daemon in self.daemons):
            frames.append(machine.socket_frames())
        return min(frames)

    def own_frames(self, _directory: Path) -> int | None:
        """How many wait behind that, as it was told; None: nothing limits them."""
        return None

    def drops(self, *, sent: bool) -> dict[str, dict[str, int]]:
        """What its interfaces have dropped so far; ``sent``: see ``device_cpu``."""
        return device_cpu.drops(self, sent=sent)


class ProgramDevice(LabDevice):
    """One whose frames a program forwards, and not the kernel.

    Attributes:
        ring_frames: how many frames wait in front of it without being lost.
    """

    ring_frames: ClassVar[int]

    def changes(self, _cpus: CpuPlan) -> machine.Changes:
        """None: the kernel's input queue is not its own."""
        return machine.Changes()

    def set_up(self, namespace: str, ends: Sequence[str], _cpus: CpuPlan) -> None:
        """Its sockets are at these ends: the kernel there keeps out of it."""
        topology.set_up_silent(namespace, ends)

    def begin(self) -> None:
        """Nothing: its kernel has no part in it."""

    def place(self, cpus: CpuPlan) -> str:
        """Where it runs."""
        return cpus.describe_process()

    def place_now(self, state: LabState) -> Iterator[str]:
        """Where each of its processes runs."""
        return topology.of_processes(state)

    def kernel_threads(self, _cpu: int) -> list[int]:
        """None works for it."""
        return []

    def queue_frames(self) -> int:
        """Those of its ring."""
        return self.ring_frames

    def drops(self, *, sent: bool) -> dict[str, dict[str, int]]:  # noqa: ARG002
        """None that the kernel would count; its own account has them, if it has one."""
        return {}


_Model = TypeVar("_Model", bound=BaseModel)


def _moved(model: _Model, name: str) -> _Model:
    """``model`` of the nameless lab as it is in the lab of that name."""
    fields = {key: _moved_value(value, name) for key, value in model}
    return model.model_copy(update=fields)


def _moved_value(value: Any, name: str) -> Any:  # noqa: ANN401 - whatever models hold
    match value:
        case str():
            if value in NAMESPACES:
                return name_in_lab(value, name)
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
    side: Side,
    ipv4: Ipv4Side | None,
    ipv6: Ipv6Side | None,
    *,
    mtu: int = 1500,
    encapsulation: SideEncapsulation | None = None,
) -> SideConfig:
    """The tester's side of a lab: interfaces are named after their side."""
    port = InterfacePort(interface=side, mtu=mtu)
    return SideConfig(port=port, ipv4=ipv4, ipv6=ipv6, encapsulation=encapsulation)


LEFT_IPV4 = Ipv4Side(address="198.18.0.2", gateway="198.18.0.1")
LEFT_IPV6 = Ipv6Side(address="2001:2::2", gateway="2001:2::1")
RIGHT_IPV4 = Ipv4Side(address="198.19.0.2", gateway="198.19.0.1")
RIGHT_IPV6 = Ipv6Side(address="2001:2:0:8000::2", gateway="2001:2:0:8000::1")
"""The tester's addresses, and the DUT's, of most labs."""
