"""What a reader of report.html relies on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from burst_sample import connections_alone
from report_page import Page
from report_sample import (
    BEHIND,
    CREATED,
    all_sizes,
    sample_environment,
    sample_results,
    store,
    throughput_cell,
    trial,
)

from dutperf.charts.text import MISSING, NBSP
from dutperf.errors import InputError
from dutperf.protocol.result_messages import Reason
from dutperf.report import write_report
from dutperf.results import ResultsFile


def page_of(path: Path, results: ResultsFile) -> Page:
    store(path, results, sample_environment())
    return Page(write_report(path).read_text())


def test_the_results_stand_in_the_page_as_text(tmp_path: Path) -> None:
    results = sample_results()
    text = page_of(tmp_path / "r", results).text
    for cell in results.cells[:2]:
        assert cell.median is not None
        assert f"{cell.median:,.0f}" in text
        assert f"{2 * cell.median:,.0f}" in text  # the sum of both directions
    assert "38.6" in text
    assert "trials of 1 s" in text
    assert f"All trials Show {len(results.trials)} trials" in " ".join(text.split())


NASTY = "</script><script>alert(\"1\")</script> 'x' & <b>"


def test_no_name_or_description_can_become_markup(tmp_path: Path) -> None:
    results = sample_results()
    plain = page_of(tmp_path / "plain", results)
    cells = [
        cell.model_copy(update={"id": f"{cell.id}{NASTY}", "verdict": "invalid"})
        for cell in results.cells
    ]
    trials = [
        each.model_copy(update={"cell": f"{each.cell}{NASTY}"})
        for each in results.trials
    ]
    spoilt = results.model_copy(
        update={"name": NASTY, "cells": cells, "trials": trials}
    )
    directory = store(tmp_path / "nasty", spoilt, sample_environment())
    directory.write_campaign({"testbed": {"name": NASTY, "description": NASTY}})
    page = Page(write_report(tmp_path / "nasty").read_text())
    assert page.tags.count("script") == plain.tags.count("script")
    assert "b" not in page.tags
    assert f"{NASTY}: {NASTY}" in page.text
    assert f"#{cells[0].id}" in page.loads


def test_a_reason_in_a_charts_label_cannot_become_markup(tmp_path: Path) -> None:
    results = sample_results()
    first = results.trials[0]
    reason = Reason(code="frames_lost", message=NASTY)
    verdict = first.result.verdict.model_copy(update={"reasons": [reason]})
    result = first.result.model_copy(update={"verdict": verdict})
    trials = [first.model_copy(update={"result": result}), *results.trials[1:]]
    page = page_of(tmp_path / "r", results.model_copy(update={"trials": trials}))
    assert "b" not in page.tags
    labels = [
        label
        for trace in page.figures["search-1"]["data"]
        for label in trace.get("hovertext", [])
    ]
    assert any("&lt;/script&gt;" in label for label in labels)
    assert not any("<script" in label for label in labels)


def test_nothing_is_loaded_from_anywhere(tmp_path: Path) -> None:
    page = page_of(tmp_path / "r", sample_results())
    assert page.loads  # the links to the cells
    assert all(address.startswith("#") for address in page.loads)
    assert not {"link", "img", "iframe", "object", "embed", "base"} & set(page.tags)
    assert "url(" not in page.style
    assert "@import" not in page.style


def test_every_link_inside_the_page_has_a_target(tmp_path: Path) -> None:
    results = sample_results()
    # A cell whose trials are all missing must not leave a link to nowhere.
    trials = [t for t in results.trials if t.cell != results.cells[0].id]
    page = page_of(tmp_path / "r", results.model_copy(update={"trials": trials}))
    assert {address.removeprefix("#") for address in page.loads} <= page.ids


def test_an_invalid_result_never_looks_like_a_number(tmp_path: Path) -> None:
    name = "throughput-ip4-64-both"
    results = ResultsFile(
        procedure="throughput",
        name="spoilt",
        created_at=CREATED,
        complete=True,
        cells=[throughput_cell(name, 4, 64, [123_457.0, None], "invalid")],
        trials=[trial(1, name, 123_457, "pass"), trial(2, name, 400_000, "invalid")],
    )
    page = page_of(tmp_path / "r", results)
    assert "No result" in page.section("glance")
    assert BEHIND.message in page.section("glance")
    for section in ("glance", "summary"):
        assert "123,457" not in page.section(section)
        assert "! invalid" in page.section(section)
    assert "are not a result" in page.section("searches")


def test_an_unfinished_cell_never_looks_like_a_number(tmp_path: Path) -> None:
    results = sample_results()
    first = results.cells[0]
    left = results.model_copy(update={"cells": results.cells[1:], "complete": False})
    page = page_of(tmp_path / "r", left)
    assert "Not finished" in page.section("glance")
    for section in ("glance", "summary"):
        assert f"{first.median:,.0f}" not in page.section(section)
        assert "\u2026 not finished" in page.section(section)


def test_a_run_that_ended_among_connections_has_a_report(tmp_path: Path) -> None:
    """Its last cell has trials of TCP connections, and no result."""
    whole = connections_alone()
    (*others, last) = whole.cells
    assert last.procedure == "tcp-connection-rate"
    left = whole.model_copy(update={"cells": others, "complete": False})
    assert last.id in page_of(tmp_path / "r", left).text


def test_repeats_show_their_spread(tmp_path: Path) -> None:
    text = page_of(tmp_path / "r", all_sizes()).text
    assert "1st %ile 99th %ile Min max" in text
    # Three repeats: the ends are the lowest and the highest of them.
    ends = "309,569 310,546 309,569 310,546 0.316 % 619,138"
    assert f"309,569 {MISSING} {MISSING} {ends}" in text
    assert (
        "1st %ile 99th %ile Min max"
        not in page_of(tmp_path / "s", sample_results()).text
    )


def test_each_card_says_whose_result_it_is(tmp_path: Path) -> None:
    said = "Conditionally compliant with RFC 2544 26.1: every MUST is met"
    glance = page_of(tmp_path / "r", sample_results()).section("glance")
    assert glance.count(said) == 2


def test_deviations_of_all_cells_are_said_once(tmp_path: Path) -> None:
    text = page_of(tmp_path / "r", sample_results()).section("deviations")
    assert text.count("trials of at least 60 s") == 1
    assert "RFC 2544 24 SHOULD all test cases" in text


def test_deviations_of_some_cells_name_them(tmp_path: Path) -> None:
    text = page_of(tmp_path / "r", sample_results()).section("deviations")
    cells = "Throughput, IPv4, 64 bytes; Throughput, IPv6, 84 bytes"
    assert f"at least 5 s between trials RFC 2544 23 plain text {cells}" in text


def test_deviations_of_a_whole_procedure_do_not_name_its_many_cells(
    tmp_path: Path,
) -> None:
    results = sample_results()
    more = [
        cell.model_copy(update={"id": f"{cell.id}-{n}"})
        for cell in results.cells
        for n in range(2)
    ]
    page = page_of(tmp_path / "r", results.model_copy(update={"cells": more}))
    told = page.section("deviations")
    assert "RFC 2544 23 plain text Throughput: all 4 test cases" in told


def test_a_run_by_the_book_has_no_box_of_deviations(tmp_path: Path) -> None:
    results = sample_results()
    cells = [cell.model_copy(update={"deviations": []}) for cell in results.cells]
    page = page_of(tmp_path / "r", results.model_copy(update={"cells": cells}))
    assert "deviations" not in page.ids


def test_an_interrupted_run_says_so(tmp_path: Path) -> None:
    results = sample_results().model_copy(update={"complete": False})
    page = page_of(tmp_path / "r", results)
    assert "This run is not complete" in page.section("interrupted")
    assert page.text.index("not complete") < page.text.index("At a glance")


def test_a_complete_run_does_not_speak_of_interruption(tmp_path: Path) -> None:
    assert "interrupted" not in page_of(tmp_path / "r", sample_results()).ids


def test_without_results_the_journal_is_reported(tmp_path: Path) -> None:
    results = sample_results()
    store(tmp_path / "r", results)
    (tmp_path / "r" / "results.json").unlink()
    journal = tmp_path / "r" / "journal.jsonl"
    journal.write_text(journal.read_text() + '{"torn')
    page = Page(write_report(tmp_path / "r").read_text())
    assert "ended without writing results" in page.section("interrupted")
    assert "The last trial was being written and is lost" in page.text
    assert f"{len(results.trials)} trials" in page.text
    assert page.section("glance").count("Not finished") == len(results.cells)
    # What is not recorded is said, not guessed.
    assert "Not recorded for this run" in page.section("environment")


def test_a_whole_journal_is_not_called_torn(tmp_path: Path) -> None:
    store(tmp_path / "r", sample_results())
    (tmp_path / "r" / "results.json").unlink()
    text = Page(write_report(tmp_path / "r").read_text()).section("interrupted")
    assert "is lost" not in text


def test_a_run_without_cells_makes_a_page_that_says_so(tmp_path: Path) -> None:
    nothing = sample_results().model_copy(update={"cells": [], "trials": []})
    page = page_of(tmp_path / "r", nothing)
    assert "0 test cases, 0 trials" in page.text
    assert page.figures == {}
    assert "Nothing was measured" in page.section("glance")
    assert not page.ids & {"summary", "searches", "losses", "tester", "trials"}


def test_a_run_that_ended_before_its_first_trial_can_be_reported(
    tmp_path: Path,
) -> None:
    store(tmp_path / "r", sample_results().model_copy(update={"trials": []}))
    (tmp_path / "r" / "results.json").unlink()
    page = Page(write_report(tmp_path / "r").read_text())
    assert "This run is not complete" in page.section("interrupted")
    assert "Nothing was measured" in page.section("glance")


def test_a_directory_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"neither results\.json nor journal\.jsonl"):
        write_report(tmp_path)


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    store(tmp_path / "r", sample_results())
    file = tmp_path / "r" / "results.json"
    data = json.loads(file.read_text())
    file.write_text(json.dumps({**data, "schema_version": 99}))
    with pytest.raises(InputError, match="99"):
        write_report(tmp_path / "r")


def test_many_cells_share_a_card_that_has_all_figures_and_doubts(
    tmp_path: Path,
) -> None:
    results = all_sizes()
    spoilt = results.cells[0].model_copy(update={"verdict": "invalid"})
    cells = [spoilt, *results.cells[1:]]
    page = page_of(tmp_path / "r", results.model_copy(update={"cells": cells}))
    glance = page.section("glance")
    assert page.tags.count("article") == 1
    assert "64 bytes No result" in glance
    for cell in cells[1:]:
        assert f"{cell.median:,.0f} fps" in glance.replace(NBSP, " ")


def test_a_quick_run_says_so_in_its_title(tmp_path: Path) -> None:
    store(tmp_path / "r", sample_results(), sample_environment())
    plain = write_report(tmp_path / "r").read_text()
    campaign = tmp_path / "r" / "campaign.yaml"
    campaign.write_text(campaign.read_text() + "preset: quick\n")
    quick = write_report(tmp_path / "r").read_text()
    assert "(quick) \N{MIDDLE DOT} dutperf report</title>" in quick
    assert "(quick)" not in plain
    assert "preset: quick" in Page(quick).section("reproduce")


def test_the_results_come_before_how_they_were_found(tmp_path: Path) -> None:
    text = page_of(tmp_path / "r", sample_results()).text
    places = [
        text.index(heading)
        for heading in ("At a glance", "Results Throughput", "How each rate")
    ]
    assert places == sorted(places)
