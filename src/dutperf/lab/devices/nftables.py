"""Devices of nftables' rules and the kernel's connection tracking."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from dutperf.config.campaign import DEFAULT_RULES
from dutperf.config.side import Ipv4Side, Ipv6Side
from dutperf.config.testbed import Hooks, NatLog
from dutperf.errors import SetupError
from dutperf.lab import netns
from dutperf.lab.devices.device import RIGHT_IPV4, RIGHT_IPV6, Box, LabDevice, lab_side
from dutperf.lab.devices.linux import (
    LINUX_ROUTER,
    ROUTER_SYSCTLS,
    inside,
    kernel_hooks,
)
from dutperf.lab.netns import DUT
from dutperf.lab.processes import Process, Programs
from dutperf.lab.state import ChangedSetting
from dutperf.programs import in_namespace

Command = Mapping[str, Any]


@dataclass(frozen=True)
class NftTable:
    """A table of one IP version, and the commands that fill it."""

    family: Literal["ip", "ip6"]
    name: str

    def added(self) -> Command:
        """The table itself."""
        return {"add": {"table": {"family": self.family, "name": self.name}}}

    def chain(
        self, name: str, kind: str, hook: str, priority: int, policy: str = "accept"
    ) -> Command:
        """A chain at a hook; what no rule decides is up to ``policy``."""
        where = {"family": self.family, "table": self.name, "name": name}
        chain = {"type": kind, "hook": hook, "prio": priority, "policy": policy}
        return {"add": {"chain": {**where, **chain}}}

    def rule(self, chain: str, does: Sequence[Any]) -> Command:
        """The next rule of ``chain``."""
        where = {"family": self.family, "table": self.name, "chain": chain}
        return {"add": {"rule": {**where, "expr": list(does)}}}

    def between(self, source: object, destination: object) -> Iterator[Command]:
        """What matches packets from one address or network to another."""
        for key, value in (("saddr", source), ("daddr", destination)):
            yield matches({"payload": {"protocol": self.family, "field": key}}, value)


def matches(what: Mapping[str, Any], value: object) -> Command:
    """The part of a rule that lets those go on which have this value."""
    return {"match": {"op": "==", "left": what, "right": value}}


def network(text: str) -> Command:
    """``198.18.0.0/15``, for ``Table.between``."""
    address, _, length = text.partition("/")
    return {"prefix": {"addr": address, "len": int(length)}}


LIMIT = Path("/proc/sys/net/netfilter/nf_conntrack_max")
_TIMEOUTS = ("nf_conntrack_udp_timeout", "nf_conntrack_udp_timeout_stream")
SHOWN = [str(LIMIT), *(f"/proc/sys/net/netfilter/{key}" for key in _TIMEOUTS)]


@dataclass(frozen=True)
class Tracking:
    """The kernel's table of connections: its size and the timeout of UDP.

    The timeouts belong to the DUT's namespace, the limit to the whole machine: only the
    initial namespace can set it, and the lab sets it back when it goes.
    """

    connections: int = 1_000_000
    udp_timeout_s: int = 3600

    def needs(self) -> tuple[ChangedSetting, ...]:
        """The setting that allows so many; none if it is so, or cannot be set here.

        Raises:
            SetupError: it cannot be set to what was asked for.
        """
        try:
            before = int(LIMIT.read_text("ascii"))
        except OSError:
            if self.connections == Tracking.connections:
                return ()
            raise SetupError(
                f"the table cannot be given room for {self.connections:,} connections: "
                f"{LIMIT} cannot be read",
                "modprobe nf_conntrack, or leave connections out",
            ) from None
        if before == self.connections:
            return ()
        return (ChangedSetting(path=LIMIT, before=before, meanwhile=self.connections),)

    def set_timeouts(self, namespace: str) -> None:
        """Those of the DUT's namespace."""
        files = SHOWN[1:]
        netns.write_settings(namespace, dict.fromkeys(files, str(self.udp_timeout_s)))

    def planned(self) -> str:
        """For the device's description: what it has when it comes up."""
        return _told(str(self.connections), str(self.udp_timeout_s))

    def present(self, namespace: str) -> str:
        """The same, as it is in the DUT's namespace now."""
        shown = netns.read_settings(namespace, SHOWN)
        limit, *timeouts = (shown.get(path, "unknown") for path in SHOWN)
        return _told(limit, " and ".join(dict.fromkeys(timeouts)))


def _told(limit: str, timeout_s: str) -> str:
    return f"nf_conntrack_max {limit}, UDP timeout {timeout_s} s"


def with_limit(
    settings: tuple[ChangedSetting, ...], connections: int
) -> tuple[ChangedSetting, ...]:
    """``settings`` with another limit, still to be set back to the first one."""
    others = tuple(s for s in settings if s.path != LIMIT)
    first = [s.before for s in settings if s.path == LIMIT]
    before = first[0] if first else int(LIMIT.read_text("ascii"))
    return (*others, ChangedSetting(path=LIMIT, before=before, meanwhile=connections))


def restart_rules(device: LabDevice, _old: Sequence[Process], _new: Programs) -> str:
    """Deletes rules and connections of a gateway, and loads the rules again."""
    gateway = device.namespaces[-1]
    refused = netns.replace_ruleset(gateway, [])
    if refused:
        raise SetupError(f"cannot delete the rules of {device.name}: {refused}")
    forget = in_namespace(gateway, "conntrack", "-F")
    subprocess.run(forget, capture_output=True, check=True)
    device.load_rules()
    return "nftables' rules and connections were deleted, and the rules loaded"


def gateway_hooks(namespaces: Sequence[str] = (DUT,)) -> Hooks:
    """Empties the kernel's table before a trial; tells of it, and of frames, after.

    The table is that of the last box.
    """
    kernel = kernel_hooks(namespaces)
    in_gateway = partial(inside, namespaces[-1])
    names = (
        "nf_conntrack_count",
        "nf_conntrack_max",
        "nf_conntrack_buckets",
        *_TIMEOUTS,
    )
    shown = [f"net.netfilter.{name}" for name in names]
    return Hooks(
        set_cores=kernel.set_cores,
        bulk_delete=in_gateway("conntrack", "-F"),
        table_count=in_gateway("conntrack", "-C"),
        before_trial=kernel.before_trial,
        during_trial=kernel.during_trial,
        after_trial=[
            in_gateway("conntrack", "-C"),
            in_gateway("conntrack", "-S"),
            in_gateway("sysctl", *shown),
            *kernel.after_trial,
        ],
        is_alive=in_gateway("true"),
    )


def event_log(namespace: str = DUT) -> NatLog:
    """The kernel's events of new UDP connections, as conntrack(8) prints them.

    conntrack 1.4.7 sets ``--buffer-size`` of another socket than the one events come
    by; that one has room for some 10 ms of 20,000 a second. So it is let run at once.
    """
    events = ("conntrack", "-E", "-e", "NEW", "-p", "udp", "-o", "timestamp")
    hook = inside(namespace, "chrt", "--fifo", "1", *events)
    return NatLog(command=hook.shown, format="conntrack")


# ``nft-nat44`` and ``nft-nat66``: stateful NAPT by nftables and connection tracking.
#
# The single DUT set-up of RFC 9693 3, the private side on the left:
#
#     tester                            dut
#     10.0.0.2    left  ------- left  10.0.0.1/8    2001:2::1/64
#     198.19.0.2  right ------- right 198.19.0.1/24 2001:2:0:8000::1/64
#
# All UDP and TCP that leaves on the right, of the version that is translated, gets the
# DUT's own address there and a port from 1024 on: the sender's own where it is free.
# What comes from the right and belongs to no connection is dropped without a word. The
# other version is forwarded as by a router.


PUBLIC_IPV4 = "198.19.0.1"
PUBLIC_IPV6 = "2001:2:0:8000::1"
FIRST_PORT, LAST_PORT = 1024, 65535


def source_nat(family: Literal["ip", "ip6"], address: str) -> Iterator[Command]:
    """Commands for nftables: UDP and TCP leave as ``address``, and come back."""
    table = NftTable(family, "nat")
    yield table.added()
    yield table.chain("leaving", "nat", "postrouting", 100)
    yield table.chain("passing", "filter", "forward", 0)
    yield table.chain("arriving", "filter", "input", 0)
    tracked = matches({"meta": {"key": "l4proto"}}, {"set": ["tcp", "udp"]})
    ports = {"range": [FIRST_PORT, LAST_PORT]}
    to = {"snat": {"addr": address, "port": ports}}
    yield table.rule(
        "leaving", [matches({"meta": {"key": "oifname"}}, "right"), tracked, to]
    )
    from_outside = matches({"meta": {"key": "iifname"}}, "right")
    new = matches({"ct": {"key": "state"}}, "new")
    yield table.rule("passing", [from_outside, tracked, new, {"drop": None}])
    yield table.rule("arriving", [from_outside, tracked, {"drop": None}])


def _nat(
    name: str, family: Literal["ip", "ip6"], address: str, virtual: str, right: str
) -> LabDevice:
    ipv4, ipv6 = (virtual, None) if family == "ip" else (None, virtual)
    return LabDevice(
        name=name,
        description=f"nftables source NAT of UDP and TCP to {right}",
        addresses={
            "left": ("10.0.0.1/8", "2001:2::1/64", "fe80::1/64"),
            "right": ("198.19.0.1/24", "2001:2:0:8000::1/64", "fe80::1/64"),
        },
        left=lab_side(
            "left",
            Ipv4Side(address="10.0.0.2", gateway="10.0.0.1", virtual=ipv4),
            Ipv6Side(address="2001:2::2", gateway="2001:2::1", virtual=ipv6),
        ),
        right=lab_side(
            "right",
            RIGHT_IPV4,
            RIGHT_IPV6,
        ),
        sysctls=ROUTER_SYSCTLS,
        boxes=(Box(ruleset=tuple(source_nat(family, address))),),
        tracking=Tracking(),
        hooks=gateway_hooks(),
        nat_log=event_log(),
        restarts=restart_rules,
    )


NFT_NAT44 = _nat("nft-nat44", "ip", PUBLIC_IPV4, PUBLIC_IPV4, PUBLIC_IPV4)
NFT_NAT66 = _nat("nft-nat66", "ip6", PUBLIC_IPV6, PUBLIC_IPV6, PUBLIC_IPV6)


# ``linux-firewall``: ``linux-router`` behind N filters of nftables (RFC 2544 11.4).
#
# The addresses are those of 11.4.1 with aa.ba = 198.18. Sources and destinations of the
# first N - 1 filters are both on the left, so no test frame is ever between them,
# however its addresses vary, in neither direction. The last filter lets all pass
# between the networks for benchmarking (RFC 2544 has the two addresses of its test
# there; here they may vary), and what it does not is dropped. For N = 4:
#
#     deny   198.18.1.1     198.18.100.1        2001:2:0:1::1   2001:2:0:100::1
#     deny   198.18.2.2     198.18.101.2        2001:2:0:2::2   2001:2:0:101::2
#     deny   198.18.3.3     198.18.103.3        2001:2:0:3::3   2001:2:0:103::3
#     allow  198.18.0.0/15  198.18.0.0/15       2001:2::/48     2001:2::/48
#     deny   all else
#
# After the 155th pair the host's number grows: 198.18.1.2 to 198.18.100.2, and so on.
# Each packet meets the filters of its own IP version, one after the other, without sets
# and without state. ARP and neighbour discovery are not forwarded, and meet none.


FILTERS = (NftTable("ip", "filters"), NftTable("ip6", "filters"))
"""One table for each IP version, with one chain."""
FILTER_CHAIN = "forward"

_FORMATS = {"ip": "198.18.{}.{}", "ip6": "2001:2:0:{}::{}"}
_ALLOWED = {"ip": "198.18.0.0/15", "ip6": "2001:2::/48"}
_PAIRS = 155
"""With different third bytes: their destinations' go up to 255."""
_FAR = {1: 100, 2: 101}
"""Third bytes of the first destinations; from the third on they are 100 higher."""


@dataclass(frozen=True)
class Firewall(LabDevice):
    """A router behind filters; ``filters``: how many it has for each IP version."""

    takes: ClassVar[str] = "rules"

    filters: int = DEFAULT_RULES

    def with_rules(self, rules: int) -> LabDevice:
        """The same with so many."""
        return linux_firewall(rules)

    def software(self, *, now: bool = False) -> list[str]:
        """With its filters."""
        first, *others = super().software(now=now)
        counts = self.filters_now() if now else [self.filters]
        return [first, _described(counts), *others]

    def filters_now(self) -> list[int]:
        """As many as the kernel has now, for each IP version."""
        counts = netns.count_rules(self.namespaces[0], FILTERS[0].name)
        return [counts.get(table.family, 0) for table in FILTERS]


def _described(counts: Sequence[int]) -> str:
    """``counts``: for all IP versions, or one for each."""
    if len(set(counts)) > 1:
        ipv4, ipv6 = counts
        return f"nftables, {ipv4} filters for IPv4 and {ipv6} for IPv6"
    if not counts[0]:
        return "nftables without filters"
    filters = "1 filter" if counts[0] == 1 else f"{counts[0]} filters"
    return f"nftables, {filters}, the last one matches"


def linux_firewall(rules: int = DEFAULT_RULES) -> Firewall:
    """The device with so many filters."""
    own = {
        "name": "linux-firewall",
        "boxes": (Box(ruleset=tuple(filters(rules))),),
        "filters": rules,
    }
    return Firewall(**vars(LINUX_ROUTER) | own)


def filters(rules: int) -> Iterator[Command]:
    """Commands for nftables: ``rules`` filters of each IP version."""
    for table in FILTERS:
        yield table.added()
        yield table.chain(FILTER_CHAIN, "filter", "forward", 0, policy="drop")
        for source, destination in denied(table, rules - 1):
            yield table.rule(
                FILTER_CHAIN, [*table.between(source, destination), {"drop": None}]
            )
        everyone = network(_ALLOWED[table.family])
        yield table.rule(
            FILTER_CHAIN, [*table.between(everyone, everyone), {"accept": None}]
        )


def denied(table: NftTable, count: int) -> Iterator[tuple[str, str]]:
    """Source and destination of the first ``count`` filters."""
    text = _FORMATS[table.family]
    for number in range(count):
        higher, lower = divmod(number, _PAIRS)
        net = lower + 1
        host = net + higher
        far = _FAR.get(net, net + 100)
        yield text.format(net, host), text.format(far, host)
