"""The firewall's filters as data, and that traffic passes all of them, in the lab."""

from __future__ import annotations

import ipaddress
import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from labtools import cross, tolerant

from dutperf import lab
from dutperf.config.campaign import MOST_RULES, LabKeys
from dutperf.errors import InputError, SetupError
from dutperf.lab import netns
from dutperf.lab.devices.linux import LINUX_ROUTER
from dutperf.lab.devices.nftables import (
    FILTER_CHAIN,
    FILTERS,
    NftTable,
    denied,
    filters,
)
from dutperf.protocol.base import IpVersion

NAME = "linux-firewall"
VERSIONS: dict[str, IpVersion] = {"ip": 4, "ip6": 6}


def rules_of(table: NftTable, count: int) -> list[list[Any]]:
    """What each filter of an IP version does."""
    added = [command["add"] for command in filters(count)]
    rules = [each["rule"] for each in added if "rule" in each]
    return [rule["expr"] for rule in rules if rule["family"] == table.family]


def test_the_addresses_are_those_of_rfc_2544() -> None:
    pairs = list(denied(FILTERS[0], 24))
    assert pairs[:3] == [
        ("198.18.1.1", "198.18.100.1"),
        ("198.18.2.2", "198.18.101.2"),
        ("198.18.3.3", "198.18.103.3"),
    ]
    assert pairs[-1] == ("198.18.24.24", "198.18.124.24")


@pytest.mark.parametrize("table", FILTERS, ids=lambda table: table.family)
@pytest.mark.parametrize("count", [1, 2, 25, 100, 300])
def test_all_but_the_last_filter_deny(table: NftTable, count: int) -> None:
    decisions = [expression[-1] for expression in rules_of(table, count)]
    assert decisions == [{"drop": None}] * (count - 1) + [{"accept": None}]


@pytest.mark.parametrize("table", FILTERS, ids=lambda table: table.family)
def test_no_two_filters_are_the_same_and_none_is_about_test_frames(
    table: NftTable,
) -> None:
    """Test frames go from one side to the other; these stay on the left."""
    pairs = list(denied(table, MOST_RULES))
    assert len(set(pairs)) == MOST_RULES
    left = ipaddress.ip_network("198.18.0.0/16" if table.family == "ip" else LEFT_IPV6)
    for text in {address for pair in pairs for address in pair}:
        assert ipaddress.ip_address(text) in left
    right = LINUX_ROUTER.right.ip(VERSIONS[table.family])
    assert right is not None
    assert ipaddress.ip_address(right.address) not in left


LEFT_IPV6 = "2001:2::/49"


@pytest.mark.parametrize("name", ["linux-router", "nft-nat44", "known-answer"])
def test_another_lab_takes_no_number_of_rules(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} has no filters") as caught:
        lab.plan(LabKeys(name=name, rules=25))
    assert NAME in caught.value.hint


def test_the_plan_tells_the_number_of_filters() -> None:
    assert "nftables, 100 filters, the last one" in lab.plan(NAME).description
    testbed = lab.plan(LabKeys(name=NAME, rules=1))
    assert "nftables, 1 filter, the last one matches" in testbed.description
    assert (lab.plan(NAME).name, testbed.name) == (NAME, f"{NAME}-1")


class TestInTheLab:
    """With the kernel's own nftables."""

    pytestmark = tolerant

    @pytest.fixture(autouse=True)
    def _down(self) -> Iterator[None]:
        lab.down()
        yield
        lab.down()

    @pytest.mark.parametrize("version", [4, 6])
    def test_a_frame_meets_every_filter_once(self, version: IpVersion) -> None:
        with lab.session(LabKeys(name=NAME, rules=25)) as testbed:
            netns.replace_ruleset(netns.DUT, list(counted(25)))
            for sender in netns.SIDES:
                before = met(version)
                cross(testbed, version, sender)
                after = met(version)
                assert [b - a for a, b in zip(before, after, strict=True)] == [1] * 25

    def test_what_is_not_allowed_does_not_pass(self) -> None:
        with lab.session(LabKeys(name=NAME, rules=1)) as testbed:
            cross(testbed, 4, "left")
            dut(["nft", "flush", "chain", "ip", FILTERS[0].name, FILTER_CHAIN])
            cross(testbed, 6, "left")
            with pytest.raises(AssertionError, match="did not arrive"):
                cross(testbed, 4, "left")

    def test_a_kept_lab_takes_another_number_and_is_described_as_it_is(self) -> None:
        assert "100 filters, the last one matches" in lab.up(NAME).description
        chosen = lab.up(LabKeys(name=NAME, rules=25))
        assert "25 filters, the last one matches" in chosen.description
        assert "25 filters" in lab.up(NAME).description
        dut(["nft", "flush", "chain", "ip", FILTERS[0].name, FILTER_CHAIN])
        description = lab.attached(NAME).description
        assert "0 filters for IPv4 and 25 for IPv6" in description

    def test_a_kept_lab_with_another_number_is_not_measured(self) -> None:
        lab.up(LabKeys(name=NAME, rules=25))
        assert lab.attached(LabKeys(name=NAME, rules=25)).name == f"{NAME}-25"
        with pytest.raises(SetupError, match="with 25 filters, not 1") as caught:
            lab.attached(LabKeys(name=NAME, rules=1))
        assert f"dutperf lab up {NAME} --rules 1" in caught.value.hint


def counted(count: int) -> Iterator[dict[str, Any]]:
    """The filters, each with a counter of the packets that it is asked about."""
    for command in filters(count):
        added = dict(command["add"])
        if "rule" in added:
            expression = [{"counter": None}, *added["rule"]["expr"]]
            added["rule"] = added["rule"] | {"expr": expression}
        yield {"add": added}


def met(version: IpVersion) -> list[int]:
    """How many packets each filter was asked about."""
    listed = json.loads(dut(["nft", "-j", "list", "ruleset"]))["nftables"]
    rules = [item["rule"] for item in listed if "rule" in item]
    return [
        rule["expr"][0]["counter"]["packets"]
        for rule in rules
        if VERSIONS[rule["family"]] == version
    ]


def dut(command: list[str]) -> str:
    found = subprocess.run(
        ["ip", "netns", "exec", netns.DUT, *command],
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout
