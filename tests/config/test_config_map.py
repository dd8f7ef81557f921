"""Customer edges of a rule (MAP, lw4o6, 6rd): the RFC's example, frames that fit it."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from config_samples import make_campaign, make_testbed

from dutperf.config import Testbed, expand, from_data
from dutperf.config.encapsulation import (
    BindingRule,
    MapRule,
    SharingRule,
    SixRdDomain,
)
from dutperf.errors import InputError
from dutperf.protocol.stream_messages import FieldCopy, FieldVariation, StreamRequest
from dutperf.protocol.stream_parts import ReceivedEnd
from dutperf.run.engine_session import neighbours
from dutperf.run.trial_request import trial_request

EXAMPLE: dict[str, Any] = {
    "ipv6_prefix": "2001:db8::/40",
    "ipv4_prefix": "192.0.2.0/24",
    "ea_bits": 16,
}
"""RFC 7597 appendix A, example 1."""


def edges(
    rule: dict[str, Any] | None = None,
    address: str = "192.0.2.1",
    **keys: Any,  # noqa: ANN401 - YAML
) -> Testbed:
    testbed: dict[str, Any] = make_testbed().model_dump(exclude_none=True)
    given = {"kind": "ipv4-in-ipv6", "remote": "2001:db8:ffff::1"}
    own = rule or EXAMPLE
    key = "binding_table" if "first_b4" in own else "map"
    testbed["left"] |= {
        "ipv4": {"address": address},
        "encapsulation": given | {key: own} | keys,
    }
    return from_data(Testbed, testbed, "testbed")


def known_rule(rule: dict[str, Any]) -> SharingRule:
    kind = BindingRule if "first_b4" in rule else MapRule
    return kind.model_validate(rule)


def translated_edges(
    rule: dict[str, Any] | None = None, virtual: str = "192.0.2.1"
) -> Testbed:
    """A border relay of MAP-T is on the left, 64:ff9b::/96 its default mapping rule."""
    testbed: dict[str, Any] = make_testbed().model_dump(exclude_none=True)
    testbed["left"]["ipv4"] = {"virtual": virtual}
    testbed["left"]["translation"] = {"map": rule or EXAMPLE}
    testbed["right"]["ipv6"] = {"virtual": "64:ff9b::c613:2"}
    return from_data(Testbed, testbed, "testbed")


def streams(place: Testbed, **keys: Any) -> Sequence[StreamRequest]:  # noqa: ANN401 - YAML
    asked = {"procedure": "throughput", "ip": [4], "frame_size": [128]} | keys
    cell = expand(make_campaign(asked), place)[0]
    found = trial_request(place, cell, 1000, 1).directions
    return [direction.streams[0] for direction in found]


def test_the_address_is_that_of_the_rfcs_example() -> None:
    rule = MapRule.model_validate(EXAMPLE)
    assert rule.psid_bits == 8
    assert rule.address("192.0.2.18", 0x34) == "2001:db8:12:3400:0:c000:212:34"


def test_the_ports_are_those_of_the_rfcs_example() -> None:
    """PSID 0x34 has 1232 to 1235, 2256 to 2259, ..., 64720 to 64723: 63 ranges."""
    first, psid, last = MapRule.model_validate(EXAMPLE).ports("src_port")
    own = [
        a << 10 | 0x34 << 2 | m
        for a in range(first.min, first.max + 1)
        for m in range(last.min, last.max + 1)
    ]
    assert own[:5] == [1232, 1233, 1234, 1235, 2256]
    assert own[-4:] == [64720, 64721, 64722, 64723]
    assert len(own) == 63 * 4
    assert (psid.min, psid.max) == (0, 255)


RULES = [
    EXAMPLE,
    EXAMPLE | {"psid_offset": 0},
    EXAMPLE | {"psid_offset": 4, "ea_bits": 20},
    EXAMPLE | {"ea_bits": 8},
    EXAMPLE | {"ipv4_prefix": "192.0.2.1/32", "ea_bits": 10},
    EXAMPLE | {"ipv6_prefix": "2001:db8::/32", "ipv4_prefix": "10.0.0.0/8",
               "ea_bits": 32},
]  # fmt: skip

BINDING: dict[str, Any] = {
    "first_b4": "2001:db8::1/64",
    "ipv4_prefix": "192.0.2.0/24",
    "psid_length": 8,
}
TUNNELLED = [
    *RULES,
    BINDING,
    BINDING | {"first_b4": "2001:db8::1000:0/128", "psid_length": 6},
    BINDING | {"first_b4": "2001:db8:0:ff00::/72", "psid_offset": 6},
    BINDING | {"psid_length": 0},
    BINDING | {"ipv4_prefix": "192.0.2.1/32", "psid_length": 16},
    BINDING | {"ipv4_prefix": "192.0.2.1/32", "psid_length": 1},
    BINDING | {"ipv4_prefix": "10.0.0.0/8", "psid_length": 10, "first_b4": "2001::/62"},
]


def test_b4s_are_counted_by_their_addresses_and_their_port_sets() -> None:
    """RFC 7596: what the table of an lwAFTR says, one row after the other."""
    rule = BindingRule.model_validate(BINDING | {"psid_length": 2})
    assert [
        rule.address(f"192.0.2.{last}", psid) for last in (0, 1) for psid in range(4)
    ] == [
        *("2001:db8::1", "2001:db8:0:1::1", "2001:db8:0:2::1", "2001:db8:0:3::1"),
        *("2001:db8:0:4::1", "2001:db8:0:5::1", "2001:db8:0:6::1", "2001:db8:0:7::1"),
    ]
    each = BindingRule.model_validate(BINDING | {"first_b4": "2001:db8::/128"})
    assert each.address("192.0.2.1", 3) == "2001:db8::103"


@pytest.mark.parametrize(
    ("keys", "least"),
    [
        ({"psid_length": 8}, 4 * 256),
        ({"psid_length": 1}, 32768),
        ({"psid_length": 16}, 1024),
        ({"psid_length": 0}, 1024),
        ({"psid_length": 8, "psid_offset": 6}, 1024),
    ],
)
def test_nobody_has_system_ports(keys: dict[str, Any], least: int) -> None:
    rule = BindingRule.model_validate(BINDING | keys)
    ports = list(rule.ports("src_port"))
    assert sum(v.min << 16 - v.offset - v.width for v in ports) == least
    assert sum(v.max << 16 - v.offset - v.width for v in ports) == 65535


def varied(
    base: dict[str, int],
    widths: dict[str, int],
    variations: Sequence[FieldVariation],
    copies: Sequence[FieldCopy],
    draw: Random,
) -> dict[str, int]:
    """One frame's fields, bit after bit as the engine's messages say."""
    fields = dict(base)

    def put(name: str, offset: int, width: int, value: int) -> None:
        shift = widths[name] - offset - width
        mask = ((1 << width) - 1) << shift
        fields[name] = fields[name] & ~mask | value << shift

    for v in variations:
        put(v.field, v.offset, v.width, draw.randint(v.min, v.max))
    for c in copies:
        shift = widths[c.of] - c.of_offset - c.width
        value = fields[c.of] >> shift & ((1 << c.width) - 1)
        put(c.field, c.offset, c.width, value)
    return fields


@pytest.mark.parametrize("rule", TUNNELLED)
def test_each_frame_is_one_that_a_customer_edge_sends(rule: dict[str, Any]) -> None:
    network = ipaddress.IPv4Network(rule["ipv4_prefix"])
    place = edges(rule, address=str(network[0 if network.prefixlen == 32 else 1]))
    known = known_rule(rule)
    forward, _ = streams(place)
    variations = [v for v in forward.vary if v.field in ("src_ip", "src_port")]
    assert place.left.tunnel
    assert place.left.tunnel.local_bits == known.common_bits
    base = {
        "src_ip": int(ipaddress.IPv4Address(forward.src_ip)),
        "src_port": 0,
        "outer_src": int(ipaddress.IPv6Address(place.left.tunnel.local)),
    }
    widths = {"src_ip": 32, "src_port": 16, "outer_src": 128}
    draw = Random(1)  # noqa: S311 - a seed
    behind = 16 - known.psid_offset - known.psid_bits
    for _ in range(300):
        frame = varied(base, widths, variations, forward.copies, draw)
        ipv4 = str(ipaddress.IPv4Address(frame["src_ip"]))
        psid = frame["src_port"] >> behind & ((1 << known.psid_bits) - 1)
        assert known.holds(ipv4)
        outer = str(ipaddress.IPv6Address(frame["outer_src"]))
        assert outer == known.address(ipv4, psid)
        if known.psid_offset:
            assert frame["src_port"] >> (16 - known.psid_offset) > 0
        assert frame["src_port"] >= min(1024, 1 << (16 - known.psid_offset))


@pytest.mark.parametrize("rule", RULES)
def test_so_is_each_that_is_translated(rule: dict[str, Any]) -> None:
    """MAP-T: the packet's own address says whose it is (RFC 7599 6)."""
    network = ipaddress.IPv4Network(rule["ipv4_prefix"])
    first = str(network[0 if network.prefixlen == 32 else 1])
    known = MapRule.model_validate(rule)
    forward, reverse = streams(translated_edges(rule, first), ip=["6-4"])
    assert forward.ip_version == 6
    assert reverse.ip_version == 4
    assert reverse.dst_ip == first
    base = {"src_ip": int(ipaddress.IPv6Address(forward.src_ip)), "src_port": 0}
    widths = {"src_ip": 128, "src_port": 16}
    variations = [v for v in forward.vary if v.field in widths]
    draw = Random(2)  # noqa: S311 - a seed
    behind = 16 - known.psid_offset - known.psid_bits
    for _ in range(300):
        frame = varied(base, widths, variations, forward.copies, draw)
        embedded = str(ipaddress.IPv4Address(frame["src_ip"] >> 16 & 0xFFFFFFFF))
        psid = frame["src_port"] >> behind & ((1 << known.psid_bits) - 1)
        assert known.holds(embedded)
        own = str(ipaddress.IPv6Address(frame["src_ip"]))
        assert own == known.address(embedded, psid)


def is_for(end: ReceivedEnd, fields: dict[str, int]) -> bool:
    """What the engine is told to look at, bit after bit."""
    widths = {"dst_ip": 128 if fields["dst_ip"] >> 32 else 32, "dst_port": 16}
    found = fields["outer_dst"] if end.outer else fields["dst_ip"]
    expected = int(ipaddress.ip_address(end.address))
    for bits in end.follows:
        of = fields[bits.of] >> widths[bits.of] - bits.of_offset - bits.width
        mask = (1 << bits.width) - 1
        shift = 128 - bits.offset - bits.width
        expected = expected & ~(mask << shift) | (of & mask) << shift
    return found == expected


@pytest.mark.parametrize(
    ("translated", "rule"),
    [*((False, rule) for rule in TUNNELLED), *((True, rule) for rule in RULES)],
)
def test_what_arrives_must_be_for_the_edge_of_its_address_and_port(
    rule: dict[str, Any], *, translated: bool
) -> None:
    network = ipaddress.IPv4Network(rule["ipv4_prefix"])
    first = str(network[0 if network.prefixlen == 32 else 1])
    place = translated_edges(rule, first) if translated else edges(rule, first)
    forward, reverse = streams(place, ip=["6-4" if translated else 4])
    assert forward.received_end is None
    end = reverse.received_end
    assert end
    known = known_rule(rule)
    draw = Random(3)  # noqa: S311 - a seed
    behind = 16 - known.psid_offset - known.psid_bits
    least = 1 << 16 - known.psid_offset if known.psid_offset else 0
    for _ in range(300):
        inner = ipaddress.IPv4Address(
            int(network.network_address) + draw.randrange(network.num_addresses)
        )
        psid = draw.randrange(1 << known.psid_bits)
        port = least | psid << behind | draw.randrange(1 << behind)
        own = int(ipaddress.IPv6Address(known.address(str(inner), psid)))
        frame = {
            "dst_port": port,
            "dst_ip": own if translated else int(inner),
            "outer_dst": own,
        }
        assert is_for(end, frame)
        which = "dst_ip" if translated else "outer_dst"
        assert not is_for(end, frame | {which: own ^ 1 << draw.randrange(128)})


@pytest.mark.parametrize(
    ("place", "ip", "address", "psid"),
    [
        (edges(), 4, "2001:db8:1::c000:201:0", 1),
        (translated_edges(), "6-4", "2001:db8:1::c000:201:0", 1),
        (edges(BINDING), 4, "2001:db8:0:104::1", 5),
    ],
)
def test_a_spoofed_frame_has_the_first_edges_address_and_another_ones_port(
    place: Testbed, ip: str | int, address: str, psid: int
) -> None:
    keys: dict[str, Any] = {"direction": "forward", "traffic": {"spoofed_percent": 10}}
    cell = expand(make_campaign({"procedure": "throughput", "ip": [ip]} | keys), place)[
        0
    ]
    (direction,) = trial_request(place, cell, 1000, 1).directions
    good, bad = direction.streams
    assert good.name == "foreground"
    assert bad.name == "beside"
    assert bad.copies == []
    assert not any(v.field in ("src_ip", "src_port") for v in bad.vary)
    rule = place.left.edge_rule
    assert isinstance(rule, SharingRule)
    behind = 16 - rule.psid_offset - rule.psid_bits
    assert bad.src_port >> behind & 0xFF == psid
    assert place.left.edge == address
    assert cell.traffic.beside
    assert cell.traffic.beside.words == "10 % spoofed frames"


DOMAIN: dict[str, Any] = {"ipv6_prefix": "2001:db8::/32", "ipv4_prefix": "10.0.0.0/8"}


def domain(rule: dict[str, Any] = DOMAIN, own: str = "2001:db8:102:300::1") -> Testbed:
    testbed: dict[str, Any] = make_testbed().model_dump(exclude_none=True)
    testbed["left"]["ipv6"] = {"address": own}
    testbed["left"]["encapsulation"] = {
        "kind": "ipv6-in-ipv4",
        "remote": "192.88.99.1",
        "sixrd": rule,
    }
    return from_data(Testbed, testbed, "testbed")


DOMAINS = [
    (DOMAIN, "2001:db8:102:300::1"),
    (DOMAIN | {"ipv4_prefix": "10.1.0.0/16"}, "2001:db8:203::1"),
    ({"ipv6_prefix": "2001::/24", "ipv4_prefix": "0.0.0.0/1"}, "2001:5:6:7:800::1"),
    (DOMAIN | {"ipv4_prefix": "10.1.2.3/32"}, "2001:db8::1"),
]


def in_prefix(rule: SixRdDomain, address: int) -> str:
    """RFC 5969 4: the IPv4 address whose suffix stands behind the domain's prefix."""
    network = ipaddress.IPv4Network(rule.ipv4_prefix)
    length = ipaddress.IPv6Network(rule.ipv6_prefix).prefixlen
    bits = f"{address:0128b}"[length : length + 32 - network.prefixlen]
    first = f"{int(network.network_address):032b}"[: network.prefixlen]
    return str(ipaddress.IPv4Address(int(first + bits, 2)))


@pytest.mark.parametrize(("rule", "own"), DOMAINS)
def test_each_frame_of_a_domain_comes_from_the_ipv4_address_in_its_prefix(
    rule: dict[str, Any], own: str
) -> None:
    place = domain(rule, own)
    known = SixRdDomain.model_validate(rule)
    forward, reverse = streams(place, ip=[6])
    assert place.left.tunnel
    network = ipaddress.IPv4Network(known.ipv4_prefix)
    assert place.left.tunnel.local_bits == network.prefixlen
    assert reverse.received_end
    assert forward.received_end is None
    base = {
        "src_ip": int(ipaddress.IPv6Address(forward.src_ip)),
        "outer_src": int(ipaddress.IPv4Address(place.left.tunnel.local)),
    }
    assert str(ipaddress.IPv4Address(base["outer_src"])) == in_prefix(
        known, base["src_ip"]
    )
    widths = {"src_ip": 128, "outer_src": 128}
    variations = [v for v in forward.vary if v.field == "src_ip"]
    draw = Random(4)  # noqa: S311 - a seed
    for _ in range(300):
        frame = varied(base, widths, variations, forward.copies, draw)
        outer = str(ipaddress.IPv4Address(frame["outer_src"]))
        assert outer == in_prefix(known, frame["src_ip"])
        arrived = {
            "dst_ip": frame["src_ip"],
            "dst_port": 7,
            "outer_dst": frame["outer_src"],
        }
        assert is_for(reverse.received_end, arrived)
        wrong = frame["outer_src"] ^ 1 << draw.randrange(32)
        assert not is_for(reverse.received_end, arrived | {"outer_dst": wrong})
    ports = [v for v in forward.vary if v.field == "src_port"]
    assert [(v.min, v.max) for v in ports] == [(1024, 65535)], "those of RFC 4814"


def test_a_spoofed_frame_of_a_domain_has_the_prefix_of_another_edge() -> None:
    keys: dict[str, Any] = {"direction": "forward", "traffic": {"spoofed_percent": 10}}
    place = domain()
    cell = expand(make_campaign({"procedure": "throughput", "ip": [6]} | keys), place)[
        0
    ]
    (direction,) = trial_request(place, cell, 1000, 1).directions
    _, bad = direction.streams
    assert place.left.tunnel
    assert place.left.tunnel.local == "10.1.2.3"
    assert bad.src_ip == "2001:db8:102:200::1", "10.1.2.2"
    assert bad.copies == []
    assert not any(v.field == "src_ip" for v in bad.vary)


@pytest.mark.parametrize(
    ("rule", "own", "said"),
    [
        (DOMAIN | {"ipv6_prefix": "2001:db8::/48"}, "2001:db8::1", "more than the 64"),
        (DOMAIN, "2001:db9::1", "left.ipv6.address: must be an address of"),
        (DOMAIN | {"ipv4_prefix": "192.88.0.0/16"}, "2001:db8::1", "relay's own"),
    ],
)
def test_a_domain_that_cannot_be_is_refused(
    rule: dict[str, Any], own: str, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        domain(rule, own)


@pytest.mark.parametrize(
    ("place", "keys", "said"),
    [
        (edges(), {"direction": "both"}, "for one direction"),
        (edges(), {"direction": "reverse"}, "needs customer edges"),
        (edges(EXAMPLE | {"ea_bits": 8}), {}, "needs customer edges that share"),
        (make_testbed(), {}, "needs customer edges"),
    ],
)
def test_spoofed_frames_need_customer_edges(
    place: Testbed, keys: dict[str, Any], said: str
) -> None:
    asked = {
        "procedure": "throughput",
        "ip": [4],
        "direction": "forward",
        "traffic": {"spoofed_percent": 10},
    } | keys
    with pytest.raises(InputError, match=said):
        expand(make_campaign(asked), place)


def test_customer_edges_of_map_t_need_a_translation() -> None:
    data = translated_edges().model_dump(exclude_none=True)
    data["right"]["ipv6"] |= {"address": "2001:2:0:1::2", "gateway": "2001:2:0:1::1"}
    both = from_data(Testbed, data, "testbed")
    with pytest.raises(InputError, match=r"needs IPv6 on that side and IPv4 on the"):
        streams(both, ip=[6])
    with pytest.raises(InputError, match=r"left\.ipv4\.virtual: must be an address"):
        translated_edges(virtual="198.51.100.1")
    place = translated_edges()
    cells = expand(make_campaign({"procedure": "throughput", "ip": ["6-4"]}), place)
    left, _ = neighbours(place, cells).ports
    assert [(each.first, each.count) for each in left.own] == [("2001:2::2", 1)]


def test_frames_to_customer_edges_have_ports_that_one_of_them_has() -> None:
    _, reverse = streams(edges())
    assert reverse.copies == []
    ports = [v for v in reverse.vary if v.field == "dst_port"]
    assert [(v.offset, v.width, v.min) for v in ports] == [
        (0, 6, 1),
        (6, 8, 0),
        (14, 2, 0),
    ]
    assert [v.field for v in reverse.vary].count("src_port") == 1
    suffix = next(v for v in reverse.vary if v.field == "dst_ip")
    assert (suffix.offset, suffix.width, suffix.max) == (24, 8, 255)


def test_customer_edges_are_no_neighbours() -> None:
    place = edges()
    cells = expand(
        make_campaign({"procedure": "throughput", "ip": [4], "frame_size": [64]}), place
    )
    left, _ = neighbours(place, cells).ports
    firsts = {each.first for each in left.own}
    assert all(each.count == 1 for each in left.own)
    assert not any(first.startswith("2001:db8:") for first in firsts)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"ea_bits": 7}, "fewer than the IPv4 suffix has, 8"),
        ({"ipv6_prefix": "2001:db8:0:ff00::/56"}, "reach into"),
        ({"ea_bits": 20, "psid_offset": 6}, "more than a port has"),
        ({"ipv4_prefix": "192.0.2.1/24"}, "ipv4_prefix"),
        ({"ipv6_prefix": "2001:db8::1/40"}, "ipv6_prefix"),
        ({"ipv4_prefix": "198.51.100.0/24"}, "left.ipv4.address: must be an address"),
        ({"psid_offset": 16}, "psid_offset"),
        (BINDING | {"psid_length": 17}, "psid_length"),
        (BINDING | {"psid_length": 12, "psid_offset": 6}, "more than a port has"),
        (BINDING | {"first_b4": "192.0.2.1/24"}, "first_b4"),
        (BINDING | {"first_b4": "2001:db8::/12"}, "no room for numbers of 2^16 B4s"),
        (BINDING | {"first_b4": "2001:db8:0:5::/64"}, "and must be 0"),
        (BINDING | {"ipv4_prefix": "198.51.100.0/24"}, "encapsulation.binding_table"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(rule: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as refused:
        edges(rule if "first_b4" in rule else EXAMPLE | rule)
    assert said in refused.value.message


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"kind": "gre"}, "encapsulation.map: is ipv4-in-ipv6, not gre"),
        ({"local": "2001:db8::5"}, "encapsulation.local: does not go with map"),
        ({"tunnel_per_host": True}, "tunnel_per_host: does not go with map"),
        ({"binding_table": BINDING}, "binding_table: does not go with map"),
        ({"sixrd": DOMAIN}, "sixrd: does not go with map"),
    ],
)
def test_a_tunnel_that_has_no_rule_is_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as refused:
        edges(**keys)
    assert said in refused.value.message


@pytest.mark.parametrize(
    "traffic",
    [
        {"addresses": {"left": {"hosts": 4}}},
        {"networks": {"left": 4}},
        {"flows": 16},
        {"mix": "50/50", "background_ip": 4},
        {"fragmented": True},
    ],
)
def test_nothing_else_says_which_addresses_they_have(traffic: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"does not go with left.encapsulation"):
        streams(edges(), traffic=traffic)
    if traffic.keys() & {"addresses", "networks", "flows"}:
        with pytest.raises(InputError, match=r"does not go with left.translation"):
            streams(translated_edges(), ip=["6-4"], traffic=traffic)


def test_beside_customer_edges_of_map_t_are_no_others() -> None:
    data = translated_edges().model_dump(exclude_none=True)
    data["right"]["ipv6"] |= {"address": "2001:2:0:1::2", "gateway": "2001:2:0:1::1"}
    both = from_data(Testbed, data, "testbed")
    with pytest.raises(InputError, match=r"traffic.mix: does not go with left.trans"):
        streams(both, ip=["6-4"], traffic={"mix": "50/50"})
