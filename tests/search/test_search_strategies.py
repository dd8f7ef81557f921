"""The strategies: when repeats become short, and when there are enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from dutperf import stats
from dutperf.search import (
    Measure,
    Outcome,
    Repeats,
    Resolution,
    SearchResult,
    Step,
    Verification,
)
from dutperf.search.mlr import Goal
from dutperf.search.strategies import Strategy, Task, classic, mlrsearch, narrowed
from dutperf.simulation.simulated_tester import Bench, SimulatedTester, StepDevice

LIMIT_FPS = 400_000
RESOLUTION = Resolution.parse("1%")


@dataclass
class Watched:
    """A bench, and how long each trial was."""

    bench: Bench = field(
        default_factory=lambda: SimulatedTester().bench(StepDevice(LIMIT_FPS))
    )
    durations_s: list[float] = field(default_factory=list)

    def __call__(self, rate_fps: int, duration_s: float) -> Outcome:
        self.durations_s.append(duration_s)
        return self.bench(rate_fps, duration_s)


def task() -> Task:
    return Task(1_000_000, 60, RESOLUTION)


def test_the_classic_search_learns_nothing() -> None:
    watched = Watched()
    search = classic(task())
    search(watched)
    first = len(watched.durations_s)
    search(watched)
    assert len(watched.durations_s) == 2 * first
    assert set(watched.durations_s) == {60}


@pytest.mark.parametrize("strategy", [classic, narrowed])
@pytest.mark.parametrize(
    ("capacity_fps", "first"), [(400_000, 540_000), (10**9, 540_000)]
)
def test_what_the_tester_could_not_offer_is_not_tried_first_again(
    strategy: Callable[[Task], Strategy], capacity_fps: int, first: int
) -> None:
    """... and the maximum is tried again where all that could be judged passed."""
    tried: list[int] = []

    def measure(rate_fps: int, _duration_s: float) -> Outcome:
        tried.append(rate_fps)
        if rate_fps > 540_000:
            return Outcome("invalid", offered_fps=570_000)
        return Outcome("pass" if rate_fps <= capacity_fps else "fail", loss_ratio=0)

    search = strategy(task())
    repeats = []
    for _ in range(3):
        begun = len(tried)
        repeats.append((search(measure).result, tried[begun:]))
    (once, all_rates), *others = repeats
    assert all_rates[:3] == [1_000_000, 1_000_000, 541_500]
    for again, rates in others:
        assert (again.rate_fps, again.conclusion) == (once.rate_fps, once.conclusion)
        assert rates[0] == max(rate for rate in all_rates if rate <= first)
        assert (1_000_000 in rates) == (capacity_fps > first)


def test_all_strategies_find_the_same_of_a_steady_device() -> None:
    for search in (
        classic(task()),
        narrowed(task()),
        narrowed(task(), verification=Verification(2)),
    ):
        for _ in range(6):
            rate_fps = search(Watched()).result.rate_fps
            assert rate_fps is not None
            assert 0.99 * LIMIT_FPS <= rate_fps <= LIMIT_FPS


# --- narrowed


def repeats_of(search: Strategy, measure: Measure, count: int) -> list[list[int]]:
    """The rates of each repeat, up to the first one that withdraws any."""
    rates: list[list[int]] = []
    for _ in range(count):
        found = search(measure)
        rates.append([step.rate_fps for step in found.result.steps])
        if found.withdrawn:
            break
    return rates


def changing(after: int, capacity_fps: int) -> Measure:
    """A step at ``LIMIT_FPS``, and at ``capacity_fps`` after so many trials."""
    trials = 0

    def measure(rate_fps: int, _duration_s: float) -> Outcome:
        nonlocal trials
        trials += 1
        now_fps = LIMIT_FPS if trials <= after else capacity_fps
        return Outcome("pass" if rate_fps <= now_fps else "fail")

    return measure


def test_repeats_that_agree_four_times_are_two_trials_from_then_on() -> None:
    rates = repeats_of(narrowed(task()), Watched(), 8)
    assert [len(repeat) for repeat in rates[:4]] == [len(rates[0])] * 4
    assert len(rates[0]) > 2
    lower, upper = sorted(rates[0], key=lambda fps: abs(fps - LIMIT_FPS))[:2]
    assert {lower, upper} == set(rates[4])
    assert rates[4:] == [rates[4]] * 4


@pytest.mark.parametrize("capacity_fps", [300_000, 500_000])
@pytest.mark.parametrize("narrow", [0, 1, 3])
def test_what_contradicts_a_step_withdraws_all_that_were_narrowed(
    narrow: int, capacity_fps: int
) -> None:
    classic_trials = 4 * len(repeats_of(classic(task()), Watched(), 1)[0])
    search = narrowed(task())
    measure = changing(classic_trials + 2 * narrow, capacity_fps)
    found = [search(measure) for _ in range(4 + narrow + 20)]
    withdrawn = [0] * (4 + narrow) + [narrow + 1] + [0] * 19
    assert [one.withdrawn for one in found] == withdrawn
    after = found[4 + narrow + 1 :]
    assert all(len(one.result.steps) > 2 for one in after)
    assert all(one.result.steps[0].rate_fps == 1_000_000 for one in after)


def test_one_of_the_first_four_that_differs_keeps_all_classic() -> None:
    trials = len(repeats_of(classic(task()), Watched(), 1)[0])
    for other in range(4):
        search = narrowed(task())
        for number in range(12):
            capacity_fps = LIMIT_FPS + 20_000 * (number == other)
            found = search(changing(0, capacity_fps))
            assert not found.withdrawn
            assert len(found.result.steps) >= trials


@pytest.mark.parametrize("capacity_fps", [0, 2_000_000])
def test_without_two_rates_there_is_nothing_to_narrow(capacity_fps: int) -> None:
    measure = changing(0, capacity_fps)
    rates = repeats_of(narrowed(task()), measure, 8)
    assert rates == [rates[0]] * 8
    assert rates[0][0] == 1_000_000


def weak(rate_fps: int, _duration_s: float) -> Outcome:
    """A tester that sends half of what the device can take."""
    if rate_fps > 200_000:
        return Outcome("invalid", offered_fps=200_000)
    return Outcome("pass")


def test_where_the_tester_ended_the_search_there_is_nothing_to_narrow() -> None:
    rates = repeats_of(narrowed(task()), weak, 8)
    assert rates[1:] == [[198_750, 1_000_000, 1_000_000]] * 7
    assert rates[0][0] == 1_000_000


def test_a_tester_that_loses_its_strength_withdraws_them_too() -> None:
    search = narrowed(task())
    for _ in range(4):
        search(Watched())
    assert search(weak).withdrawn == 1
    assert search(weak).result.conclusion == "tester_limited"


def test_verification_holds_from_the_first_repeat_on() -> None:
    """A frame is lost in each other trial at any rate: the second one counts."""
    trials = 0

    def measure(_rate_fps: int, _duration_s: float) -> Outcome:
        nonlocal trials
        trials += 1
        return Outcome("fail" if trials % 2 else "pass")

    found = narrowed(task(), verification=Verification(2))(measure)
    assert (found.result.rate_fps, trials) == (1_000_000, 2)


@pytest.mark.parametrize("attempts", [None, 1, 5])
def test_an_invalid_trial_is_run_so_often(attempts: int | None) -> None:
    """Three times unless told otherwise."""
    first = Task(1_000_000, 60, RESOLUTION)
    asked = first if attempts is None else replace(first, attempts=attempts)
    for search in (classic(asked), narrowed(asked), mlrsearch(asked, [Goal()])):
        rates: list[int] = []

        def measure(
            rate_fps: int, _duration_s: float, told: list[int] = rates
        ) -> Outcome:
            told.append(rate_fps)
            return Outcome("invalid")

        assert search(measure).result.conclusion == "unstable"
        assert rates.count(1_000_000) == (attempts or 3)


def test_who_watches_is_told_of_every_trial_of_every_repeat() -> None:
    search, watched, steps = narrowed(task()), Watched(), list[Step]()
    results = [search(watched, steps.append).result for _ in range(6)]
    assert steps == [step for result in results for step in result.steps]
    assert len(steps) == len(watched.durations_s)


# --- mlrsearch


def test_of_several_goals_the_first_one_is_the_result() -> None:
    goals = [Goal(), Goal(0.01)]
    found = mlrsearch(task(), goals)(Watched())
    assert [one.goal for one in found.goals] == goals
    first, second = found.goals
    assert (second.lower_fps or 0) > (first.upper_fps or 0)
    assert found.result == SearchResult(first.lower_fps, first.upper_fps, "found", [])
    assert first.lower_fps is not None
    assert 0.99 * LIMIT_FPS <= first.lower_fps <= LIMIT_FPS


# --- how often


@pytest.mark.parametrize("values", [[1.0] * n for n in (1, 7, 20)])
def test_a_number_of_repeats_is_that_number(values: list[float]) -> None:
    repeats = Repeats(len(values))
    assert not repeats.enough(values[:-1])
    assert repeats.enough(values)
    assert not repeats.reaches_width(values)
    assert repeats.interval(values) == stats.median_interval(values)


def test_equal_results_are_settled_at_the_first_look_and_not_before() -> None:
    repeats = Repeats(64, Resolution.parse("1%"))
    enough = [n for n in range(1, 65) if repeats.enough([5.0] * n)]
    assert enough == [8, 16, 32, 64]


@pytest.mark.parametrize(
    ("width", "settled"),
    [("7%", True), ("6.9%", False), ("7", True), ("6", False)],
)
def test_the_width_is_exact(width: str, settled: bool) -> None:
    values = [96.5, 97, 98, 99, 101, 102, 103, 103.5]
    repeats = Repeats(64, Resolution.parse(width))
    assert stats.median(values) == 100
    assert repeats.reaches_width(values) == settled


def test_the_cap_ends_it_settled_or_not() -> None:
    repeats = Repeats(16, Resolution.parse("1%"))
    values = [float(2**n) for n in range(16)]
    assert not repeats.enough(values[:8])
    assert repeats.enough(values)
    assert not repeats.reaches_width(values)


def test_zero_is_settled_by_zeros() -> None:
    assert Repeats(64, Resolution.parse("1%")).reaches_width([0.0] * 8)
