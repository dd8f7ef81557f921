"""Devices of nftables' rules and the kernel's connection tracking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from dutperf.config.labs import DEFAULT_RULES
from dutperf.config.side import Ipv4Side, Ipv6Side
from dutperf.lab.devices.device import (
    UDP_TIMEOUTS,
    Box,
    LabDevice,
    Tracking,
    gateway_hooks,
    lab_side,
)
from dutperf.lab.devices.linux import LINUX_ROUTER, ROUTER_SYSCTLS
from dutperf.lab.state import ChangedSetting
from dutperf.protocol import Side

# nftables' JSON commands, of which rulesets of devices are made.


Command = Mapping[str, Any]


@dataclass(frozen=True)
class Table:
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


# The kernel's connection tracking in the DUT: how many, and for how long.
#
# The timeouts belong to the DUT's namespace, the limit to the whole machine: only the
# initial namespace can set it, and the lab sets it back when it goes.


LIMIT = Path("/proc/sys/net/netfilter/nf_conntrack_max")
SHOWN = [str(LIMIT), *(f"/proc/sys/net/netfilter/{key}" for key in UDP_TIMEOUTS)]


def settings_for(connections: int) -> tuple[ChangedSetting, ...]:
    """The setting that allows so many; none if it is so, or cannot be set here."""
    try:
        before = int(LIMIT.read_text("ascii"))
    except OSError:
        return ()
    if before == connections:
        return ()
    return (ChangedSetting(path=LIMIT, before=before, meanwhile=connections),)


def with_limit(
    settings: tuple[ChangedSetting, ...], connections: int
) -> tuple[ChangedSetting, ...]:
    """``settings`` with another limit, still to be set back to the first one."""
    others = tuple(s for s in settings if s.path != LIMIT)
    first = [s.before for s in settings if s.path == LIMIT]
    before = first[0] if first else int(LIMIT.read_text("ascii"))
    return (*others, ChangedSetting(path=LIMIT, before=before, meanwhile=connections))


def timeouts(udp_timeout_s: int) -> dict[str, str]:
    """The files of the DUT's namespace, and their values."""
    return {
        f"/proc/sys/net/netfilter/{key}": str(udp_timeout_s) for key in UDP_TIMEOUTS
    }


def planned_tracking(tracking: Tracking) -> str:
    """For the device's description: what it has when it comes up."""
    return _told(str(tracking.connections), str(tracking.udp_timeout_s))


def present_tracking(shown: Mapping[str, str]) -> str:
    """The same, by the values of the files ``SHOWN`` now."""
    settings_for, *timeouts = (shown.get(path, "unknown") for path in SHOWN)
    return _told(settings_for, " and ".join(dict.fromkeys(timeouts)))


def _told(limit: str, timeout_s: str) -> str:
    return f"nf_conntrack_max {limit}, UDP timeout {timeout_s} s"


# ``nft-nat44`` and ``nft-nat66``: stateful NAPT by nftables and connection tracking.
#
# The single DUT set-up of RFC 9693 3, the private side on the left:
#
#     tester                            dut
#     10.0.0.2    left  ------- left  10.0.0.1/8    2001:2::1/64
#     198.19.0.2  right ------- right 198.19.0.1/24 2001:2:0:8000::1/64
#
# All that leaves on the right by UDP, of the version that is translated, gets the DUT's
# own address there and a port from 1024 on: the sender's own where it is free. What
# comes from the right and belongs to no connection is dropped without a word. The other
# version is forwarded as by a router.


PUBLIC_IPV4 = "198.19.0.1"
PUBLIC_IPV6 = "2001:2:0:8000::1"
FIRST_PORT, LAST_PORT = 1024, 65535


def source_nat(family: Literal["ip", "ip6"], address: str) -> Iterator[Command]:
    """Commands for nftables: UDP leaves on the right as ``address``, and comes back."""
    table = Table(family, "nat")
    yield table.added()
    yield table.chain("leaving", "nat", "postrouting", 100)
    yield table.chain("passing", "filter", "forward", 0)
    yield table.chain("arriving", "filter", "input", 0)
    udp = matches({"meta": {"key": "l4proto"}}, "udp")
    ports = {"range": [FIRST_PORT, LAST_PORT]}
    to = {"snat": {"addr": address, "port": ports}}
    yield table.rule(
        "leaving", [matches({"meta": {"key": "oifname"}}, "right"), udp, to]
    )
    from_outside = matches({"meta": {"key": "iifname"}}, "right")
    new = matches({"ct": {"key": "state"}}, "new")
    yield table.rule("passing", [from_outside, udp, new, {"drop": None}])
    yield table.rule("arriving", [from_outside, udp, {"drop": None}])


def _nat(
    name: str, family: Literal["ip", "ip6"], address: str, virtual: str, right: str
) -> LabDevice:
    ipv4, ipv6 = (virtual, None) if family == "ip" else (None, virtual)
    return LabDevice(
        name=name,
        description=f"nftables source NAT of UDP to {right}",
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
            Ipv4Side(address="198.19.0.2", gateway="198.19.0.1"),
            Ipv6Side(address="2001:2:0:8000::2", gateway="2001:2:0:8000::1"),
        ),
        sysctls=ROUTER_SYSCTLS,
        boxes=(Box(ruleset=tuple(source_nat(family, address))),),
        tracking=Tracking(),
        hooks=gateway_hooks(),
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


FILTERS = (Table("ip", "filters"), Table("ip6", "filters"))
"""One table for each IP version, with one chain."""
FILTER_CHAIN = "forward"

_FORMATS = {"ip": "198.18.{}.{}", "ip6": "2001:2:0:{}::{}"}
_ALLOWED = {"ip": "198.18.0.0/15", "ip6": "2001:2::/48"}
_PAIRS = 155
"""With different third bytes: their destinations' go up to 255."""
_FAR = {1: 100, 2: 101}
"""Third bytes of the first destinations; from the third on they are 100 higher."""


def linux_firewall(rules: int = DEFAULT_RULES) -> LabDevice:
    """The device with so many filters."""
    return replace(
        LINUX_ROUTER,
        name="linux-firewall",
        boxes=(Box(ruleset=tuple(filters(rules))),),
        filters=rules,
    )


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


def denied(table: Table, count: int) -> Iterator[tuple[str, str]]:
    """Source and destination of the first ``count`` filters."""
    text = _FORMATS[table.family]
    for number in range(count):
        higher, lower = divmod(number, _PAIRS)
        net = lower + 1
        host = net + higher
        far = _FAR.get(net, net + 100)
        yield text.format(net, host), text.format(far, host)


# ``wire``: no device, but the links and CPUs of a lab: what the tester can do there.
#
#     tester                            dut
#     198.18.0.2     left  ------- left  ┐
#     198.19.0.2     right ------- right ┘ each frame goes on as it came
#
# The kernel hands each frame that arrives on one link to the other before any of its
# protocols sees it. What is left of the way is the tester's, its links' and its
# sockets': the passport of all labs whose links are veth pairs is made here. The
# tester's next hop on each side is its own other side.


_TABLE = {"family": "netdev", "name": "wire"}


def _from(side: Side, other: Side) -> tuple[dict[str, Any], ...]:
    chain = {"family": "netdev", "table": "wire", "name": side}
    hook = {"type": "filter", "hook": "ingress", "prio": 0, "dev": side}
    rule = {
        "family": "netdev",
        "table": "wire",
        "chain": side,
        "expr": [{"fwd": {"dev": other}}],
    }
    return (
        {"add": {"chain": {**chain, **hook, "policy": "accept"}}},
        {"add": {"rule": rule}},
    )


WIRE = LabDevice(
    name="wire",
    description="no device: a wire between the lab's links",
    addresses={"left": (), "right": ()},
    left=lab_side(
        "left",
        Ipv4Side(address="198.18.0.2", gateway="198.19.0.2"),
        Ipv6Side(address="2001:2::2", gateway="2001:2:0:8000::2"),
    ),
    right=lab_side(
        "right",
        Ipv4Side(address="198.19.0.2", gateway="198.18.0.2"),
        Ipv6Side(address="2001:2:0:8000::2", gateway="2001:2::2"),
    ),
    translates=False,
    boxes=(
        Box(
            ruleset=(
                {"add": {"table": _TABLE}},
                *_from("left", "right"),
                *_from("right", "left"),
            )
        ),
    ),
)
