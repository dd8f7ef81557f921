"""Whether a run's figures are as required: never said more firmly than measured."""

from __future__ import annotations

import random
from xml.etree.ElementTree import fromstring

import pytest
from comparison_sample import bounded, latency, loss, rate

from dutperf.errors import InputError
from dutperf.model.requirements import bound_in_unit, requirement
from dutperf.procedures.requirements import Case, judged, junit
from dutperf.results import CellResult
from dutperf.results.details import MeasuredValue
from dutperf.results.rate_results import Finding


def outcomes(text: str, *cells: CellResult) -> list[str]:
    return [each.outcome for each in judged([requirement(text)], cells)]


@pytest.mark.parametrize(
    ("text", "procedure", "figure", "at_least", "bound"),
    [
        ("throughput >= 200k", "throughput", "", True, 200_000),
        ("Throughput at least 1.5M fps", "throughput", "", True, 1_500_000),
        ("NDR >= 1e6 pps", "throughput", "", True, 1_000_000),
        ("p99 latency <= 500us", "latency", "p99", False, 500_000),
        ("p99.95 <= 1 ms", "latency", "p99.95", False, 1_000_000),
        ("p50 latency <= 1 s", "latency", "TL", False, 10**9),
        ("latency at most 2ms", "latency", "", False, 2_000_000),
        ("WCL <= 900 ns", "latency", "WCL", False, 900),
        ("jitter <= 100us", "pdv", "", False, 100_000),
        ("frame loss <= 0.1 %", "frame-loss", "", False, 0.1),
        ("CPS >= 20k", "connection-rate", "", True, 20_000),
        ("concurrent sessions >= 1M", "table-capacity", "", True, 1_000_000),
        ("failover time <= 50 ms", "outage", "", False, 50_000_000),
        ("energy per bit <= 400 nJ/bit", "power", "", False, 400),
    ],
)
def test_operators_words_are_understood(
    text: str, procedure: str, figure: str, at_least: bool, bound: float
) -> None:
    told = requirement(text)
    assert (told.procedure, told.figure) == (procedure, figure)
    assert (told.at_least, told.bound) == (at_least, bound)
    assert told.words == text


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("throughput", "requires nothing of a figure"),
        ("throughput > 5", "requires nothing of a figure"),
        (">= 5", "no figure is called ''"),
        ("speed >= 5", "no figure is called 'speed'"),
        ("p100 latency <= 1 ms", "no figure is called 'p100 latency'"),
        ("power <= 50", "of which unit"),
        ("power <= 50 W", "of which unit"),
        ("throughput >= fast", "'fast' is no bound"),
        ("throughput >= -1", "'-1' is no bound"),
        ("throughput >= nan", "'nan' is no bound"),
        ("throughput >= 5 ms", "of another unit: the figure is in fps"),
        ("latency <= 5", "of which unit?"),
        ("latency <= 5 fps", "of another unit"),
        ("throughput >= ", "is no bound"),
    ],
)
def test_what_requires_nothing_is_refused(text: str, what: str) -> None:
    with pytest.raises(InputError) as caught:
        requirement(text)
    assert what in caught.value.message


@pytest.mark.parametrize("unit", ["m", "M", "ms", "kfps", "Mpps", ""])
def test_a_factor_is_no_part_of_a_unit(unit: str) -> None:
    of_rate = {"kfps": 5_000, "Mpps": 5_000_000, "M": 5_000_000, "": 5}
    if unit in of_rate:
        assert bound_in_unit(f"5 {unit}", "fps") == of_rate[unit]
    else:
        with pytest.raises(InputError):
            bound_in_unit(f"5 {unit}", "fps")


@pytest.mark.parametrize(
    ("values", "bound", "outcome"),
    [
        ((1000,), 1000, "met"),  # it passed at 1000
        ((1000,), 1006, "not met"),  # and failed at 1005 at the latest
        ((1000,), 1003, "cannot tell"),  # that rate was never tried
        ((1000, 1010, 1020), 1000, "met"),
        ((1000, 1010, 1020), 1005, "cannot tell"),  # one repeat was below
        ((1000, 1010, 1020), 1030, "not met"),
    ],
)
def test_a_bound_inside_of_what_is_known_is_neither(
    values: tuple[int, ...], bound: int, outcome: str
) -> None:
    assert outcomes(f"throughput >= {bound}", rate(*values)) == [outcome]


def test_many_repeats_are_told_by_the_interval_of_their_median() -> None:
    draw = random.Random(7)  # noqa: S311 - repeatable noise
    values = [draw.gauss(100_000, 1_000) for _ in range(40)]
    cell = rate(*values)
    assert outcomes("throughput >= 99k", cell) == ["met"]
    assert outcomes("throughput >= 100k", cell) == ["cannot tell"]
    assert outcomes("throughput >= 102k", cell) == ["not met"]


def test_a_lower_bound_tells_only_that_there_is_so_much() -> None:
    assert outcomes("throughput >= 40k", bounded(rate(50_000))) == ["met"]
    assert outcomes("throughput >= 60k", bounded(rate(50_000))) == ["cannot tell"]
    assert outcomes("throughput <= 40k", bounded(rate(50_000))) == ["not met"]
    assert outcomes("throughput <= 60k", bounded(rate(50_000))) == ["cannot tell"]


def test_what_is_invalid_contradicted_or_missing_is_never_met() -> None:
    cell = rate(1000)
    denied = cell.model_copy(
        update={
            "findings": [
                Finding(kind="contradiction", of="", message="denied", unit="fps")
            ]
        }
    )
    for text in ("throughput >= 1", "throughput <= 1M"):
        invalid = cell.model_copy(update={"verdict": "invalid"})
        assert outcomes(text, invalid) == ["cannot tell"]
        assert outcomes(text, denied) == ["cannot tell"]
        assert outcomes(text) == ["cannot tell"]
    assert outcomes("p99 latency <= 1s", latency({"TL": [1000], "WCL": [2000]})) == [
        "cannot tell"
    ]


def test_each_direction_of_a_delay_is_required() -> None:
    told = outcomes("TL <= 2us", latency({"TL": [1000], "WCL": [2000]}))
    assert told
    assert set(told) == {"met"}
    assert set(outcomes("TL <= 0.5us", latency({"TL": [1000], "WCL": [2000]}))) == {
        "not met"
    }


def test_junit_has_a_case_for_each_and_counts_them() -> None:
    cases = [
        Case("a", "dutperf.x"),
        Case("b", "dutperf.x", failure="39,000 fps\ufffe"),
        Case("c", "dutperf.x", skipped="cannot tell"),
    ]
    root = fromstring(junit("dutperf x", cases))  # noqa: S314 - our own
    counts = {key: root.get(key) for key in ("tests", "failures", "skipped", "errors")}
    assert counts == {"tests": "3", "failures": "1", "skipped": "1", "errors": "0"}
    failure = root.find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == "39,000 fps?"


@pytest.mark.parametrize(("repeats", "wrong"), [(1, 0.5), (3, 1 / 8), (5, 1 / 32)])
def test_how_often_a_device_just_short_of_a_bound_is_said_to_meet_it(
    repeats: int, wrong: float
) -> None:
    """As docs/automation.md has it: all repeats have to be lucky."""
    draw = random.Random(repeats)  # noqa: S311 - repeatable noise
    runs = 400
    met = sum(
        outcomes(
            "throughput >= 100k",
            rate(*(draw.gauss(100_000, 1_000) for _ in range(repeats))),
        )
        == ["met"]
        for _ in range(runs)
    )
    assert met / runs == pytest.approx(
        wrong, abs=3 * (wrong * (1 - wrong) / runs) ** 0.5
    )


def test_an_interval_says_so_in_one_run_of_forty_at_most() -> None:
    draw = random.Random(20)  # noqa: S311 - repeatable noise
    cells = [rate(*(draw.gauss(100_000, 1_000) for _ in range(20))) for _ in range(200)]
    met = sum(outcomes("throughput >= 100k", cell) == ["met"] for cell in cells)
    assert met <= 200 / 40 + 3 * (200 / 40) ** 0.5


def test_zero_is_a_figure_and_the_bound_itself_is_met() -> None:
    assert outcomes("throughput >= 1k", rate(0)) == ["not met"]
    assert outcomes("throughput >= 0", rate(0)) == ["met"]
    assert outcomes("frame loss <= 0%", loss(0, 0, 0)) == ["met"]
    assert outcomes("frame loss <= 0%", loss(0, 0, 0.001)) == ["cannot tell"]
    assert outcomes("frame loss <= 0%", loss(0.001)) == ["not met"]


def test_a_delay_that_is_infinite_is_never_short_enough() -> None:
    lost = latency({"TL": [MeasuredValue(value=None, absent="lost")] * 3})
    assert set(outcomes("TL <= 1s", lost)) == {"not met"}
