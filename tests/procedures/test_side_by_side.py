"""Several devices of a run beside each other: bars, and differences as far as known."""

from __future__ import annotations

import pytest
from comparison_sample import bounded, latency, rate

from dutperf.cli.summary import STYLE
from dutperf.procedures.side_by_side import SideBySide, known_range, side_by_side
from dutperf.results import CellResult, ResultsFile
from dutperf.results.figures import cell_figure
from dutperf.results.rate_results import Finding
from dutperf.tables import subjects


def at(device: str, *cells: CellResult) -> list[CellResult]:
    return [
        cell.model_copy(update={"id": f"{cell.id}@{device}", "place": device})
        for cell in cells
    ]


def beside(*cells: list[CellResult]) -> SideBySide | None:
    results = ResultsFile(
        procedure="campaign",
        name="two",
        created_at="2026-11-29T00:00:00Z",
        complete=True,
        cells=[cell for of_device in cells for cell in of_device],
    )
    return side_by_side(list(subjects(results)))


def said(*cells: list[CellResult]) -> list[str]:
    found = beside(*cells)
    assert found
    return list(found.sentences(STYLE))


def test_the_first_device_is_the_baseline_and_a_bar_is_a_share_of_the_longest() -> None:
    found = beside(at("a", rate(200, 200, 200)), at("b", rate(100, 100, 100)))
    assert found is not None
    assert found.devices == ("a", "b")
    (group,) = found.groups
    assert [bar.share for bar in group.bars] == [1, 0.5]
    assert group.bars[0].difference is None
    assert group.label == ""


def test_a_difference_reaches_as_far_as_repeats_and_search_know() -> None:
    one, two = rate(1000, 1000, 1000), rate(500, 500, 600)
    assert known_range(cell_figure(two))[0] == 500
    assert known_range(cell_figure(two))[1] == pytest.approx(603, abs=2)
    (sentence,) = said(at("a", one), at("b", two))
    assert sentence == "b against a: -50 % (-50 to -40)"


def test_of_single_repeats_the_scatter_is_not_known_and_it_says_so() -> None:
    (sentence,) = said(at("a", rate(1000)), at("b", rate(500)))
    assert sentence.startswith("b against a: -50 %; one repeat each")


def test_a_difference_that_may_have_either_sign_is_none() -> None:
    (sentence,) = said(at("a", rate(1000, 900, 1100)), at("b", rate(950, 800, 1050)))
    assert "no difference to be seen (-28 to +17 %)" in sentence


def test_of_a_bound_nothing_can_be_told() -> None:
    one = rate(1000, 1000)
    for sides in ((one, bounded(rate(500, 500))), (bounded(one), rate(500, 500))):
        (sentence,) = said(at("a", sides[0]), at("b", sides[1]))
        assert sentence == "b against a: a lower bound"


def test_nor_of_what_others_contradict_or_what_is_invalid() -> None:
    one, two = rate(1000, 1000), rate(500, 500)
    finding = Finding(
        kind="contradiction", of="throughput", unit="fps", message="another one"
    )
    denied = two.model_copy(update={"findings": [finding]})
    assert said(at("a", one), at("b", denied)) == ["b against a: contradicted"]
    assert said(at("a", denied), at("b", one)) == ["b against a: contradicted"]
    invalid = two.model_copy(update={"verdict": "invalid"})
    assert said(at("a", one), at("b", invalid)) == ["b against a: invalid"]


def test_one_device_or_delays_alone_have_nothing_beside_them() -> None:
    assert beside(at("a", rate(1000))) is None
    delays = latency({"TL": [100.0, 110.0]})
    assert beside(at("a", delays), at("b", delays)) is None


def test_a_cell_that_one_device_lacks_is_left_out() -> None:
    other = rate(700, name="throughput-ip6-84-both")
    found = beside(at("a", rate(1000), other), at("b", rate(500)))
    assert found
    assert [group.bars[0].cell.id for group in found.groups] == [
        "throughput-ip4-64-both@a"
    ]


def test_losses_that_were_verified_leave_a_cell_beside_the_others() -> None:
    verified = rate(900, name="throughput-ip6-84-both")
    verified = verified.model_copy(update={"verified_by": 3})
    one = [rate(1000), rate(800, name="throughput-ip6-84-both")]
    two = [rate(500), verified]
    found = beside(at("a", *one), at("b", *two))
    assert found is not None
    assert len(found.groups) == 2
    assert "losses verified by up to 3 trials" in found.title
