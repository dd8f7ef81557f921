"""Deviations name the section, the requirement and the exact figure."""

from __future__ import annotations

from typing import Any

import pytest
from config_samples import make_campaign, make_cell, make_testbed

from dutperf.config import deviations, expand
from dutperf.config.deviations import lower_bound
from dutperf.standards import Deviation

LOSS: dict[str, Any] = {"procedure": "frame-loss", "load_percent": [100, 90, 80]}


@pytest.mark.parametrize("changes", [{}, LOSS])
def test_a_cell_by_the_book_has_no_deviations(changes: dict[str, Any]) -> None:
    assert deviations(make_cell(**changes)) == []


@pytest.mark.parametrize(
    ("changes", "rfc", "requirement", "actual"),
    [
        (
            {"trial_duration_s": 1},
            "RFC 2544 24",
            "trial duration of at least 60 s",
            "1 s instead of at least 60 s",
        ),
        (
            {"trial_duration_s": 59.999},
            "RFC 2544 24",
            "trial duration of at least 60 s",
            "59.999 s instead of at least 60 s",
        ),
        (
            {"settle_wait_s": 0.1},
            "RFC 2544 23",
            "wait after learning frames of at least 2 s",
            "0.1 s instead of at least 2 s",
        ),
        (
            {"residual_wait_s": 0.2},
            "RFC 2544 23",
            "wait for late frames of at least 2 s",
            "0.2 s instead of at least 2 s",
        ),
        (
            {"restabilise_wait_s": 0},
            "RFC 2544 23",
            "wait between trials of at least 5 s",
            "0 s instead of at least 5 s",
        ),
        (
            {"traffic": {"ignore_checksums": True}},
            "RFC 1242 3.17",
            "checksums of received frames",
            "not verified",
        ),
        (
            {"direction": "forward"},
            "RFC 8219 5.3, RFC 2544 14",
            "bidirectional traffic",
            "forward direction only",
        ),
        (
            {**LOSS, "load_percent": [90, 80]},
            "RFC 2544 26.3",
            "first trial at 100 % load",
            "90 % instead of 100 %",
        ),
        (
            {**LOSS, "load_percent": [99.5, 90]},
            "RFC 2544 26.3",
            "first trial at 100 % load",
            "99.5 % instead of 100 %",
        ),
        (
            {**LOSS, "load_percent": [100, 95, 70]},
            "RFC 2544 26.3",
            "loads in steps of at most 10 %",
            "steps of up to 25 % instead of at most 10 %",
        ),
        (
            {**LOSS, "load_percent": [100, 89.9]},
            "RFC 2544 26.3",
            "loads in steps of at most 10 %",
            "steps of up to 10.1 % instead of at most 10 %",
        ),
        (
            {**LOSS, "load_percent": [100]},
            "RFC 2544 26.3",
            "loads in steps of at most 10 %",
            "a single load",
        ),
    ],
)
def test_each_shortfall_is_named_with_its_figure(
    changes: dict[str, Any], rfc: str, requirement: str, actual: str
) -> None:
    (found,) = deviations(make_cell(**changes))
    assert (found.rfc, found.requirement, found.actual) == (rfc, requirement, actual)


@pytest.mark.parametrize(
    ("longest_burst_s", "residual_wait_s", "told"),
    [(2, 2, False), (2.1, 2, True), (30, 2, True), (30, 2.1, False)],
)
def test_bursts_of_more_than_two_seconds_are_waited_for_longer(
    longest_burst_s: float, residual_wait_s: float, told: bool
) -> None:
    """RFC 9004 6.2: longer than 2 s MUST be used then; it does not say how long."""
    found = deviations(
        make_cell(
            procedure="back-to-back",
            longest_burst_s=longest_burst_s,
            residual_wait_s=residual_wait_s,
            repeats=50,
        )
    )
    longer = [point for point in found if "a longer wait" in point.requirement]
    assert [(p.rfc, p.level) for p in longer] == told * [("RFC 9004 6.2", "MUST")]


def test_steps_that_are_ten_percent_but_for_rounding_are_no_deviation() -> None:
    loads = [100.0, 90.1, 80.1, 70.1 - 1e-13]
    assert deviations(make_cell(**{**LOSS, "load_percent": loads})) == []


def test_all_shortfalls_are_listed() -> None:
    changes = {**LOSS, "load_percent": [80, 40], "trial_duration_s": 1}
    found = deviations(make_cell(**changes, direction="reverse"))
    assert [s.rfc.split()[-1] for s in found] == ["24", "14", "26.3", "26.3"]


@pytest.mark.parametrize(
    ("changes", "level", "rfc"),
    [
        ({"trial_duration_s": 1}, "SHOULD", "RFC 2544 24"),
        ({"settle_wait_s": 1}, "text", "RFC 2544 23"),
        ({"residual_wait_s": 1}, "text", "RFC 2544 23"),
        ({"restabilise_wait_s": 1}, "text", "RFC 2544 23"),
        ({"direction": "reverse"}, "SHOULD", "RFC 8219 5.3, RFC 2544 14"),
        ({"frame_sizes": [100]}, "SHOULD", "RFC 2544 9.1, RFC 5180 5.1.1"),
        ({"traffic": {"imix": "aaafg"}}, "text", "RFC 2544 9, RFC 1242 3.4"),
        ({"traffic": {"df": True}}, "SHOULD", "RFC 2544 8, C.2.6.4"),
        ({"traffic": {"ttl": 64}}, "SHOULD", "RFC 2544 8, C.2.6.4"),
        ({"traffic": {"dscp": 46}}, "SHOULD", "RFC 2544 8, C.2.6.4"),
        ({"traffic": {"ignore_checksums": True}}, "MUST", "RFC 1242 3.17"),
        ({"frame_timeout_ms": 10}, "definition", "RFC 2544 26.1"),
        ({"loss_tolerance_percent": 0.1}, "definition", "RFC 2544 26.1"),
        ({"search": "verified", "verify_trials": 2}, "definition", "RFC 2544 26.1"),
        ({"search": "mlrsearch", "goals": ["0.5%"]}, "definition", "RFC 2544 26.1"),
        ({**LOSS, "load_percent": [90, 80]}, "SHOULD", "RFC 2544 26.3"),
        ({**LOSS, "load_percent": [100, 70]}, "MUST", "RFC 2544 26.3"),
        ({**LOSS, "load_percent": [100]}, "MUST", "RFC 2544 26.3"),
    ],
)
def test_each_point_has_the_level_that_the_rfc_gives_it(
    changes: dict[str, Any], level: str, rfc: str
) -> None:
    (found,) = deviations(make_cell(**changes))
    assert (found.level, found.rfc) == (level, rfc)


@pytest.mark.parametrize(
    ("procedure", "keys", "rfc"),
    [
        ("throughput", {}, "RFC 2544 26.1"),
        ("connection-rate", {"stateful": {"connections": [9]}}, "RFC 9693 4.5"),
        (
            "table-capacity",
            {"stateful": {"connections": [9], "first": 1}},
            "RFC 9693 4.9",
        ),
    ],
)
def test_a_lower_bound_falls_short_of_what_its_procedure_looks_for(
    procedure: str, keys: dict[str, Any], rfc: str
) -> None:
    found = lower_bound(make_cell(procedure=procedure, **keys), "so")
    assert (found.rfc, found.actual, found.level) == (rfc, "so", "text")


@pytest.mark.parametrize(
    ("direction", "ports", "told"),
    [
        ("both", {}, []),
        ("both", {"source": "fixed:9"}, ["fixed 9"]),
        ("reverse", {"source": "fixed:9"}, ["fixed 9"]),
        (
            "both",
            {"source": "fixed:9", "reverse": {"source": "fixed:8"}},
            ["fixed 9", "fixed 8 in the reverse direction"],
        ),
        ("forward", {"reverse": {"source": "fixed:8"}}, []),
    ],
)
def test_fixed_ports_are_told_once_but_for_the_direction_that_has_others(
    direction: str, ports: dict[str, Any], told: list[str]
) -> None:
    cell = make_cell(direction=direction, traffic={"ports": ports})
    wanted = "random source ports 1024-65535"
    assert [point for point in deviations(cell) if point.rfc == "RFC 4814 4.5"] == [
        Deviation("RFC 4814 4.5", wanted, actual, "SHOULD") for actual in told
    ]


@pytest.mark.parametrize(
    "networks", [2, 256, {"left": 256, "right": 1}, {"left": 1, "right": 256}]
)
def test_networks_need_routes_that_the_rfc_wants_announced(networks: object) -> None:
    hosts = {"address": "198.18.0.2", "gateway": "198.18.0.1"}
    others = {"address": "198.19.0.2", "gateway": "198.19.0.1"}
    testbed = make_testbed(
        left={"port": {"interface": "tl"}, "ipv4": hosts},
        right={"port": {"interface": "tr"}, "ipv4": others},
    )
    campaign = make_campaign(
        {"procedure": "throughput", "ip": [4], "traffic": {"networks": networks}}
    )
    ((found,),) = [deviations(cell) for cell in expand(campaign, testbed)]
    assert (found.rfc, found.level) == ("RFC 2544 13", "MUST")
