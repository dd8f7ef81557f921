"""What make demo says at its end is what was stored, and no more."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from report_sample import sample_results, throughput_cell
from told_cells import retyped

from dutperf.protocol.base import IpVersion
from dutperf.results import CellResult, ResultsFile
from dutperf.results.rate_results import Finding, FindingKind

WORDS = runpy.run_path(str(Path(__file__).parents[2] / "scripts/demo_words.py"))


def cell(device: str, ip: IpVersion, fps: int, **more: object) -> CellResult:
    plain = throughput_cell(f"throughput-ip{ip}@{device}", ip, 84, [fps])
    parameters = {**plain.parameters, "ip": str(ip)}
    return retyped(
        plain.model_copy(update={"place": device, "parameters": parameters, **more})
    )


def lines(*cells: CellResult) -> dict[str, str]:
    results: ResultsFile = sample_results().model_copy(update={"cells": [*cells]})
    told = WORDS["words"](results, Path("results/demo"))
    return dict(line.split(": ", 1) for line in told)


def test_what_filters_cost_is_told() -> None:
    told = lines(
        cell("linux-firewall-100", 4, 200_000),
        cell("linux-firewall-100", 6, 100_000, bound="lower"),
        cell("linux-firewall-400", 4, 50_000),
        cell("linux-firewall-400", 6, 40_000),
    )
    assert told["300 more filters"] == "IPv4 -75 %"  # and nothing of a bound
    assert "open results/demo/report.html" in told["next"]


def test_no_cost_is_claimed_where_noise_may_be_all() -> None:
    told = lines(
        cell("linux-firewall-100", 4, 100_000), cell("linux-firewall-400", 4, 95_000)
    )
    assert list(told) == ["trust", "next"]


@pytest.mark.parametrize("kind", ["unstable", "contradiction"])
def test_no_cost_is_claimed_of_a_figure_in_doubt(kind: FindingKind) -> None:
    doubt = Finding(kind=kind, of="throughput", message="", unit="fps")
    told = lines(
        cell("linux-firewall-100", 4, 200_000, findings=[doubt]),
        cell("linux-firewall-400", 4, 50_000),
    )
    assert "300 more filters" not in told
    assert told["doubt"].startswith(
        "of linux-firewall-100 IPv4 nothing can be concluded"
    )
    alone = (
        cell("linux-firewall-100", 4, 200_000),
        cell("linux-firewall-400", 4, 50_000),
    )
    assert "doubt" not in lines(*alone)


def test_nothing_is_said_of_cost_where_nothing_was_measured() -> None:
    assert list(lines()) == ["trust", "next"]
    invalid = cell("linux-firewall-100", 4, 100_000, verdict="invalid")
    assert list(lines(invalid)) == ["trust", "next"]
