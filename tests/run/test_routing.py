"""Routes that the tester tells: which, in which frames, and when."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest
from planning import TESTBED, TRANSLATOR, cell
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.rip import RIP, RIPEntry

from dutperf.errors import InputError
from dutperf.protocol.trial_messages import Announcement
from dutperf.run.engine_session import neighbours
from dutperf.run.trial_request import trial_request

SECOND = 10**9


def told(
    duration_s: float = 1.0, ip: int = 4, /, **traffic: object
) -> list[Announcement]:
    asked = cell(ip=[ip], traffic=traffic, trial_duration_s=duration_s)
    return trial_request(TESTBED, asked, 1000, 5).announcements


def packet(announcement: Announcement) -> IP:
    return IP(bytes.fromhex(announcement.packet))


def routes(announcement: Announcement) -> dict[str, int]:
    """Network and mask -> metric."""
    entries = {}
    layer = packet(announcement)[RIP].payload
    while isinstance(layer, RIPEntry):
        assert (layer.AF, layer.RouteTag, layer.nextHop) == (2, 0, "0.0.0.0")  # noqa: S104
        entries[f"{layer.addr}/{layer.mask}"] = layer.metric
        layer = layer.payload
    return entries


def routes6(announcement: Announcement) -> dict[str, int]:
    """Network -> metric, of a RIPng response (RFC 2080 2)."""
    shown = IPv6(bytes.fromhex(announcement.packet))
    assert (shown.dst, shown.hlim, shown.tc) == ("ff02::9", 255, 0xC0)
    assert (shown[UDP].sport, shown[UDP].dport) == (521, 521)
    again = shown.copy()
    del again.plen, again[UDP].chksum, again[UDP].len
    assert bytes(again) == bytes(shown)
    told = bytes(shown[UDP].payload)
    assert told[:4] == bytes([2, 1, 0, 0])
    entries = [told[at : at + 20] for at in range(4, len(told), 20)]
    assert all(entry[16:18] == bytes(2) for entry in entries)
    return {f"{ip_address(e[:16])}/{e[18]}": e[19] for e in entries}


def test_nothing_is_told_unless_asked_for() -> None:
    assert told() == []


def test_the_networks_of_the_frames_are_told_where_they_arrive() -> None:
    left, right = sorted(told(routes="rip"), key=lambda each: each.port)
    mask = "255.255.255.0"
    assert routes(left) == {f"198.18.0.0/{mask}": 7}
    assert routes(right) == {f"198.19.0.0/{mask}": 7}
    assert packet(left).src == "198.18.0.2"
    assert packet(right).src == "198.19.0.2"
    assert {left.at_ns, right.at_ns} == {None}


def test_256_networks_go_into_as_few_packets_as_rip_allows() -> None:
    found = [each for each in told(routes="rip", networks=256) if each.port == "right"]
    assert [len(routes(each)) for each in found] == [25] * 10 + [6]
    listed = {network for each in found for network in routes(each)}
    assert listed == {f"198.19.{n}.0/255.255.255.0" for n in range(256)}


def test_hosts_of_many_networks_are_all_in_networks_that_are_told() -> None:
    hosts = {"left": {"hosts": 600}}
    found = [
        each for each in told(routes="rip", addresses=hosts) if each.port == "left"
    ]
    listed = {network for each in found for network in routes(each)}
    assert listed == {f"198.18.{n}.0/255.255.255.0" for n in range(3)}


def test_the_packets_are_those_of_a_router() -> None:
    for each in told(routes="rip", networks=256):
        assert each.dst_mac == "01:00:5e:00:00:09"
        shown = packet(each)
        assert (shown.dst, shown.ttl, shown.tos) == ("224.0.0.9", 1, 0xC0)
        assert (shown[UDP].sport, shown[UDP].dport) == (520, 520)
        assert (shown[RIP].cmd, shown[RIP].version) == (2, 2)
        again = shown.copy()
        del again[IP].chksum, again[IP].len, again[UDP].chksum, again[UDP].len
        assert bytes(again) == bytes(shown)


@pytest.mark.parametrize(
    ("duration_s", "times_s"),
    [(60, [None]), (60.5, [None, 30, 60]), (120, [None, 30, 60, 90])],
)
def test_trials_of_more_than_60_s_are_told_again(
    duration_s: float, times_s: list[int | None]
) -> None:
    found = [each for each in told(duration_s, routes="rip") if each.port == "left"]
    expected = [t if t is None else t * SECOND for t in times_s]
    assert [each.at_ns for each in found] == expected


def test_other_routes_are_there_and_gone_in_turn_from_the_first_frame_on() -> None:
    found = [each for each in told(61, route_changes=True) if each.port == "right"]
    assert [each.at_ns for each in found] == [0, 30 * SECOND, 60 * SECOND]
    networks = [f"203.0.113.{8 * n}/255.255.255.248" for n in range(6)]
    assert [routes(each) for each in found] == [
        dict.fromkeys(networks, metric) for metric in (7, 16, 7)
    ]


def test_they_come_from_where_frames_come_from_and_both_kinds_go_together() -> None:
    asked = cell(
        ip=[4],
        direction=["forward"],
        traffic={"route_changes": True, "routes": "rip"},
    )
    found = trial_request(TESTBED, asked, 1000, 5).announcements
    assert [(each.port, each.at_ns) for each in found] == [("right", None), ("left", 0)]


def test_ipv6_networks_are_told_from_a_link_local_address() -> None:
    found = [e for e in told(1, 6, routes="rip", networks=256) if e.port == "right"]
    assert {each.dst_mac for each in found} == {"33:33:00:00:00:09"}
    assert [len(routes6(each)) for each in found] == [61] * 4 + [12]
    assert max(len(each.packet) // 2 for each in found) <= 1280
    listed = {network for each in found for network in routes6(each)}
    assert listed == {str(ip_network(f"2001:2:0:{n:x}::/64")) for n in range(256)}
    assert {IPv6(bytes.fromhex(e.packet)).src for e in found} == {"fe80::2"}


def test_other_ipv6_routes_change_too() -> None:
    found = [e for e in told(31, 6, route_changes=True) if e.port == "left"]
    networks = [
        "2001:db8::/64",
        *(f"2001:db8:0:{n}::/64" for n in range(1, 6)),
    ]
    assert [routes6(each) for each in found] == [
        dict.fromkeys(networks, metric) for metric in (7, 16)
    ]


def test_of_a_mix_each_stream_has_its_protocol() -> None:
    found = told(routes="rip", route_changes=True, mix="50/50", networks=4)
    left = [(e.packet[0], e.at_ns) for e in found if e.port == "left"]
    assert sorted(left, key=str) == [("4", 0), ("4", None), ("6", 0), ("6", None)]


@pytest.mark.parametrize(
    ("traffic", "versions", "answered"),
    [
        ({}, 6, False),
        ({"routes": "rip"}, 6, True),
        ({"route_changes": True}, 6, True),
        ({"routes": "rip"}, 4, False),
    ],
)
def test_the_tester_answers_for_the_address_that_it_tells_from(
    traffic: dict[str, object], versions: int, answered: object
) -> None:
    asked = neighbours(TESTBED, [cell(ip=[versions], traffic=traffic)])
    for port in asked.ports:
        own = [each.first for each in port.own]
        assert ("fe80::2" in own) is answered
        assert own[0] != "fe80::2"


def test_other_routing_protocols_are_refused() -> None:
    with pytest.raises(InputError, match="routes"):
        cell(ip=[4], traffic={"routes": "isis"})


def test_the_longest_trial_has_room_for_all_updates_and_a_longer_one_is_refused() -> (
    None
):
    traffic = {"routes": "rip", "route_changes": True, "networks": 256}
    assert len(told(3600, **traffic)) == 2 * (120 * 11 + 120)
    with pytest.raises(InputError, match="for trials of up to 3,600 s"):
        told(3601, **traffic)


def test_translators_are_no_routers() -> None:
    with pytest.raises(InputError, match="frames are translated"):
        cell(TRANSLATOR, ip=["6-4"], traffic={"routes": "rip"})
