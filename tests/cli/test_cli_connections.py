"""Capacity and tear-down by the command line: what is refused, planned and shown."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from told_cells import cell_of

from dutperf.cli import app
from dutperf.cli.console import PatientConsole
from dutperf.cli.summary import entry_text, show_all
from dutperf.procedures.measurements import tables
from dutperf.results import (
    CellResult,
    RepeatResult,
    ResultsFile,
    overall,
    spread_of,
)
from dutperf.results.details import Capacity, CapacityStep, TableLimits, TeardownRate
from dutperf.tables import Subject

TESTBED = """\
schema_version: 1
name: gateway
cores: [0, 1]
left:
  port: {interface: tl}
  ipv4: {address: 198.18.0.2, gateway: 198.18.0.1, virtual: 198.19.0.1}
right:
  port: {interface: tr}
  ipv4: {address: 198.19.0.2, gateway: 198.19.0.1}
"""
CAMPAIGN = """\
name: table
testbed: testbed.yaml
procedures:
  - procedure: table-capacity
    max_rate_fps: 100000
    stateful: {first: 1000, connections: 64000}
  - procedure: connection-rate
    max_rate_fps: 100000
    stateful: {connections: [1000, 10000]}
"""


@pytest.fixture
def testbed(tmp_path: Path) -> str:
    path = tmp_path / "testbed.yaml"
    path.write_text(TESTBED)
    return str(path)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("table-capacity --first 5", "--connections is missing"),
        ("table-capacity --connections 5", "--first"),
        ("table-capacity --connections 5 --first 6", "6 is more than may be tried, 5"),
        ("table-capacity --connections 5 --first 1 --beta 2", "--beta"),
        ("table-capacity --connections 5 --first 1 --error 0", "--error"),
        ("teardown-rate --connections 5", "--rate"),
        ("teardown-rate --connections 5 --rate 9", "no hook bulk_delete"),
        (
            "teardown-rate --connections 5 --rate 9 --expiry",
            "the device's timeout, which must be known (--dut-timeout)",
        ),
        (
            "teardown-rate --connections 5 --rate 9 --expiry --dut-timeout 5",
            "no hook table_count",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_opened(
    command: str, told: str, testbed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *options = command.split()
    code = app.run([name, testbed, "--max-rate", "1000", *options])
    assert told in " ".join(capsys.readouterr().err.split())
    assert code == 2


def test_a_dry_run_tells_how_long_a_capacity_search_takes(
    testbed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign = Path(testbed).with_name("campaign.yaml")
    campaign.write_text(CAMPAIGN)
    assert app.run(["run", str(campaign), "--dry-run", "--json"]) == 0
    shown = capsys.readouterr()
    assert " ".join(shown.err.split()).count("no hook that empties") == 1
    capacity, *rates = json.loads(shown.out)["cells"]
    assert capacity["id"] == "table-capacity-ip4-64-forward-upto64000connections"
    # 6 doublings and 15 halvings, most of which fail at two rates; two phases each.
    assert 60 <= capacity["trials"] <= 140
    assert 60 * 6 <= capacity["duration_s"] <= 140 * 20
    assert [rate["id"].rpartition("-")[2] for rate in rates] == [
        "1000connections",
        "10000connections",
    ]


def result(**keys: object) -> CellResult:
    told = {
        "connections": 8000,
        "source_ports": "10000-17999",
        "destination_ports": "80-80",
        "resolution": "1000",
        "error": 10,
    }
    plain = {
        "id": "cell",
        "procedure": "connection-rate",
        "quantity": "",
        "parameters": told,
        "median": 9000,
        "unit": "connections/s",
        "repeats": [{"value": 9000, "verdict": "pass", "trials": 9}],
        "verdict": "pass",
        "spread": spread_of([9000]),
    }
    given: dict[str, Any] = plain | keys
    cell = cell_of(given["procedure"], given["parameters"])
    return CellResult.model_validate(given | {"cell": cell})


def rows(cell: CellResult) -> dict[str, str]:
    """What stands in the cell's own table, but for what names it."""
    of = Subject(cell.id, "", cell.procedure, cell, ())
    [table, *_] = tables([of], [])
    pairs = zip(table.columns[2:], table.rows[0].entries[2:], strict=True)
    return {column.name: entry_text(entry) for column, entry in pairs}


def printed(cell: CellResult) -> str:
    results = ResultsFile(
        procedure=cell.procedure,
        name="demo",
        created_at="2026-03-04T05:06:07+00:00",
        complete=True,
        cells=[cell],
    )
    console = PatientConsole(file=io.StringIO(), width=160)
    show_all(console, results, None)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_more_addresses_than_one_stand_in_the_table() -> None:
    told = result().parameters | {"source_addresses": 4000, "destination_addresses": 1}
    shown = rows(result(parameters=told))
    assert (shown["source addresses"], shown["destination addresses"]) == ("4,000", "1")
    one = rows(result(parameters=told | {"source_addresses": 1}))
    assert "source addresses" not in one


def test_the_table_is_that_of_rfc_9693() -> None:
    limits = TableLimits(table_size=10_000, hash_size=4000)
    assert rows(result(limits=limits)) == {
        "connections": "8,000",
        "source ports": "8,000",
        "destination ports": "1",
        "hash size": "4,000",
        "table size": "10,000",
        "connections per bucket": "2",
        "alpha": "-",
        "error": "1000",
        "rate": "9,000",
        "N": "1",
        "trials": "9",
        "verdict": "measured",
    }
    assert "hash size" not in rows(result())


def test_a_lower_bound_is_one_in_all_its_figures() -> None:
    repeats = [RepeatResult(value=9000, verdict="pass", bound="lower", trials=9)] * 2
    spread = overall(repeats).spread
    shown = rows(result(bound="lower", spread=spread, repeats=repeats))
    assert [shown[name] for name in ("rate", "1st %ile", "99th %ile")] == [
        ">= 9,000",
        ">= 9,000",
        ">= 9,000",
    ]


def test_a_capacity_has_its_steps_and_a_tear_down_its_latency() -> None:
    step = CapacityStep(
        phase="first",
        connections=8000,
        rate_per_s=None,
        least_per_s=900,
        held="too_slow",
        tests=2,
    )
    capacity = Capacity(
        connections=None,
        beyond=8000,
        rate_per_s=None,
        error=10,
        ending="nothing_held",
        words="not even 8,000 are held",
        steps=[step],
    )
    cell = result(procedure="table-capacity", capacity=[capacity])
    assert rows(cell)["error"] == "10"
    out = printed(cell)
    assert "too slow" in out
    assert "cell: not even 8,000 are held" in out.splitlines()
    deleted = TeardownRate(
        connections=8000,
        counted_before=None,
        counted_after=None,
        delete_s=0.42,
        empty_s=[0.02],
        command_s=0.02,
        rate_per_s=20_000,
    )
    out = printed(result(procedure="teardown-rate", teardown=[deleted]))
    assert "the command itself took 20 ms" in out
