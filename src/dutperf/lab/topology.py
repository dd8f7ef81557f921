"""A lab's namespaces, the wires between them, and nothing anywhere else.

    namespace tester          namespace dut
    left  o------ veth ------o left
    right o------ veth ------o right

Of a device with several ports on each side there are left2, right2, ... as well; of one
of two boxes the right ends are in namespace ``dut2``: see ``two_boxes``. A pair is made
inside ``tester`` with its peer in the other one at once: no interface, and so
no frame, is ever in the root namespace. The tester's kernel takes no part: its
interfaces have no addresses, no ARP and no IPv6. The DUT's kernel says nothing unasked.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Sequence

from dutperf.config.labs import IN_FLIGHT_FRAMES
from dutperf.errors import SetupError
from dutperf.lab import netns
from dutperf.lab.cpus import CpuPlan, rps_mask
from dutperf.lab.devices import nftables
from dutperf.lab.devices.device import LabDevice
from dutperf.programs import feed, in_namespace

NO_GENERATED_ADDRESSES = "1"  # IN6_ADDR_GEN_MODE_NONE, linux/if_link.h
FIRST_QDISC = 0x10000  # "1:"
QUIET_S = 0.2
QUIET_TIMEOUT_S = 15.0


def links(device: LabDevice) -> tuple[str, ...]:
    """The ends of its lab's wires, as namespace/interface."""
    if not device.wired:
        return ()
    ends = {device.tester: tuple(device.tester_ports), **device.interfaces}
    return tuple(f"{where}/{name}" for where, names in ends.items() for name in names)


def build(device: LabDevice, cpus: CpuPlan) -> None:
    """Makes the namespaces and wires, sets the DUT up, and waits until all is quiet.

    Wires alone, where the known-answer device answers at their ends; it may need none.

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
            netns.write_settings(device.tester, _silent(ends))
            drop_behind_sockets(device.tester, ends)
            _queue_before_wires(tester, ends)
            for name in device.namespaces:
                _build_box(device, name, cpus)
            # Last: the kernel may take a second to notice that the end which came up
            # second is up, and that end is waited for.
            for end in ends:
                tester.link(
                    "set", index=netns.index_of(tester, end), state="up", arp=False
                )
            if not device.answers:
                for end, home in device.homes.items():
                    netns.run_ip(home, told(device, end))
            if device.daemons:
                _sum_what_it_says(device)
            load_rules(device)
            _wait_until_quiet(tester, ends)


def _build_box(device: LabDevice, namespace: str, cpus: CpuPlan) -> None:
    ends = [end for end, home in device.homes.items() if home == namespace]
    settings = _silent(ends) if device.answers else kernel_settings(device, ends, cpus)
    netns.write_settings(namespace, settings)
    with netns.rtnetlink(namespace) as box:
        if device.answers:
            drop_behind_sockets(namespace, ends)
        if device.answers or cpus.receive is not None:
            _queue_before_wires(box, ends)
        if not device.answers:
            for end in ends:
                netns.add_addresses(box, end, device.addresses[end])
        for name in ("lo", *ends):
            box.link("set", index=netns.index_of(box, name), state="up")


def _sum_what_it_says(device: LabDevice) -> None:
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


def drop_behind_sockets(namespace: str, ends: Sequence[str]) -> None:
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


def load_rules(device: LabDevice) -> None:
    """Gives the DUT its rules alone, and the timeouts of what they make it track.

    Raises:
        SetupError: it did not take them; what it had stays.
    """
    for namespace, box in zip(device.namespaces, device.boxes, strict=True):
        refused = netns.replace_ruleset(namespace, box.ruleset) if box.ruleset else ""
        if refused:
            raise SetupError(
                f"cannot load the rules of {device.name}: {refused}",
                "it needs a kernel with nftables (CONFIG_NF_TABLES), and for NAT "
                "CONFIG_NFT_NAT",
            )
    if device.tracking:
        timeouts = nftables.timeouts(device.tracking.udp_timeout_s)
        netns.write_settings(device.namespaces[-1], timeouts)


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


def _silent(ends: Sequence[str]) -> dict[str, str]:
    """Of a kernel that has no part in it: somebody answers on sockets there."""
    scopes = ("all", "default", *ends)
    return {netns.sysctl_path(f"net.ipv6.conf.{s}.disable_ipv6"): "1" for s in scopes}


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
    return [*_unicast_only(device, end), *_routes(device, end)]


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
