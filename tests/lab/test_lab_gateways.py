"""Stateful gateways by nftables: real packets there and back, and nothing left."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

import pytest
from labtools import deliver, ip_packet, leftovers, tolerant
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from dutperf import lab
from dutperf.config.campaign import LabKeys
from dutperf.config.testbed import Testbed
from dutperf.errors import InputError, SetupError
from dutperf.lab.devices.nftables import LIMIT

pytestmark = [
    *tolerant,
    pytest.mark.skipif(shutil.which("conntrack") is None, reason="needs conntrack"),
]

CLIENT_AND_SERVER = {
    "nft-nat44": ("10.0.0.2", "198.19.0.2"),
    "nft-nat66": ("2001:2::2", "2001:2:0:8000::2"),
    "tayga-nat64": ("2001:2::2", "2001:2:0:6464::c613:2"),
    "464xlat": ("10.0.0.2", "198.19.0.2"),
    "4in6": ("10.0.0.2", "198.19.0.2"),
}
PUBLIC = {
    "nft-nat44": ("198.19.0.1", "198.19.0.2"),
    "nft-nat66": ("2001:2:0:8000::1", "2001:2:0:8000::2"),
    "tayga-nat64": ("198.19.0.1", "198.19.0.2"),
    "464xlat": ("198.19.0.1", "198.19.0.2"),
    "4in6": ("198.19.0.1", "198.19.0.2"),
}


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    assert lab.running() == [], "a lab is up: take it down before testing the lab"
    before = LIMIT.read_text()
    yield
    lab.down()
    assert leftovers() == []
    assert LIMIT.read_text() == before


def connections(name: str) -> int:
    gateway = lab.LABS[name].namespaces[-1]
    command = ["ip", "netns", "exec", gateway, "conntrack", "-C"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(shown.stdout)


def ends(frame: Ether) -> tuple[str, str]:
    kind = IPv6 if IPv6 in frame else IP
    return frame[kind].src, frame[kind].dst


def is_dropped(testbed: Testbed, packet: Packet, ports: tuple[int, int]) -> bool:
    try:
        deliver(testbed, "right", packet, ports, wait_s=0.3)
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize("name", CLIENT_AND_SERVER)
def test_connections_are_opened_from_inside_only_and_deleted_by_the_hook(
    name: str,
) -> None:
    testbed = lab.up(name)
    client, server = CLIENT_AND_SERVER[name]
    gateway, responder = PUBLIC[name]
    there = deliver(testbed, "left", ip_packet(client, server), (10_000, 80))
    assert ends(there) == (gateway, responder)
    assert (there[UDP].sport, there[UDP].dport) == (10_000, 80)
    answer = ip_packet(responder, gateway)
    back = deliver(testbed, "right", answer, (80, 10_000))
    assert ends(back) == (server, client)
    assert (back[UDP].sport, back[UDP].dport) == (80, 10_000)
    assert connections(name) == 1
    assert is_dropped(testbed, answer, (80, 10_001))
    delete = testbed.hooks.bulk_delete
    assert delete is not None
    subprocess.run(delete.shown, check=True, capture_output=True)
    assert connections(name) == 0
    assert is_dropped(testbed, answer, (80, 10_000))


@pytest.mark.parametrize("name", ["nft-nat44", "4in6"])
def test_size_and_timeout_of_the_table_are_set_and_set_back(name: str) -> None:
    lab.up(name)
    lab.limit_connections(10_000, None)
    shown = lab.limit_connections(20_000, 30)
    assert shown.splitlines() == [
        "nf_conntrack_max 20000",
        "nf_conntrack_udp_timeout 30",
        "nf_conntrack_udp_timeout_stream 30",
    ]
    assert LIMIT.read_text().strip() == "20000"
    told = "nf_conntrack_max 20000, UDP timeout 30 s"
    assert told in lab.attached(name).description


def test_a_lab_of_a_campaign_has_the_table_that_is_asked_for() -> None:
    before = LIMIT.read_text()
    with lab.use(LabKeys(name="nft-nat44", connections=3000)) as testbed:
        assert LIMIT.read_text().strip() == "3000"
        assert "nf_conntrack_max 3000," in testbed.description
    assert LIMIT.read_text() == before
    lab.up("nft-nat44")
    with pytest.raises(SetupError, match="is kept, and does what it was told"):
        lab.check(LabKeys(name="nft-nat44", connections=3000))


def test_other_labs_have_no_such_table() -> None:
    with pytest.raises(InputError, match="linux-router has no table") as told:
        lab.check(LabKeys(name="linux-router", connections=10))
    assert "nft-nat44" in told.value.hint
    with pytest.raises(SetupError, match="no lab is up whose kernel") as refused:
        lab.limit_connections(10, None)
    assert "nft-nat44" in refused.value.hint
