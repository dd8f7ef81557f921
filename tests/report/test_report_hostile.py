"""Hostile names stand in the report as words, and are nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hostile import MARKUP, NASTY, SHOWN, hostile_environment, hostile_results
from report_page import Page
from report_sample import sample_environment, sample_results, store

from dutperf.errors import InputError
from dutperf.report import write_report
from dutperf.report.timing import export_histograms
from dutperf.results import load_results
from dutperf.visible import visible

FLAT = " ".join(SHOWN.split())
PLOTTED = SHOWN.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "r"
    store(path, hostile_results(), hostile_environment())
    return path


@pytest.fixture(scope="module")
def page(directory: Path) -> str:
    return write_report(directory).read_text("utf-8")


def test_no_character_of_it_is_obeyed(page: str) -> None:
    assert visible(page) == page


def test_it_has_no_element_more_than_that_of_harmless_names(
    page: str, tmp_path: Path
) -> None:
    store(tmp_path / "r", sample_results(), sample_environment())
    harmless = Page(write_report(tmp_path / "r").read_text("utf-8"))
    hostile = Page(page)
    assert all(address.startswith("#") for address in hostile.loads)
    for tag in ("script", "img", "style", "iframe"):
        assert hostile.tags.count(tag) == harmless.tags.count(tag)
    to_hooks = 1  # which the harmless run has none of
    assert hostile.tags.count("a") == harmless.tags.count("a") + to_hooks


def test_every_name_is_there_to_the_last_character(page: str) -> None:
    read = Page(page)
    for section in ("environment", "hooks", "deviations"):
        assert FLAT in read.section(section), section


def test_a_profile_of_a_hostile_name_is_refused(tmp_path: Path) -> None:
    """The one name in tables of results that a run's author chooses."""
    store(tmp_path / "r", sample_results(), sample_environment())
    path = tmp_path / "r" / "results.json"
    found = json.loads(path.read_text("utf-8"))
    found["cells"][0]["cell"]["spec"]["traffic"][0]["name"] = NASTY
    path.write_text(json.dumps(found), "utf-8")
    with pytest.raises(InputError, match=r"traffic\.0\.name"):
        load_results(path)


def test_no_chart_takes_a_name_for_markup(page: str) -> None:
    texts = list(_texts(Page(page).figures))
    named = [text for text in texts if MARKUP in text]
    assert named
    for text in named:
        assert text.count("&lt;script&gt;") == text.count(MARKUP)
        assert "<script" not in text
        assert "<img" not in text


def test_histogram_logs_keep_their_lines(directory: Path, tmp_path: Path) -> None:
    for path in export_histograms(directory, tmp_path / "logs"):
        text = path.read_text("utf-8")
        assert visible(text) == text
        for line in text.splitlines():
            assert line.startswith(("#[", '"StartTimestamp"', "Tag="))


def _texts(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
