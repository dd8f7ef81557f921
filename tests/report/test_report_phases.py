"""Cells on open connections in the report: their table, and what is left out."""

from __future__ import annotations

from pathlib import Path

from report_page import Page
from report_sample import all_sizes, sample_environment, store, throughput_cell, trial
from told_cells import retyped

from dutperf.charts.cells import finished_cell
from dutperf.report import write_report
from dutperf.report.source import read_source
from dutperf.results import CellResult, TrialRecord
from dutperf.tables import Value
from dutperf.tables.connection_tables import phase_table, transport_table

ID = "throughput-ip4-64-both-8000connections"
PHASES: dict[str, str | int | float | bool | None] = {
    "connections": 8000,
    "source_ports": "10000-17999",
    "destination_ports": "80-80",
    "initiator": "left",
    "order": "random",
    "timeout_ms": 500,
    "phase1_rate": 4000,
    "phase2_after_ms": 3000,
    "needed_dut_timeout_s": 71.5,
    "responder_order": "random",
}


def cell() -> CellResult:
    found = throughput_cell(ID, 4, 64, [300_000])
    return retyped(found.model_copy(update={"parameters": found.parameters | PHASES}))


def trials() -> list[TrialRecord]:
    """Two tests; the second one's answers were checked."""
    phase1 = {"role": "phase1"}
    return [
        trial(1, ID, 4000, "pass").model_copy(update=phase1),
        trial(2, ID, 300_000, "pass"),
        trial(3, ID, 4000, "pass").model_copy(update=phase1),
        trial(4, ID, 400_000, "fail", lost=9),
        trial(5, ID, 4000, "pass").model_copy(update={"role": "validation"}),
    ]


def page(tmp_path: Path) -> Page:
    results = all_sizes().model_copy(update={"cells": [cell()], "trials": trials()})
    store(tmp_path / "run", results, sample_environment())
    return Page(write_report(tmp_path / "run").read_text("utf-8"))


def test_the_times_of_the_phases_and_both_directions_stand_in_a_table(
    tmp_path: Path,
) -> None:
    shown = page(tmp_path).section("phases")
    for number in ("8,000", "4,000", "500", "3,000", "71.5"):
        assert number in shown


def test_the_number_of_addresses_stands_below_the_ports() -> None:
    told = cell().parameters | {"source_addresses": 4000, "destination_addresses": 10}
    spread = retyped(cell().model_copy(update={"parameters": told}))
    shown = phase_table([finished_cell(spread, ())])
    assert shown
    names = [column.name for column in shown.columns]
    place = names.index("source addresses")
    assert shown.rows[0].entries[place : place + 2] == (Value("4,000"), Value("10"))
    plain = phase_table([finished_cell(cell(), ())])
    assert plain
    assert "source addresses" not in [column.name for column in plain.columns]


def test_what_is_found_of_udp_and_of_tcp_stands_side_by_side(tmp_path: Path) -> None:
    tcp = throughput_cell(ID.replace("connections", "tcpconnections"), 4, 88, [150_000])
    told = tcp.parameters | PHASES | {"transport": "tcp"}
    of_tcp = finished_cell(retyped(tcp.model_copy(update={"parameters": told})), ())
    of_udp = finished_cell(cell(), ())
    made = transport_table([of_udp, of_tcp])
    assert made
    (row,) = made.rows
    assert row.entries[1::2] == (
        "IPv4, 64 bytes, 8,000 connections",
        "IPv4, 88 bytes, 8,000 TCP connections",
        Value("50", unit="%", exact=50),
    )
    assert row.entries[2::2] == (of_udp.figure, of_tcp.figure)
    assert of_tcp.series == "IPv4, both directions, 8,000 TCP connections"
    both = all_sizes().model_copy(
        update={"cells": [cell(), of_tcp.result], "trials": []}
    )
    store(tmp_path / "both", both, sample_environment())
    shown = Page(write_report(tmp_path / "both").read_text("utf-8"))
    assert "8,000 TCP connections" in shown.section("transports")
    # One of them alone, or other connections, are nothing to compare.
    assert transport_table([of_udp]) is None
    told |= {"connections": 9000}
    others = retyped(tcp.model_copy(update={"parameters": told}))
    assert transport_table([of_udp, finished_cell(others, ())]) is None


def test_phase_1_and_checks_are_listed_and_in_no_search_or_average(
    tmp_path: Path,
) -> None:
    made = page(tmp_path)
    listed = made.section("trials")
    assert listed.count("phase 1") == 2
    assert listed.count("validation") == 1
    assert "Show 5 trials" in listed
    row = made.section("phases")
    assert "300,000 300,000" in row  # not the 400,000 that failed, nor phase 1's


def test_phase_1_is_no_trial_of_the_cell(tmp_path: Path) -> None:
    results = all_sizes().model_copy(update={"cells": [cell()], "trials": trials()})
    store(tmp_path / "run", results, sample_environment())
    own = read_source(tmp_path / "run").trials_of(ID)
    assert [record.number for record in own] == [2, 4]
