"""Cells: defaults, refusals before the first frame, and what is written down."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from config_samples import bench_data, make_campaign, make_testbed
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from dutperf.config import Campaign, expand, load_campaign, notices, resolved
from dutperf.errors import InputError
from dutperf.model.rate_specs import FrameLossSpec

THROUGHPUT = {"procedure": "throughput"}
LOSS = {"procedure": "frame-loss"}


def without(version: int, *sides: str) -> dict[str, Any]:
    data = bench_data()
    for side in sides:
        del data[side][f"ipv{version}"]
    return data


def test_defaults_are_all_versions_smallest_frames_both_directions() -> None:
    cells = expand(make_campaign(THROUGHPUT), make_testbed())
    assert [cell.id for cell in cells] == [
        "throughput-ip4-64-both",
        "throughput-ip6-84-both",
    ]
    assert [cell.frame_sizes for cell in cells] == [[64], [84]]


def test_a_version_that_only_one_side_has_is_left_out_by_default() -> None:
    testbed = make_testbed(**without(6, "right"))
    cells = expand(make_campaign(THROUGHPUT), testbed)
    assert [cell.ip for cell in cells] == [4]


def test_the_matrix_goes_by_procedure_then_version_then_size() -> None:
    campaign = make_campaign(
        {**LOSS, "ip": [6, 4], "frame_size": [256, 128]},
        {**THROUGHPUT, "direction": "forward"},
    )
    assert [cell.id for cell in expand(campaign, make_testbed())] == [
        "frame-loss-ip6-256-both",
        "frame-loss-ip6-128-both",
        "frame-loss-ip4-256-both",
        "frame-loss-ip4-128-both",
        "throughput-ip4-64-forward",
        "throughput-ip6-84-forward",
    ]


def test_a_cell_carries_everything_that_its_procedure_says() -> None:
    spec = {
        **THROUGHPUT,
        "ip": [4],
        "trial_duration_s": 3,
        "settle_wait_s": 0.5,
        "residual_wait_s": 0.25,
        "restabilise_wait_s": 0,
        "resolution": "2%",
        "repeats": 7,
        "lag_limit_ms": 5,
        "burst_limit": 8,
    }
    [cell] = expand(make_campaign(spec, seed=99), make_testbed())
    data = cell.spec.model_dump()
    assert cell.seed == 99
    assert {key: data[key] for key in spec} == spec


@pytest.mark.parametrize(
    ("given", "loads"),
    [
        ({}, [100, 90, 80, 70, 60, 50, 40, 30, 20, 10]),
        ({"load_percent": [20, 100, 60.5]}, [100, 60.5, 20]),
    ],
)
def test_loads_fall_strictly(given: dict[str, list[float]], loads: list[float]) -> None:
    spec = {**LOSS, "ip": [4], **given}
    [cell] = expand(make_campaign(spec), make_testbed())
    assert cell.spec_of(FrameLossSpec).load_percent == loads


@pytest.mark.parametrize(
    ("of_spec", "of_testbed", "expected"),
    [(None, None, None), (None, 7, 7), (5, None, 5), (5, 7, 5), (7, 7, 7)],
)
def test_the_maximum_rate_is_the_procedures_else_the_testbeds(
    of_spec: int | None, of_testbed: int | None, expected: int | None
) -> None:
    campaign = make_campaign({**THROUGHPUT, "max_rate_fps": of_spec})
    cells = expand(campaign, make_testbed(max_rate_fps=of_testbed))
    assert cells[0].spec.max_rate_fps == expected


@pytest.mark.parametrize(
    ("spec", "testbed", "message", "hint"),
    [
        (
            {"ip": [4, 6]},
            without(6, "right"),
            (
                "procedures[0].ip: IPv6 is asked for, but testbed bench has no IPv6 "
                "addresses on the right side"
            ),
            "add the key right.ipv6",
        ),
        (
            {"ip": [4]},
            without(4, "left"),
            "no IPv4 addresses on the left side",
            "add the key left.ipv4",
        ),
        (
            {},
            without(6, "left") | {"right": without(4, "right")["right"]},
            "procedures[0]: testbed bench has no IP version on both sides",
            "add the keys left.ipv4 and right.ipv4",
        ),
        (
            {"frame_size": [64], "ip": [4, 6]},
            {},
            (
                "procedures[0].frame_size: 64 is too small for IPv6: the smallest "
                "frame with room for the 18-byte tag has 84 bytes"
            ),
            "use 84 or more",
        ),
        (
            {"frame_size": [1518, 1519]},
            {},
            (
                "frame_size: 1519 does not fit the left port: its MTU 1500 carries "
                "frames of at most 1518 bytes"
            ),
            "raise left.port.mtu to 1501",
        ),
        (
            {"frame_size": [1519]},
            {
                "left": {
                    **bench_data()["left"],
                    "port": {"pci": "0000:03:00.0", "mtu": 9000},
                }
            },
            "does not fit the right port",
            "raise right.port.mtu to 1501",
        ),
        (
            {"max_rate_fps": 8},
            {"max_rate_fps": 7},
            "procedures[0].max_rate_fps: 8 is more than testbed bench allows, 7",
            "raise max_rate_fps of the testbed",
        ),
    ],
)
def test_what_the_testbed_cannot_do_is_refused(
    spec: dict[str, Any], testbed: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(InputError) as caught:
        expand(make_campaign({**THROUGHPUT, **spec}), make_testbed(**testbed))
    assert caught.value.message.startswith("campaign quick: procedures[0]")
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_a_ring_carries_frames_as_large_as_its_mtu() -> None:
    data = bench_data()
    for side in ("left", "right"):
        data[side]["port"] = {"ring": True, "mtu": 9000}
    spec = {**THROUGHPUT, "frame_size": [9018]}
    assert len(expand(make_campaign(spec), make_testbed(**data))) == 2


def test_a_cell_that_is_listed_twice_is_refused() -> None:
    again = {**THROUGHPUT, "ip": [6], "frame_size": [84], "resolution": "1%"}
    with pytest.raises(InputError) as caught:
        expand(make_campaign(THROUGHPUT, again), make_testbed())
    assert "procedures[1]: throughput-ip6-84-both is listed" in caught.value.message
    assert "repeats" in caught.value.hint


SPECS = st.fixed_dictionaries(
    {"procedure": st.sampled_from(["throughput", "frame-loss"])},
    optional={
        "ip": st.lists(st.sampled_from([4, 6]), min_size=1, max_size=2, unique=True),
        "frame_size": st.lists(
            st.integers(84, 1518), min_size=1, max_size=3, unique=True
        ),
        "direction": st.sampled_from(["both", "forward", "reverse"]),
        "max_rate_fps": st.none() | st.integers(1, 1000),
        "trial_duration_s": st.floats(0.01, 100),
        "restabilise_wait_s": st.integers(0, 10),
        "repeats": st.integers(1, 20),
    },
)


def through_yaml(path: Path, data: dict[str, Any]) -> Campaign:
    text = io.StringIO()
    YAML(typ="safe", pure=True).dump(data, text)
    path.write_text(text.getvalue())
    return load_campaign(path)


@settings(derandomize=True, deadline=None, database=None, max_examples=60)
@given(
    spec=SPECS,
    place=st.sampled_from(["lab", "testbed"]),
    max_rate_fps=st.none() | st.integers(1000, 2000),
)
def test_the_resolved_campaign_loads_and_gives_the_same_cells(
    tmp_path_factory: pytest.TempPathFactory,
    spec: dict[str, Any],
    place: str,
    max_rate_fps: int | None,
) -> None:
    testbed = make_testbed(max_rate_fps=max_rate_fps)
    where: dict[str, Any] = {"testbed": testbed, "lab": None}
    campaign = make_campaign(spec, seed=5, **(where if place == "testbed" else {}))
    data = resolved(campaign, testbed)
    again = through_yaml(tmp_path_factory.mktemp("r") / "campaign.yaml", data)
    assert expand(again, testbed) == expand(campaign, testbed)
    assert resolved(again, testbed) == data


def test_the_resolved_campaign_of_a_lab_names_the_lab_only() -> None:
    data = resolved(make_campaign(THROUGHPUT), make_testbed())
    assert data["lab"] == "linux-router"
    assert "testbed" not in data


def test_the_resolved_campaign_holds_the_testbed_itself(tmp_path: Path) -> None:
    campaign = make_campaign(THROUGHPUT, lab=None, testbed="bench.yaml")
    data = resolved(campaign, make_testbed())
    assert through_yaml(tmp_path / "c.yaml", data).testbeds == [make_testbed()]


def test_benchmarking_addresses_give_no_notice() -> None:
    cells = expand(make_campaign(THROUGHPUT), make_testbed())
    assert notices(make_testbed(), cells) == []


def test_each_address_outside_the_benchmarking_networks_gives_a_notice() -> None:
    data = bench_data()
    data["left"]["ipv4"]["address"] = "10.0.0.2"
    data["right"]["ipv6"]["gateway"] = "2001:db8::1"
    testbed = make_testbed(**data)
    cells = expand(make_campaign(THROUGHPUT), testbed)
    first, second = notices(testbed, cells)
    assert first.startswith("left.ipv4.address 10.0.0.2 is outside 198.18.0.0/15")
    assert second.startswith("right.ipv6.gateway 2001:db8::1 is outside 2001:2::/48")
    assert notices(testbed, cells, in_lab=True) == []


def test_addresses_that_no_cell_uses_give_no_notice() -> None:
    data = bench_data()
    data["right"]["ipv6"]["gateway"] = "2001:db8::1"
    campaign = make_campaign({**THROUGHPUT, "ip": [4]})
    testbed = make_testbed(**data)
    assert notices(testbed, expand(campaign, testbed)) == []
