"""What is claimed of two runs, and above all what is not."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from comparison_sample import bounded, compared, latency, loss, one, rate, stored
from report_sample import BEHIND
from told_cells import retyped

from dutperf.comparison.judging import Outcome, compare
from dutperf.comparison.sides import read_runs
from dutperf.model.rate_specs import ThroughputSpec
from dutperf.results import CellResult, Finding, GoalResult, MeasuredValue
from dutperf.search import Outcome as TrialOutcome
from dutperf.search import Resolution
from dutperf.search.binary import binary_search

TEN = [100_000 + 10 * n for n in range(10)]


def scaled(factor: float, values: list[int] = TEN) -> CellResult:
    return rate(*(round(value * factor) for value in values))


@pytest.mark.parametrize(
    ("factor", "outcome", "percent"), [(0.9, "worse", -10), (1.2, "better", 20)]
)
def test_a_difference_is_told_with_sign_and_size(
    factor: float, outcome: Outcome, percent: float
) -> None:
    found = one(rate(*TEN), scaled(factor))
    assert found.outcome == outcome
    assert found.change is not None
    assert found.change.value == pytest.approx(percent, abs=0.1)
    assert found.change.lower is not None
    assert found.change.upper is not None
    assert found.change.lower < percent < found.change.upper


def test_a_difference_that_the_search_does_not_resolve_is_none() -> None:
    nearly = one(rate(*[100_000] * 20), rate(*[100_400] * 20))
    assert nearly.outcome == "none_shown"
    beyond = one(rate(*[100_000] * 20), rate(*[101_100] * 20))
    assert beyond.outcome == "better"


def test_three_repeats_can_show_nothing_and_four_can() -> None:
    three = one(scaled(1, TEN[:3]), scaled(0.5, TEN[:3]))
    assert (three.outcome, three.why) == ("too_few", "3 and 3, at least 4 each")
    assert three.change is not None
    assert three.change.value == pytest.approx(-50, abs=0.1)
    assert three.judged(3) == "cannot_tell"
    single = one(rate(100_000), rate(1_000))
    assert single.outcome == "too_few"
    four = one(scaled(1, TEN[:4]), scaled(0.5, TEN[:4]))
    assert four.outcome == "worse"


def test_more_comparisons_need_more_repeats() -> None:
    names = [f"throughput-ip4-{size}-both" for size in (64, 128)]
    runs = [[rate(*values, name=name) for name in names] for values in (TEN[:4],) * 2]
    found = compared(*runs)
    assert found.family == 2
    assert found.interval_percent == 97.5
    assert {each.why for each in found.figures} == {"4 and 4, at least 5 each"}
    single = [[rate(1, name=name) for name in names]] * 2
    why = {each.why for each in compared(*single).figures}
    assert why == {"1 and 1, at least 5 each"}


def test_all_runs_are_compared_with_the_first() -> None:
    found = compared([rate(*TEN)], [scaled(0.9)], [rate(*TEN)], [scaled(1.1)])
    told = [(each.run, each.outcome) for each in found.figures]
    assert told == [("B", "worse"), ("C", "none_shown"), ("D", "better")]
    assert found.family == 3


def test_a_bound_is_never_a_figure() -> None:
    bound = bounded(rate(*[100_000] * 10))
    both = one(bound, bounded(rate(*[50_000] * 10)))
    assert (both.outcome, both.why) == ("none_shown", "a bound tells one side only")
    assert both.judged(3) == "cannot_tell"
    below = one(bound, rate(*[120_000] * 10))
    assert below.outcome == "none_shown"


def test_a_bound_tells_its_side() -> None:
    at_least = bounded(rate(*[100_000] * 10))
    better = one(rate(*[50_000] * 10), at_least)
    assert better.outcome == "better"
    assert better.change is not None
    assert (better.change.bound, better.change.upper) == ("lower", math.inf)
    worse = one(at_least, rate(*[50_000] * 10))
    assert (worse.outcome, worse.judged(30)) == ("worse", "worse")
    assert worse.change is not None
    assert worse.change.bound == "upper"


def _with(cell: CellResult, **update: object) -> CellResult:
    return cell.model_copy(update=update)


GOAL = GoalResult(
    name="no loss",
    loss_ratio=0,
    exceed_ratio=0,
    final_duration_s=1,
    duration_sum_s=1,
    initial_duration_s=1,
    width=0.005,
    lower_fps=100_000,
    upper_fps=None,
    conditional_fps=None,
    regular=False,
    verdict="pass",
)


@pytest.mark.parametrize(
    ("spoilt", "why"),
    [
        (_with(rate(*TEN), verdict="invalid", reasons=[BEHIND]), "invalid: the sender"),
        (
            _with(
                rate(*TEN),
                findings=[
                    Finding(kind="drift", of="throughput", message="up", unit="fps")
                ],
            ),
            "no stable figure",
        ),
        (_with(rate(*TEN), goals=[GOAL]), "its bounds are irregular"),
        (rate(*TEN, None), "no value"),
    ],
)
def test_what_is_no_figure_is_not_compared_and_no_gate_can_tell(
    spoilt: CellResult, why: str
) -> None:
    gone = one(rate(*TEN), spoilt)
    assert (gone.outcome, gone.judged(3)) == ("gone", "cannot_tell")
    assert gone.why.startswith("B: ")
    assert why in gone.why
    assert gone.change is None
    before = one(spoilt, rate(*TEN))
    assert (before.outcome, before.judged(3)) == ("not_compared", "cannot_tell")
    assert before.why.startswith("A: ")


@pytest.mark.parametrize(
    "settings",
    [
        {"loss_tolerance_percent": 0.1},
        {"frame_timeout_ms": 5},
        {"verify_trials": 2},
        {"direction": "forward"},
        {"trial_duration_s": 0.25},
        {"search": "verified"},
        {"ttl": 5},
        {"ipv4_options": "router-alert"},
        {"burst_frames": 16},
        {"load_shape": '{"ramp_s":2.0}'},
    ],
)
def test_another_measure_is_not_compared(settings: dict[str, object]) -> None:
    cell = scaled(0.5)
    told: dict[str, object] = {
        "trial_duration_s": 60,
        "search": "narrowed",
    }
    told |= {"load_shape": '{"ramp_s":1.0}'}
    cell = retyped(_with(cell, parameters=cell.parameters | told))
    other = retyped(_with(cell, parameters=cell.parameters | settings))
    found = one(cell, other)
    assert (found.outcome, found.judged(3)) == ("not_compared", "cannot_tell")
    assert next(iter(settings)) in found.why
    assert compared([cell], [other]).family == 0


def test_other_goals_are_another_measure() -> None:
    found = one(_with_goal("0"), _with_goal("0.5%:50%"))
    assert found.outcome == "not_compared"
    assert "another measure: goals" in found.why


def _with_goal(goal: str) -> CellResult:
    asked = {"procedure": "throughput", "search": "mlrsearch", "goals": [goal]}
    plain = scaled(1)
    spec = ThroughputSpec.model_validate(asked)
    cell = plain.cell.model_copy(update={"spec": spec})
    return plain.model_copy(update={"cell": cell})


def _unstable(cell: CellResult) -> CellResult:
    finding = Finding(kind="unstable", of="throughput", message="apart", unit="fps")
    return _with(cell, findings=[finding])


def test_repeats_without_a_common_value_are_compared_by_ranks() -> None:
    """Of a device that loses 1.5 frames in 10^9 some repeats end far below others."""
    apart = [100_000] * 6 + [60_000] * 4
    same = one(rate(*apart), _unstable(rate(*reversed(apart))))
    assert (same.outcome, same.judged(3)) == ("none_shown", "cannot_tell")
    assert same.why == "B: too unstable, compared by ranks"
    below = one(_unstable(rate(*apart)), rate(*[40_000] * 10))
    assert (below.outcome, below.judged(3)) == ("worse", "worse")
    assert below.why.startswith("A: too unstable, compared by ranks")


def test_nothing_is_said_of_a_figure_that_its_own_run_contradicts() -> None:
    denied = Finding(kind="contradiction", of="throughput", message="", unit="fps")
    for procedure in (rate(*TEN), loss(*[1.0] * 10)):
        other = _with(procedure, findings=[denied])
        found = one(procedure, other)
        assert found.judged(3) == "cannot_tell"
        assert found.why == "B: contradicted"


def test_a_device_of_which_nothing_passes_fails_a_gate() -> None:
    nothing = _with(rate(*[None] * 10), verdict="fail")
    found = one(rate(*TEN), nothing)
    assert (found.outcome, found.judged(3)) == ("gone", "worse")


def test_a_bound_against_figures_below_it_is_a_difference() -> None:
    found = one(bounded(rate(*[200_000] * 6)), rate(*[118_750] * 6))
    assert (found.outcome, found.judged(3)) == ("worse", "worse")
    assert found.change is not None
    assert (found.change.value, found.change.bound) == (-40.625, "upper")


def test_a_loss_at_another_load_is_another_measure() -> None:
    found = one(loss(*[1.0] * 9), loss(*[9.0] * 9, load_fps=400_000))
    assert found.outcome == "not_compared"
    assert found.why == "measured at 500,000 and at 400,000 fps"


def test_a_loss_is_compared_in_percentage_points() -> None:
    found = one(loss(*[0.0] * 9), loss(*[0.5] * 9))
    assert (found.outcome, found.unit) == ("worse", "percentage points")
    assert found.change == (0.5, None, 0.5, 0.5)
    assert (found.judged(0.4), found.judged(0.5)) == ("worse", "not_worse")
    assert one(loss(*[0.0] * 9), loss(*[0.0] * 9)).outcome == "none_shown"


def test_a_device_that_forwards_nothing_any_more_is_all_worse() -> None:
    dead = _with(rate(*[0] * 10), verdict="fail")
    found = one(rate(*TEN), dead)
    assert found.outcome == "worse"
    assert found.change is not None
    assert found.change.value == -100
    again = one(dead, rate(*TEN))
    assert (again.outcome, again.why) == ("better", "0 in the baseline: no percentage")
    assert one(dead, dead).outcome == "none_shown"


def test_a_longer_delay_is_worse_and_each_figure_is_told() -> None:
    before = latency({"TL": [20_000 + n for n in range(10)], "WCL": [90_000] * 10})
    after = latency({"TL": [30_000 + n for n in range(10)], "WCL": [90_050] * 10})
    found = compared([before], [after]).figures
    assert [(each.name, each.outcome) for each in found] == [
        ("TL, forward", "worse"),
        ("WCL, forward", "none_shown"),
    ]
    assert found[0].change is not None
    assert found[0].change.value == pytest.approx(50, abs=0.1)
    assert found[0].judged(10) == "worse"


def test_a_delay_is_not_known_better_than_the_testers_share() -> None:
    cells = [latency({"TL": [each] * 10}, share_ns=5_000) for each in (20_000, 24_000)]
    assert one(*cells).outcome == "none_shown"


def test_the_testers_share_of_a_delay_that_is_no_bound_is_a_small_part() -> None:
    tl = {each: latency({"TL": [each] * 10}, share_ns=10**6) for each in (20, 26, 27)}
    assert one(tl[20], tl[26]).outcome == "none_shown"
    assert one(tl[20], tl[27]).outcome == "worse"


def test_delays_that_are_upper_bounds_tell_one_side() -> None:
    at_most = MeasuredValue(value=10_000, at_most=True)
    below = MeasuredValue(value=10_000, below_ns=15_000)
    exact = latency({"TL": [40_000] * 10})
    for figure in (at_most, below):
        bound = latency({"TL": [figure] * 10})
        assert one(exact, bound).outcome == "better"
        assert one(bound, bound).outcome == "none_shown"
        lower = latency({"TL": [5_000] * 10})
        assert one(bound, lower).outcome == "none_shown"


def test_an_infinite_delay_is_worse_than_any() -> None:
    lost = latency({"WCL": [MeasuredValue(value=None, absent="lost")] * 10})
    some = latency({"WCL": [90_000] * 10})
    found = one(some, lost)
    assert (found.outcome, found.judged(1000)) == ("worse", "worse")
    assert found.why == "infinite where too many frames were lost"
    assert one(lost, lost).outcome == "none_shown"


def test_a_figure_with_a_sign_has_no_percentage() -> None:
    cells = [latency({"IPDV min": [each] * 10}) for each in (-500, -900)]
    assert one(*cells).outcome == "not_compared"


def test_delays_at_loads_of_their_own_throughput_are_told_with_them() -> None:
    before = latency({"TL": [20_000] * 10})
    after = latency({"TL": [30_000] * 10}, rate_fps=9_000)
    assert one(before, after).why == "at 10,000 and 9,000 fps"
    other = latency({"TL": [30_000] * 10}, asked="9000")
    assert one(before, other).outcome == "not_compared"


def test_cells_that_only_one_has_are_told() -> None:
    names = [f"throughput-ip4-{size}-both" for size in (64, 128)]
    first, second = (rate(*TEN, name=name) for name in names)
    gone, new = compared([first], [second]).figures
    assert (gone.outcome, gone.why, gone.judged(3)) == (
        "gone",
        "not in B",
        "cannot_tell",
    )
    assert (new.outcome, new.why, new.judged(3)) == ("not_compared", "not in A", None)


def test_a_run_that_was_stopped_is_said_to_be(tmp_path: Path) -> None:
    whole = stored(tmp_path / "whole", rate(*TEN))
    stopped = stored(tmp_path / "stopped", complete=False)
    (found,) = compare(read_runs([whole, stopped])).figures
    assert found.why == "not in B, which was stopped"


def test_a_limit_within_the_interval_cannot_be_told() -> None:
    found = one(rate(*TEN), scaled(0.97))
    judged = [found.judged(limit) for limit in (1, 3, 5)]
    assert judged == ["worse", "cannot_tell", "not_worse"]


def _found(limit_fps: float, max_rate_fps: int) -> CellResult:
    """What searches find of a device that forwards everything up to a rate."""
    resolution = Resolution.parse("0.5%")
    found = binary_search(
        lambda rate_fps, _: TrialOutcome("pass" if rate_fps <= limit_fps else "fail"),
        max_rate_fps=max_rate_fps,
        duration_s=1,
        resolution=resolution,
    )
    assert found.conclusion == "found"
    return rate(*[found.rate_fps] * 8)


def test_searches_over_other_ranges_make_no_difference_of_one_device() -> None:
    draw = random.Random(6)  # noqa: S311 - repeatable
    apart = 0
    for _ in range(200):
        limit_fps = draw.uniform(50, 200_000)
        before, after = (
            _found(limit_fps, round(limit_fps * draw.uniform(1.1, 9))) for _ in range(2)
        )
        apart += before.median != after.median
        assert one(before, after).outcome == "none_shown"
        slower = _found(0.98 * limit_fps, round(limit_fps * 3))
        found = one(before, slower)
        assert found.change is not None
        assert found.change.lower is not None
        assert found.change.upper is not None
        assert found.change.lower <= -2 <= found.change.upper
        assert found.outcome == "worse" or limit_fps < 500
    assert apart > 150


def _noisy(draw: random.Random, middle: float, cells: int) -> list[CellResult]:
    """Frame sizes of a device whose rates scatter by 1 % and know the search's grid."""
    return [
        rate(
            *(500 * (middle * draw.gauss(1, 0.01) // 500) for _ in range(10)),
            name=f"throughput-ip4-{64 + n}-both",
        )
        for n in range(cells)
    ]


def test_of_runs_that_are_the_same_19_in_20_comparisons_claim_nothing() -> None:
    draw = random.Random(4)  # noqa: S311 - repeatable
    wrong = 0
    for _ in range(60):
        runs = (_noisy(draw, 100_000, 6) for _ in range(2))
        found = compared(*runs)
        assert found.family == 6
        wrong += any(f.outcome in ("worse", "better") for f in found.figures)
    assert wrong <= 3


def test_a_known_difference_is_found_in_noise() -> None:
    draw = random.Random(5)  # noqa: S311 - repeatable
    before, after = _noisy(draw, 100_000, 6), _noisy(draw, 95_000, 6)
    found = compared(before, after).figures
    assert {each.outcome for each in found} == {"worse"}
    sizes = [each.change.value for each in found if each.change and each.change.value]
    assert all(-6 < size < -4 for size in sizes)
    assert {each.judged(1) for each in found} == {"worse"}
