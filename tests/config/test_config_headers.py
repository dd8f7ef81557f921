"""Extension headers and options: what is refused, how sizes grow, what is sent."""

from __future__ import annotations

from typing import Any

import pytest
from config_samples import make_campaign, make_testbed
from planning import TRANSLATOR

from dutperf.config import Testbed, expand, from_data
from dutperf.config.sizes import mean_frame_size
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.model.traffic import Traffic
from dutperf.protocol.base import Ipv6Header, header_bytes
from dutperf.run.trial_request import trial_request

CHAIN: list[Ipv6Header] = ["routing", "destination-options", "fragment"]


def cells(testbed: Testbed | None = None, **keys: Any) -> list[Cell]:  # noqa: ANN401 - YAML
    spec = {"procedure": "throughput", **keys}
    return expand(make_campaign(spec), testbed or make_testbed())


def one(testbed: Testbed | None = None, **keys: Any) -> Cell:  # noqa: ANN401 - YAML
    [cell] = cells(testbed, **keys)
    return cell


def test_the_chain_of_rfc5180_is_as_long_as_it_says() -> None:
    assert header_bytes(CHAIN) == 24 + 8 + 8


@pytest.mark.parametrize(
    ("traffic", "ip", "size"),
    [
        ({"ipv6_headers": "rfc5180"}, 6, 124),
        ({"ipv6_headers": ["hop-by-hop", "authentication"]}, 6, 116),
        ({"ipv6_headers": "mobility"}, 6, 92),
        ({"ipv6_headers": "rfc5180"}, 4, 64),
        ({"ipv4_options": "router-alert"}, 4, 68),
        ({"ipv4_options": ["router-alert", "nop"]}, 4, 72),
        ({"ipv4_options": "nop"}, 6, 84),
    ],
)
def test_the_smallest_frame_grows_by_them(
    traffic: dict[str, Any], ip: int, size: int
) -> None:
    assert one(ip=[ip], traffic=traffic).frame_sizes == [size]
    key = next(iter(traffic))
    if size not in (64, 84):
        with pytest.raises(InputError, match=f"has {size} bytes") as refused:
            cells(ip=[ip], traffic=traffic, frame_size=[size - 1])
        assert f"traffic.{key}" in refused.value.message


def test_all_sizes_begin_with_the_smallest_that_fits() -> None:
    sizes = cells(ip=[6], frame_size="all", traffic={"ipv6_headers": "rfc5180"})
    assert [c.frame_sizes[0] for c in sizes][:3] == [124, 128, 256]


@pytest.mark.parametrize(
    ("traffic", "why"),
    [
        ({"ipv6_headers": ["rfc5180", "routing"]}, "let it stand alone"),
        ({"ipv6_headers": ["routing", "hop-by-hop"]}, "must be the first header"),
        ({"ipv6_headers": ["routing", "routing"]}, "must not list routing 2 times"),
        ({"ipv6_headers": ["mobility", "mobility"]}, "must not list mobility 2 times"),
        ({"ipv6_headers": ["esp"]}, "ipv6_headers"),
        ({"ipv4_options": ["nop"] * 11}, "ipv4_options"),
    ],
)
def test_what_cannot_be_sent_is_refused(traffic: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        from_data(Traffic, traffic, "traffic")


def test_only_the_foreground_has_them() -> None:
    keys = {"ipv6_headers": "rfc5180", "mix": "50/50", "background_ip": 6}
    cell = one(ip=[6], frame_size=[200], traffic=keys)
    for way in trial_request(make_testbed(), cell, 1000, 1).directions:
        foreground, background = way.streams
        assert foreground.ipv6_headers == CHAIN
        assert background.ipv6_headers == []
        assert foreground.received_frame_sizes == [200]


def test_a_translator_is_expected_to_leave_them_out() -> None:
    keys = {"ipv6_headers": "rfc5180", "ipv4_options": "nop"}
    cell = one(TRANSLATOR, ip=["6-4"], frame_size=[200], traffic=keys)
    forward, reverse = trial_request(TRANSLATOR, cell, 1000, 1).directions
    assert forward.streams[0].ipv6_headers == CHAIN
    assert forward.streams[0].frame_sizes == [200]
    assert forward.streams[0].received_frame_sizes == [200 - 20 - 40]
    assert reverse.streams[0].ipv4_options == ["nop"]
    assert reverse.streams[0].frame_sizes == [180]
    assert reverse.streams[0].received_frame_sizes == [196]
    assert mean_frame_size(cell, "left") == 200
    assert mean_frame_size(cell, "right") == 180


def test_a_cell_is_named_after_them() -> None:
    both = cells(
        ip=[6], traffic=[{}, {"ipv6_headers": "rfc5180"}, {"ipv6_headers": "routing"}]
    )
    assert [cell.id.partition("both")[2] for cell in both] == [
        "",
        "-ipv6-rfc5180",
        "-ipv6-routing",
    ]
