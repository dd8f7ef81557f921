"""A lab's namespaces, the wires between them, and nothing anywhere else.

    namespace tester          namespace dut
    left  o------ veth ------o left
    right o------ veth ------o right

Of a device with several ports on each side there are left2, right2, ... as well; of one
of two boxes the right ends are in namespace ``dut2``: see ``join``. A pair is made
inside ``tester`` with its peer in the other one at once: no interface, and so
no frame, is ever in the root namespace. The tester's kernel takes no part: its
interfaces have no addresses, no ARP and no IPv6. The DUT's kernel says nothing unasked.
"""

from __future__ import annotations

import ipaddress
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dutperf.config.campaign import IN_FLIGHT_FRAMES, LabKeys
from dutperf.config.testbed import DeviceFacts, Testbed
from dutperf.errors import SetupError
from dutperf.lab import netns
from dutperf.lab.presence import others
from dutperf.lab.processes import CpuPlan, cpus_of_mask, rps_mask
from dutperf.lab.state import LabState, StateFile
from dutperf.programs import feed, in_namespace

if TYPE_CHECKING:
    from dutperf.lab.devices.device import Box, LabDevice, Way
    from dutperf.lab.processes import CpuPlan


NO_GENERATED_ADDRESSES = "1"  # IN6_ADDR_GEN_MODE_NONE, linux/if_link.h
FIRST_QDISC = 0x10000  # "1:"
QUIET_S = 0.2
QUIET_TIMEOUT_S = 15.0
UP_TIMEOUT_S = 15.0
UP_POLL_S = 0.05
INNER = "inner"
"""The wire between two boxes, at both ends."""
INNER_MTU = 2000
"""A frame of 1,518 bytes has room there, and 100 bytes of headers around it, too."""


def links(device: LabDevice) -> tuple[str, ...]:
    """The ends of its lab's wires, as namespace/interface."""
    if not device.wired:
        return ()
    ends = {device.tester: tuple(device.tester_ports), **device.interfaces}
    return tuple(f"{where}/{name}" for where, names in ends.items() for name in names)


def build(device: LabDevice, cpus: CpuPlan) -> None:
    """Makes the namespaces and wires, sets the DUT up, and waits until all is quiet.

    Of a device behind shared memory there are no wires.

    Raises:
        SetupError: the kernel refused; the caller removes what was made so far.
    """
    with netns.kernel_errors("make the lab's namespaces and links"):
        for name in (device.tester, *device.namespaces):
            netns.pyroute2.netns.create(name)
        if not device.wired:
            return
        with netns.rtnetlink(device.tester) as tester:
            _add_wires(tester, device)
            ends = list(device.tester_ports)
            _silence(tester, device.tester, ends)
            for name in device.namespaces:
                own = [end for end, home in device.homes.items() if home == name]
                device.set_up(name, own, cpus)
            # Last: the kernel may take a second to notice that the end which came up
            # second is up, and that end is waited for.
            for end in ends:
                tester.link(
                    "set", index=netns.index_of(tester, end), state="up", arp=False
                )
            device.begin()
            _wait_until_quiet(tester, ends)


def set_up_forwarding(
    device: LabDevice, namespace: str, ends: Sequence[str], cpus: CpuPlan
) -> None:
    """Has the kernel of ``namespace`` forward between these ends of wires."""
    netns.write_settings(namespace, kernel_settings(device, ends, cpus))
    with netns.rtnetlink(namespace) as box:
        if cpus.receive is not None:
            _queue_before_wires(box, ends)
        for end in ends:
            netns.add_addresses(box, end, device.addresses[end])
        _set_up(box, ("lo", *ends))


def set_up_silent(namespace: str, ends: Sequence[str]) -> None:
    """Leaves what arrives at these ends to sockets there."""
    with netns.rtnetlink(namespace) as box:
        _silence(box, namespace, ends)
        _set_up(box, ("lo", *ends))


def _silence(handle: netns.Rtnetlink, namespace: str, ends: Sequence[str]) -> None:
    """Keeps its kernel out of it: somebody answers on sockets there."""
    scopes = ("all", "default", *ends)
    keys = [f"net.ipv6.conf.{scope}.disable_ipv6" for scope in scopes]
    netns.write_settings(namespace, {netns.sysctl_path(key): "1" for key in keys})
    _drop_behind_sockets(namespace, ends)
    _queue_before_wires(handle, ends)


def _set_up(handle: netns.Rtnetlink, names: Sequence[str]) -> None:
    for name in names:
        handle.link("set", index=netns.index_of(handle, name), state="up")


def sum_what_it_says(device: LabDevice) -> None:
    """What the DUT's own programs send leaves with its checksum.

    A wire's end leaves that to the other one, as if it were a NIC, and nobody does it.
    """
    for end, home in device.homes.items():
        refused = feed(in_namespace(home, "ethtool", "-K", end, "tx", "off"), "")
        if refused:
            raise SetupError(
                f"cannot switch off checksum offload in {home}: {refused}",
                "the lab needs CAP_NET_ADMIN",
            )


def restart_links(device: LabDevice) -> None:
    """Sets the DUT's ports down and up, and what the kernel forgot by it.

    Addresses stay (``keep_addr_on_down``) but for those of the link alone; routes and
    neighbours are gone.

    Raises:
        SetupError: the kernel refused.
    """
    for end, home in device.homes.items():
        netns.run_ip(home, [f"link set {end} down"])
    for end, home in device.homes.items():
        link_local = [
            f"addr replace {text} dev {end} nodad"
            for text in device.addresses[end]
            if ipaddress.ip_interface(text).is_link_local
        ]
        netns.run_ip(home, [f"link set {end} up", *link_local, *told(device, end)])


def _drop_behind_sockets(namespace: str, ends: Sequence[str]) -> None:
    """Lets its kernel forget received frames once packet sockets have them.

    The tester's IP layer would drop them too, but later, and on the CPU of the DUT,
    whose work ends at the wire. A kernel without nftables' ingress hook does without.
    """
    table = {"family": "netdev", "name": namespace}
    hook = {"type": "filter", "hook": "ingress", "prio": 0, "policy": "drop"}
    chains = [
        {"family": "netdev", "table": namespace, "name": end, "dev": end, **hook}
        for end in ends
    ]
    netns.load_ruleset(
        namespace, [{"add": {"table": table}}, *({"add": {"chain": c}} for c in chains)]
    )


def _add_wires(tester: netns.Rtnetlink, device: LabDevice) -> None:
    for end, home in device.homes.items():
        netns.add_wire(tester, end, home, device.tester_ports[end].config.port.mtu)


def _queue_before_wires(namespace: netns.Rtnetlink, ends: Sequence[str]) -> None:
    """Gives these ends a queue discipline, which never has a frame to hold.

    A veth without one hands the refusal of the DUT's full input queue back to a packet
    socket, which keeps the frame and sends it again: the DUT would never lose it. A
    queue discipline takes the frame over, and the refusal is the end of it.
    """
    for end in ends:
        namespace.tc(
            "add",
            "pfifo",
            index=netns.index_of(namespace, end),
            handle=FIRST_QDISC,
            limit=IN_FLIGHT_FRAMES,
        )


def kernel_settings(
    device: LabDevice, wires: Sequence[str], cpus: CpuPlan
) -> dict[str, str]:
    """Of a kernel that forwards between ``wires``: quiet, and on the DUT's CPU."""
    sysctls = dict(device.sysctls)
    for wire in ("all", "default", *wires):
        sysctls[f"net.ipv4.conf.{wire}.rp_filter"] = "0"
        sysctls[f"net.ipv6.conf.{wire}.accept_ra"] = "0"
        sysctls[f"net.ipv6.conf.{wire}.autoconf"] = "0"
        sysctls[f"net.ipv6.conf.{wire}.accept_dad"] = "0"
        sysctls[f"net.ipv6.conf.{wire}.dad_transmits"] = "0"
    for wire in wires:
        sysctls[f"net.ipv6.conf.{wire}.addr_gen_mode"] = NO_GENERATED_ADDRESSES
        sysctls[f"net.ipv6.conf.{wire}.keep_addr_on_down"] = "1"
        # Multicast listener reports cannot be switched off, but be over at once.
        sysctls[f"net.ipv6.conf.{wire}.mldv2_unsolicited_report_interval"] = "0"
    settings = {netns.sysctl_path(key): value for key, value in sysctls.items()}
    if cpus.dut is not None:
        for wire in wires:
            settings[netns.steering_path(wire)] = rps_mask(cpus.dut)
    return settings


def told(device: LabDevice, end: str) -> list[str]:
    """What the kernel is told of a port that is up."""
    own = device.told.get(end, ())
    return [*_unicast_only(device, end), *_routes(device, end), *own]


def _unicast_only(device: LabDevice, end: str) -> list[str]:
    """The last address of an IPv4 link is a host like any other, not a broadcast.

    Else one of every 256 addresses would be lost where 16 bits vary.
    """
    return [
        f"route del broadcast {own.network[-1]} dev {end} table local"
        for own in map(ipaddress.ip_interface, device.addresses[end])
        if own.version == 4
    ]


def _routes(device: LabDevice, end: str) -> list[str]:
    """The networks behind the tester: RFC 2544 12 wants up to 256 of them."""
    tester = device.tester_ports[end].config
    hops = {4: tester.ip(4), 6: tester.ip(6)}
    return [
        f"route add {network} via {hop.address} dev {end}"
        for network in device.networks.get(end, ())
        if (hop := hops[6 if ":" in network else 4])
    ]


def _wait_until_quiet(tester: netns.Rtnetlink, ends: Sequence[str]) -> None:
    """Waits for all links and for the DUT's last report of joined groups."""
    deadline = time.monotonic() + QUIET_TIMEOUT_S
    before: object = None
    while True:
        links = [tester.link("get", index=netns.index_of(tester, s))[0] for s in ends]
        received = [link.get_attr("IFLA_STATS64")["rx_packets"] for link in links]
        up = all(link.get_attr("IFLA_OPERSTATE") == "UP" for link in links)
        if up and received == before:
            return
        if time.monotonic() > deadline:
            raise SetupError(
                f"the lab's links are not up and quiet after {QUIET_TIMEOUT_S:g} s "
                f"(up: {up}, frames received: {received})",
                "look for a network manager that configures every interface it sees",
            )
        before = received
        time.sleep(QUIET_S)


# Of a device of two boxes in a chain (RFC 8219 4.2, dual DUT): the wire between them.
#
#     namespace tester      namespace dut         namespace dut2
#     left  o----- veth ----o left
#                             inner o---- veth ----o inner
#     right o----- veth ----------------------------o right
#
# What is on that wire is longer than the tester's frames, by another header or more:
# its MTU has room for those. Both boxes work on the DUT's CPU.


def join(device: LabDevice, cpus: CpuPlan) -> None:
    """Makes the wire between its two boxes, and the way of each to the other.

    Raises:
        SetupError: the kernel refused; the caller removes what was made so far.
    """
    first, second = device.namespaces
    with netns.kernel_errors("join the device's two boxes"):
        with netns.rtnetlink(first) as here:
            netns.add_wire(here, INNER, second, INNER_MTU)
        for namespace, box in _boxes_by_namespace(device):
            settings = kernel_settings(device, [INNER], cpus)
            netns.write_settings(namespace, settings)
            with netns.rtnetlink(namespace) as there:
                netns.add_addresses(there, INNER, box.inner)
            netns.run_ip(namespace, [f"link set {INNER} up"])
        for namespace, box in _boxes_by_namespace(device):
            _wait_until_up(namespace)
            open_way(namespace, box)
            netns.run_ip(namespace, [f"route add {route}" for route in box.routes])


def ways_now(device: LabDevice) -> list[str]:
    """The names of the ways that the boxes of the lab that is up have taken."""
    taken = (_taken(namespace, box) for namespace, box in _boxes_by_namespace(device))
    return list(dict.fromkeys(way.name for way in taken if way and way.name))


def _wait_until_up(namespace: str) -> None:
    """The kernel may take a second to notice, and IPv6 waits for that."""
    path = f"/sys/class/net/{INNER}/operstate"
    deadline = time.monotonic() + UP_TIMEOUT_S
    while netns.read_settings(namespace, [path]).get(path) != "up":
        if time.monotonic() > deadline:
            raise SetupError(
                f"the wire between the device's boxes is not up in {namespace} "
                f"after {UP_TIMEOUT_S:g} s",
                "look for a network manager that configures every interface it sees",
            )
        time.sleep(UP_POLL_S)


def _boxes_by_namespace(device: LabDevice) -> Iterator[tuple[str, Box]]:
    return zip(device.namespaces, device.boxes, strict=True)


def open_way(namespace: str, box: Box) -> None:
    """Takes the first of the box's ways whose link this kernel can make.

    Raises:
        SetupError: it can make none of them; says what it said of the last one.
    """
    for way in box.ways:
        try:
            if way.link is not None:
                netns.run_ip(namespace, [f"link add name {way.link}"])
        except SetupError:
            if way is box.ways[-1]:
                raise
        else:
            netns.run_ip(namespace, way.commands)
            return


def _taken(namespace: str, box: Box) -> Way | None:
    for way in box.ways:
        if way.link is None or _is_there(namespace, way.link.split()[0]):
            return way
    return None


def _is_there(namespace: str, link: str) -> bool:
    command = in_namespace(namespace, "ip", "link", "show", "dev", link)
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


# What a lab's device is, for reports: as it would be, and as it is now.
#
# Whoever has a lab that is kept may change its device at any time, so all that can
# change is read from the kernel when a measurement begins.


def facts(device: LabDevice, cpus: CpuPlan) -> DeviceFacts:
    """Its parameters (RFC 9693 6): it shares the tester's computer."""
    from dutperf.results.environment import computer  # noqa: PLC0415 - takes a while

    this = computer()
    kind = "virtual machine" if this.virtual else "the tester's own computer"
    links = "veth pairs of the kernel" if device.wired else "shared memory"
    shared = "1, the tester's" if cpus.dut is None else f"1, CPU {cpus.dut}"
    return DeviceFacts(
        computer=kind,
        cpu=this.cpu_model,
        cores=shared,
        memory=f"{this.memory_mb} MiB",
        nic=f"none: {links}",
        link="direct",
        os=this.os,
        kernel=this.kernel,
        nat=device.description,
    )


def shared(state: LabState) -> Iterator[str]:
    """With which other labs it shares CPUs, its tester's among them."""
    own = state.device_cpus | state.tester_cpus
    for _, other in others(StateFile(name=state.name)):
        shared = sorted(own & other.device_cpus)
        if shared:
            yield f"CPU {_listed(shared)} shared with lab {other.title}"


def of_processes(state: LabState) -> Iterator[str]:
    """The CPUs of its processes."""
    for process in state.processes:
        try:
            cpus = sorted(os.sched_getaffinity(process.pid))
        except OSError:
            continue
        if state.dut_cpu is None:
            yield f"on the tester's own CPU {_listed(cpus)} (no other is usable)"
        else:
            yield f"on CPU {_listed(cpus)}"


def receiving(cpu: int | None) -> list[str]:
    """What takes in for the tester what it sends, if that is not its own CPU."""
    return [] if cpu is None else [f"what it sends is taken in by CPU {cpu}"]


def steering(device: LabDevice, state: LabState) -> str:
    """To which CPUs RPS steers what arrives on each wire."""
    steered: dict[str, str] = {}
    for namespace, wires in device.interfaces.items():
        paths = {wire: netns.steering_path(wire) for wire in wires}
        shown = netns.read_settings(namespace, list(paths.values()))
        for wire, path in paths.items():
            cpus = _listed(cpus_of_mask(shown.get(path, "0")))
            end = wire if wire in device.homes else f"{wire} of {namespace}"
            steered[end] = cpus
    if not any(steered.values()):
        return f"on the tester's own CPU {_listed(state.tester_cores)}"
    if len(set(steered.values())) == 1:
        return f"steered to CPU {steered['left']} by RPS"
    told = (
        f"{end} {f'to CPU {cpus}' if cpus else 'not'}" for end, cpus in steered.items()
    )
    return f"steered by RPS: {', '.join(told)}"


def _listed(cpus: list[int]) -> str:
    return ", ".join(map(str, cpus))


# The testbed that a lab is, with its device as the lab makes it.


def testbed_of(device: LabDevice, cpus: CpuPlan, keys: LabKeys) -> Testbed:
    """As it will be; what may change of its device is read once it is up."""
    return Testbed(
        name=keys.testbed_name,
        description=", ".join(device.planned(cpus)),
        device=device.facts(cpus),
        namespace=device.tester,
        cores=[cpus.worker],
        main_core=cpus.main,
        left=device.side("left", keys.behaviour),
        right=device.side("right", keys.behaviour),
        translates=device.translates,
        hops=device.hops,
        translated_hops=device.translated_hops,
        ipv6_hops=device.ipv6_hops,
        hooks=device.hooks,
        nat_log=device.nat_log,
        routing=device.routing,
    )
