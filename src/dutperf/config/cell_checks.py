"""Whether the tester can tell the device routes, and as whom: by RIPv2 and RIPng."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from dutperf.config.encapsulation import BindingFile
from dutperf.config.flows import directions, ends, flows, senders, side_versions
from dutperf.config.testbed import FEWEST_READINGS, Testbed
from dutperf.errors import InputError
from dutperf.model.capture import Capture
from dutperf.model.cell import Cell
from dutperf.model.fields import KeyedError
from dutperf.model.frames import IpVersions, version_of
from dutperf.model.specs import (
    CapacitySearchKeys,
    NatLogSpec,
    OutageSpec,
    TeardownRateSpec,
)
from dutperf.protocol.base import IpVersion, RoutingDaemonProtocol, Side

_LONGEST_S = 3600
_LINK_LOCAL = ipaddress.IPv6Address("fe80::").packed[:8]


def speaks(cell: Cell) -> RoutingDaemonProtocol | None:
    """The protocol by which a daemon beside the tester tells the device routes."""
    routes = cell.traffic.routes
    return None if routes == "static" or routes == "rip" else routes


def tells_routes(cell: Cell, version: IpVersion) -> bool:
    """Whether the tester tells the device any of ``version``."""
    traffic = cell.traffic
    asked = traffic.routes != "static" or traffic.route_changes
    return asked and version in side_versions(cell, "left")


def told_from(testbed: Testbed, side: Side, version: IpVersion) -> str:
    """The address that the tester tells routes from; the next hop of them.

    Of IPv6 a link-local one (RFC 2080 2.5): the second half is the tester's own.
    """
    own = testbed.sides[side].ip(version)
    assert own  # noqa: S101 - who has frames of a version has an address of it
    if version == 4:
        return own.address
    half = ipaddress.IPv6Address(own.address).packed[8:]
    return str(ipaddress.IPv6Address(_LINK_LOCAL + half))


def captured_sizes(capture: Capture, ip: IpVersions) -> list[int]:
    """The sizes of what is sent of a capture, bytes with FCS.

    Raises:
        KeyedError: it was not read, or has no frames of that IP version alone.
    """
    keys = ("traffic", "pcap")
    if ip not in (4, 6):
        raise KeyedError(
            keys,
            f"is of one IP version, not for ip {ip}, whose frames are translated",
            "choose ip 4 or 6 (--ip), or give sizes by imix",
        )
    if capture.read is None:
        raise KeyedError(
            keys,
            f"names the file {capture.file}, and what was found in it is missing",
            "give the campaign that the user wrote",
        )
    other = capture.of(4 if ip == 6 else 6)
    if other and (capture.others == "refuse" or not capture.of(ip)):
        instead = 4 if ip == 6 else 6
        ways = [f"measure that: ip: [{instead}] (--ip {instead})"]
        if capture.of(ip):
            ways = ["others: skip (--pcap-others skip) leaves them out"]
        raise KeyedError(
            keys, f"{capture.name} has {len(other):,} frames of IPv{instead}", ways[0]
        )
    return capture.sizes(ip)


def check_captured(testbed: Testbed, cell: Cell) -> None:
    """Refuse frames of a capture where their addresses are somebody else's to say.

    Raises:
        KeyedError: several ports on a side, or customer edges.
    """
    if cell.traffic.pcap is None:
        return
    keys = ("traffic", "pcap")
    if cell.pairs > 1:
        raise KeyedError(keys, "is for one port on each side, not for several")
    for name, side in testbed.sides.items():
        own = side.encapsulation
        if side.edge_rule or (own and own.tunnel_per_host):
            raise KeyedError(
                keys,
                f"is not for the hosts of {name}, whose tunnels and ports follow their "
                "addresses",
            )


def check_routing(testbed: Testbed, cell: Cell) -> None:
    """Refuse routes that cannot be told.

    Raises:
        InputError: a device that translates, connections, trials that are too long, or
            a neighbour without an address.
    """
    traffic = cell.traffic
    key = "routes" if traffic.routes != "static" else "route_changes"
    if traffic.routes == "static" and not traffic.route_changes:
        return
    if cell.stateful:
        raise KeyedError(
            ("traffic", key),
            "is not for stateful tests, whose trials follow each other too closely",
            "leave it out, or measure without connections",
        )
    if cell.spec.trial_duration_s > _LONGEST_S:
        raise KeyedError(
            ("traffic", key),
            f"is for trials of up to {_LONGEST_S:,} s: longer ones need more updates "
            "than a trial takes",
            "shorten trial_duration_s (--trial-duration), or leave it out",
        )
    _check_neighbours(testbed, cell)
    for way in directions(cell):
        for flow in flows(testbed, cell, way):
            if flow.version != flow.received_version:
                raise KeyedError(
                    ("traffic", key),
                    f"is for routers, and of ip {cell.ip} frames are translated",
                    "leave it out there (static routes), or choose ip (--ip) 4 or 6",
                )


def _check_neighbours(testbed: Testbed, cell: Cell) -> None:
    """BGP is spoken with an address; a MAC address alone is not enough."""
    if speaks(cell) != "bgp":
        return
    for name, side in testbed.sides.items():
        for version in side_versions(cell, name):
            own = side.ip(version)
            if own and own.gateway is None:
                raise KeyedError(
                    ("traffic", "routes"),
                    f"bgp needs the address of its neighbour on the {name}: "
                    f"{name}.ipv{version}.gateway is missing",
                    "give it, beside next_hop_mac if that is needed; or let the device "
                    "speak OSPF (--routes ospf)",
                )


# Management queries beside the stream (RFC 2544 11.2): whom they are for.


_LONGEST_WAIT_S = 3600
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
    if cell.spec.trial_duration_s > _LONGEST_WAIT_S:
        raise KeyedError(
            _KEYS,
            f"is for trials of up to {_LONGEST_S:,} s, a query a second",
            "shorten trial_duration_s (--trial-duration), or leave it out",
        )
    asked_at(testbed, cell)


# Whether a cell's frames go through the tunnels of its testbed.


def check_tunnels(testbed: Testbed, cell: Cell) -> None:
    """Check that what each side sends may be inside its outer headers, if it has any.

    Raises:
        InputError: names the key that does not go with them.
    """
    _check_spoofed(testbed, cell)
    for name, side in testbed.sides.items():
        own = side.encapsulation
        key = f"{name}.{'encapsulation' if own else 'translation'}"
        if side.edge_rule:
            _check_customers(cell, name, f"{key}.{own.edge_key if own else 'map'}")
        if isinstance(side.edge_rule, BindingFile):
            _check_table(testbed, cell, name, side.edge_rule)
        if side.translation and not _is_translated(cell, name):
            raise KeyedError(
                ("ip",),
                f"{key} of testbed {testbed.name} needs IPv6 on that side and IPv4 on "
                f"the other one, not {cell.ip}",
                f"set ip: {'6-4' if name == 'left' else '4-6'}",
            )
        if own or side.translation:
            _check_streams(cell, key, is_tunnel=own is not None)
        for version in side_versions(cell, name):
            if own and not own.carries(version):
                raise KeyedError(
                    ("ip",),
                    f"{key} of testbed {testbed.name} is {own.kind}, and {cell.ip} has "
                    f"IPv{version} there",
                    "choose an ip whose packets are inside, or another kind",
                )


def _check_streams(cell: Cell, key: str, *, is_tunnel: bool) -> None:
    for name, given in (
        ("mix", cell.traffic.has_background),
        ("fragmented", cell.traffic.fragmented and is_tunnel),
    ):
        if given:
            raise KeyedError(
                ("traffic", name),
                f"does not go with {key}, which all test frames of that side have, "
                "whole",
                f"leave out traffic.{name}, or {key}",
            )


def _is_translated(cell: Cell, name: Side) -> bool:
    other: Side = "right" if name == "left" else "left"
    return version_of(cell.ip, name) == 6 and version_of(cell.ip, other) == 4


def _check_spoofed(testbed: Testbed, cell: Cell) -> None:
    if not cell.traffic.spoofed_percent:
        return
    for name in senders(cell):
        rule = testbed.sides[name].edge_rule
        if rule is None or not rule.can_be_spoofed:
            raise KeyedError(
                ("traffic", "spoofed_percent"),
                f"needs customer edges that share addresses, or a domain, on the "
                f"{name} side, and testbed {testbed.name} has none there",
                f"give the testbed {name}.encapsulation.map or {name}.translation.map, "
                "with more ea_bits than the IPv4 suffix has, or "
                f"{name}.encapsulation.binding_table with a psid_length or several "
                "B4s, or "
                f"{name}.encapsulation.sixrd",
            )


def _check_table(testbed: Testbed, cell: Cell, name: Side, rule: BindingFile) -> None:
    """Read it, and see whether ends that are drawn from it will do."""
    ipv4 = testbed.sides[name].ip(4)
    if ipv4 and not rule.table().holds(ipv4.address):
        raise InputError(
            f"testbed {testbed.name}: {name}.ipv4.address must be of the binding table "
            f"{rule.file}, and no entry has {ipv4.address}",
            "give an address of the table",
        )
    if cell.spec.tcp or cell.spec.dns:
        raise KeyedError(
            ("procedure",),
            f"does not go with {name}.encapsulation.binding_table.file of testbed "
            f"{testbed.name}: each of its frames has the ends of any entry",
            "measure with UDP frames, or give the table as a rule",
        )


def _check_customers(cell: Cell, side: Side, key: str) -> None:
    """What a rule says of addresses and ports nothing else may say.

    ``key``: of that rule.
    """
    traffic = cell.traffic
    for keys, given in (
        (("traffic", "addresses", side), traffic.addresses.of(side) is not None),
        (("traffic", "networks", side), traffic.networks.of(side) > 1),
        (("traffic", "flows"), traffic.flows is not None),
        (("stateful",), cell.stateful is not None),
    ):
        if given:
            raise KeyedError(
                keys,
                f"does not go with {key}: its rule says which addresses and ports its "
                "customer edges have",
                f"leave out {'.'.join(keys)}, or {key}",
            )


# Hooks without which a procedure cannot be measured.


def check_hooks(testbed: Testbed, cell: Cell) -> None:
    """Refuse a tear-down (RFC 9693 4.8) of a device that nobody can ask for it.

    And watts that nobody tells, or too rarely.

    Raises:
        InputError: says which hook, or meter, is missing.
    """
    if cell.spec.is_metered:
        _check_meter(testbed, cell)
    if not isinstance(cell.spec, TeardownRateSpec) or cell.stateful is None:
        return
    if cell.stateful.expiry and testbed.hooks.table_count is None:
        raise InputError(
            f"testbed {testbed.name} has no hook table_count, which counts the "
            "connections that are left",
            "add hooks: table_count: command: [...] to the testbed",
        )
    if not cell.stateful.expiry and testbed.hooks.bulk_delete is None:
        raise InputError(
            f"testbed {testbed.name} has no hook bulk_delete, which deletes all "
            "connections at once",
            "add hooks: bulk_delete: command: [...] to the testbed, or let them "
            "expire (--expiry)",
        )


def check_log(testbed: Testbed, cell: Cell) -> None:
    """Refuse to look into a log of mappings (RFC 6888 4) that nobody knows.

    Raises:
        InputError: the testbed has none.
    """
    if isinstance(cell.spec, NatLogSpec) and testbed.nat_log is None:
        raise InputError(
            f"testbed {testbed.name} does not say where the log of mappings is",
            "add nat_log: {file: ..., format: ...}, or command or listen for file, to "
            "the testbed",
        )


def _check_meter(testbed: Testbed, cell: Cell) -> None:
    meter, trial_s = testbed.power, cell.spec.trial_duration_s
    if meter is None:
        raise InputError(
            f"testbed {testbed.name} has no power meter",
            "add power: {command: [...], accuracy_percent: 1} to the testbed, or rapl, "
            "snmp or ipmi in place of command (docs/power.md); a lab has none",
        )
    if trial_s < meter.least_trial_s:
        raise KeyedError(
            ("trial_duration_s",),
            f"{trial_s:g} s is too short for {FEWEST_READINGS} readings of the meter, "
            f"which take {meter.least_trial_s:g} s",
            "send for longer (--trial-duration), or lower power.every_s of the testbed",
        )


def empties_table(testbed: Testbed) -> bool:
    """Whether a hook may do so before each test (RFC 9693 4.4)."""
    return bool(testbed.hooks.bulk_delete or testbed.hooks.before_trial)


def hook_notices(testbed: Testbed, cell: Cell) -> Iterator[str]:
    """Who acts where no hook does; an outage, and the table of RFC 9693 4.4."""
    if isinstance(cell.spec, OutageSpec) and not testbed.hooks.during_trial:
        yield (
            f"testbed {testbed.name} has no hook during_trial: "
            f"{cell.spec.trigger_after_s:g} s after a trial of outage has begun you "
            "are asked to interrupt the device"
        )
    stateful = cell.stateful
    if stateful is None or empties_table(testbed):
        return
    none = (
        f"testbed {testbed.name} has no hook that empties the device's table before "
        "each test (bulk_delete): "
    )
    size, timeout_s = stateful.table_size, stateful.dut_timeout_s
    waits = size is None or isinstance(cell.spec, CapacitySearchKeys)
    if waits and timeout_s is None:
        yield (
            f"{none}only one test can be made; give the device's --dut-timeout, which "
            "is waited for, or, but for table-capacity, its --table-size: then each "
            "test opens other connections"
        )
    elif waits:
        yield f"{none}the run waits before each, {stateful.forgotten_after_s:g} s"
    else:
        then = "" if timeout_s is None else ", then the run waits for its timeout"
        yield f"{none}each opens others, as long as {size:,} have room{then}"
