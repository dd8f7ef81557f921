"""Findings as a user reads them, from the results of the procedures."""

from __future__ import annotations

import random

import pytest
from planning import Recording, cell

from dutperf.procedures.conclusions import delay_findings, loss_findings, rate_findings
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.throughput import measure_throughput
from dutperf.results import (
    DelayRecord,
    Finding,
    LoadPoint,
    Measure,
    MeasuredValue,
    RepeatResult,
)
from dutperf.simulation.fake_engine import FakeEngine

LOW = [381_000 + 250 * n for n in range(13)]
HIGH = [412_000 + 500 * n for n in range(7)]


def repeats(*values: float) -> list[RepeatResult]:
    return [RepeatResult(value=v, verdict="pass", trials=1) for v in values]


def rate(*values: float, **keys: object) -> Finding:
    (found,) = rate_findings(cell(**keys), repeats(*values))
    return found


def in_any_order(*values: int) -> list[int]:
    rng = random.Random(1)  # noqa: S311 - repeatable
    return rng.sample(values, len(values))


def mixed() -> list[int]:
    return in_any_order(*LOW, *HIGH)


def test_modes_are_told_with_their_numbers() -> None:
    found = rate(*mixed())
    assert found.message == (
        "no single throughput: 13 of 20 repeats at 381,000 fps to 384,000 fps, 7 at "
        "412,000 fps to 415,000 fps; nothing in the 28,000 fps between them, 9.3 times "
        "as wide as the widest group"
    )
    assert [len(group.repeats) for group in found.groups] == [13, 7]
    assert found.numbers["resolution"] == 1000


def test_groups_without_width_are_compared_with_the_resolution() -> None:
    found = rate(*[400_000, 300_000] * 5, resolution="1%")
    assert "100,000 fps between them, 29 times the resolution" in found.message


def test_repeats_that_mostly_find_nothing_have_no_single_throughput() -> None:
    """A share of their median is no resolution."""
    values = in_any_order(*[0] * 11, *[400_000] * 9)
    assert rate(*values, resolution="1%").message.startswith(
        "no single throughput: 11 of 20 repeats at 0 fps, 9 at 400,000 fps; "
    )
    (found,) = delay_findings([measure(*map(float, values))], None)
    assert found.message.startswith(
        "no single TL, reverse: 11 of 20 repeats at 0 ns, 9 at 400 us; "
    )


def test_a_repeat_between_groups_is_told() -> None:
    values = in_any_order(*[400_000] * 10, 460_000, *[900_000] * 9)
    assert rate(*values).message == (
        "no single throughput: 10 of 20 repeats at 400,000 fps, 9 at 900,000 fps, "
        "1 elsewhere; nothing in the 60,000 fps between any of them, 60 times the "
        "resolution"
    )


def test_with_a_tolerance_it_is_a_rate_and_no_throughput() -> None:
    assert rate(*mixed(), loss_tolerance_percent=0.01).of == "rate"


def test_a_shift_says_when() -> None:
    message = rate(*HIGH, *LOW).message
    assert "it changed during the run" in message
    assert "415,000 fps in repeats 1-7, then 381,000 fps" in message
    assert "in repeats 8-20; nothing in the" in message


def test_a_repeat_between_the_ends_of_a_shift_is_told() -> None:
    assert rate(*[900_000] * 9, 460_000, *[400_000] * 10).message == (
        "no single throughput: it changed during the run: 900,000 fps in repeats 1-9, "
        "then 400,000 fps in repeats 11-20, 1 elsewhere; nothing in the 60,000 fps "
        "between any of them, 60 times the resolution"
    )


def test_a_drift_says_how_fast() -> None:
    message = rate(*[400_000 - 500 * n for n in range(20)], resolution="100").message
    assert message == (
        "no stable throughput: it falls from 398,750 fps (median of the first third "
        "of repeats) to 391,750 fps (of the last third), 1.8 % over the run, 500 fps a "
        "repeat; p = 8e-19"
    )


def test_an_outlier_does_not_take_the_throughput_away() -> None:
    found = rate(*[400_000] * 16, 185_800, *[400_000] * 3)
    assert found.message == (
        "throughput: 1 of 20 repeats far from all others: 185,800 fps in repeat 17; "
        "the others at 400,000 fps"
    )
    assert found.kind == "outliers"


def test_outliers_at_the_begin_ask_for_a_warm_device() -> None:
    message = rate(371_000, 371_500, *[400_000] * 18).message
    assert "371,000 fps to 371,500 fps in repeats 1-2" in message
    assert message.endswith("was the device warm?")


def test_too_unstable_is_told_with_the_limit() -> None:
    message = rate(*[360_000 + 4_000 * n for n in (0, 7, 3, 9, 1, 8, 2, 6)]).message
    assert message == (
        "no single throughput: the 8 repeats range from 360,000 fps to 396,000 fps, "
        "9.5 % of the median; at most 5 % may be one value"
    )


def test_all_but_the_farthest_of_many_repeats_are_told_of() -> None:
    values = [360_000 + 4_000 * n for n in (0, 9, 3, 8, 1, 7, 2, 6, 5, 4)]
    assert (
        "single throughput: the middle 8 of 10 repeats range" in rate(*values).message
    )


def test_a_drift_may_rise() -> None:
    found = rate(*[400_000 + 500 * n for n in range(20)], resolution="100")
    assert "it rises from 401,250 fps" in found.message


def test_outliers_of_several_kinds_are_listed_with_their_repeats() -> None:
    values = [400_000.0] * 30
    values[1] = values[4] = 185_800
    values[8] = 600_000
    assert (
        "185,800 fps in repeats 2, 5, 600,000 fps in repeat 9" in rate(*values).message
    )


@pytest.mark.parametrize("keys", [{"verdict": "invalid"}, {"bound": "lower"}])
def test_bounds_are_no_values(keys: dict[str, str]) -> None:
    """Whether they are of an invalid repeat, or of one that passed."""
    found = repeats(*mixed())
    assert rate_findings(cell(), found)
    assert rate_findings(cell(), [r.model_copy(update=keys) for r in found]) == []


def test_a_steady_search_has_no_findings() -> None:
    engine = FakeEngine(lambda rate, frames: frames if rate <= 300_000 else 0)
    limit = MaxRate(1_000_000, "media")
    result = measure_throughput(Recording(engine).runner, cell(repeats=10), limit)
    assert result.findings == []


def test_a_device_that_changes_during_the_run_is_told_from_its_trials() -> None:
    trials = 0

    def forwarded(rate_fps: float, frames: int) -> int:
        nonlocal trials
        trials += 1
        return frames if rate_fps <= (300_000 if trials <= 100 else 280_000) else 0

    runner = Recording(FakeEngine(forwarded)).runner
    asked = cell(repeats=20, search="classic", resolution="0.1%")
    result = measure_throughput(runner, asked, MaxRate(1_000_000, "media"))
    (found,) = result.findings
    assert found.kind == "shift"
    before, after = found.groups
    assert after.repeats == list(range(len(before.repeats) + 1, 21))
    assert 299_000 <= before.lowest <= before.highest <= 300_000
    assert result.spread
    assert result.spread.dispersion_percent


def test_loss_is_looked_at_as_what_arrived() -> None:
    point = LoadPoint(
        load_percent=90,
        load_fps=900,
        loss_percent=10,
        repeats=repeats(*[10, 20] * 5),
    )
    nearly_nothing = point.model_copy(update={"repeats": repeats(*[0.01, 0.02] * 5)})
    (found,) = loss_findings([point, nearly_nothing])
    assert found.message.startswith(
        "no single share of frames that arrived at 90 % load: 5 of 10 repeats at 80 %"
    )


def measure(*values_ns: float | None) -> Measure:
    figures = [
        MeasuredValue(value=v, absent=None if v is not None else "lost")
        for v in values_ns
    ]
    return Measure(
        name="TL",
        quantity="typical latency",
        direction="reverse",
        repeats=figures,
        samples=[500] * len(figures),
        lost=[0] * len(figures),
        count=len(figures),
        result=MeasuredValue(value=1),
        percentile_1=MeasuredValue(value=1),
        percentile_99=MeasuredValue(value=1),
    )


def test_a_delay_is_not_known_better_than_the_testers_share_in_it() -> None:
    values = [20_000.0, 32_000.0] * 10
    (found,) = delay_findings([measure(*values)], None)
    assert found.message.startswith(
        "no single TL, reverse: 10 of 20 repeats at 20 us, 10 at 32 us"
    )
    assert delay_findings([measure(*values)], coarse(10_000)) == []
    rounded = measure(*values).model_copy(update={"rounding_ns": 10_000})
    assert delay_findings([rounded], None) == []
    close = [20_000.0, 20_150.0] * 10  # less than 1 % of their median apart
    assert delay_findings([measure(*close)], None) == []


def coarse(usual_bound_ns: int | None) -> DelayRecord:
    return DelayRecord(
        definition="",
        resolution="",
        floor_ns=0,
        bound_ns=200_000,
        usual_bound_ns=usual_bound_ns,
    )


def test_a_tester_however_coarse_hides_no_missing_common_value() -> None:
    values = [10_000.0 * n for n in (1, 9, 3, 8, 1, 7, 2, 6, 5, 4)]
    (found,) = delay_findings([measure(*values)], coarse(100_000))
    assert found.kind == "unstable"


def test_values_around_0_are_one_though_they_are_far_apart_for_a_share() -> None:
    assert delay_findings([measure(-30.0, -10.0, -20.0)], None) == []
    assert delay_findings([measure(-150.0, 45.0, -20.0)], None) == []
    (found,) = delay_findings([measure(-200.0, 200.0, 10.0)], None)
    assert found.kind == "unstable"


def test_each_measure_has_its_own_findings_and_a_lost_one_none() -> None:
    values = [20_000.0, 32_000.0] * 10
    background = measure(*values).model_copy(update={"stream": "background"})
    found = delay_findings([measure(*[None] * 20), measure(*values), background], None)
    assert [each.of for each in found] == ["TL, reverse", "TL, reverse background"]


def test_a_drift_that_begins_at_nothing_has_no_share() -> None:
    found, *_ = delay_findings([measure(*[0.0] * 7, *range(1, 14))], None)
    assert "it rises from 0 ns (median" in found.message
    assert "(of the last third), 0.904545 ns a repeat" in found.message


@pytest.mark.parametrize(("usual_ns", "most"), [(90_000, "90 us"), (None, "200 us")])
def test_upper_bounds_are_told_once_with_the_testers_share(
    usual_ns: int | None, most: str
) -> None:
    bound = MeasuredValue(value=1, at_most=True)
    bounded = measure(20_000.0).model_copy(update={"result": bound})
    worst = bounded.model_copy(update={"name": "WCL"})
    asked = [bounded, worst, bounded]
    (found,) = delay_findings(asked, coarse(usual_ns))
    assert (found.kind, found.of, found.unit) == ("tester", "TL and WCL", "ns")
    assert found.message == (
        f"TL and WCL: up to {most} (99.8 % of frames; 200 us at worst) may be the "
        "tester's: an upper bound"
    )
    assert found.numbers == {"usual_bound": usual_ns or 200_000, "bound": 200_000}
    assert delay_findings(asked, None) == []


def test_lost_delays_are_left_out() -> None:
    assert delay_findings([measure(*[None] * 20)], None) == []
