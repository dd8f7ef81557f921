"""What may be said of a result in the words of RFC 2544 5."""

from __future__ import annotations

from typing import Any

import pytest
from config_samples import bench_data, make_campaign, make_testbed

from dutperf.config import Compliance, Testbed, compliance, deviations, expand

LATENCY: dict[str, Any] = {"procedure": "latency", "rate_fps": 1000}


def said(
    changes: dict[str, Any], *, valid: bool = True, bound: bool = False
) -> Compliance:
    spec = {"procedure": "throughput", "ip": [4], **changes}
    (cell,) = expand(make_campaign(spec), make_testbed())
    return compliance(cell, deviations(cell), valid=valid, bound=bound)


@pytest.mark.parametrize(
    ("changes", "rfc", "section"),
    [
        ({}, "RFC 2544", "26.1"),
        ({"ip": [6]}, "RFC 5180", "7.1"),
        ({"procedure": "frame-loss"}, "RFC 2544", "26.3"),
        ({"procedure": "frame-loss", "ip": [6]}, "RFC 5180", "7.3"),
        (LATENCY, "RFC 8219", "7.2"),
        ({**LATENCY, "legacy": True}, "RFC 2544", "26.2"),
        ({**LATENCY, "legacy": True, "ip": [6]}, "RFC 5180", "7.2"),
        ({**LATENCY, "procedure": "pdv"}, "RFC 8219", "7.3.1"),
        ({**LATENCY, "procedure": "ipdv"}, "RFC 8219", "7.3.2"),
    ],
)
def test_each_procedure_is_that_of_an_rfc(
    changes: dict[str, Any], rfc: str, section: str
) -> None:
    found = said(changes)
    assert (found.rfc, found.section) == (rfc, section)
    assert f"{rfc} {section}" in found.statement


CONNECTIONS: dict[str, Any] = {"connections": 100}
HOOKS = {"bulk_delete": {"command": ["true"]}}
PHASED: dict[str, Any] = {"stateful": CONNECTIONS | {"phase1_rate": 1000}}


def said_of_gateway(changes: dict[str, Any]) -> Compliance:
    left = bench_data()["left"]
    left["ipv4"]["virtual"] = "198.19.1.1"
    spec = {"ip": [4], **changes}
    (cell,) = expand(make_campaign(spec), make_testbed(left=left, hooks=HOOKS))
    return compliance(cell, deviations(cell), valid=True)


@pytest.mark.parametrize(
    ("changes", "section"),
    [
        ({"procedure": "connection-rate", "stateful": CONNECTIONS}, "4.5"),
        (
            {"procedure": "connection-rate", "stateful": CONNECTIONS | {"alpha": 0.8}},
            "4.6",
        ),
        (
            {"procedure": "table-capacity", "stateful": CONNECTIONS | {"first": 1}},
            "4.9",
        ),
        (
            {"procedure": "teardown-rate", "stateful": CONNECTIONS, "rate_fps": 1000},
            "4.8",
        ),
        ({"procedure": "throughput", **PHASED}, "4.7"),
    ],
)
def test_connections_are_a_matter_of_rfc_9693(
    changes: dict[str, Any], section: str
) -> None:
    found = said_of_gateway(changes)
    assert (found.rfc, found.section) == ("RFC 9693", section)


def test_phase_2_has_to_keep_what_the_procedure_without_connections_has_to() -> None:
    short = {"procedure": "throughput", "trial_duration_s": 1, **PHASED}
    found = said_of_gateway(short)
    assert found.status == "conditional"
    assert "(RFC 2544 24)" in found.statement


def test_all_defaults_are_unconditional() -> None:
    found = said({})
    assert found.status == "unconditional"
    assert found.statement == "unconditionally compliant with RFC 2544 26.1"


@pytest.mark.parametrize(
    ("changes", "sections"),
    [
        ({"trial_duration_s": 1}, "RFC 2544 24"),
        ({"settle_wait_s": 0, "direction": "forward"}, "RFC 2544 23; RFC 8219 5.3"),
        ({"frame_size": [99]}, "RFC 2544 9.1"),
    ],
)
def test_what_is_only_recommended_makes_it_conditional(
    changes: dict[str, Any], sections: str
) -> None:
    found = said(changes)
    assert found.status == "conditional"
    assert f"every MUST is met, not every recommendation ({sections}" in found.statement


def test_a_must_that_is_not_met_is_told_with_its_figures() -> None:
    found = said({**LATENCY, "repeats": 3})
    assert found.status == "none"
    assert found.statement == (
        "not compliant with RFC 8219 7.2: at least 20 repeats (RFC 8219 7.2, MUST): "
        "3 instead of at least 20"
    )


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"loss_tolerance_percent": 0.01}, "up to 0.01 % of a direction's frames"),
        ({"frame_timeout_ms": 10}, "frames slower than 10 ms count as lost"),
        ({"search": "mlrsearch", "goals": ["0.5%"]}, "a goal lets 0.5 % be lost"),
    ],
)
def test_another_measure_is_never_that_of_the_rfc(
    changes: dict[str, Any], why: str
) -> None:
    found = said(changes | {"trial_duration_s": 1})
    assert found.status == "other_measure"
    assert found.statement.startswith("another measure than that of RFC 2544 26.1: ")
    assert why in found.statement


def test_the_first_of_several_goals_is_the_result() -> None:
    lossless_first = {"search": "mlrsearch", "goals": ["0", "0.5%"]}
    assert said(lossless_first).status == "unconditional"
    assert said(lossless_first | {"goals": ["0.5%", "0"]}).status == "other_measure"


def test_an_invalid_result_is_compliant_with_nothing() -> None:
    assert said({}, valid=False).status == "none"


def test_random_ports_are_a_matter_of_rfc_4814() -> None:
    fixed = said({"traffic": {"ports": {"source": "fixed"}}})
    assert fixed.status == "unconditional"


def test_a_translator_is_measured_by_rfc_8219_and_more_than_once() -> None:
    def virtual(net: int) -> dict[str, Any]:
        own = {"address": f"198.1{net}.128.2", "gateway": f"198.1{net}.128.1"}
        half = "8" if net == 9 else "0"
        return {
            "port": {"interface": f"t{net}"},
            "ipv4": {**own, "virtual": f"198.1{net}.0.2"},
            "ipv6": {
                "address": f"2001:2:0:{half}000::2",
                "gateway": f"2001:2:0:{half}000::1",
                "virtual": f"2001:2:0:{half}001::2",
            },
        }

    testbed = Testbed.model_validate(
        {"name": "nat64", "left": virtual(8), "right": virtual(9)}
    )
    spec: dict[str, Any] = {"procedure": "throughput", "ip": ["6-4"]}
    for repeats, status in ((1, "conditional"), (2, "unconditional")):
        campaign = make_campaign({**spec, "repeats": repeats})
        (cell,) = expand(campaign, testbed)
        found = compliance(cell, deviations(cell), valid=True)
        assert (found.rfc, found.section, found.status) == ("RFC 8219", "7.1", status)


def test_a_mix_of_both_versions_through_a_router_is_rfc_5180s() -> None:
    cell = expand(
        make_campaign({"procedure": "throughput", "ip": [4], "traffic": MIX}),
        make_testbed(),
    )[0]
    assert compliance(cell, deviations(cell), valid=True).rfc == "RFC 5180"


MIX: dict[str, Any] = {"mix": "90/10", "background_ip": 6}


@pytest.mark.parametrize("changes", [{}, {"trial_duration_s": 1}])
def test_a_lower_bound_is_called_so_and_neither_invalid_nor_compliant(
    changes: dict[str, Any],
) -> None:
    found = said(changes, bound=True)
    assert (found.status, found.statement) == (
        "none",
        "a lower bound of what RFC 2544 26.1 asks for",
    )


def test_a_lower_bound_of_another_measure_is_that_of_another_measure() -> None:
    found = said({"loss_tolerance_percent": 0.01}, bound=True)
    assert found.status == "other_measure"
    assert "26.1, of which this is a lower bound: up to 0.01 %" in found.statement
