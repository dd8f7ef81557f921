"""A comparison as tables, page, JUnit and JSON; and what the runs differ in beside."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from comparison_sample import bounded, latency, loss, rate, stored
from hostile import NASTY
from report_sample import sample_environment
from stored_samples import STORED

from dutperf.comparison import as_data, compare, junit, page_of, read_runs
from dutperf.comparison.comparison_tables import (
    comparison_tables,
    differences_of,
    sentences,
)
from dutperf.comparison.judging import Comparison
from dutperf.comparison.output import render
from dutperf.errors import InputError
from dutperf.results import CellResult
from dutperf.tables.table_model import markdown

TEN = [100_000 + 10 * n for n in range(10)]
SLOW = [90_000 + 9 * n for n in range(10)]


def found_in(place: Path, *runs: Sequence[CellResult]) -> Comparison:
    paths = [stored(place / f"run-{n}", *cells) for n, cells in enumerate(runs)]
    return compare(read_runs(paths))


def test_the_page_has_each_figure_and_what_differs(tmp_path: Path) -> None:
    before = stored(tmp_path / "before", rate(*TEN), loss(*[0.5] * 9))
    newer = sample_environment().model_copy(update={"kernel": "6.6"})
    after = stored(tmp_path / "after", rate(*SLOW), loss(*[0.5] * 9), environment=newer)
    page = render([before, after], limit=3)
    assert "FAILED" in page
    assert "\N{MINUS SIGN}10" in page
    assert "no difference shown" in page
    assert "6.1.0-30-amd64" in page
    assert "<script" not in page
    places = re.findall(r'class="span" style="left: ([\d.]+)%; width: ([\d.]+)%"', page)
    assert len(places) == 2
    assert all(0 <= float(a) <= float(a) + float(b) <= 100.01 for a, b in places)


def test_the_page_begins_with_what_came_of_the_gate(tmp_path: Path) -> None:
    slower = found_in(tmp_path / "slower", [rate(*TEN)], [rate(*SLOW)])
    for found, limit, level, told in (
        (slower, 3, "bad", "<strong>Gate FAILED</strong>: At most 3 % worse"),
        (slower, 30, "good", "<strong>Gate held</strong>: At most 30 % worse"),
        (slower, None, "bad", "<strong>Worse</strong>: 1 figure: 1 worse run."),
    ):
        main = page_of(found, limit).partition("<main>")[2]
        first = main.partition("</p>")[0]
        assert f'class="trust {level}">{told}' in first
    few = found_in(tmp_path / "few", [rate(*TEN[:3])], [rate(*SLOW[:3])])
    assert "<strong>Gate cannot tell</strong>" in page_of(few, 3)


def test_its_title_says_what_against_what(tmp_path: Path) -> None:
    names = ("before", "after")
    paths = [stored(tmp_path / name, rate(*TEN)) for name in names]
    assert "<h1>after against before</h1>" in render(paths)


def test_all_intervals_are_on_one_scale(tmp_path: Path) -> None:
    found = found_in(
        tmp_path, [rate(*TEN), loss(*[1.0] * 9)], [rate(*SLOW), loss(*[1.5] * 9)]
    )
    page = page_of(found, 3)
    ticks = re.findall(r'<span style="left: [\d.]+%">([^<]+)</span>', page)
    assert ticks == ["\N{MINUS SIGN}20", "\N{MINUS SIGN}10", "0", "+10", "+20"]
    rate_dot, loss_dot = map(
        float, re.findall(r'class="dot" style="left: ([\d.]+)%', page)
    )
    assert rate_dot == pytest.approx(50 - 50 * 10 / 20, abs=0.3)
    assert loss_dot == pytest.approx(50 + 50 * 0.5 / 20, abs=0.01)


def test_a_bound_is_drawn_to_the_edge(tmp_path: Path) -> None:
    found = found_in(tmp_path, [rate(*TEN)], [bounded(rate(*[300_000] * 10))])
    (drawn,) = re.findall(r"left: ([\d.]+)%; width: ([\d.]+)%", page_of(found, None))
    assert float(drawn[0]) + float(drawn[1]) == pytest.approx(100, abs=0.01)


def test_hostile_words_stay_words_everywhere(tmp_path: Path) -> None:
    names = [f"throughput-{NASTY}"] * 2
    runs = [[rate(*TEN, name=name)] for name in names]
    found = found_in(tmp_path, *runs)
    (table,) = comparison_tables(found, 3)
    for shown in (page_of(found, 3), junit(found, 0), markdown(table)):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert "<script>" not in shown
    (case,) = ET.fromstring(junit(found, 0)).iter("testcase")  # noqa: S314 - our own
    assert r"\x1b[2J" in case.get("name", "")


def test_junit_has_a_case_for_each_cell_of_the_baseline(tmp_path: Path) -> None:
    names = [f"throughput-ip4-{size}-both" for size in (64, 128, 256, 512)]
    before = [rate(*TEN, name=name) for name in names[:3]]
    after = [
        rate(*TEN, name=names[0]),
        rate(*SLOW, name=names[1]),
        rate(*TEN, name=names[3]),
    ]
    suite = ET.fromstring(junit(found_in(tmp_path, before, after), 3))  # noqa: S314
    told = [suite.get(key) for key in ("tests", "failures", "skipped")]
    assert told == ["3", "1", "1"]
    cases = {case.get("name"): [e.tag for e in case] for case in suite}
    assert cases == {names[0]: [], names[1]: ["failure"], names[2]: ["skipped"]}


def test_a_case_is_skipped_if_one_of_its_figures_cannot_be_told(tmp_path: Path) -> None:
    few = latency({"TL": [10_000] * 3, "WCL": [50_000] * 3})
    suite = ET.fromstring(junit(found_in(tmp_path, [few], [few]), 3))  # noqa: S314
    (skipped,) = suite.iter("skipped")
    assert "at least 5 each" in skipped.get("message", "")


def test_json_has_no_number_that_is_none(tmp_path: Path) -> None:
    found = found_in(tmp_path, [rate(*TEN)], [bounded(rate(*[300_000] * 10))])
    told = as_data(found, 3)
    json.dumps(told, allow_nan=False)
    (figure,) = told["figures"]
    assert (figure["outcome"], figure["bound"]) == ("better", "lower")
    assert (figure["upper"], figure["judgement"]) == (None, "not_worse")
    assert [run["run"] for run in told["runs"]] == ["A", "B"]


def test_environment_and_campaign_are_compared_but_for_what_always_differs(
    tmp_path: Path,
) -> None:
    environment = sample_environment()
    moved = environment.model_copy(
        update={
            "started_at": "2027-01-01T00:00:00+00:00",
            "kernel": "6.6",
            "ports": [
                port.model_copy(update={"mac": "02:00:00:00:00:99", "mtu": 9000})
                for port in environment.ports
            ],
        }
    )
    paths = [
        stored(tmp_path / "one", rate(*TEN)),
        stored(tmp_path / "two", rate(*TEN), environment=moved),
    ]
    campaign = paths[1] / "campaign.yaml"
    campaign.write_text(campaign.read_text() + "\nseed: 7\n")
    found = differences_of(*read_runs(paths))
    assert {change.where: change[1:] for change in found.environment} == {
        "kernel": ("6.1.0-30-amd64", "6.6"),
        "ports.left.mtu": ("1500", "9000"),
        "ports.right.mtu": ("1500", "9000"),
    }
    assert found.configuration == (("seed", "absent", "7"),)


def test_long_texts_differ_where_they_end(tmp_path: Path) -> None:
    texts = [f"{'a long description of a device' * 5} {n}" for n in (1, 2)]
    paths = [
        stored(
            tmp_path / text[-1],
            rate(*TEN),
            environment=sample_environment().model_copy(update={"dut": text}),
        )
        for text in texts
    ]
    found = differences_of(*read_runs(paths))
    assert found.environment == (("dut", *texts),)


def test_a_run_without_records_beside_its_results_says_so(tmp_path: Path) -> None:
    paths = [stored(tmp_path / name, rate(*TEN)) for name in ("one", "two")]
    (paths[1] / "campaign.yaml").unlink()
    (paths[1] / "environment.json").unlink()
    found = differences_of(*read_runs(paths))
    assert ("environment", "recorded", "not recorded") in found.environment
    assert ("campaign", "absent", "not stored") in found.configuration


def test_a_stored_run_is_read() -> None:
    found = compare(read_runs([STORED, STORED]))
    assert {each.outcome for each in found.figures} <= {"not_compared", "too_few"}
    assert page_of(found, 3)


def test_of_several_testbeds_cells_are_matched_by_their_names(tmp_path: Path) -> None:
    def at(name: str, value: int) -> CellResult:
        cell = rate(*[value] * 10, name=f"throughput-ip4-64-both@{name}")
        return cell.model_copy(update={"place": name})

    one = tmp_path / "one"
    stored(one, at("left", 100_000), at("right", 50_000))
    two = tmp_path / "two"
    stored(two, at("right", 60_000), at("left", 100_000))
    for path in (one, two):
        (path / "campaign.yaml").write_text("lab: [left, right]\n")
    found = compare(read_runs([one, two])).figures
    assert {each.key.words: each.outcome for each in found} == {
        "throughput-ip4-64-both@left": "none_shown",
        "throughput-ip4-64-both@right": "better",
    }
    single = stored(tmp_path / "three", rate(*[80_000] * 10))
    (single / "campaign.yaml").write_text("lab: right\n")
    found = compare(read_runs([single, two])).figures
    assert {each.key.words: each.why for each in found} == {
        "throughput-ip4-64-both@right": "",
        "throughput-ip4-64-both@left": "not in A",
    }


def test_what_each_device_is_called_does_not_matter_where_each_run_has_one(
    tmp_path: Path,
) -> None:
    paths = [stored(tmp_path / name, rate(*TEN)) for name in ("one", "two")]
    (paths[1] / "campaign.yaml").write_text("lab: another\n")
    (found,) = compare(read_runs(paths)).figures
    assert found.outcome == "none_shown"


def test_what_was_found_is_said_in_short(tmp_path: Path) -> None:
    found = found_in(tmp_path, [rate(*TEN)], [rate(*SLOW)])
    assert list(sentences(found, 3)) == [
        "1 figure: 1 worse run.",
        (
            "Each side is one run: a difference is one of these runs. Whether devices "
            "differ, several runs a side tell: dutperf compare BASE... -- NEW..."
        ),
        "At most 3 % worse (losses: percentage points): 1 FAILED.",
    ]
    few = found_in(tmp_path / "few", [rate(*TEN[:3])], [rate(*SLOW[:3])])
    *_, last = sentences(few, 3)
    assert last == "So nothing could be judged: this is no gate."


@pytest.mark.parametrize("count", [0, 1, 27])
def test_one_run_or_too_many_cannot_be_compared(tmp_path: Path, count: int) -> None:
    with pytest.raises(InputError, match=f"{count} runs? cannot be compared"):
        read_runs([tmp_path] * count)
