"""Routes that the tester tells: which, in which frames, and when."""

from __future__ import annotations

import pytest
from planning import TESTBED, TRANSLATOR, cell
from scapy.layers.inet import IP, UDP
from scapy.layers.rip import RIP, RIPEntry

from dutperf.errors import InputError
from dutperf.protocol import Announcement
from dutperf.run.trial_request import trial_request

SECOND = 10**9


def told(duration_s: float = 1.0, **traffic: object) -> list[Announcement]:
    asked = cell(ip=[4], traffic=traffic, trial_duration_s=duration_s)
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


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"ip": [6], "traffic": {"routes": "rip"}}, "these frames have IPv6"),
        ({"traffic": {"routes": "rip", "mix": "50/50"}}, "these frames have IPv6"),
        ({"traffic": {"routes": "ospf"}}, "routes"),
    ],
)
def test_what_rip_cannot_tell_is_refused(keys: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        cell(**{"ip": [4]} | keys)


def test_the_longest_trial_has_room_for_all_updates_and_a_longer_one_is_refused() -> (
    None
):
    traffic = {"routes": "rip", "route_changes": True, "networks": 256}
    assert len(told(3600, **traffic)) == 2 * (120 * 11 + 120)
    with pytest.raises(InputError, match="for trials of up to 3,600 s"):
        told(3601, **traffic)


def test_translators_are_no_routers() -> None:
    with pytest.raises(InputError, match="these frames have IPv6"):
        cell(TRANSLATOR, ip=["6-4"], traffic={"routes": "rip"})
