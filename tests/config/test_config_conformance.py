"""What may be said of a result in the words of RFC 2544 5."""

from __future__ import annotations

from typing import Any

import pytest
from config_samples import bench_data, make_campaign, make_testbed

from dutperf.config import Testbed, conformance_of, deviations, expand
from dutperf.config.testbed import DeviceFacts
from dutperf.model.cell import Cell
from dutperf.standards import Conformance, Deviation

LATENCY: dict[str, Any] = {"procedure": "latency", "rate_fps": 1000}
OUTAGE: dict[str, Any] = {"procedure": "outage", "rate_fps": 1000}
RECOVERY: dict[str, Any] = {"procedure": "system-recovery", "throughput_fps": 1000}


def said(
    changes: dict[str, Any], *, valid: bool = True, bound: bool = False
) -> Conformance:
    spec = {"procedure": "throughput", "ip": [4], **changes}
    (cell,) = expand(make_campaign(spec), make_testbed())
    return conformance_of(cell, deviations(cell), valid=valid, bound=bound)


@pytest.mark.parametrize(
    ("changes", "rfc", "section"),
    [
        ({}, "RFC 2544", "26.1"),
        ({"ip": [6]}, "RFC 5180", "7.1"),
        ({"procedure": "frame-loss"}, "RFC 2544", "26.3"),
        ({"procedure": "frame-loss", "ip": [6]}, "RFC 5180", "7.3"),
        (RECOVERY, "RFC 2544", "26.5"),
        ({**RECOVERY, "ip": [6]}, "RFC 5180", "7.5"),
        (OUTAGE, "RFC 6201", "4"),
        ({**OUTAGE, "ip": [6]}, "RFC 6201", "4"),
        (LATENCY, "RFC 8219", "7.2"),
        ({**LATENCY, "rfc2544_latency": True}, "RFC 2544", "26.2"),
        ({**LATENCY, "rfc2544_latency": True, "ip": [6]}, "RFC 5180", "7.2"),
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
FACTS = dict.fromkeys(DeviceFacts.model_fields, "known")
HOOKS = {"bulk_delete": {"command": ["true"]}}
PHASED: dict[str, Any] = {"stateful": CONNECTIONS | {"phase1_rate": 1000}}


def gateway_cell(changes: dict[str, Any], **testbed: Any) -> Cell:  # noqa: ANN401
    left = bench_data()["left"]
    left["ipv4"]["virtual"] = "198.19.1.1"
    spec = {"ip": [4], "repeats": 2, **changes}
    keys = {"left": left, "hooks": HOOKS, "device": FACTS, **testbed}
    cell, *_ = expand(make_campaign(spec), make_testbed(**keys))
    return cell


def said_of_gateway(changes: dict[str, Any], **testbed: Any) -> Conformance:  # noqa: ANN401
    cell = gateway_cell(changes, **testbed)
    return conformance_of(cell, deviations(cell), valid=True)


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


@pytest.mark.parametrize(
    ("changes", "testbed", "point"),
    [
        ({"repeats": 1}, {}, ("RFC 9693 6", "a single one", "MUST")),
        (
            {"stateful": {"order": "increasing"}},
            {},
            ("RFC 9693 4.4", "increasing order", "MUST"),
        ),
        (
            {"stateful": {"source_ports": "1-9999", "destination_ports": "1-100"}},
            {},
            ("RFC 9693 4.1", "9,999 source and 100 destination ports", "SHOULD"),
        ),
        (
            {},
            {"device": {**FACTS, "cpu": None, "memory": None}},
            ("RFC 9693 6", "not reported: cpu, memory", "SHOULD"),
        ),
        (
            {},
            {"translates": False},
            (
                "RFC 9693 3",
                "the device does not translate, as its testbed says",
                "definition",
            ),
        ),
        (
            {"stateful": {"phase1_rate": 1000}},
            {},
            ("RFC 9693 4.2", "at 1,000/s, as given", "MUST"),
        ),
        (
            {"stateful": {"phase1_rate": 1000, "responder_order": "first"}},
            {},
            ("RFC 9693 4.10", "first order", "SHOULD"),
        ),
    ],
)
def test_what_rfc_9693_asks_of_a_test_on_connections_is_listed(
    changes: dict[str, Any], testbed: dict[str, Any], point: tuple[str, str, str]
) -> None:
    stateful = {**CONNECTIONS, **changes.get("stateful", {})}
    phased = "phase1_rate" in stateful
    procedure = "throughput" if phased else "connection-rate"
    asked = {"procedure": procedure, **changes, "stateful": stateful}
    told = deviations(gateway_cell(asked, **testbed))
    assert point in [(each.rfc, each.actual, each.level) for each in told]


def test_connections_that_are_opened_at_a_rate_that_was_found_are_by_the_book() -> None:
    given = gateway_cell({"procedure": "throughput", **PHASED})
    assert [each.rfc for each in deviations(given)] == ["RFC 9693 4.2"]
    found = given.model_copy(update={"connection_cell": "connection-rate"})
    assert deviations(found) == []


@pytest.mark.parametrize(("numbers", "told"), [([4000], 1), ([4000, 8000], 0)])
def test_tear_down_rates_are_to_be_of_various_numbers(
    numbers: list[int], told: int
) -> None:
    stateful = CONNECTIONS | {"connections": numbers}
    asked = {"procedure": "teardown-rate", "rate_fps": 1000, "stateful": stateful}
    found = deviations(gateway_cell(asked))
    of_number = [s for s in found if s.rfc == "RFC 9693 4.8"]
    assert [s.level for s in of_number] == ["SHOULD"] * told


@pytest.mark.parametrize(
    ("source", "destination", "told"),
    [
        ("1-10000", "1-9999", 0),
        ("1-10000", "1-10000", 1),
        ("1-10001", "1-10000", 0),
        ("1-9999", "1-100", 1),
    ],
)
def test_source_ports_are_ten_thousand_and_more_than_destination_ports(
    source: str, destination: str, told: int
) -> None:
    stateful = CONNECTIONS | {"source_ports": source, "destination_ports": destination}
    asked = {"procedure": "connection-rate", "stateful": stateful}
    found = [s.rfc for s in deviations(gateway_cell(asked))]
    assert found == ["RFC 9693 4.1"] * told


def test_by_the_book_nothing_is_listed() -> None:
    asked = {"procedure": "connection-rate", "stateful": CONNECTIONS}
    assert deviations(gateway_cell(asked)) == []
    assert said_of_gateway(asked).status == "unconditional"


@pytest.mark.parametrize(
    ("changes", "testbed", "told"),
    [
        (
            {"repeats": 1},
            {},
            "exploratory run, not a result by RFC 9693 4.5: a single repeat",
        ),
        ({}, {"translates": False}, "another measure than that of RFC 9693 4.5: the "),
    ],
)
def test_what_is_no_result_of_rfc_9693_says_so(
    changes: dict[str, Any], testbed: dict[str, Any], told: str
) -> None:
    asked = {"procedure": "connection-rate", "stateful": CONNECTIONS, **changes}
    assert said_of_gateway(asked, **testbed).statement.startswith(told)


def test_connections_that_expire_are_a_measure_of_our_own() -> None:
    stateful = CONNECTIONS | {"expiry": True, "dut_timeout_s": 30}
    asked = {"procedure": "teardown-rate", "rate_fps": 1000, "stateful": stateful}
    hooks = {"table_count": {"command": ["true"]}, **HOOKS}
    points = deviations(gateway_cell(asked, hooks=hooks))
    assert ("RFC 9693 4.8", "definition") in [(each.rfc, each.level) for each in points]
    found = said_of_gateway(asked, hooks=hooks)
    assert found.status == "other_measure"
    assert "a measure of dutperf's own" in found.statement


def test_phase_2_has_to_keep_what_the_procedure_without_connections_has_to() -> None:
    short = {"procedure": "throughput", "trial_duration_s": 1, **PHASED}
    found = said_of_gateway(short)
    assert (found.status, found.statement) == (
        "none",
        "exploratory run, not a result by RFC 9693 4.7: trials of 1 s",
    )


def test_phase_2_has_to_keep_what_rfc_9693_asks_beside() -> None:
    opened_too_fast = said_of_gateway({"procedure": "throughput", **PHASED})
    assert opened_too_fast.status == "none"
    assert "(RFC 9693 4.2, MUST): at 1,000/s, as given" in opened_too_fast.statement


def test_all_defaults_are_unconditional() -> None:
    found = said({})
    assert found.status == "unconditional"
    assert found.statement == "unconditionally compliant with RFC 2544 26.1"


@pytest.mark.parametrize(
    ("changes", "sections"),
    [
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
    assert (found.rfc, found.section) == ("RFC 2544", "26.1")
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
    one_tag = {**LATENCY, "rfc2544_latency": True, "ip": ["6-4"]}
    (cell,) = expand(make_campaign(one_tag), testbed)
    found = conformance_of(cell, deviations(cell), valid=True)
    assert (found.rfc, found.section) == ("RFC 2544", "26.2")
    spec: dict[str, Any] = {"procedure": "throughput", "ip": ["6-4"]}
    for repeats, status in ((1, "none"), (2, "unconditional")):
        campaign = make_campaign({**spec, "repeats": repeats})
        (cell,) = expand(campaign, testbed)
        points = deviations(cell)
        asked = Deviation(
            "RFC 8219 12", "multiple iterations", "a single one", "SHOULD"
        )
        assert points == ([asked] if repeats == 1 else [])
        found = conformance_of(cell, points, valid=True)
        assert (found.rfc, found.section, found.status) == ("RFC 8219", "7.1", status)


def test_a_mix_of_both_versions_through_a_router_is_rfc_5180s() -> None:
    cell = expand(
        make_campaign({"procedure": "throughput", "ip": [4], "traffic": MIX}),
        make_testbed(),
    )[0]
    assert conformance_of(cell, deviations(cell), valid=True).rfc == "RFC 5180"


MIX: dict[str, Any] = {"mix": "90/10", "background_ip": 6}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, "a lower bound"),
        ({"trial_duration_s": 1}, "trials of 1 s, a lower bound"),
    ],
)
def test_a_lower_bound_is_a_look_and_neither_invalid_nor_compliant(
    changes: dict[str, Any], why: str
) -> None:
    found = said(changes, bound=True)
    assert (found.status, found.statement) == (
        "none",
        f"exploratory run, not a result by RFC 2544 26.1: {why}",
    )


def test_a_lower_bound_of_another_measure_is_that_of_another_measure() -> None:
    found = said({"loss_tolerance_percent": 0.01}, bound=True)
    assert found.status == "other_measure"
    assert "26.1, of which this is a lower bound: up to 0.01 %" in found.statement
