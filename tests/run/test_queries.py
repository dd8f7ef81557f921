"""Management queries: which port asks whom, when, and what."""

from __future__ import annotations

import pytest
from planning import TESTBED, TRANSLATOR, cell
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.snmp import SNMP

from dutperf.config import Testbed
from dutperf.errors import InputError
from dutperf.protocol.trial_messages import Announcement
from dutperf.run.announcing import with_community
from dutperf.run.trial_request import trial_request

SECOND = 10**9
ASKED = {"management": True}


def asked(testbed: Testbed = TESTBED, **keys: object) -> list[Announcement]:
    plan = cell(testbed, **{"traffic": ASKED, "trial_duration_s": 1.0} | keys)
    return trial_request(testbed, plan, 1000, 5).announcements


def test_one_is_asked_first_in_each_second() -> None:
    assert [each.at_ns for each in asked(trial_duration_s=3.5)] == [
        0,
        SECOND,
        2 * SECOND,
        3 * SECOND,
    ]
    assert [each.at_ns for each in asked(trial_duration_s=0.01)] == [0]
    assert not trial_request(TESTBED, cell(), 1000, 5).announcements


def test_they_are_numbered_and_the_gateway_is_asked() -> None:
    found = asked(trial_duration_s=2, ip=[4])
    for number, each in enumerate(found, 1):
        packet = IP(bytes.fromhex(each.packet))
        assert (each.port, each.answered_from, each.dst_mac) == ("left", 161, None)
        own = TESTBED.left.ip(4)
        assert own
        assert (packet.src, packet.dst) == (own.address, own.gateway)
        assert (packet[UDP].sport, packet[UDP].dport) == (49_999, 161)
        assert SNMP(bytes(packet[UDP].payload)).PDU.id.val == number


def test_once_whatever_the_directions_and_in_the_version_of_the_side() -> None:
    (reverse,) = asked(direction=["reverse"])
    assert reverse.port == "right"
    (both,) = asked(ip=[6])
    assert IPv6(bytes.fromhex(both.packet)).version == 6


def test_the_testbed_says_what_the_agent_takes() -> None:
    keys = {"snmp": {"community": "lab", "interface": 300}}
    testbed = Testbed.model_validate(TESTBED.model_dump() | keys)
    plan = cell(testbed, traffic=ASKED, trial_duration_s=1.0)
    stored = trial_request(testbed, plan, 1000, 5)
    (each,) = with_community(stored, testbed, plan).announcements
    message = SNMP(bytes(IP(bytes.fromhex(each.packet))[UDP].payload))
    assert message.community.val == b"lab"
    assert message.PDU.varbindlist[1].oid.val.endswith(".10.300")


@pytest.mark.parametrize(
    ("testbed", "keys", "says"),
    [
        (TESTBED, {"trial_duration_s": 3601}, "up to 3,600 s"),
        (TRANSLATOR, {"procedure": "connection-rate"}, "stateful"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    testbed: Testbed, keys: dict[str, object], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        asked(testbed, **keys)


def test_a_device_without_an_address_cannot_be_asked() -> None:
    data = TESTBED.model_dump()
    data["left"]["ipv4"]["gateway"] = None
    data["left"]["next_hop_mac"] = "02:00:00:00:00:99"
    with pytest.raises(InputError, match=r"left\.ipv4\.gateway"):
        cell(Testbed.model_validate(data), ip=[4], traffic=ASKED)


def test_a_tester_that_is_its_own_gateway_is_not_asked() -> None:
    data = TESTBED.model_dump()
    left, right = data["left"]["ipv4"], data["right"]["ipv4"]
    left["gateway"], right["gateway"] = right["address"], left["address"]
    with pytest.raises(InputError, match=r"own right side: no device is there"):
        cell(Testbed.model_validate(data), ip=[4], traffic=ASKED)


@pytest.mark.parametrize("community", ["", "with space", "x" * 33, "ü"])
def test_no_other_community_is_taken(community: str) -> None:
    with pytest.raises(ValueError, match="community"):
        Testbed.model_validate(
            TESTBED.model_dump() | {"snmp": {"community": community}}
        )
