"""Frames for a multicast group: what is sent, what is refused, what is said of it."""

from __future__ import annotations

from typing import Any

import pytest
from config_samples import make_campaign, make_testbed
from planning import TRANSLATOR
from pydantic import ValidationError

from dutperf.config import Testbed, conformance_of, expand
from dutperf.config.deviations import deviations
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.model.traffic import group_mac
from dutperf.run.trial_request import trial_request


def cells(
    testbed: Testbed | None = None,
    procedure: str = "multicast-throughput",
    **keys: Any,  # noqa: ANN401 - YAML
) -> list[Cell]:
    spec = {"procedure": procedure, **keys}
    return expand(make_campaign(spec), testbed or make_testbed())


@pytest.mark.parametrize(
    ("group", "mac"),
    [
        ("239.255.0.1", "01:00:5e:7f:00:01"),
        ("224.128.1.2", "01:00:5e:00:01:02"),
        ("232.129.255.254", "01:00:5e:01:ff:fe"),
        ("ff15::1", "33:33:00:00:00:01"),
        ("ff3e::8000:abcd", "33:33:80:00:ab:cd"),
    ],
)
def test_a_group_has_the_mac_address_of_the_rfcs(group: str, mac: str) -> None:
    assert group_mac(group) == mac


def test_frames_go_to_the_group_and_one_way() -> None:
    for cell, group in zip(cells(ip=[4, 6]), ("239.255.0.1", "ff15::1"), strict=True):
        (way,) = trial_request(make_testbed(), cell, 1000, 1).directions
        (stream,) = way.streams
        assert way.name == "forward"
        assert (stream.dst_ip, stream.dst_mac) == (group, group_mac(group))
        assert cell.id.endswith("forward-multicast")


def test_a_group_of_ones_own_and_the_other_way() -> None:
    (cell,) = cells(ip=[4], direction="reverse", traffic={"group": "232.1.2.3"})
    (way,) = trial_request(make_testbed(), cell, 1000, 1).directions
    assert (way.name, way.streams[0].dst_ip) == ("reverse", "232.1.2.3")


def test_other_procedures_may_send_to_a_group_too() -> None:
    (cell,) = cells(
        procedure="latency", ip=[4], rate_fps=1000, traffic={"group": "239.1.1.1"}
    )
    for way in trial_request(make_testbed(), cell, 1000, 1).directions:
        assert way.streams[0].dst_ip == "239.1.1.1"


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"traffic": {"group": "198.18.0.1"}}, "must be a multicast address"),
        ({"traffic": {"group": "somebody"}}, "must be a multicast address"),
        ({"traffic": {"group": "224.0.0.22"}}, "stays on its link"),
        ({"traffic": {"group": "ff02::1"}}, "stays on its link"),
        ({"traffic": {"group": "ff05::1"}, "ip": [4]}, "is no IPv4 address"),
        ({"traffic": {"group": "239.1.1.1"}, "ip": [6]}, "is no IPv6 address"),
        ({"traffic": {"addresses": 20}, "ip": [4]}, "several hosts or networks"),
        ({"traffic": {"networks": 256}, "ip": [4]}, "several hosts or networks"),
        ({"direction": "both"}, "members are on one side"),
        ({"flows": [1, 10]}, "one group"),
    ],
)
def test_what_one_group_has_no_use_for_is_refused(
    keys: dict[str, Any], told: str
) -> None:
    with pytest.raises((InputError, ValidationError), match=told):
        cells(**keys)


def test_a_translator_forwards_no_group() -> None:
    with pytest.raises(InputError, match="of one IP version"):
        cells(TRANSLATOR, ip=["6-4"])


def test_one_way_is_no_deviation_of_it() -> None:
    (cell,) = cells(ip=[4], repeats=3)
    assert not [d for d in deviations(cell) if "bidirectional" in d.requirement]
    said = conformance_of(cell, deviations(cell), valid=True)
    assert said.statement == "unconditionally compliant with RFC 3918 4.3"
