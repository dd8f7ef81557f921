"""Watts by load and energy by frame, of a meter and a device whose truth is known."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from meters import (
    IDLE_W,
    JOULES_PER_FRAME,
    METERED,
    S,
    SimulatedMeter,
    TimedEngine,
    failing,
    true_watts,
    with_meter,
)
from planning import TRANSLATOR, Recording, cell

from dutperf.errors import SetupError
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.power import measure_power, watts_in
from dutperf.procedures.side_by_side import known_range
from dutperf.results import CellResult
from dutperf.results.figures import cell_figure
from dutperf.results.power_results import Metered, Power, PowerReading, Watts
from dutperf.simulation.fake_engine import Dut, step

FULL = MaxRate(100_000, "load")
KEYS: dict[str, object] = {
    "procedure": "power",
    "rate_fps": FULL.rate_fps,
    "trial_duration_s": 20,
    "frame_size": 64,
}
FORWARDS_ALL = step(10**6)
LOADS = [float(each) for each in range(10, 101, 10)]


def measured(
    meter: SimulatedMeter,
    dut: Dut = FORWARDS_ALL,
    **keys: object,
) -> tuple[CellResult, Power]:
    recording = Recording(TimedEngine(dut), testbed=METERED, meter=meter)
    result = measure_power(recording.runner, cell(METERED, **KEYS | keys), FULL)
    assert result.power
    return result, result.power


def test_watts_and_energy_are_the_known_ones() -> None:
    result, power = measured(SimulatedMeter(noise_w=0.2))
    assert result.verdict == "pass"
    assert [point.load_percent for point in power.points] == [0, *LOADS]
    for point in power.points:
        truth = true_watts(2 * point.load_fps)
        assert point.watts
        assert abs(point.watts.watts - truth) <= point.watts.bound_w < 0.02 * truth
        if point.load_fps:
            assert point.forwarded_fps == pytest.approx(2 * point.load_fps, rel=1e-4)
            assert point.total
            assert point.marginal
            each_nj = truth / (2 * point.load_fps) * 1e9
            total, above = point.total, point.marginal
            assert abs(total.packet_nj - each_nj) <= total.packet_bound_nj
            assert abs(total.bit_nj - each_nj / 512) <= total.bit_bound_nj
            known_nj = JOULES_PER_FRAME * 1e9
            assert abs(above.packet_nj - known_nj) <= above.packet_bound_nj
    assert power.idle.total is None, "no frame has any energy, and not an infinite one"
    assert result.unit == "nJ/bit"
    assert result.median == pytest.approx((IDLE_W + 2) / 200_000 / 512 * 1e9, rel=0.01)
    assert power.full.total
    assert result.median == pytest.approx(power.full.total.bit_nj)


@pytest.mark.parametrize("bias", [1.02, 0.98])
def test_a_meter_is_as_wrong_as_it_says(bias: float) -> None:
    for accuracy, holds in ((2.0, True), (0.5, False)):
        _, power = measured(SimulatedMeter(bias=bias, accuracy_percent=accuracy))
        for point in power.points:
            assert point.watts
            wrong_w = abs(point.watts.watts - true_watts(2 * point.load_fps))
            assert (wrong_w <= point.watts.bound_w * (1 + 1e-9)) is holds
            if point.marginal:  # errors of both may be opposite
                wrong = abs(point.marginal.packet_nj - JOULES_PER_FRAME * 1e9)
                assert wrong <= point.marginal.packet_bound_nj or not holds


def test_a_counter_of_energy_is_read_by_its_differences() -> None:
    _, power = measured(SimulatedMeter(counts=True, noise_w=0.2))
    for point in power.points:
        assert point.watts
        truth = true_watts(2 * point.load_fps)
        assert abs(point.watts.watts - truth) <= point.watts.bound_w


def test_energy_is_that_of_frames_forwarded() -> None:
    result, power = measured(SimulatedMeter(), step(50_000))
    full = power.full
    assert result.verdict == "pass"
    assert full.lost_percent == pytest.approx(50, abs=1)
    assert full.forwarded_fps == pytest.approx(100_000, rel=0.02)
    assert full.total
    assert full.watts
    assert full.forwarded_fps
    each_nj = full.watts.watts / full.forwarded_fps * 1e9
    assert full.total.packet_nj == pytest.approx(each_nj)
    assert power.points[5].lost_percent == 0
    assert [reason.code for reason in result.reasons] == ["frames_lost"]


def test_where_nothing_is_forwarded_a_frame_has_no_energy() -> None:
    result, power = measured(SimulatedMeter(), lambda *_: 0, load_percent=[100])
    assert (result.verdict, result.median) == ("invalid", None)
    assert power.full.watts
    assert power.full.total is None
    assert power.full.marginal is None


def test_translated_frames_have_the_size_that_they_leave_with() -> None:
    found = []
    for testbed, ip in ((METERED, 6), (with_meter(TRANSLATOR), "6-4")):
        asked = cell(
            testbed, **KEYS | {"ip": [ip], "frame_size": 84}, direction="forward"
        )
        recording = Recording(
            TimedEngine(FORWARDS_ALL), testbed=testbed, meter=SimulatedMeter()
        )
        result = measure_power(recording.runner, asked, FULL)
        assert result.power
        found.append(result.power)
    same, short = found
    assert same.full.forwarded_fps == short.full.forwarded_fps
    assert same.full.forwarded_bps
    assert short.full.forwarded_bps
    assert same.full.forwarded_bps / short.full.forwarded_bps == pytest.approx(84 / 64)


def test_a_meter_that_dies_at_a_load_tells_no_watts_there() -> None:
    def dies(fps: float, readings: list[PowerReading]) -> list[PowerReading]:
        return failing(readings) if 75_000 < fps < 85_000 else readings

    result, power = measured(SimulatedMeter(spoils=dies))
    silent = power.points[4]
    assert silent.load_percent == 40
    assert (silent.watts, silent.total, silent.marginal) == (None, None, None)
    assert "exit code 1" in silent.why
    assert all(p.watts for p in power.points if p is not silent)
    assert result.verdict == "pass"
    assert [reason.code for reason in result.reasons] == ["no_power"]
    assert "at 40 % load" in result.reasons[0].message


def test_without_watts_at_full_load_there_is_no_figure() -> None:
    def dies(fps: float, readings: list[PowerReading]) -> list[PowerReading]:
        return failing(readings) if fps > 190_000 else readings

    result, power = measured(SimulatedMeter(spoils=dies))
    assert (result.verdict, result.median) == ("invalid", None)
    assert power.points[1].total


def test_without_idle_watts_nothing_is_known_above_them() -> None:
    def dies(fps: float, readings: list[PowerReading]) -> list[PowerReading]:
        return readings if fps else failing(readings)

    result, power = measured(SimulatedMeter(spoils=dies))
    assert result.verdict == "pass"
    assert "idle" in result.reasons[0].message
    assert all(p.total and p.marginal is None for p in power.points[1:])


def test_repeats_are_averaged_and_idle_is_read_before_each_of_the_first_load() -> None:
    meter = SimulatedMeter(noise_w=0.2)
    recording = Recording(TimedEngine(FORWARDS_ALL), testbed=METERED, meter=meter)
    asked = cell(METERED, **KEYS, repeats=7, load_percent=[50, 100])
    result = measure_power(recording.runner, asked, FULL)
    idle = [[m.of for m in record.metered] for record in recording.records]
    assert idle == [["idle", "trial"]] * 7 + [["trial"]] * 7
    values = [repeat.value for repeat in result.repeats if repeat.value]
    assert result.median == pytest.approx(sum(values) / 7)
    assert result.power
    assert result.power.full.total
    assert result.median == pytest.approx(result.power.full.total.bit_nj)


def test_devices_are_no_more_different_than_their_meters() -> None:
    result, power = measured(SimulatedMeter(accuracy_percent=5))
    low, high = known_range(cell_figure(result))
    assert power.full.total
    assert high - low >= 1.999 * power.full.total.bit_bound_nj


def test_a_trial_that_is_to_be_metered_needs_a_meter() -> None:
    recording = Recording(TimedEngine(step(1)), testbed=METERED)
    with pytest.raises(SetupError, match="no power meter"):
        measure_power(recording.runner, cell(METERED, **KEYS), FULL)


# Readings of one trial.


def read(meter: SimulatedMeter, seconds: float = 60, watts: float = 40) -> Metered:
    return meter.reading("trial", 1000 * S, seconds, watts)


def spoilt(**keys: object) -> Callable[[Metered], Metered]:
    return lambda told: told.model_copy(update=keys)


def with_each(**keys: object) -> Callable[[Metered], Metered]:
    return lambda told: told.model_copy(
        update={"readings": [each.model_copy(update=keys) for each in told.readings]}
    )


def slow(told: Metered) -> Metered:
    """Each answer takes longer than the trial."""
    longer = [
        each.model_copy(update={"answered_ns": each.asked_ns + 61 * S})
        for each in told.readings
    ]
    return told.model_copy(update={"readings": longer})


def backwards(told: Metered) -> Metered:
    return told.model_copy(update={"readings": told.readings[::-1]})


def of_two_kinds(told: Metered) -> Metered:
    energy = told.readings[5].model_copy(update={"joules": 1.0})
    return told.model_copy(update={"readings": [*told.readings[:5], energy]})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (spoilt(clock_set=True), "clock was set"),
        (spoilt(begin_ns=None), "when the trial began"),
        (spoilt(readings=[]), "0 readings"),
        (spoilt(averaging_s=9.0), "averages over 9 s"),
        (spoilt(averaging_s=100.0), "0 readings"),
        (with_each(stamp="12:01"), "no new value"),
        (with_each(watts=None, failed="it says 'n/a'"), "readings failed: it says"),
        (with_each(watts=None, joules=7.5), "stands still"),
        (slow, "0 readings"),
        (backwards, "0 readings"),
        (of_two_kinds, "0 readings"),
        (lambda told: told.model_copy(update={"readings": told.readings[:7]}), "5 rea"),
    ],
)
def test_what_cannot_be_told_is_not(
    change: Callable[[Metered], Metered], why: str
) -> None:
    told = watts_in(change(read(SimulatedMeter())))
    assert isinstance(told, str)
    assert why in told


def test_readings_that_fail_before_and_after_spoil_nothing() -> None:
    told = read(SimulatedMeter())
    assert told.begin_ns
    assert told.end_ns
    readings = [
        each
        if told.begin_ns <= each.asked_ns < told.end_ns
        else each.model_copy(update={"watts": None, "failed": "busy"})
        for each in told.readings
    ]
    found = watts_in(told.model_copy(update={"readings": readings}))
    assert isinstance(found, Watts)
    assert found.watts == pytest.approx(40)


def test_the_mean_is_by_time() -> None:
    """A meter that is asked rarely while the device takes more."""
    told = read(SimulatedMeter())
    begin_ns = told.begin_ns or 0
    readings = [
        PowerReading(asked_ns=at_ns, answered_ns=at_ns + 1, watts=watts)
        for second, watts in [(s, 10.0) for s in range(30)]
        + [(s, 20.0) for s in range(30, 60, 5)]
        for at_ns in [begin_ns + second * S]
    ]
    found = watts_in(told.model_copy(update={"readings": readings}))
    assert isinstance(found, Watts)
    assert found.watts == pytest.approx(15, abs=0.1)
    assert found.readings == 36


def noisy(seed: int, memory: float) -> Watts:
    """Of 60 readings of 40 W; each is like the one before by so much."""
    chance = random.Random(seed)  # noqa: S311 - of a simulation
    told, value = read(SimulatedMeter()), chance.gauss(0, 1)
    readings = []
    for each in told.readings:
        value = memory * value + chance.gauss(0, (1 - memory**2) ** 0.5)
        readings.append(each.model_copy(update={"watts": 40 + value}))
    found = watts_in(told.model_copy(update={"readings": readings}))
    assert isinstance(found, Watts)
    return found


@pytest.mark.parametrize(
    ("memory", "least", "most"), [(0, 0.93, 0.98), (0.5, 0.92, 0.97), (0.9, 0.90, 0.96)]
)
def test_the_interval_holds_the_truth_as_often_as_is_said(
    memory: float, least: float, most: float
) -> None:
    """docs/power.md has these figures, of 1,000 each."""
    found = [noisy(seed, memory) for seed in range(400)]
    held = sum(abs(each.watts - 40) <= each.random_w for each in found) / len(found)
    assert least <= held <= most
