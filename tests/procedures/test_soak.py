"""Soaks of which the truth is known: what drifts, what is lost when."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence

import pytest
from planning import Recording, cell, spec_with, spoilt, with_hooks

from dutperf.charts.run_charts import Line
from dutperf.config.campaign import Preset, preset_keys
from dutperf.config.testbed import Hook
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.soak import drift_of, gauges_of, measure_soak
from dutperf.results import CellResult
from dutperf.results.details import SeriesDrift, Soak
from dutperf.results.trial_record import NOT_KEPT, HookMoment, HookRun
from dutperf.run.preview import estimate
from dutperf.simulation.fake_engine import FakeEngine, perfect, rising

LOAD = MaxRate(1000, "load")
GAUGED = with_hooks(after_trial=[{"command": ["tell"]}])
Told = Callable[[int], str]


class Telling:
    """A hook that prints what ``told`` says of the trial so far, from 1."""

    def __init__(self, told: Told) -> None:
        self.told, self.ran = told, 0

    def __call__(self, hooks: Sequence[Hook], moment: HookMoment) -> list[HookRun]:
        if not hooks or moment != "after_trial":
            return []
        self.ran += 1
        return [printed(self.told(self.ran))]


def printed(output: str, moment: HookMoment = "after_trial") -> HookRun:
    return HookRun(
        moment=moment,
        command=["tell"],
        host=None,
        attempts=1,
        exit_code=0,
        ended="ended with exit code 0",
        output=output,
        duration_s=0.01,
    )


def soak(trials: int, **keys: object) -> Cell:
    hours = {"hours": trials / 3600, "trial_duration_s": 1}
    return cell(GAUGED, procedure="soak", rate_fps=1000, **hours | keys)


def memory(number: int) -> str:
    noise = random.Random(number).randint(-50, 50)  # noqa: S311
    return f"memory_bytes = {10_000 + 10 * number + noise}\ntable_entries = 7\n"


def recorded(engine: FakeEngine | None = None, told: Told = memory) -> Recording:
    return Recording(
        engine or FakeEngine(perfect(), delays=rising(0, spread_ns=500)),
        testbed=GAUGED,
        hooks=Telling(told),
    )


def measured(
    trials: int, engine: FakeEngine | None = None, told: Told = memory
) -> CellResult:
    return measure_soak(recorded(engine, told).runner, soak(trials), LOAD)


def found(result: CellResult) -> Soak:
    assert result.soak
    return result.soak


def series(result: CellResult, name: str) -> SeriesDrift:
    return next(each for each in found(result).series if each.name == name)


def test_memory_that_grows_is_told_and_nothing_else() -> None:
    result = measured(60)
    assert (result.verdict, result.median) == ("pass", 0)
    drifting = {s.name: s.verdict for s in found(result).series}
    assert drifting.pop("memory_bytes") == "grows"
    assert set(drifting.values()) == {"no drift seen"}
    grown = series(result, "memory_bytes")
    assert grown.lower_per_hour is not None
    assert grown.upper_per_hour is not None
    assert grown.lower_per_hour < 36_000 < grown.upper_per_hour
    assert (grown.trials, grown.unit) == (60, "")
    constant = series(result, "table_entries")
    assert (constant.least, constant.most, constant.per_hour) == (7, 7, 0)


def test_delays_that_grow_are_told_with_their_slope() -> None:
    engine = FakeEngine(perfect(), delays=rising(20, spread_ns=2000))
    result = measured(60, engine)
    for name in ("p50", "p99"):
        grown = series(result, name)
        assert grown.verdict == "grows"
        assert grown.lower_per_hour is not None
        assert grown.upper_per_hour is not None
        assert grown.lower_per_hour < 20 * 3600 < grown.upper_per_hour


def test_losses_have_their_trials_and_none_is_free_of_loss_that_is_invalid() -> None:
    lost = {5: 3, 9: 400, 10: 1}
    calls = iter(range(1, 1000))

    def forward(_rate_fps: float, frames: int) -> int:
        return frames - lost.get((next(calls) + 1) // 2, 0)

    engine = FakeEngine(forward, troubles=spoilt("sender_lag", 2, 10))
    result = found(measured(20, engine))
    assert (result.trials, result.valid, result.spoilt) == (20, 18, [2, 10])
    assert [(each.number, each.lost) for each in result.losses] == [(5, 6), (9, 800)]
    assert (result.sent, result.lost, result.lossy) == (36_000, 806, 2)


def test_the_lists_are_bounded_and_have_the_worst() -> None:
    calls = iter(range(1, 1000))

    def forward(_rate_fps: float, frames: int) -> int:
        return frames - (next(calls) + 1) // 2

    result = found(measured(250, FakeEngine(forward)))
    assert result.lossy == 250
    assert [each.number for each in result.losses] == [
        *range(1, 101),
        *range(151, 251),
    ]


def test_one_trial_is_a_result_without_a_drift() -> None:
    result = measured(1)
    assert (result.verdict, result.median) == ("pass", 0)
    assert {s.verdict for s in found(result).series} == {"too few trials"}


def test_without_a_valid_trial_there_is_no_result() -> None:
    recording = recorded(
        FakeEngine(perfect(), troubles=spoilt("sender_lag", *range(1, 6)))
    )
    result = measure_soak(recording.runner, soak(5), LOAD)
    assert (result.verdict, result.median, result.soak) == ("invalid", None, None)
    assert {reason.code for reason in result.reasons} == {"sender_lag"}
    assert len(recording.records) == 5
    assert [record.attempt for record in recording.records] == [1] * 5


def test_a_soak_half_of_which_is_invalid_is_no_result() -> None:
    half = spoilt("sender_lag", *range(1, 11))
    result = measured(20, FakeEngine(perfect(), troubles=half))
    assert (result.verdict, result.median) == ("invalid", None)
    assert found(result).valid == 10
    most = spoilt("sender_lag", *range(1, 10))
    result = measured(20, FakeEngine(perfect(), troubles=most))
    assert (result.verdict, result.median) == ("pass", 0)


def test_what_cannot_be_offered_is_not_tried_for_a_day() -> None:
    recording = recorded(FakeEngine(perfect(), tester_limit_fps=100))
    result = measure_soak(recording.runner, soak(500), LOAD)
    assert result.verdict == "invalid"
    assert len(recording.records) == 3


def test_frames_that_never_come_have_no_delay() -> None:
    result = measured(20, FakeEngine(lambda _rate, _frames: 0))
    assert (result.verdict, result.median) == ("pass", 100)
    assert next(s.name for s in found(result).series) == "loss"
    assert not any(s.direction for s in found(result).series)


# --- gauges


def test_a_gauge_that_vanishes_is_of_the_trials_that_have_it() -> None:
    result = measured(30, told=lambda n: memory(n) if n <= 12 else "gone\n")
    assert series(result, "memory_bytes").trials == 12
    assert series(result, "loss").trials == 30


@pytest.mark.parametrize(
    ("text", "gauges", "why"),
    [
        (
            "a = 1\n b.c_bytes  = -2.5e3 \nno gauge\nd=4\n= 5\n",
            {"a": 1, "b.c_bytes": -2500},
            "",
        ),
        ("a = lots\nb = 2\n", {"b": 2}, "a: 'lots' is no number"),
        ("a = \nb = 2\n", {"b": 2}, ""),
        ("a = nan\n", {}, "a: 'nan' is no number"),
        ("a = 1e999\n", {}, "a: '1e999' is no number"),
        ("a = 1\na = 2\n", {}, "a: is printed twice"),
        ("a = 0x10\n", {}, "a: '0x10' is no number"),
        ("a = \u0661\n", {}, "a: '\u0661' is no number"),
        (f"a = 1\n... and 3 {NOT_KEPT}\n", {}, "a: what its hook prints is too long"),
        ("", {}, ""),
    ],
)
def test_nonsense_is_no_gauge(text: str, gauges: dict[str, float], why: str) -> None:
    told, unread = gauges_of([printed(text)])
    assert told == gauges
    assert "".join(unread).startswith(why)
    assert bool(unread) == bool(why)


def test_only_what_runs_after_a_trial_is_read() -> None:
    assert gauges_of([printed("a = 1", "before_trial")]) == ({}, [])


# --- resumed


def told_of(result: CellResult) -> dict[str, object]:
    told: dict[str, object] = json.loads(result.model_dump_json())
    return told


@pytest.mark.parametrize("kept", [0, 1, 11, 29])
def test_a_soak_that_is_resumed_is_the_same(kept: int) -> None:
    asked = soak(30)
    whole = recorded()
    expected = told_of(measure_soak(whole.runner, asked, LOAD))
    hook = Telling(memory)
    hook.ran = kept
    engine = FakeEngine(perfect(), delays=rising(0, spread_ns=500))
    engine.trials += [record.request for record in whole.records[:kept]]
    resumed = Recording(engine, testbed=GAUGED, hooks=hook, stored=whole.records[:kept])
    again = told_of(measure_soak(resumed.runner, asked, LOAD))
    for result in (expected, again):
        result["soak"].pop("took_s")  # type: ignore[attr-defined]
    assert again == expected
    assert len(resumed.records) == 30 - kept


def test_the_device_is_left_alone_between_trials() -> None:
    recording = recorded()
    measure_soak(recording.runner, soak(3), LOAD)
    assert recording.waits == [0]


# --- bounded


def test_a_day_is_stored_in_50_mb() -> None:
    """In the journal and in results.json, with delays from 10 us to 10 ms."""
    engine = FakeEngine(perfect(), delays=rising(0, delay_ns=10_000, spread_ns=10**7))
    recording = Recording(engine, testbed=GAUGED, hooks=Telling(memory))
    asked = cell(GAUGED, procedure="soak", rate_fps=10**6, hours=1 / 30)
    measure_soak(recording.runner, asked, MaxRate(10**6, "load"))
    assert len(recording.records) == 2
    longest = max(len(record.stored_text()) for record in recording.records)
    assert 2 * longest * 1440 < 50e6


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"hours": 0}, "hours"),
        ({"hours": 1000, "trial_duration_s": 1}, "at most 50,000"),
        ({"repeats": 3}, "repeats"),
        ({"stateful": {"connections": 10}}, "stateful"),
    ],
)
def test_what_makes_no_sense_is_refused(keys: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        cell(procedure="soak", rate_fps=1000, **keys)


@pytest.mark.parametrize("preset", ["standard", "quick"])
@pytest.mark.parametrize(
    "keys", [{"procedure": "soak"}, {"procedure": "nat-behaviour"}]
)
def test_what_is_measured_once_has_presets(
    preset: Preset, keys: dict[str, object]
) -> None:
    assert spec_with({**preset_keys(preset, keys), **keys}).repeats == 1


def test_as_many_trials_as_fill_the_time() -> None:
    told = {"procedure": "soak", "hours": 24}
    (estimated,) = estimate([cell(**told, rate_fps=1000)])
    assert estimated.trials == 1 + 1440
    assert 24 * 3600 < estimated.duration_s < 26 * 3600


# --- the rule, on series whose truth is known


def noise(draws: random.Random, length: int, alike: float) -> list[float]:
    """Normal, of deviation 1; each depends on the one before."""
    found, before = [], draws.gauss(0, 1)
    for _ in range(length):
        before = alike * before + math.sqrt(1 - alike**2) * draws.gauss(0, 1)
        found.append(before)
    return found


def day(draws: random.Random, alike: float) -> list[Line]:
    """Six series of a day: a value each six minutes."""
    return [
        Line("memory", None, "", [(n / 10, 1000 + v, 0.0) for n, v in enumerate(of)])
        for of in (noise(draws, 240, alike) for _ in range(6))
    ]


SURE = 1 - 0.05 / 6


@pytest.mark.parametrize("alike", [0, 0.5, 0.8])
def test_a_stable_noisy_device_is_rarely_said_to_drift(alike: float) -> None:
    told = 0
    for seed in range(40):
        lines = day(random.Random(seed), alike)  # noqa: S311
        told += any(
            drift_of(line, SURE).verdict in ("grows", "falls") for line in lines
        )
    assert told <= 5


def test_a_slope_and_a_step_are_told_apart() -> None:
    for seed in range(10):
        line, *_ = day(random.Random(seed), 0)  # noqa: S311
        slope = line._replace(points=[(t, v + t / 6, r) for t, v, r in line.points])
        found = drift_of(slope, SURE)
        assert (found.verdict, found.changes) == ("grows", [])
        step = line._replace(
            points=[(t, v + 3 * (t >= 15), r) for t, v, r in line.points]
        )
        found = drift_of(step, SURE)
        assert found.verdict == "steps"
        (change,) = found.changes
        assert change.at_s / 3600 == pytest.approx(15, abs=1)
        assert change.after - change.before == pytest.approx(3, abs=0.8)


def test_rounding_is_in_the_interval() -> None:
    """A value that rises by less than its bucket is wide looks still, or steps."""
    points = [(n / 10, 1000.0 + 8 * math.floor(n / 120), 8.0) for n in range(240)]
    found = drift_of(Line("p50", "forward", "ns", points), 0.95)
    assert found.lower_per_hour is not None
    assert found.upper_per_hour is not None
    assert found.lower_per_hour <= 0
    assert found.upper_per_hour >= 8 / 12
