"""What a reader of report.html relies on."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from report_sample import (
    DEVICE,
    all_sizes,
    sample_environment,
    sample_results,
    store,
    throughput_cell,
    trial,
)

from dutperf.errors import InputError
from dutperf.report import write_report
from dutperf.report.charts import _top_fps
from dutperf.results import ResultsFile


class Page(HTMLParser):
    """The visible text, and every address that an element would load."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.loads: list[str] = []
        self.tags: list[str] = []
        self._hidden = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._hidden += tag in {"script", "style"}
        wanted = {"src", "href", "srcset", "data", "poster", "action"}
        self.loads += [value or "" for name, value in attrs if name in wanted]

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in {"script", "style"}

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.text += " " + " ".join(data.split())


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


def test_a_users_description_cannot_become_markup(tmp_path: Path) -> None:
    page = page_of(tmp_path / "r", sample_results())
    assert "b" not in page.tags
    assert f"bench: {DEVICE}" in page.text


def test_nothing_is_loaded_from_anywhere(tmp_path: Path) -> None:
    page = page_of(tmp_path / "r", sample_results())
    assert all(address.startswith("#") for address in page.loads)


def test_an_invalid_result_never_looks_like_a_number(tmp_path: Path) -> None:
    name = "throughput-ip4-64-both"
    results = ResultsFile(
        procedure="throughput",
        name="spoilt",
        created_at="2026-03-04T09:30:00+00:00",
        complete=True,
        cells=[throughput_cell(name, 4, 64, [123_457.0, None], "invalid")],
        trials=[trial(1, name, 123_457, "pass"), trial(2, name, 400_000, "invalid")],
    )
    text = page_of(tmp_path / "r", results).text
    assert "No result" in text
    assert "123,457 fps per direction" not in text


def test_repeats_show_their_spread(tmp_path: Path) -> None:
    text = page_of(tmp_path / "r", all_sizes()).text
    assert "p1 p99 min max" in " ".join(text.split())
    assert "p1 p99" not in page_of(tmp_path / "s", sample_results()).text


def test_deviations_of_all_cells_are_said_once(tmp_path: Path) -> None:
    text = page_of(tmp_path / "r", sample_results()).text
    assert text.count("trials of at least 60 s") == 1
    assert "all cells" in text


def test_an_interrupted_run_says_so(tmp_path: Path) -> None:
    results = sample_results().model_copy(update={"complete": False})
    assert "This run is not complete" in page_of(tmp_path / "r", results).text


def test_without_results_the_journal_is_reported(tmp_path: Path) -> None:
    results = sample_results()
    store(tmp_path / "r", results)
    (tmp_path / "r" / "results.json").unlink()
    journal = tmp_path / "r" / "journal.jsonl"
    journal.write_text(journal.read_text() + '{"torn')
    text = Page(write_report(tmp_path / "r").read_text()).text
    assert "ended without writing results" in text
    assert f"{len(results.trials)} trials" in text


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


@pytest.mark.parametrize(
    ("loads", "highest_shown"),
    [
        ([300], 300),
        ([300, 300], 300),
        ([100, 200, 300], 300),
        ([14_880, 620, 310, 465], 620),
        ([14_880, 14_880, 620, 310], 620),
        ([50_000, 14_880, 620, 310], 14_880 // 24),
        ([14_880, 600, 100], 100),
    ],
)
def test_a_rate_far_above_all_others_does_not_set_the_scale(
    loads: list[int], highest_shown: int
) -> None:
    assert _top_fps(loads) >= 1.1 * highest_shown
    if max(loads) > 3 * min(loads) * 3:
        assert _top_fps(loads) < max(loads)
