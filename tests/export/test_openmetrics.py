"""OpenMetrics of a run, as its own parser reads it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from burst_sample import burst_results
from connection_sample import stateful_results
from hostile import SHOWN, hostile_results
from many_runs import CELL, stored_run
from prometheus_client import parser as older
from prometheus_client.openmetrics import parser
from recovery_sample import outage_results, power_results, recovery_results
from report_sample import LOSSES_4, loss_cell, sample_results, store, throughput_cell
from timed_sample import delay_results
from told_cells import retyped

from dutperf.export import openmetrics
from dutperf.report.source import read_source
from dutperf.results import CellResult, MeasuredValue, ResultsFile

Labels = dict[str, str]


def text_of(path: Path) -> str:
    return openmetrics(read_source(path))


def samples(text: str) -> list[tuple[str, Labels, float]]:
    found = []
    families = parser.text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    for family in families:
        assert family.type == "gauge"
        assert family.documentation
        assert family.name.endswith(family.unit)
        found += [(s.name, s.labels, s.value) for s in family.samples]
    return found


def of(path: Path, *cells: CellResult) -> list[tuple[str, Labels, float]]:
    return samples(text_of(stored_run(path / "r", cells)))


def test_a_throughput_is_a_gauge_of_frames_per_second(tmp_path: Path) -> None:
    told = of(tmp_path, throughput_cell(CELL, 4, 64, [300_000.5]))
    labels = {"cell": CELL, "device": "bench", "direction": "both"}
    assert told[0] == ("dutperf_throughput_frames_per_second", labels, 300_000.5)
    assert told[1][0] == "dutperf_run_created_timestamp_seconds"


def test_a_bound_is_labelled_and_an_invalid_result_is_not_there(
    tmp_path: Path,
) -> None:
    bound = throughput_cell("b", 4, 64, [2e5]).model_copy(update={"bound": "lower"})
    invalid = bound.model_copy(update={"id": "c", "verdict": "invalid"})
    told = of(tmp_path, bound, invalid)
    assert [(labels.get("cell"), labels.get("bound")) for _, labels, _ in told] == [
        ("b", "lower"),
        (None, None),
    ]


def test_a_loss_is_a_ratio_at_its_load(tmp_path: Path) -> None:
    told = of(tmp_path, loss_cell("l", 4, 64, LOSSES_4))
    ratios = {
        float(labels["load_percent"]): value
        for name, labels, value in told
        if name == "dutperf_frame_loss_ratio"
    }
    assert ratios == {
        load: pytest.approx((loss or 0) / 100) for load, loss in LOSSES_4.items()
    }


def test_what_is_judged_otherwise_is_no_throughput(tmp_path: Path) -> None:
    cell = throughput_cell(CELL, 4, 64, [1e5])
    judged = {"parameters": cell.parameters | {"loss_tolerance_percent": 0.1}}
    told = of(tmp_path, retyped(cell.model_copy(update=judged)))
    assert told[0][0] == "dutperf_throughput_judged_frames_per_second"
    assert told[0][1]["judged"] == "losing up to 0.1 %"


def test_a_delay_of_lost_frames_is_infinite(tmp_path: Path) -> None:
    results = delay_results()
    cell = next(cell for cell in results.cells if cell.procedure == "latency")
    lost = MeasuredValue(value=None, absent="lost")
    measures = [m.model_copy(update={"result": lost}) for m in cell.measures]
    told = of(tmp_path, cell.model_copy(update={"measures": measures}))
    delays = [value for name, _, value in told if name == "dutperf_latency_seconds"]
    assert delays == [math.inf] * len(measures)


def test_every_procedure_is_told_in_base_units_and_both_formats(
    tmp_path: Path,
) -> None:
    for number, made in enumerate(
        (
            sample_results,
            delay_results,
            stateful_results,
            burst_results,
            recovery_results,
            outage_results,
            power_results,
        )
    ):
        results: ResultsFile = made().model_copy(update={"trials": []})
        store(tmp_path / str(number), results).close()
        text = text_of(tmp_path / str(number))
        told = samples(text)
        plain = list(older.text_string_to_metric_families(text))
        assert sum(len(family.samples) for family in plain) == len(told)
        cells = {labels.get("cell") for _, labels, _ in told}
        assert {cell.id for cell in results.cells} <= cells
        for name, _, value in told:
            long = any(each in name for each in ("run", "idle_timeout"))
            assert not name.endswith("_seconds") or abs(value) < 1 or long


def test_hostile_names_stay_labels_and_twins_do_not_break_the_file(
    tmp_path: Path,
) -> None:
    results = hostile_results().model_copy(update={"trials": []})
    twins = results.model_copy(update={"cells": [*results.cells, *results.cells]})
    store(tmp_path / "r", twins).close()
    told = samples(text_of(tmp_path / "r"))
    assert all(
        labels["cell"].endswith(SHOWN) for _, labels, _ in told if "cell" in labels
    )
