"""The binary search: what it concludes, in how many trials, and that it ends."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dutperf.search import Measure, Outcome, Resolution, SearchResult, Step
from dutperf.search.binary import binary_search

seeded = settings(derandomize=True, deadline=None, database=None, max_examples=300)
ONE_FPS = Resolution.parse("1")
PASS, FAIL, INVALID = Outcome("pass"), Outcome("fail"), Outcome("invalid")


def search(
    measure: Callable[[int], Outcome],
    max_rate_fps: int,
    resolution: Resolution = ONE_FPS,
    *,
    attempts: int = 3,
    max_trials: int = 200,
    begin_fps: int | None = None,
) -> SearchResult:
    return binary_search(
        lambda rate_fps, _duration_s: measure(rate_fps),
        max_rate_fps=max_rate_fps,
        duration_s=1,
        resolution=resolution,
        attempts=attempts,
        max_trials=max_trials,
        begin_fps=begin_fps,
    )


def step_device(capacity_fps: int) -> Callable[[int], Outcome]:
    return lambda rate_fps: PASS if rate_fps <= capacity_fps else FAIL


def behind(limit_fps: float) -> Callable[[int], Outcome]:
    def measure(rate_fps: int) -> Outcome:
        if rate_fps <= limit_fps:
            return PASS
        return Outcome("invalid", offered_fps=limit_fps)

    return measure


def scripted(outcomes: Iterable[Outcome]) -> Callable[[int], Outcome]:
    left = iter(outcomes)
    return lambda _rate_fps: next(left)


def rates(result: SearchResult) -> list[int]:
    return [step.rate_fps for step in result.steps]


def check_steps(result: SearchResult, max_rate_fps: int, attempts: int) -> None:
    """What holds for every search, whatever the device did."""
    lower, upper = 0, max_rate_fps
    for step in result.steps:
        assert lower < step.rate_fps <= upper
        assert lower <= step.lower_fps <= step.upper_fps <= upper
        assert 1 <= step.attempt <= attempts
        lower, upper = step.lower_fps, step.upper_fps
    decided = [(s.rate_fps, s.attempt) for s in result.steps]
    assert len(set(decided)) == len(decided)
    passed = {s.rate_fps for s in result.steps if s.outcome.verdict == "pass"}
    assert result.rate_fps == max(passed, default=None)


# --- devices that are what they are ---------------------------------------------------


def linear_scan(measure: Callable[[int], Outcome], max_rate_fps: int) -> int | None:
    """The slow twin: from the top down, the first rate that passes."""
    for rate_fps in range(max_rate_fps, 0, -1):
        if measure(rate_fps).verdict == "pass":
            return rate_fps
    return None


@seeded
@given(st.integers(1, 400), st.integers(0, 500))
def test_a_step_device_is_found_as_a_linear_scan_finds_it(
    max_rate_fps: int, capacity_fps: int
) -> None:
    device = step_device(capacity_fps)
    result = search(device, max_rate_fps)
    assert result.rate_fps == linear_scan(device, max_rate_fps)
    check_steps(result, max_rate_fps, 3)


RESOLUTIONS = st.sampled_from(["0.01%", "1%", "5%", "50%", "1", "7", "1000"])


@seeded
@given(st.integers(1, 10**9), st.integers(0, 10**9), RESOLUTIONS)
def test_the_result_is_as_close_to_the_capacity_as_was_asked(
    max_rate_fps: int, capacity_fps: int, text: str
) -> None:
    resolution = Resolution.parse(text)
    result = search(step_device(capacity_fps), max_rate_fps, resolution)
    check_steps(result, max_rate_fps, 3)
    if result.conclusion == "max_rate_passed":
        assert result.rate_fps == max_rate_fps <= capacity_fps
        return
    assert result.upper_fps is not None
    lower = result.rate_fps or 0
    assert lower <= capacity_fps < result.upper_fps
    assert resolution.reached(lower, result.upper_fps) or result.upper_fps == lower + 1


@seeded
@given(st.integers(2, 10**9), st.data())
def test_the_number_of_trials_is_logarithmic(
    max_rate_fps: int, data: st.DataObject
) -> None:
    capacity_fps = data.draw(st.integers(0, max_rate_fps - 1))
    result = search(step_device(capacity_fps), max_rate_fps)
    assert len(result.steps) <= 1 + math.ceil(math.log2(max_rate_fps))


def test_a_power_of_two_takes_exactly_its_logarithm_and_the_first_trial() -> None:
    assert len(search(step_device(300), 1024).steps) == 1 + 10


def test_the_maximum_is_tried_first_and_a_perfect_device_gets_all_of_it() -> None:
    result = search(step_device(2_000_000), 1_488_095)
    assert rates(result) == [1_488_095]
    assert result.rate_fps == 1_488_095
    assert result.upper_fps is None
    assert result.conclusion == "max_rate_passed"


def test_below_the_maximum_the_middle_is_tried_each_time() -> None:
    result = search(step_device(300), 1000, Resolution.parse("5%"))
    assert rates(result) == [1000, 500, 250, 375, 312, 281, 296, 304]
    assert (result.rate_fps, result.upper_fps) == (296, 304)
    assert result.conclusion == "found"


def test_a_device_that_forwards_nothing_ends_as_nothing_passed() -> None:
    result = search(step_device(0), 1_488_095)
    assert result.rate_fps is None
    assert result.upper_fps == 1
    assert result.conclusion == "nothing_passed"
    assert len(result.steps) == 21


def test_nothing_passed_ends_early_with_a_coarse_absolute_resolution() -> None:
    result = search(step_device(0), 100_000, Resolution.parse("1000"))
    assert result.conclusion == "nothing_passed"
    assert result.upper_fps == 781


def test_the_lowest_maximum_works() -> None:
    assert search(step_device(1), 1).rate_fps == 1
    assert search(step_device(0), 1).rate_fps is None


# --- trials that tell nothing ---------------------------------------------------------


def test_an_invalid_trial_is_repeated_at_its_rate_and_not_judged() -> None:
    outcomes = [INVALID, INVALID, FAIL, INVALID, PASS, PASS]
    result = search(scripted(outcomes), 8, Resolution.parse("2"))
    assert [(s.rate_fps, s.attempt) for s in result.steps] == [
        (8, 1),
        (8, 2),
        (8, 3),
        (4, 1),
        (4, 2),
        (6, 1),
    ]
    assert result.rate_fps == 6
    assert result.conclusion == "found"


def test_bounds_do_not_move_before_a_rate_is_decided() -> None:
    steps = search(scripted([FAIL, INVALID, PASS]), 2, ONE_FPS).steps
    assert [(s.lower_fps, s.upper_fps) for s in steps] == [(0, 2), (0, 2), (1, 2)]


@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_a_rate_that_stays_invalid_bounds_the_search_as_unstable(attempts: int) -> None:
    def measure(rate_fps: int) -> Outcome:
        return PASS if rate_fps <= 5 else INVALID

    result = search(measure, 16, attempts=attempts)
    assert result.rate_fps == 5
    assert result.upper_fps == 6
    assert result.conclusion == "unstable"
    assert max(step.attempt for step in result.steps) == attempts


def test_a_fail_below_an_invalid_rate_makes_the_result_found() -> None:
    def measure(rate_fps: int) -> Outcome:
        return INVALID if rate_fps == 16 else step_device(5)(rate_fps)

    result = search(measure, 16)
    assert (result.rate_fps, result.conclusion) == (5, "found")


def test_all_trials_invalid_is_unstable_not_a_throughput_of_zero() -> None:
    result = search(lambda _rate: INVALID, 1000)
    assert result.rate_fps is None
    assert result.conclusion == "unstable"


# --- the tester's own limit -----------------------------------------------------------


def test_a_rate_that_the_tester_cannot_send_is_tried_twice() -> None:
    steps = search(behind(350_000), 1_488_095).steps
    invalid = [step for step in steps if step.outcome.verdict == "invalid"]
    assert [step.attempt for step in invalid] == [1, 2] * (len(invalid) // 2)
    assert all(step.attempt == 1 for step in steps if step not in invalid)


def test_the_search_goes_on_a_little_below_what_the_tester_managed() -> None:
    result = search(behind(350_000), 1_488_095)
    assert rates(result)[:3] == [1_488_095, 1_488_095, 332_500]


@pytest.mark.parametrize("stall_fps", [0.0, 1.0, 300.0, 999.0, 2000.0])
def test_one_stall_is_not_the_testers_limit(stall_fps: float) -> None:
    """Whatever the sender managed in that trial."""
    stall = Outcome("invalid", offered_fps=stall_fps)
    result = search(scripted([stall, PASS]), 1000)
    assert (result.rate_fps, result.conclusion) == (1000, "max_rate_passed")
    result = search(scripted([FAIL, PASS, stall, PASS]), 1000, Resolution.parse("25%"))
    assert rates(result) == [1000, 500, 750, 750]
    assert (result.rate_fps, result.upper_fps) == (750, 1000)


def test_stalls_that_do_not_agree_leave_the_highest_as_the_limit() -> None:
    stalls = [Outcome("invalid", offered_fps=fps) for fps in (300, 900, 600)]
    steps = search(scripted([*stalls, PASS]), 1000, Resolution.parse("10%")).steps
    assert [step.upper_fps for step in steps] == [1000, 1000, 900, 900]
    assert steps[-1].rate_fps == 855


def test_a_limit_that_one_of_three_trials_tells_bounds_nothing() -> None:
    outcomes = [Outcome("invalid", offered_fps=300), INVALID, INVALID, PASS]
    result = search(scripted(outcomes), 1000, Resolution.parse("50%"))
    assert (result.rate_fps, result.upper_fps) == (500, 1000)
    assert result.conclusion == "unstable"


@pytest.mark.parametrize("text", ["10%", "1%", "0.01%", "1"])
def test_a_good_device_behind_a_slow_tester_is_tester_limited(text: str) -> None:
    resolution = Resolution.parse(text)
    result = search(behind(350_000), 1_488_095, resolution)
    assert result.conclusion == "tester_limited"
    assert result.upper_fps == 350_000
    assert result.rate_fps is not None
    assert resolution.reached(result.rate_fps, 350_000)


def test_a_device_below_the_testers_limit_is_found() -> None:
    def measure(rate_fps: int) -> Outcome:
        first = behind(350_000)(rate_fps)
        return step_device(123_456)(rate_fps) if first == PASS else first

    result = search(measure, 1_488_095)
    assert (result.rate_fps, result.conclusion) == (123_456, "found")


def test_while_the_tester_stays_behind_the_margin_doubles_up_to_bisection() -> None:
    stuck = Outcome("invalid", offered_fps=1e9)  # says that it was fast enough
    result = search(lambda _rate: stuck, 10_000, max_trials=14)
    tried = [10_000, 9_500, 8_550, 6_840, 4_104, 2_052, 1_026]
    assert rates(result) == [rate_fps for rate_fps in tried for _ in range(2)]


def test_a_stall_far_below_what_passed_is_repeated_like_any_invalid_trial() -> None:
    stall = Outcome("invalid", offered_fps=3)
    outcomes = [FAIL, PASS, stall, stall, FAIL]
    result = search(scripted(outcomes), 64, Resolution.parse("16"))
    assert rates(result) == [64, 32, 48, 48, 48]
    assert result.conclusion == "found"


def test_stalls_at_every_attempt_bound_the_search_at_the_rate_tried() -> None:
    stall = Outcome("invalid", offered_fps=3)
    outcomes = [FAIL, PASS, stall, stall, stall, PASS]
    result = search(scripted(outcomes), 64, Resolution.parse("8"))
    assert rates(result) == [64, 32, 48, 48, 48, 45]
    assert (result.rate_fps, result.upper_fps) == (45, 48)
    assert result.conclusion == "tester_limited"


@pytest.mark.parametrize(
    ("capacity", "first"),
    [
        (200, [600, 300, 150]),
        (600, [600, 1000, 800, 700, 650]),
        (1000, [600, 1000]),
    ],
)
def test_a_search_may_begin_elsewhere_and_finds_the_same(
    capacity: int, first: list[int]
) -> None:
    result = search(step_device(capacity), 1000, begin_fps=600)
    assert rates(result)[: len(first)] == first
    plain = search(step_device(capacity), 1000)
    assert (result.rate_fps, result.conclusion) == (plain.rate_fps, plain.conclusion)
    check_steps(result, 1000, 3)


def test_a_search_that_begins_at_the_maximum_tries_it_once() -> None:
    assert rates(search(step_device(1000), 1000, begin_fps=1000)) == [1000]


@pytest.mark.parametrize("offered_fps", [32, 32.9])
def test_a_limit_at_the_rate_that_passed_does_not_close_the_search(
    offered_fps: float,
) -> None:
    """Less than a frame more than what passed is a stall: 33 to 48 stay open."""
    stall = Outcome("invalid", offered_fps=offered_fps)
    outcomes = [FAIL, PASS, stall, stall, stall, PASS]
    result = search(scripted(outcomes), 64, Resolution.parse("8"))
    assert (result.rate_fps, result.upper_fps) == (45, 48)
    assert result.conclusion == "tester_limited"


def test_a_tester_that_sends_nothing_judges_nothing() -> None:
    result = search(lambda _rate: Outcome("invalid", offered_fps=0.0), 1000)
    assert result.rate_fps is None
    assert result.conclusion == "tester_limited"


# --- limits ---------------------------------------------------------------------------


@pytest.mark.parametrize("max_trials", [1, 2, 5])
def test_no_more_than_max_trials_are_run(max_trials: int) -> None:
    result = search(step_device(300), 1024, max_trials=max_trials)
    assert len(result.steps) == max_trials
    assert result.conclusion == "unstable"


def test_what_passed_before_max_trials_is_kept() -> None:
    result = search(step_device(300), 1024, max_trials=3)
    assert (result.rate_fps, result.upper_fps) == (256, 512)


def test_a_search_that_never_decided_anything_has_no_upper_bound() -> None:
    result = search(lambda _rate: INVALID, 1024, max_trials=2)
    assert (result.rate_fps, result.upper_fps) == (None, None)
    assert result.conclusion == "unstable"


def test_unless_told_otherwise_a_rate_has_three_trials_and_a_search_200() -> None:
    first = binary_search(
        lambda _rate_fps, _duration_s: INVALID,
        max_rate_fps=1000,
        duration_s=1,
        resolution=Resolution.parse("50%"),
    )
    at_maximum = [step for step in first.steps if step.rate_fps == 1000]
    assert [step.attempt for step in at_maximum] == [1, 2, 3]
    endless = binary_search(
        lambda _rate_fps, _duration_s: INVALID,
        max_rate_fps=10**100,
        duration_s=1,
        resolution=ONE_FPS,
    )
    assert len(endless.steps) == 200


def test_a_search_that_ends_with_its_last_trial_is_not_unstable() -> None:
    assert search(step_device(300), 1024, max_trials=11).conclusion == "found"


@pytest.mark.parametrize(
    ("max_rate_fps", "attempts", "max_trials"), [(0, 1, 1), (1, 0, 1), (1, 1, 0)]
)
def test_a_limit_below_one_is_refused(
    max_rate_fps: int, attempts: int, max_trials: int
) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        search(
            lambda _rate: PASS, max_rate_fps, attempts=attempts, max_trials=max_trials
        )


def noise(seed: int) -> Callable[[int], Outcome]:
    draws = random.Random(seed)  # noqa: S311 - repeatable noise

    def measure(rate_fps: int) -> Outcome:
        stall = Outcome("invalid", offered_fps=draws.uniform(0, 1.5) * rate_fps)
        return draws.choice([PASS, FAIL, INVALID, stall])

    return measure


@seeded
@given(st.integers(), st.integers(1, 10**6), RESOLUTIONS, st.integers(1, 4))
def test_any_outcomes_end_the_search_with_bounds_that_never_cross(
    seed: int, max_rate_fps: int, text: str, attempts: int
) -> None:
    resolution = Resolution.parse(text)
    result = search(noise(seed), max_rate_fps, resolution, attempts=attempts)
    check_steps(result, max_rate_fps, attempts)
    assert len(result.steps) <= attempts * 26
    last = [step for step in result.steps if step.rate_fps == result.upper_fps]
    if result.conclusion in ("found", "nothing_passed"):
        assert last[-1].outcome == FAIL


# --- the measure callback -------------------------------------------------------------


def test_every_step_is_told_as_soon_as_it_is_measured() -> None:
    told: list[Step] = []
    measured: list[tuple[int, float]] = []

    def measure(rate_fps: int, duration_s: float) -> Outcome:
        assert len(told) == len(measured)
        measured.append((rate_fps, duration_s))
        return step_device(3)(rate_fps)

    result = binary_search(
        measure,
        max_rate_fps=8,
        duration_s=2.5,
        resolution=ONE_FPS,
        on_step=told.append,
    )
    assert told == result.steps
    assert measured == [(8, 2.5), (4, 2.5), (2, 2.5), (3, 2.5)]


def test_what_the_measurement_raises_ends_the_search() -> None:
    def measure(_rate_fps: int, _duration_s: float) -> Outcome:
        raise ConnectionError

    broken: Measure = measure
    with pytest.raises(ConnectionError):
        binary_search(broken, max_rate_fps=8, duration_s=1, resolution=ONE_FPS)
