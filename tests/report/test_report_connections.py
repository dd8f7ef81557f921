"""Stateful gateways in the report: capacity, survivors, tear-down, and RFC 9693 6."""

from __future__ import annotations

from pathlib import Path

from connection_sample import POLICY, WORDS, cells, stateful_results
from report_page import Page
from report_sample import sample_environment, store

from dutperf.charts.cells import finished_cell
from dutperf.charts.connection_views import connection_views
from dutperf.report import write_report


def page(tmp_path: Path) -> Page:
    store(tmp_path / "r", stateful_results(), sample_environment())
    return Page(write_report(tmp_path / "r").read_text(encoding="utf-8"))


def test_the_page_has_words_tables_and_charts_of_each(tmp_path: Path) -> None:
    found = page(tmp_path)
    text = found.section("connections")
    for told in (WORDS, f"T{POLICY[1:]}", "of which 3,000 arrived", "420", "20,000"):
        assert told in text
    assert {"capacity-2", "survival-2", "expiry-3"} <= found.ids
    assert {"capacity-2", "survival-2", "expiry-3"} <= set(found.figures)


def test_the_table_of_rfc_9693_has_the_limits_that_hooks_showed(tmp_path: Path) -> None:
    text = page(tmp_path).section("summary")
    assert "4,000 2" in text  # sessions to hash size
    assert "10,000" in text
    assert "RFC 9693 6" in text


def test_each_headline_says_of_what_the_number_is(tmp_path: Path) -> None:
    text = page(tmp_path).section("glance")
    assert "3,000 connections Connections held" in text
    assert "20,000 connections/s Connections deleted, 8,000 at once" in text
    assert "120 s So long without packets" in text


def test_survival_steps_from_block_to_block_up_to_the_last_connection() -> None:
    views = [finished_cell(each, ()) for each in cells()]
    shown = [view.survival for view in connection_views(views) if view.survival]
    (chart,) = shown
    (trace,) = chart.data
    assert trace["x"] == [0, 1000, 2000, 3000, 4000, 5000, 5999]
    assert trace["y"] == [100, 100, 100, 0, 0, 0, 0]


def test_a_number_that_is_not_held_stands_at_the_rate_that_it_missed() -> None:
    views = [finished_cell(each, ()) for each in cells()]
    shown = [view.capacity for view in connection_views(views) if view.capacity]
    chart, *of_tcp = shown
    assert len(of_tcp) == 2
    assert [(t["name"], t["x"], t["y"]) for t in chart.data] == [
        ("held", [1000], [9000]),
        ("not held at this rate or more", [4000], [900]),
    ]
