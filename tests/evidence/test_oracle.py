"""Every procedure's results by both implementations: what measured, what derives again.

On simulated devices, with trials that are invalid at random, several repeats, damaged
frames, bounds and resumed runs.
"""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from every_procedure import CASES, MAX, Case
from gateways import NAT44, ClearedEngine
from planning import TESTBED, Recording, Tiring, cell

import oracle
from dutperf.catalogue import PROCEDURES
from dutperf.engine.client import ProgressCallback, ignore_progress
from dutperf.evidence.accounting import check_trials, contradictions
from dutperf.model.cell import Cell
from dutperf.procedures.cell_results import with_beside
from dutperf.procedures.fixed_load import unmeasured
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.tester_limit import beside_media
from dutperf.protocol.result_messages import Reason, ReasonCode, TrialResult
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import CellResult, TrialRecord
from dutperf.run.local_executor import measure_cell
from dutperf.run.openings import beside_earlier
from dutperf.simulation.fake_engine import (
    FakeEngine,
    SimulatedNat,
    buffered,
    fixed,
    jitter,
    noisy,
    sometimes,
    step,
    without_checksum,
)
from oracle import Compared, Source, compare_cell, derived_cell

Json = dict[str, Any]
SPOILT: tuple[ReasonCode, ...] = (
    "sender_lag",
    "sender_behind",
    "held_back",
    "receiver_overflow",
    "device_cpu_taken",
)


def plain(records: Sequence[TrialRecord]) -> list[Json]:
    """As they are in the journal."""
    return [json.loads(record.model_dump_json()) for record in records]


def compared(
    result: CellResult, records: Sequence[TrialRecord], asked: Cell
) -> Compared:
    """The figures of one cell, and of its trials."""
    whole = beside_earlier(beside_media(result, asked, []), records)
    whole = with_beside(whole, asked, records)
    stored, trials = json.loads(whole.model_dump_json()), plain(records)
    found = Compared()
    compare_cell(stored, derived_cell(Source(stored, trials, [], {})), found)
    found.differ += [*check_trials(trials), *contradictions(trials)]
    return found


def test_the_oracle_stands_alone() -> None:
    """What derives results again must not share a mistake with what derived them."""
    files = sorted(Path(oracle.__file__).parent.glob("*.py"))
    used = {
        line
        for file in files
        for line in file.read_text("utf-8").splitlines()
        if line.lstrip().startswith(("from dutperf", "import dutperf"))
    }
    assert len(files) > 10
    assert all(".evidence" in line for line in used), used


def test_there_is_a_case_for_every_procedure() -> None:
    assert {case.keys["procedure"] for case in CASES.values()} == set(PROCEDURES)


@pytest.mark.parametrize("name", CASES)
def test_a_second_implementation_comes_to_the_same(name: str) -> None:
    case = CASES[name]
    result, recording = case.run()
    found = compared(result, recording.records, case.cell)
    assert found.differ == []
    assert found.agree > (20 if case.cell.direction == "both" else 16)


@pytest.mark.parametrize("name", CASES)
def test_so_it_does_of_runs_that_were_cut_and_resumed(name: str) -> None:
    case = CASES[name]
    _, whole = case.run()
    places = range(1, len(whole.records))
    for cut in random.Random(name).sample(places, min(3, len(places))):  # noqa: S311
        stored = whole.records[:cut]
        result, rest = case.run(stored)
        renumbered = [*stored, *rest.records]
        found = compared(result, renumbered, case.cell)
        assert found.differ == [], cut


class Closing(ClearedEngine):
    """Whose SYNs of these trials, counted from 1, tell nothing."""

    def __init__(self, spoilt: Collection[int]) -> None:
        super().__init__(SimulatedNat(), dut=step(9000))
        self._opened = 0
        self._spoilt = spoilt

    def measure(
        self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        result = super().measure(trial, on_progress)
        if not trial.tcp or trial.tcp.begin != "syn":
            return result
        self._opened += 1
        if self._opened not in self._spoilt:
            return result
        reason = Reason(code="receiver_overflow", message="simulated")
        update = {"kind": "invalid", "reasons": [reason]}
        verdict = result.verdict.model_copy(update=update)
        return result.model_copy(update={"verdict": verdict})


@pytest.mark.parametrize(
    "spoilt", [{1, 2, 3}, {*range(2, 99)}, {3, 4, 5}, {*range(1, 7), *range(10, 99)}]
)
def test_of_a_rate_at_which_nobody_could_be_opened_nothing_is_derived(
    spoilt: Collection[int],
) -> None:
    """The highest that passed is not the maximum, though no test failed above it."""
    asked = CASES["tcp-request-rate"].cell.with_keys(repeats=1)
    recording = Recording(Closing(spoilt), testbed=NAT44)
    result = measure_cell(recording.runner, asked, MAX)
    assert compared(result, recording.records, asked).differ == []


STREAMS: dict[str, dict[str, object]] = {
    "throughput": {"repeats": 7, "resolution": "2%"},
    "throughput, classic": {"search": "classic", "repeats": 5, "resolution": "2%"},
    "throughput, verified": {
        "search": "verified",
        "verify_trials": 2,
        "repeats": 6,
        "resolution": "2%",
    },
    "throughput, auto": {
        "repeats": "auto",
        "resolution": "1%",
        "interval_width": "9%",
        "max_repeats": 16,
    },
    "throughput, goals": {
        "search": "mlrsearch",
        "resolution": "2%",
        "goals": ["0", "0.5%", "1%:50%"],
    },
    "throughput, timeouts": {
        "repeats": 3,
        "resolution": "5%",
        "timeout_sweep_ms": [0.02, 0.05, 1],
    },
    "throughput, broadcast frames": {
        "repeats": 3,
        "resolution": "2%",
        "traffic": {"broadcast_percent": 1},
    },
    "frame-loss, hop-by-hop frames": {
        "ip": [6],
        "repeats": 3,
        "load_percent": [100, 80, 60],
        "traffic": {"hop_by_hop_percent": 10},
    },
    "frame-loss": {"repeats": 3, "load_percent": [100, 80, 60, 40, 20]},
    "back-to-back": {"repeats": 5, "throughput_fps": 5000, "longest_burst_s": 2},
    "system-recovery": {
        "throughput_fps": 3000,
        "overload_percent": 150,
        "overload_duration_s": 0.5,
        "reduced_duration_s": 0.5,
        "repeats": 3,
    },
    "outage": {"rate_fps": 3000, "repeats": 3, "trigger_after_s": 0.5},
    "back-to-back, broadcast frames": {
        "repeats": 5,
        "throughput_fps": 5000,
        "longest_burst_s": 2,
        "traffic": {"broadcast_percent": 1},
    },
    "system-recovery, hop-by-hop frames": {
        "ip": [6],
        "throughput_fps": 3000,
        "overload_percent": 150,
        "overload_duration_s": 0.5,
        "reduced_duration_s": 0.5,
        "repeats": 3,
        "traffic": {"hop_by_hop_percent": 50},
    },
    "outage, broadcast frames": {
        "rate_fps": 3000,
        "repeats": 3,
        "trigger_after_s": 0.5,
        "traffic": {"broadcast_percent": 10},
    },
    "latency": {"rate_fps": 3000, "repeats": 9, "tags": 700, "first_tag_s": 0.2},
    "latency, one tag": {
        "rate_fps": 3000,
        "repeats": 5,
        "rfc2544_latency": True,
        "first_tag_s": 0.5,
    },
    "pdv": {"rate_fps": 3000, "repeats": 9},
    "ipdv": {"rate_fps": 3000, "repeats": 9},
}
SHORT = {"trial_duration_s": 1, "residual_wait_s": 0.1, "settle_wait_s": 0.01}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", STREAMS)
def test_random_devices_and_spoilt_trials(name: str, seed: int) -> None:
    draw = random.Random(f"{name} {seed}")  # noqa: S311 - test data
    procedure = name.partition(",")[0]
    known = {"procedure": procedure} | STREAMS[name] | _short(procedure)
    known["direction"] = [draw.choice(["both", "forward"])]
    asked = cell(TESTBED, **known)
    limit = draw.choice([MAX, MaxRate(MAX.rate_fps, "tester"), MaxRate(9001, "media")])
    if asked.spec.given_rate_fps is not None:
        limit = MaxRate(asked.spec.given_rate_fps, "load")
    spoilt = {
        call: draw.choice(SPOILT)
        for call in range(1, 400)
        if draw.random() < draw.choice([0, 0.1, 0.4])
    }
    engine = FakeEngine(
        noisy(draw.uniform(500, 22_000), one_in=draw.choice([3, 10**6]), seed=seed),
        delays=draw.choice(
            [jitter(20_000, 90_000, seed=seed), sometimes(50, 10**6, seed=seed)]
        ),
        tester_limit_fps=draw.choice([None, 15_000.0]),
        damages=without_checksum(draw.choice([2000, 10**9])),
        troubles=spoilt,
    )
    recording = Recording(engine)
    result = measure_cell(recording.runner, asked, limit)
    assert compared(result, recording.records, asked).differ == []


def _short(procedure: str) -> dict[str, object]:
    if procedure in ("back-to-back", "system-recovery"):
        return {key: SHORT[key] for key in ("residual_wait_s", "settle_wait_s")}
    return dict(SHORT)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", [n for n, case in CASES.items() if case.nat])
def test_random_gateways(name: str, seed: int) -> None:
    draw = random.Random(f"{name} {seed}")  # noqa: S311 - test data
    case = replace(CASES[name], dut=step(draw.uniform(200, 12_000)))
    result, recording = case.run()
    assert compared(result, recording.records, case.cell).differ == []


def test_bursts_whose_rate_is_lowered() -> None:
    """Short ones tell how far, before the longest; they are none of the search's."""
    engine = Tiring(buffered(300, 1), {9000: 8000, 1000: 4000})
    recording = Recording(engine)
    asked = cell(TESTBED, procedure="back-to-back", throughput_fps=1, repeats=2)
    result = measure_cell(recording.runner, asked, MaxRate(10_000, "media"))
    assert result.parameters["max_load_fps"] == 3800
    assert compared(result, recording.records, asked).differ == []


class Tired(FakeEngine):
    """Offers any rate at first, and less than it did from some trial on."""

    def __init__(self, after: int) -> None:
        dut = noisy(6000, one_in=3)
        super().__init__(dut)
        self._left, self._later = after, FakeEngine(dut, tester_limit_fps=4000)

    def measure(
        self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        self._left -= 1
        measure = super().measure if self._left >= 0 else self._later.measure
        return measure(trial, on_progress)


def test_what_the_tester_offered_before_is_no_limit_of_its_own() -> None:
    causes = set()
    goals: Json = {"search": "mlrsearch", "goals": ["0:50%"], "resolution": "5%"}
    for after in range(30):
        recording = Recording(Tired(after))
        asked = cell(TESTBED, **goals)
        result = measure_cell(recording.runner, asked, MaxRate(10_000, "media"))
        assert compared(result, recording.records, asked).differ == [], after
        causes.add(result.bound_cause)
    assert "disturbed" in causes


def test_of_a_cell_without_trials_nothing_differs() -> None:
    """The cell that its load should have come from was invalid; the ports are known."""
    reason = Reason(code="unstable", message="its throughput is not known", hint="")
    result = unmeasured(CASES["latency"].cell, MaxRate(10_000, "media"), reason)
    stored = json.loads(result.model_dump_json())
    stored["media"] = {"rate_fps": 10_000, "link_speed_mbps": 10, "nominal": True}
    ports = [{"name": "left", "link_speed_mbps": 10, "driver": "veth"}]
    found = Compared()
    compare_cell(stored, derived_cell(Source(stored, [], ports, {})), found)
    assert found.differ == []


@pytest.mark.parametrize("delay_ms", [0, 9, 262])
def test_a_connection_rate_that_its_test_is_too_short_to_prove(delay_ms: int) -> None:
    nat = SimulatedNat(connection_rate_fps=28_750)
    engine = ClearedEngine(nat, delays=fixed(delay_ms * 10**6))
    recording = Recording(engine, testbed=NAT44)
    asked = cell(
        NAT44,
        procedure="connection-rate",
        resolution="5%",
        stateful={"connections": 4000},
    )
    result = measure_cell(recording.runner, asked, MaxRate(100_000, "set"))
    assert (result.bound_cause == "short_tests") == (delay_ms > 0)
    assert compared(result, recording.records, asked).differ == []


def test_a_case_is_what_is_compared() -> None:
    """A digit of a result that is another one is found."""
    case: Case = CASES["throughput"]
    result, recording = case.run()
    changed = result.model_copy(update={"median": (result.median or 0) + 1})
    found = compared(changed, recording.records, case.cell)
    assert any("median" in told for told in found.differ)
