"""The questions of a campaign: a page each, devices beside each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from config_samples import make_campaign
from pydantic import ValidationError
from report_page import Page
from report_sample import sample_environment, sample_results

from dutperf.charts.text import STYLE
from dutperf.report.page import render
from dutperf.report.source import read_source
from dutperf.results import CellResult, ResultsDirectory
from dutperf.tables.question_tables import answers
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import Table, Verdict

HERE, THERE = "here", "there"
MUCH, LOST = "How much <goes> through?", "What is lost?"
QUESTIONS = {"throughput": MUCH, "frame-loss": LOST}


def asked(result: CellResult, place: str, question: str | None) -> CellResult:
    spec = result.cell.spec.model_copy(update={"question": question})
    cell = result.cell.model_copy(update={"spec": spec})
    ending = {"id": f"{result.id}@{place}", "place": place, "cell": cell}
    return result.model_copy(update=ending)


def results(place: str) -> list[CellResult]:
    return [
        asked(each, place, QUESTIONS[each.procedure]) for each in sample_results().cells
    ]


def subjects(*found: CellResult) -> list[Subject]:
    return [Subject(c.id, c.place or "", c.procedure, c, ()) for c in found]


def shown(table: Table) -> list[list[str]]:
    return [
        [
            entry.state
            if isinstance(entry, Verdict)
            else entry
            if isinstance(entry, str)
            else entry.text(STYLE)
            for entry in row.entries
        ]
        for row in table.rows
    ]


def test_each_device_has_a_row_and_each_figure_a_column() -> None:
    much, lost = answers(subjects(*results(HERE), *results(THERE)))
    assert (much.question, lost.question) == (MUCH, LOST)
    assert much.devices == lost.devices == (HERE, THERE)
    names = [column.name for column in much.table.columns]
    assert names == ["device", "frames", "throughput, 64 bytes", "throughput, 84 bytes"]
    rows = shown(much.table)
    assert [row[:2] for row in rows] == [
        [place, ip] for place in (HERE, THERE) for ip in ("IPv4", "IPv6")
    ]
    assert [
        [text not in STYLE.absent.values() for text in row[2:]] for row in rows
    ] == [
        [True, False],
        [False, True],
    ] * 2
    at = [column.name for column in lost.table.columns].count("at")
    assert at == 2, "a loss is told with its load"


def test_what_differs_nowhere_is_told_once_and_what_has_no_result_with_its_reason() -> (
    None
):
    one, _, *_ = results(HERE)
    other = results(THERE)[0].model_copy(update={"verdict": "invalid", "median": None})
    (much,) = answers(subjects(one, other))
    assert [c.name for c in much.table.columns] == ["device", "frames", "throughput"]
    assert shown(much.table)[1][2] == "invalid"
    assert much.table.notes[0] == "all of 64 bytes"
    (note,) = much.table.notes[1:]
    assert f"at {THERE}: invalid" in note


def test_how_often_losses_were_verified_makes_no_other_figure_and_is_told() -> None:
    one = results(HERE)[0]
    other = results(THERE)[0].model_copy(update={"verified_by": 2})
    (much,) = answers(subjects(one, other))
    assert [c.name for c in much.table.columns] == ["device", "frames", "throughput"]
    (note,) = much.table.notes[1:]
    assert note.endswith(f"at {THERE}: losses verified by up to 2 trials")


def test_who_asks_nothing_has_no_answer() -> None:
    plain = [asked(each, HERE, None) for each in sample_results().cells]
    assert answers(subjects(*plain)) == []


def test_a_page_has_its_heading_its_devices_and_a_place_in_the_contents(
    tmp_path: Path,
) -> None:
    facts = {HERE: {"nat": "a gateway"}, THERE: {}}
    with ResultsDirectory.create(tmp_path / "run", "asked") as directory:
        directory.write_campaign({"lab": [HERE, THERE]})
        for place, device in facts.items():
            told = {"place": place, "device": device, "dut": f"all of {place}"}
            directory.write_environment(sample_environment().model_copy(update=told))
        directory.write_results(
            sample_results().model_copy(
                update={"cells": [*results(HERE), *results(THERE)], "trials": []}
            )
        )
    html = render(read_source(tmp_path / "run"))
    page = Page(html)
    assert '<a href="#question-1">How much &lt;goes&gt; through?</a>' in html
    first, second = (page.section(f"question-{number}") for number in (1, 2))
    assert MUCH in first
    assert LOST in second
    for section in (first, second):
        assert "a gateway" in section
        assert "all of there" in section
    assert "question-3" not in page.ids
    assert "Throughput, 4 test cases" not in page.section("glance")


@pytest.mark.parametrize("question", ["", " Why?", "a\nb", "x" * 81, ["Why?"]])
def test_a_question_is_one_line(question: object) -> None:
    with pytest.raises(ValidationError):
        make_campaign({"procedure": "throughput", "question": question})
