"""The first screen: which cards there are, and what speaks for the figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from comparison_sample import latency, loss
from report_sample import all_sizes, sample_environment, sample_results, store
from told_cells import retyped

from dutperf.charts.cells import CellView, finished_cell
from dutperf.charts.text import NBSP
from dutperf.report import write_report
from dutperf.report.page import cells_of
from dutperf.report.source import Source, read_source
from dutperf.report.summary import Card, cards_of
from dutperf.report.trust import TrustRow, in_a_sentence, trust_rows
from dutperf.results import CellResult, ResultsFile
from dutperf.results.rate_results import Derived


def source_of(path: Path, results: ResultsFile) -> Source:
    store(path, results, sample_environment())
    return read_source(path)


def rows_of(path: Path, results: ResultsFile) -> dict[str, TrustRow]:
    source = source_of(path, results)
    return {row.name: row for row in trust_rows(source, cells_of(source), "below")}


def light_of(path: Path, results: ResultsFile) -> TrustRow:
    source = source_of(path, results)
    cells = cells_of(source)
    return in_a_sentence(trust_rows(source, cells, "below"), cells)


def test_a_cell_without_a_result_is_red_whatever_the_others_are(tmp_path: Path) -> None:
    results = all_sizes()
    first, *others = results.cells
    spoilt = [first.model_copy(update={"verdict": "invalid"}), *others]
    light = light_of(tmp_path / "r", results.model_copy(update={"cells": spoilt}))
    assert light.level == "bad"
    assert light.words.startswith(f"1 of {len(spoilt)} test cases have no result")


def test_short_trials_are_a_look_and_never_green(tmp_path: Path) -> None:
    light = light_of(tmp_path / "r", all_sizes())
    assert (light.name, light.level) == ("Exploratory", "note")
    assert f"trials of 1{NBSP}s" in light.words


def test_few_cells_have_a_card_each_and_many_one_for_each_procedure(
    tmp_path: Path,
) -> None:
    few = cards_of(cells_of(source_of(tmp_path / "few", sample_results())))
    assert [len(card.cells) for card in few] == [1] * len(sample_results().cells)
    (many,) = cards_of(cells_of(source_of(tmp_path / "many", all_sizes())))
    medians = sorted(cell.median or 0 for cell in all_sizes().cells)
    assert many.shown.value == f"{medians[0]:,.0f} to {medians[-1]:,.0f}"
    assert [size for size, _ in many.each][:2] == ["64 bytes", "128 bytes"]


def test_a_kind_of_which_nothing_is_valid_has_no_figure(tmp_path: Path) -> None:
    results = all_sizes()
    cells = [c.model_copy(update={"verdict": "invalid"}) for c in results.cells]
    spoilt = results.model_copy(update={"cells": cells})
    (card,) = cards_of(cells_of(source_of(tmp_path / "r", spoilt)))
    assert (card.shown.value, card.shown.unit) == ("No result", "")
    assert card.kind == "invalid"
    assert {told for _, told in card.each} == {"No result"}


def test_invalid_trials_are_counted_with_their_reasons(tmp_path: Path) -> None:
    results = sample_results()
    kinds = [each.result.verdict.kind for each in results.trials]
    row = rows_of(tmp_path / "r", results)["Invalid trials"]
    invalid = kinds.count("invalid")
    assert row.words == f"{invalid} of {len(kinds)}, not counted (sender behind)"
    assert row.level == "note"


def test_nothing_stored_is_not_called_good(tmp_path: Path) -> None:
    nothing = sample_results().model_copy(update={"trials": [], "cells": []})
    found = rows_of(tmp_path / "r", nothing)
    assert (found["Trials"].words, found["Trials"].level) == ("none is stored", "bad")
    assert found["Tester's own limit"].level == "note"


def test_deviations_are_one_line_that_leads_to_the_list(tmp_path: Path) -> None:
    row = rows_of(tmp_path / "r", sample_results())["By the RFCs"]
    assert (
        row.words == "Short trials (1 s), 1 repeat: exploratory, not RFC results, "
        "2 deviations below"
    )
    assert row.target == "deviations"


def test_a_throughput_of_bursts_says_how_often_they_may_come(tmp_path: Path) -> None:
    results = sample_results()
    cell = next(c for c in results.cells if c.procedure == "throughput" and c.median)
    told = {"burst_frames": 16, "burst_rate_fps": 10**6, "traffic": "bursts16"}
    interval = Derived(name="burst interval", meaning="", value=0.0008, unit="s")
    bursty = retyped(
        cell.model_copy(
            update={"parameters": cell.parameters | told, "derived": [interval]}
        )
    )
    few = results.model_copy(update={"cells": [bursty]})
    card = cards_of(cells_of(source_of(tmp_path / "r", few)))[0]
    assert card.cells[0].profile == "bursts of 16"
    every = "a burst of 16 frames every 800\N{NO-BREAK SPACE}\N{MICRO SIGN}s"
    assert every in card.shown.caption


def test_losses_at_different_shares_of_the_throughput_make_no_range() -> None:
    """24.6 % at 115.7 % and 46.7 % at 200 % are no two figures of one measure."""

    def at(load_percent: float, lost: float) -> CellView:
        cell = loss(lost)
        top = cell.points[0].model_copy(update={"load_percent": load_percent})
        return finished_cell(cell.model_copy(update={"points": [top]}), ())

    card = Card((at(115.7, 24.6), at(200, 46.7)))
    assert (card.shown.value, card.shown.unit) == ("At different loads", "")
    assert [figure for _, figure in card.each] == [f"24.6{NBSP}%", f"46.7{NBSP}%"]
    assert [name.partition(", at ")[2] for name, _ in card.each] == [
        f"115.7{NBSP}% load",
        f"200{NBSP}% load",
    ]
    assert Card((at(120, 24.6), at(120, 46.7))).shown.value == "24.6 to 46.7"


def test_times_and_losses_of_a_card_have_one_unit_and_precision() -> None:
    delays = [latency({"TL": [ns]}) for ns in (998_000, 1_027_000)]
    lines = [told for _, told in Card(cards(delays)).each]
    assert lines == [f"{ms}{NBSP}ms" for ms in ("0.998", "1.027")]
    losses = [told for _, told in Card(cards([loss(8.358), loss(13.7125)])).each]
    assert losses == [f"8.36{NBSP}%", f"13.71{NBSP}%"]


def test_times_that_are_far_apart_have_each_its_own_unit() -> None:
    delays = [latency({"TL": [ns]}) for ns in (23_200, 1_027_000)]
    assert [told for _, told in Card(cards(delays)).each] == [
        f"23.2{NBSP}µs",
        f"1.027{NBSP}ms",
    ]


def cards(results: Sequence[CellResult]) -> tuple[CellView, ...]:
    return tuple(finished_cell(each, ()) for each in results)


def test_what_was_required_stands_first_and_nonsense_is_left_out(
    tmp_path: Path,
) -> None:
    directory = store(tmp_path / "run", all_sizes(), sample_environment())
    texts = ["throughput >= 1", "throughput <= 1", "latency <= 1 s", "x", 7, None]
    testbed = {"name": "bench", "description": "<b>a device</b>"}
    directory.write_campaign({"testbed": testbed, "require": texts})
    page = write_report(directory.path).read_text()
    required = page[page.index('<ul class="required"') :].partition("</ul>")[0]
    assert required.count("<strong>throughput &gt;= 1: met</strong>") == 7
    assert required.count("<strong>throughput &lt;= 1: not met</strong>") == 7
    assert required.count("<strong>latency &lt;= 1 s: cannot tell</strong>") == 1
    assert required.count("<li") == 15
    assert page.index('<ul class="required"') < page.index('class="cards')
