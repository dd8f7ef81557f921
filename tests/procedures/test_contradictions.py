"""What one result says against another: found on both, and never where both may be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from planning import Run, campaign, spec
from told_cells import cell_of

from dutperf.procedures.contradictions import with_contradictions
from dutperf.results import CellResult
from dutperf.simulation.fake_engine import FakeEngine, step

RATE_ID, CURVE_ID = "throughput-ip4-64-both", "frame-loss-ip4-64-both"
TRAFFIC: dict[str, object] = {
    "ip": "4",
    "direction": "both",
    "traffic": "default",
    "frame_size": 64,
    "frame_sizes": "64",
}


Parameters = dict[str, object]


def cell(
    procedure: str,
    median: float,
    parameters: Parameters | None = None,
    **keys: object,
) -> CellResult:
    unit = {"throughput": "fps", "frame-loss": "percent", "back-to-back": "frames"}
    plain = {
        "id": f"{procedure}-ip4-64-both",
        "place": "linux-firewall",
        "procedure": procedure,
        "quantity": procedure,
        "parameters": TRAFFIC | (parameters or {}),
        "median": median,
        "unit": unit.get(procedure, "ns"),
        "repeats": [{"value": median, "verdict": "pass", "trials": 9}],
        "verdict": "pass",
    }
    given: dict[str, Any] = plain | keys
    typed = cell_of(given["procedure"], given["parameters"])
    return CellResult.model_validate(given | {"cell": typed})


def rate(
    median: float = 202_019, parameters: Parameters | None = None, **keys: object
) -> CellResult:
    known = {"resolution": "5%"} | (parameters or {})
    return cell("throughput", median, known, **keys)


def curve(
    *losses: tuple[int, float | None],
    parameters: Parameters | None = None,
    **keys: object,
) -> CellResult:
    points = [
        {"load_percent": fps / 2020.19, "load_fps": fps, "loss_percent": lost}
        | {"repeats": [{"value": lost, "verdict": "pass", "trials": 1}]}
        for fps, lost in losses
    ]
    lost = losses[0][1] or 0
    return cell("frame-loss", lost, parameters, points=points, **keys)


def delays(lost: int, rate_fps: int = 202_019) -> CellResult:
    load = {"rate_fps": rate_fps, "asked": "throughput", "cell": RATE_ID, "words": ""}
    frames = {"direction": "forward", "sent": 1000, "received": 1000 - lost}
    frames |= {"lost": lost, "late": 0, "negative_delays": 0}
    return cell("latency", 9000, load=load, frames=[frames])


def bursts(
    burst_fps: int, cause: str | None = "set", longest_burst_s: float = 2
) -> CellResult:
    keys: Parameters = {"max_load_fps": burst_fps, "longest_burst_s": longest_burst_s}
    bound = cause and "lower"
    return cell("back-to-back", 10**6, keys, bound=bound, bound_cause=cause)


def told(*cells: CellResult) -> dict[str, list[str]]:
    found = with_contradictions(cells)
    assert [each.id for each in found] == [each.id for each in cells]
    return {
        each.id: [f"{f.kind}: {f.message}" for f in each.findings]
        for each in found
        if each.findings
    }


def test_a_loss_below_what_passed_is_found_on_both() -> None:
    """A firewall that passed 202,019 fps, and lost 10 % at 141,413."""
    lossy = curve((262_624, 38.2), (202_019, 36.6), (181_817, 31.8), (141_413, 10.0))
    message = (
        f"contradiction: {CURVE_ID}: 10 % lost at 141,413 fps; {RATE_ID} says that "
        "202,019 fps pass"
    )
    assert told(rate(), lossy) == {RATE_ID: [message], CURVE_ID: [message]}


@pytest.mark.parametrize(
    ("passed", "other"),
    [
        (rate(), curve((262_624, 38.2), (202_020, 36.6), (181_817, 0), (1000, None))),
        (rate(parameters={"loss_tolerance_percent": 0.1}), curve((202_019, 0.1))),
        (
            rate(parameters={"verify_trials": 2, "max_verify_loss_percent": 0.5}),
            curve((202_019, 0.4)),
        ),
        (rate(), curve((202_019, 9), place="linux-router")),
        (rate(), curve((202_019, 9), parameters={"ip": "6"})),
        (rate(), curve((202_019, 9), parameters={"frame_sizes": "128"})),
        (rate(), curve((202_019, 9), parameters={"ipv4_options": "router-alert"})),
        (rate(), curve((202_019, 9), verdict="invalid")),
        (rate(verdict="invalid"), curve((202_019, 9))),
        (rate(0), curve((1, 9))),
        (rate(), delays(0)),
        (rate(), delays(3, rate_fps=202_020)),
        (rate(), bursts(212_000)),  # known to 5 %
        (rate(), bursts(400_000, cause=None)),
        (rate(), bursts(400_000, cause="tester")),
        (rate(), bursts(400_000, longest_burst_s=0.002)),  # a buffer takes it
        (
            rate(parameters={"connections": 9, "order": "increasing"}),
            curve((202_019, 9), parameters={"connections": 9}),
        ),
        (rate(parameters={"ignore_checksums": True}), curve((202_019, 9))),
        (rate(bound="lower"), bursts(400_000)),
    ],
)
def test_what_may_both_be_is_no_contradiction(
    passed: CellResult, other: CellResult
) -> None:
    assert told(passed, other) == {}


def test_more_than_a_verified_loss_is_one() -> None:
    passed = rate(parameters={"verify_trials": 2, "max_verify_loss_percent": 0.5})
    assert set(told(passed, curve((202_019, 0.51)))) == {RATE_ID, CURVE_ID}


def test_a_lower_bound_passed_too() -> None:
    assert set(told(rate(bound="lower"), curve((202_019, 3)))) == {RATE_ID, CURVE_ID}


def test_frames_lost_at_a_rate_that_passes_are_found_with_their_delays() -> None:
    found = told(rate(), delays(3))
    assert set(found) == {RATE_ID, "latency-ip4-64-both"}
    assert "3 of 1,000 frames lost forward at 202,019 fps" in found[RATE_ID][0]


def test_endless_bursts_above_the_throughput() -> None:
    found = told(rate(), bursts(400_000))
    assert set(found) == {RATE_ID, "back-to-back-ip4-64-both"}
    assert "pass at 400,000 fps" in found[RATE_ID][0]


def test_a_longer_frame_that_is_faster_is_unusual_and_nothing_is_withdrawn() -> None:
    longer = {"frame_size": 512, "frame_sizes": "512"}
    sized = {"frame_size": 128, "frame_sizes": "128"}
    found = told(
        rate(100_000),
        rate(104_000, id="128", parameters=sized),
        rate(120_000, id="512", parameters=longer),
    )
    message = "unusual: 120,000 fps with 512 bytes, 104,000 with 128: a longer frame"
    assert set(found) == {"128", "512"}
    assert found["512"][0].startswith(message)


def repeated(fps: int, *losses: float) -> CellResult:
    repeats = [{"value": each, "verdict": "pass", "trials": 1} for each in losses]
    point = {"load_percent": 100, "load_fps": fps, "repeats": repeats}
    point["loss_percent"] = sorted(losses)[len(losses) // 2]
    return cell("frame-loss", 0, points=[point])


def test_a_loss_in_few_repeats_is_told_and_nothing_is_withdrawn() -> None:
    found = told(rate(), repeated(202_019, *[0.1] * 9, *[0.0] * 11))
    message = (
        f"unusual: {CURVE_ID}: frames lost in 9 of 20 repeats at 202,019 fps; "
        f"{RATE_ID} says that 202,019 fps pass"
    )
    assert found == {RATE_ID: [message], CURVE_ID: [message]}
    goal: dict[str, object] = {"name": "", "loss_ratio": 0.0, "exceed_ratio": 0.2}
    goal |= dict.fromkeys(("lower_fps", "upper_fps", "conditional_fps"))
    goal |= dict.fromkeys(("final_duration_s", "duration_sum_s"), 1.0)
    goal |= {"initial_duration_s": 1.0, "width": 0.05, "regular": True}
    at_times = rate(goals=[goal | {"verdict": "pass"}])
    assert told(at_times, repeated(202_019, *[0.1] * 9, *[0.0] * 11)) == {}
    tolerant = rate(parameters={"loss_tolerance_percent": 0.1})
    assert told(tolerant, repeated(202_019, *[0.1] * 9, *[0.0] * 11)) == {}


def test_no_loss_above_what_passed_is_told() -> None:
    found = told(rate(), repeated(240_000, 0, 0, 0))
    assert found[RATE_ID][0].startswith(f"unusual: {CURVE_ID}: no frame lost at 240")
    assert told(rate(bound="lower"), repeated(240_000, 0, 0, 0)) == {}
    assert told(rate(), repeated(240_000, 0, 0, 0.1)) == {}
    assert told(rate(), repeated(212_000, 0, 0, 0)) == {}


def test_what_one_load_loses_must_be_near_what_it_loses_elsewhere() -> None:
    """Known to the repeats' range; of delays to all of them together."""
    other = repeated(400_000, 12.1, 14, 20)
    other = other.model_copy(update={"id": "other"})
    first = repeated(400_000, 30, 36.6, 25.2)
    words = f"{CURVE_ID}: 25.2 to 36.6 % lost at 400,000 fps"
    found = told(first, other)
    assert found[CURVE_ID] == [
        f"contradiction: other: 12.1 to 20 % lost at 400,000 fps; {words}"
    ]
    assert set(found) == {CURVE_ID, "other"}
    near = repeated(400_000, 20, 25).model_copy(update={"id": "near"})
    assert told(first, near) == {}
    assert set(told(first, delays(10, rate_fps=400_000))) == {
        CURVE_ID,
        "latency-ip4-64-both",
    }
    assert told(first, delays(280, rate_fps=400_000)) == {}


def test_more_connections_in_use_than_the_table_holds() -> None:
    """RFC 9693 4.9: what is not held cannot be used without a loss."""
    search: dict[str, object] = {"connections": 40_000, "beyond": 40_960}
    search |= {"rate_per_s": 100_000}
    search |= {"error": 1000, "ending": "found", "words": "", "steps": []}
    asked: Parameters = {"connections": 40_960}
    full = cell("table-capacity", 40_000, asked, capacity=[search])
    used: Parameters = {"connections": 50_000}
    found = told(full, rate(parameters=used))
    assert set(found) == {"table-capacity-ip4-64-both", RATE_ID}
    assert "50,000 connections are used without a loss" in found[RATE_ID][0]
    opened = cell("connection-rate", 1000, used)
    assert told(full, opened) == {}
    validated = cell("connection-rate", 1000, used | {"alpha": 0.8})
    assert set(told(full, validated)) == {full.id, validated.id}
    assert told(full, rate(parameters={"connections": 40_959})) == {}
    assert told(full, rate(parameters=used | {"table_size": 9})) == {}
    most = search | {"beyond": None, "ending": "most_held"}
    unknown = cell("table-capacity", 40_000, asked, capacity=[most])
    assert told(unknown, rate(parameters=used)) == {}


def test_a_run_tells_it_and_a_steady_device_has_none(tmp_path: Path) -> None:
    asked = campaign(
        spec(resolution="5%", max_rate_fps=100_000),
        spec(
            procedure="frame-loss",
            rate_fps="throughput",
            load_percent=[130, 100, 90],
        ),
    )
    steady = Run(tmp_path / "steady", FakeEngine(step(70_000)))(asked)
    kinds = [f.kind for each in steady.cells for f in each.findings]
    assert "contradiction" not in kinds

    trials = iter(range(10**6))

    def tiring(rate_fps: float, frames: int) -> int:
        limit = 70_000 if next(trials) < 16 else 50_000
        return step(limit)(rate_fps, frames)

    results = Run(tmp_path / "tiring", FakeEngine(tiring))(asked)
    for each in results.cells:
        assert "contradiction" in [f.kind for f in each.findings], each.id
