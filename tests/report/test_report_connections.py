"""Stateful gateways in the report: capacity, survivors, tear-down, and RFC 9693 6."""

from __future__ import annotations

from pathlib import Path

from report_page import Page
from report_sample import all_sizes, sample_environment, store, throughput_cell

from dutperf.report import write_report
from dutperf.report.cells import finished_cell
from dutperf.report.connections import connection_views
from dutperf.results import CellResult
from dutperf.results.connections import (
    Capacity,
    CapacityStep,
    CountAt,
    Eviction,
    Expiry,
    Survival,
    TableLimits,
    TeardownRate,
)
from dutperf.results.model import ProcedureName

WORDS = "3,000 are held at 9,000/s, 3,001 are not (error 1)"
POLICY = "the first ones; the device refuses new ones when its table is full"


def cell(procedure: ProcedureName, value: float, **more: object) -> CellResult:
    found = throughput_cell(f"{procedure}-ip4-64-forward", 4, 64, [value])
    told = {
        "connections": 8000,
        "source_ports": "10000-17999",
        "destination_ports": "80-80",
        "initiator": "left",
        "order": "random",
        "alpha": 0.8,
        "direction": "forward",
        "resolution": "5%",
        "error": 1,
    }
    update = {"procedure": procedure, "parameters": found.parameters | told, **more}
    return found.model_copy(update=update)


def step(phase: str, connections: int, rate: int | None) -> CapacityStep:
    held = "held" if rate else "too_slow"
    return CapacityStep.model_validate(
        {
            "phase": phase,
            "connections": connections,
            "rate_per_s": rate,
            "least_per_s": 900,
            "held": held,
            "tests": 2,
        }
    )


def picture() -> Survival:
    return Survival(
        connections=5999,
        opened=3000,
        survived=3000,
        rate_per_s=4500,
        policy="keeps_first",
        border=3000,
        strays=0,
        block_connections=1000,
        blocks=[1000, 1000, 1000, 0, 0, 0],
        lost_ranges=[(3000, 2999)],
        more_ranges=0,
    )


def cells() -> list[CellResult]:
    steps = [step("first", 1000, 9000), step("doubling", 4000, None)]
    capacity = Capacity(
        connections=3000,
        beyond=3001,
        rate_per_s=9000,
        error=1,
        ending="found",
        words=WORDS,
        steps=steps,
    )
    eviction = Eviction(
        policy="keeps_first", oldest=None, words=POLICY, pictures=[picture()]
    )
    deleted = TeardownRate(
        connections=8000,
        counted_before=8000,
        counted_after=0,
        delete_s=0.42,
        empty_s=[0.02, 0.02, 0.02],
        command_s=0.02,
        rate_per_s=20_000,
    )
    expiry = Expiry(
        connections=8000,
        counts=[
            CountAt(after_s=1, connections=8000),
            CountAt(after_s=2, connections=0),
        ],
        begins_s=1,
        ends_s=2,
        rate_per_s=8000,
    )
    limits = TableLimits(table_size=10_000, hash_size=4000)
    return [
        cell("connection-rate", 9000, unit="connections/s", limits=limits),
        cell(
            "table-capacity",
            3000,
            unit="connections",
            capacity=[capacity],
            eviction=eviction,
        ),
        cell(
            "teardown-rate",
            20_000,
            unit="connections/s",
            teardown=[deleted],
            expiry=[expiry],
        ),
    ]


def page(tmp_path: Path) -> Page:
    results = all_sizes().model_copy(update={"cells": cells(), "trials": []})
    store(tmp_path / "r", results, sample_environment())
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
    assert "3,000 connections held" in text
    assert "20,000 connections/s 8,000 connections deleted" in text


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
    (chart,) = shown
    assert [(t["name"], t["x"], t["y"]) for t in chart.data] == [
        ("held", [1000], [9000]),
        ("not held at this rate or more", [4000], [900]),
    ]
