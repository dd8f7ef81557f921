"""A run at several testbeds: whose cell is whose, and what is missing and why."""

from __future__ import annotations

import pytest
from report_page import Page
from report_sample import sample_environment, sample_results, trial

from dutperf.charts.cells import open_cell
from dutperf.report.page import cells_of, render
from dutperf.report.source import Source, read_source
from dutperf.results import (
    CellResult,
    NotMeasured,
    ResultsDirectory,
    ResultsFile,
    TrialRecord,
)

HERE, THERE, BROKEN = "here", "there", "broken"
DUT = {HERE: "a router", THERE: "another one"}


def at_testbeds(results: ResultsFile) -> ResultsFile:
    """The sample's cells at one testbed, the same again at another, none at a third."""
    cells: list[CellResult] = []
    trials: list[TrialRecord] = []
    for testbed in DUT:
        for cell in results.cells:
            ending = {"id": f"{cell.id}@{testbed}", "place": testbed}
            cells.append(cell.model_copy(update=ending))
        for each in results.trials:
            named = {"cell": f"{each.cell}@{testbed}", "number": len(trials) + 1}
            trials.append(each.model_copy(update=named))
    missing = [
        NotMeasured(
            id=f"throughput-ip{ip}-64-both@{BROKEN}",
            place=BROKEN,
            message="lab broken is in use <by> 7",
            hint="wait for it",
        )
        for ip in (4, 6)
    ]
    changes = {"cells": cells, "trials": trials, "not_measured": missing}
    return results.model_copy(update={**changes, "complete": False})


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    results = at_testbeds(sample_results())
    path = tmp_path_factory.mktemp("places") / "run"
    with ResultsDirectory.create(path, results.name) as directory:
        directory.write_campaign({"lab": [HERE, THERE, BROKEN]})
        for testbed, dut in DUT.items():
            told = {"place": testbed, "dut": dut, "kernel": f"kernel of {testbed}"}
            directory.write_environment(sample_environment().model_copy(update=told))
        for record in results.trials:
            directory.append(record)
        directory.write_results(results)
    return read_source(path)


@pytest.fixture(scope="module")
def page(source: Source) -> Page:
    return Page(render(source))


def test_testbeds_are_named_in_the_order_of_the_campaign(
    source: Source, page: Page
) -> None:
    assert [testbed.words for testbed in source.testbeds] == [
        "here: a router",
        "there: another one",
        "broken",
    ]
    for words in ("here: a router", "there: another one"):
        assert words in page.text


def test_cells_that_differ_in_nothing_but_their_testbed_are_told_apart(
    source: Source,
) -> None:
    cells = cells_of(source)
    assert len({cell.title for cell in cells}) == len(cells)
    for cell in cells:
        assert cell.title.endswith(f", at {cell.testbed}")
        assert cell.line.endswith(f", at {cell.testbed}")


def test_each_testbed_has_its_environment(page: Page) -> None:
    environment = page.section("environment")
    assert "kernel of here" in environment
    assert "kernel of there" in environment
    assert "Not recorded for this testbed" in environment
    names = {f"environment-{name}" for name in (HERE, THERE, BROKEN)}
    assert names <= page.ids


def test_what_was_not_measured_is_told_once_with_reason_and_remedy(page: Page) -> None:
    told = page.section("interrupted")
    assert "Not every testbed could be measured to the end" in told
    assert told.count("lab broken is in use <by> 7") == 1
    assert "wait for it" in told
    assert "throughput-ip4-64-both@broken, throughput-ip6-64-both@broken" in told


def test_lines_of_a_chart_do_not_join_testbeds(page: Page) -> None:
    names = [trace["name"] for trace in page.figures["frame-loss"]["data"]]
    assert any(name.endswith("at here") for name in names)
    assert any(name.endswith("at there") for name in names)


def test_with_one_testbed_it_is_not_named_with_each_cell() -> None:
    results = sample_results()
    cells = [cell.model_copy(update={"place": HERE}) for cell in results.cells]
    from dutperf.charts.cells import finished_cell

    assert all(", at " not in finished_cell(cell, ()).title for cell in cells)


def test_a_cell_without_a_result_is_known_by_its_trials() -> None:
    first = trial(1, "pdv-x@ipdv-lab", 1000, "pass", procedure="pdv")
    first = first.model_copy(update={"place": "ipdv-lab"})
    cell = open_cell(first, (), several=True)
    assert (cell.procedure, cell.testbed) == ("pdv", "ipdv-lab")
    assert open_cell(first, ()).testbed == ""
