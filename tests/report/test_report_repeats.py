"""Repeats that have no common value: never a bare number, always the evidence."""

from __future__ import annotations

from pathlib import Path

from comparison_sample import latency, loss
from report_page import Page
from report_sample import (
    sample_environment,
    sample_results,
    store,
    throughput_cell,
)

from dutperf.charts.cells import CellView, finished_cell
from dutperf.charts.repeat_charts import rate_repeats_chart
from dutperf.charts.text import NBSP, sentence
from dutperf.report.page import write_report
from dutperf.report.summary import Card, headline
from dutperf.results import CellResult, Finding, ValueGroup
from dutperf.results.closing_words import DOUBTS
from dutperf.results.rate_results import FindingKind

NAME = "throughput-ip4-64-both"


def told(kind: FindingKind, *groups: ValueGroup) -> Finding:
    return Finding(
        kind=kind,
        of="throughput",
        message=f"evidence of <b>{kind}</b>",
        unit="fps",
        groups=list(groups),
    )


def result(*values: float, findings: list[Finding]) -> CellResult:
    cell = throughput_cell(NAME, 4, 64, values)
    return cell.model_copy(update={"findings": findings})


def view(*values: float, findings: list[Finding]) -> CellView:
    return finished_cell(result(*values, findings=findings), ())


def test_two_modes_have_no_number_in_the_headline_but_their_evidence() -> None:
    cell = view(*[300_000] * 4, *[400_000] * 5, findings=[told("modes")])
    shown = headline(cell)
    assert (shown.value, shown.unit) == ("No single figure", "")
    assert shown.interval == f"9 repeats: 300,000 to 400,000{NBSP}fps"
    assert cell.badge.label == f"unstable: 300,000 to 400,000{NBSP}fps"
    assert Card((cell, cell)).each[0][1] == cell.badge.label
    assert Card((cell,)).remarks == [(sentence(DOUBTS["modes"]), "")]
    assert cell.doubt == "no single figure"
    assert cell.sum_fps is None
    assert cell.wire == {}


def test_what_denies_a_figure_stands_first() -> None:
    """Of one repeat the range is one figure: it must not look like a result."""
    findings = [told("near_limit"), told("unusual"), told("contradiction")]
    card = Card((view(180_719, findings=findings),) * 2)
    assert card.each[0][1] == f"Contradicted; 1 repeat: 180,719{NBSP}fps"
    assert card.remarks[0] == (sentence(findings[2].message), "")


def test_drift_and_instability_have_words_of_their_own() -> None:
    kinds: dict[FindingKind, str] = {
        "shift": "No single figure",
        "drift": "No stable figure",
        "unstable": "Too unstable",
    }
    for kind, words in kinds.items():
        assert headline(view(1, 2, 3, findings=[told(kind)])).value == words


def test_a_loss_and_a_delay_that_are_contradicted_show_no_figure_either() -> None:
    """Not a range of values that another result denies, in large letters."""
    denied = told("contradiction")
    for cell in (loss(12.5, 38.2, 41.0), latency({"TL": [1, 2, 3]})):
        doubtful = cell.model_copy(update={"findings": [denied]})
        shown = headline(finished_cell(doubtful, ()))
        assert (shown.value, shown.unit) == ("Contradicted", "")
        assert "edian" not in shown.interval
        card = Card((finished_cell(doubtful, ()),))
        assert card.kind == "doubtful"
        assert card.remarks == [(sentence(denied.message), "")]


def test_outliers_leave_the_number_and_are_said_below_it() -> None:
    cell = view(1, 2, 3, findings=[told("outliers")])
    assert (headline(cell).value, headline(cell).unit) == ("2", "fps")
    assert Card((cell,)).remarks == [(sentence(DOUBTS["outliers"]), "")]


def test_of_several_delays_it_is_said_which_one() -> None:
    """The card shows TL, and its repeats may be close."""
    both = [
        told("unstable").model_copy(update={"of": f"WCL, {way}"})
        for way in ("forward", "reverse")
    ]
    said = [(f"WCL: {DOUBTS['unstable']}", "")]
    assert Card((view(1, 2, 3, findings=both),)).remarks == said


def test_many_findings_do_not_fill_the_card() -> None:
    kinds: tuple[FindingKind, ...] = ("modes", "shift", "drift", "outliers")
    card = Card((view(1, 2, 3, findings=[told(kind) for kind in kinds]),))
    assert card.remarks[-1] == ("2 more findings", "")


def test_findings_stand_by_the_value_and_by_the_chart(tmp_path: Path) -> None:
    base = sample_results()
    cell = result(*[300_000] * 4, *[400_000] * 5, findings=[told("modes")])
    results = base.model_copy(update={"cells": [cell, *base.cells[1:]]})
    store(tmp_path / "r", results, sample_environment())
    page = Page(write_report(tmp_path / "r").read_text())
    assert "evidence of <b>modes</b>" in page.section("searches")
    assert "300,000 to 400,000 no single figure" in page.section("summary")
    assert "unstable" in page.section("summary")
    assert "unstable: 300,000 to 400,000" in page.section("glance")
    assert "rate-repeats-1" in page.figures


def test_the_chart_has_each_repeat_in_its_place_and_marks_outliers() -> None:
    stray = ValueGroup(repeats=[3], lowest=100, highest=100)
    others = ValueGroup(repeats=[1, 2, 4, 5, 6], lowest=395, highest=405)
    values = (400, 405, 100, 395, 401, 402)
    cell = view(*values, findings=[told("outliers", others, stray)])
    chart = rate_repeats_chart(cell, 1)
    assert chart
    (dots,) = chart.data
    assert (dots["x"], dots["y"]) == ([1, 2, 3, 4, 5, 6], list(values))
    colours = dots["marker"]["color"]
    assert [n for n, c in enumerate(colours, 1) if c == "var(--fail)"] == [3]
    band, line = chart.layout["shapes"]
    assert (band["y0"], band["y1"]) == (100, 405)
    assert line["y0"] == line["y1"] == cell.median


def test_two_repeats_make_no_chart() -> None:
    assert rate_repeats_chart(view(1, 2, findings=[]), 1) is None


def test_a_repeat_without_a_value_leaves_its_place_empty() -> None:
    gaps = throughput_cell(NAME, 4, 64, [400.0, None, 401.0, 402.0])
    chart = rate_repeats_chart(finished_cell(gaps, ()), 1)
    assert chart
    assert chart.data[0]["x"] == [1, 3, 4]
