"""``ovs-dpdk``: Open vSwitch's own data path on DPDK, as a router by OpenFlow rules.

    tester                             dut
    198.18.0.2     left  == memif == left  198.18.0.1      2001:2::1
    198.19.0.2     right == memif == right 198.19.0.1      2001:2:0:8000::1

A device of others at millions of frames a second: one poll thread on the device's CPU,
ports in shared memory, no kernel on the way. Rules answer ARP and neighbour discovery,
decrement TTL and hop limit, and put in MAC addresses; what goes to another MAC address
than the router's own is dropped, as routers do. Each side has all networks of RFC 2544
C.2.2 and RFC 5180 8 as hosts on its link.

``ovs-dpdk-ct`` is the same as a stateful firewall, by the switch's own connection
tracking: the left side opens connections, and all else from the right is dropped.

What overflows the rings of its ports is its loss. Its poll thread sends on a queue of
its own, so the tester receives from two.
"""

from __future__ import annotations

import ipaddress
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

from dutperf.config.side import Ipv4Side, Ipv6Side, MemifPort, SideConfig
from dutperf.config.testbed import Hook, Hooks
from dutperf.errors import SetupError
from dutperf.lab import machine, netns
from dutperf.lab.devices.device import (
    LEFT_IPV4,
    LEFT_IPV6,
    RIGHT_IPV4,
    RIGHT_IPV6,
    ProgramDevice,
)
from dutperf.lab.netns import name_in_lab
from dutperf.lab.processes import PROC, CpuPlan, Process, Programs
from dutperf.lab.state import ChangedSetting, StateFile
from dutperf.programs import feed
from dutperf.protocol.base import Side

RUN = "ovs"
"""Where Open vSwitch has its files, below the DUT's directory."""
BRIDGE = "dut"
_STATS = ("dpif-netdev/pmd-stats-show",)
_STATS_CLEAR = ("dpif-netdev/pmd-stats-clear",)
RING_FRAMES = 16384
"""Of a port, the most that memif has: its poll thread waits for its CPU, too."""
_QUEUES = 2
"""The main thread's, and the poll thread's."""


@dataclass(frozen=True)
class RoutedSide:
    """One port of the router.

    Attributes:
        number: of the port in OpenFlow.
        mac: the router's there.
        tester_mac: the tester's, which the engine gives ports in shared memory.
        own: the router's addresses there.
        networks: behind it.
    """

    number: int
    mac: str
    tester_mac: str
    own: tuple[str, ...]
    networks: tuple[str, ...]


ROUTED: dict[Side, RoutedSide] = {
    "left": RoutedSide(
        1,
        "02:00:00:00:01:01",
        "02:00:00:00:00:01",
        ("198.18.0.1", "2001:2::1"),
        ("198.18.0.0/16", "2001:2::/49"),
    ),
    "right": RoutedSide(
        2,
        "02:00:00:00:01:02",
        "02:00:00:00:00:02",
        ("198.19.0.1", "2001:2:0:8000::1"),
        ("198.19.0.0/16", "2001:2:0:8000::/49"),
    ),
}


def rules(*, tracked: bool = False) -> list[str]:
    """The router, as ``ovs-ofctl add-flows`` reads it; ``tracked``: of connections."""
    left, right = ROUTED["left"], ROUTED["right"]
    routes = [*_routes(left, right), *_routes(right, left)]
    if tracked:
        routes = [*_tracking(left), *_tracking(right), *map(_tracked, routes)]
    return [
        *_answers(left),
        *_answers(right),
        *routes,
        *(f"table={table},priority=0,actions=drop" for table in range(3)),
    ]


_TRACKED = 2
"""The table of packets of which it is known to which connection they belong."""


def _tracking(came: RoutedSide) -> Iterator[str]:
    for version in ("ip", "ipv6"):
        yield (
            f"priority=40,in_port={came.number},dl_dst={came.mac},{version},"
            f"actions=ct(table={_TRACKED})"
        )


def _tracked(route: str) -> str:
    """From the left what opens a connection, from the right what belongs to one."""
    match, _, actions = route.partition("actions=")
    opens = f"in_port={ROUTED['left'].number}," in match
    state = "+trk-inv" if opens else "+trk+est-inv"
    known = "ct(commit)," if opens else ""
    return f"table={_TRACKED},{match}ct_state={state},actions={known}{actions}"


def _answers(side: RoutedSide) -> Iterator[str]:
    """ARP (RFC 826) and neighbour discovery (RFC 4861 7.2.4), out of the question."""
    back = f"move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],mod_dl_src:{side.mac}"
    mac = f"0x{side.mac.replace(':', '')}"
    for address in map(ipaddress.ip_address, side.own):
        if address.version == 4:
            yield (
                f"priority=100,in_port={side.number},arp,arp_op=1,arp_tpa={address},"
                f"actions={back},load:2->NXM_OF_ARP_OP[],"
                f"move:NXM_NX_ARP_SHA[]->NXM_NX_ARP_THA[],load:{mac}->NXM_NX_ARP_SHA[],"
                "move:NXM_OF_ARP_SPA[]->NXM_OF_ARP_TPA[],"
                f"load:{int(address):#x}->NXM_OF_ARP_SPA[],in_port"
            )
            continue
        # An answer's own option can be set only once it is one: in a table of its own.
        yield (
            f"priority=100,in_port={side.number},icmp6,icmpv6_type=135,icmpv6_code=0,"
            f"nd_target={address},actions=set_field:2->nd_options_type,"
            "set_field:136->icmpv6_type,set_field:0x60000000->nd_reserved,resubmit(,1)"
        )
        yield (
            f"table=1,in_port={side.number},icmp6,icmpv6_type=136,icmpv6_code=0,"
            f"actions={back},move:NXM_NX_IPV6_SRC[]->NXM_NX_IPV6_DST[],"
            f"set_field:{address}->ipv6_src,set_field:{side.mac}->nd_tll,in_port"
        )


def _routes(came: RoutedSide, goes: RoutedSide) -> Iterator[str]:
    for network in goes.networks:
        match = f"ipv6,ipv6_dst={network}" if ":" in network else f"ip,nw_dst={network}"
        yield (
            f"priority=50,in_port={came.number},dl_dst={came.mac},{match},"
            f"actions=dec_ttl,mod_dl_src:{goes.mac},mod_dl_dst:{goes.tester_mac},"
            f"output:{goes.number}"
        )


def _side(side: Side, ipv4: Ipv4Side, ipv6: Ipv6Side) -> SideConfig:
    number = ROUTED[side].number
    socket = str(StateFile().dut_directory / RUN / "memif")
    port = MemifPort(
        memif=socket,
        id=number,
        ring_frames=RING_FRAMES,
        mac=ROUTED[side].tester_mac,
        rx_queues=_QUEUES,
    )
    return SideConfig(port=port, ipv4=ipv4, ipv6=ipv6)


def _control(name: str) -> str:
    return f"{StateFile().dut_directory / RUN / name}"


PAGES = Path("/proc/sys/vm/nr_hugepages")
PACKAGE = "openvswitch-switch-dpdk"
_FREE_PAGES = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
_MEMORY_MB = 512
_PAGE_MB = 2
_SWITCH = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
_PROGRAMS = (_SWITCH, "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl")
_SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
_POLL_THREAD = "pmd-"
_POLL_NICE = -20
_TRIES_S = 30.0


def pages_to_reserve() -> tuple[ChangedSetting, ...]:
    """The kernel's setting for as many huge pages as it needs, if they are not free.

    Raises:
        SetupError: this machine has no huge pages of 2 MiB.
    """
    if not _FREE_PAGES.exists():
        raise SetupError(
            "Open vSwitch with DPDK needs huge pages of 2 MiB; this kernel has none",
            "use a kernel with CONFIG_HUGETLBFS",
        )
    missing = _MEMORY_MB // _PAGE_MB - int(_FREE_PAGES.read_text("ascii"))
    if missing <= 0:
        return ()
    now = int(PAGES.read_text("ascii"))
    return (ChangedSetting(path=PAGES, before=now, meanwhile=now + missing),)


def check_pages(settings: tuple[ChangedSetting, ...]) -> None:
    """Give back what the kernel has reserved, if it is less than asked for.

    Raises:
        SetupError: it is less.
    """
    for setting in settings:
        got = int(setting.path.read_text("ascii"))
        if got < setting.meanwhile:
            setting.path.write_text(f"{setting.before}\n", "ascii")
            raise SetupError(
                f"Open vSwitch with DPDK needs {_MEMORY_MB} MiB of huge pages, and the "
                f"kernel found {(got - setting.before) * _PAGE_MB} MiB in such pieces",
                "free memory, or reserve them after a restart: "
                f"echo {setting.meanwhile} > {PAGES}",
            )


@dataclass(frozen=True, kw_only=True)
class OpenVSwitch(ProgramDevice):
    """Open vSwitch with DPDK: two processes, ports in shared memory, rules."""

    ring_frames: ClassVar[int] = RING_FRAMES
    tracks: bool = False

    def check_programs(self, _cpus: CpuPlan) -> None:
        """All of one Debian package."""
        for program in _PROGRAMS:
            netns.check_program(program, PACKAGE)

    def changes(self, _cpus: CpuPlan) -> machine.Changes:
        """Huge pages."""
        return machine.Changes(needed=pages_to_reserve())

    def check_changes(self, changes: machine.Changes) -> None:
        """The kernel reserves what it finds."""
        check_pages(changes.needed)

    def start(self, cpus: CpuPlan, programs: Programs) -> None:
        """Starts it with its poll thread on the device's CPU.

        Raises:
            SetupError: it does not start, or does not take ports or rules.
        """
        cpu = cpus.worker if cpus.dut is None else cpus.dut
        run = programs.directory / RUN
        run.mkdir()
        started = partial(_run, self.namespaces[0], replace(programs, cpu=cpu))
        database = run / "db.sock"
        _call("ovsdb-tool", "create", str(run / "conf.db"), str(_SCHEMA))
        started(
            ["ovsdb-server", str(run / "conf.db"), f"--remote=punix:{database}"],
            run / "db",
            database.exists,
        )
        ask = ["ovs-vsctl", f"--db=unix:{database}", f"--timeout={_TRIES_S:.0f}"]
        _call(*ask, "--no-wait", "init")
        options = _options(self.own_name, cpu)
        _call(*ask, "--no-wait", "set", "Open_vSwitch", ".", *options)
        switch = started(
            [_SWITCH, f"unix:{database}"], run / "vs", (run / "vs.ctl").exists
        )
        _call(*ask, *_bridge(run))
        told = "".join(f"{rule}\n" for rule in rules(tracked=self.tracks))
        bridge = f"unix:{run / BRIDGE}.mgmt"
        refused = feed(["ovs-ofctl", "add-flows", bridge, "-"], told)
        if refused:
            raise SetupError(f"Open vSwitch does not take its rules: {refused}")
        for side in netns.SIDES:
            _await_port(ask, side, run / "vs.log")
        _prefer_poll_thread(switch)


def _prefer_poll_thread(switch: Process) -> None:
    """Its other threads, on the same CPU, are to work when it can spare a moment.

    They do not forward, but the kernel would have it wait for them for milliseconds.
    """
    for task in (PROC / str(switch.pid) / "task").iterdir():
        if (task / "comm").read_text("utf-8").startswith(_POLL_THREAD):
            os.setpriority(os.PRIO_PROCESS, int(task.name), _POLL_NICE)


def _options(own_name: str | None, cpu: int) -> list[str]:
    mask = f"{1 << cpu:#x}"
    options = {
        "dpdk-init": "true",
        "dpdk-socket-mem": str(_MEMORY_MB),
        "dpdk-lcore-mask": mask,
        "pmd-cpu-mask": mask,
        # With random ports (RFC 4814) each frame is another flow: keeping them costs.
        "emc-insert-inv-prob": "0",
        "dpdk-extra": f"--no-pci --file-prefix={name_in_lab('dutperf-ovs', own_name)}",
    }
    return [f'other_config:{key}="{value}"' for key, value in options.items()]


def _bridge(run: Path) -> list[str]:
    """Orders that make it with its ports, all at once."""
    words = ["add-br", BRIDGE, "--", "set", "bridge", BRIDGE]
    words += ["datapath_type=netdev", "fail_mode=secure"]
    for side, routed in ROUTED.items():
        device = (
            f"net_memif{routed.number},role=server,id={routed.number},"
            f"socket={run / 'memif'},socket-abstract=no"
        )
        words += ["--", "add-port", BRIDGE, side, "--", "set", "interface", side]
        words += ["type=dpdk", f"ofport_request={routed.number}"]
        words += [f'options:dpdk-devargs="{device}"']
    return words


def _await_port(ask: list[str], side: str, log: Path) -> None:
    """``ovs-vsctl`` returns when the port was tried, whether it works or not."""
    error = _call(*ask, "get", "interface", side, "error").strip()
    if error != "[]":
        raise SetupError(
            f"Open vSwitch cannot open its {side} port: {error}", f"see {log}"
        )


def _run(
    namespace: str,
    programs: Programs,
    command: list[str],
    files: Path,
    runs: Callable[[], bool],
) -> Process:
    """One of the processes: ``files`` with .ctl and .log are its control and log."""
    directories = [f"OVS_{name}={files.parent}" for name in ("RUNDIR", "LOGDIR")]
    return programs.start(
        ["env", *directories, *command, f"--unixctl={files.with_suffix('.ctl')}"],
        runs,
        namespace=namespace,
        name=Path(command[0]).name,
        log=files.with_suffix(".log"),
        hint=f"it is in the Debian package {PACKAGE}",
    )


def _call(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SetupError(
            f"{command[0]} failed: {done.stderr.strip() or done.returncode}"
        )
    return done.stdout


OVS_DPDK = OpenVSwitch(
    name="ovs-dpdk",
    description="Open vSwitch on DPDK, a router by OpenFlow rules, one poll thread",
    addresses={
        "left": ("198.18.0.1/16", "2001:2::1/49"),
        "right": ("198.19.0.1/16", "2001:2:0:8000::1/49"),
    },
    left=_side(
        "left",
        LEFT_IPV4,
        LEFT_IPV6,
    ),
    right=_side(
        "right",
        RIGHT_IPV4,
        RIGHT_IPV6,
    ),
    hooks=Hooks(
        before_trial=[
            Hook(command=["ovs-appctl", "-t", _control("vs.ctl"), *_STATS_CLEAR])
        ],
        after_trial=[
            Hook(command=["ovs-appctl", "-t", _control("vs.ctl"), *_STATS]),
            Hook(command=["ovs-ofctl", "dump-ports", f"unix:{_control('dut.mgmt')}"]),
        ],
    ),
)


def _of_tracker(order: str) -> Hook:
    return Hook(command=["ovs-appctl", "-t", _control("vs.ctl"), f"dpctl/{order}"])


OVS_DPDK_CT = replace(
    OVS_DPDK,
    name="ovs-dpdk-ct",
    description="Open vSwitch on DPDK, a stateful firewall by its connection tracking",
    tracks=True,
    translates=False,
    hooks=OVS_DPDK.hooks.model_copy(
        update={
            "bulk_delete": _of_tracker("flush-conntrack"),
            "table_count": _of_tracker("ct-get-nconns"),
            "after_trial": [*OVS_DPDK.hooks.after_trial, _of_tracker("ct-get-nconns")],
        }
    ),
)
