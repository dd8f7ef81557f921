"""Binary search with loss verification, and between expected rates."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dutperf.search import (
    Bracket,
    Outcome,
    Resolution,
    SearchResult,
    Verification,
    binary_search,
)

seeded = settings(derandomize=True, deadline=None, database=None, max_examples=300)
PASS, FAIL, INVALID = Outcome("pass"), Outcome("fail"), Outcome("invalid")
TWICE = Verification(trials=2)


def search(
    measure: Callable[[int], Outcome],
    max_rate_fps: int,
    resolution: str = "1",
    *,
    verification: Verification | None = None,
    expected: Bracket | None = None,
    attempts: int = 3,
) -> SearchResult:
    return binary_search(
        lambda rate_fps, _duration_s: measure(rate_fps),
        max_rate_fps=max_rate_fps,
        duration_s=1,
        resolution=Resolution.parse(resolution),
        verification=verification or Verification(),
        expected=expected,
        attempts=attempts,
    )


def step_device(capacity_fps: int) -> Callable[[int], Outcome]:
    return lambda rate_fps: PASS if rate_fps <= capacity_fps else FAIL


def scripted(outcomes: Iterable[Outcome]) -> Callable[[int], Outcome]:
    left = iter(outcomes)
    return lambda _rate_fps: next(left)


def rates(result: SearchResult) -> list[int]:
    return [step.rate_fps for step in result.steps]


# --- loss verification ----------------------------------------------------------------


def test_a_rate_passes_when_the_repeated_trial_does() -> None:
    result = search(scripted([FAIL, FAIL, FAIL, PASS]), 8, "4", verification=TWICE)
    assert rates(result) == [8, 8, 4, 4]
    assert [step.attempt for step in result.steps] == [1, 2, 1, 2]
    assert [(s.lower_fps, s.upper_fps) for s in result.steps] == [
        (0, 8),
        (0, 8),
        (0, 8),
        (4, 8),
    ]
    assert (result.rate_fps, result.conclusion) == (4, "found")


def test_a_clean_trial_is_not_repeated() -> None:
    assert rates(search(step_device(8), 8, verification=TWICE)) == [8]


@pytest.mark.parametrize("trials", [1, 2, 5])
def test_a_rate_fails_when_all_its_trials_had_loss(trials: int) -> None:
    verification = Verification(trials=trials)
    result = search(step_device(300), 1024, verification=verification)
    assert result.rate_fps == 300
    failed = [s.rate_fps for s in result.steps if s.outcome == FAIL]
    assert len(failed) == trials * len(set(failed))


def test_loss_beyond_hope_decides_at_once() -> None:
    def measure(rate_fps: int) -> Outcome:
        excess = max(0.0, 1 - 300 / rate_fps)
        return Outcome("fail" if excess else "pass", loss_ratio=excess)

    verification = Verification(trials=2, hopeless=0.01)
    steps = search(measure, 1024, verification=verification).steps
    repeated = {s.rate_fps for s in steps if s.attempt == 2}
    assert repeated == {301, 302}  # 304, tried before them, lost more than 1 %
    assert {s.rate_fps for s in steps if s.outcome.verdict == "fail"} > repeated


def test_invalid_trials_and_lossy_ones_are_counted_apart() -> None:
    outcomes = [INVALID, INVALID, FAIL, INVALID, INVALID]
    result = search(scripted([*outcomes, PASS]), 8, verification=TWICE, attempts=5)
    assert rates(result) == [8] * 6
    assert result.conclusion == "max_rate_passed"


def test_a_loss_that_could_not_be_verified_is_no_fail() -> None:
    outcomes = [FAIL, INVALID, INVALID, PASS]
    result = search(scripted(outcomes), 8, "4", verification=TWICE, attempts=2)
    assert (result.rate_fps, result.upper_fps) == (4, 8)
    assert result.conclusion == "unstable"


@pytest.mark.parametrize(("trials", "hopeless"), [(0, 1), (1, -0.1), (1, 1.1)])
def test_what_is_no_verification_is_refused(trials: int, hopeless: float) -> None:
    with pytest.raises(ValueError, match="verify"):
        Verification(trials, hopeless)


# --- between expected rates -----------------------------------------------------------


def test_where_the_result_was_expected_two_trials_prove_it() -> None:
    expected = Bracket(300, 301)
    result = search(step_device(300), 1024, expected=expected)
    assert rates(result) == [300, 301]
    assert (result.rate_fps, result.upper_fps) == (300, 301)
    assert result.conclusion == "found"


def test_below_what_was_expected_the_strides_grow_and_then_it_bisects() -> None:
    result = search(step_device(300), 1024, expected=Bracket(340, 341))
    assert rates(result) == [340, 339, 337, 333, 325, 309, 277, 293, 301, 297, 299, 300]


def test_above_what_was_expected_too() -> None:
    result = search(step_device(300), 1024, expected=Bracket(290, 292))
    assert rates(result) == [291, 292, 294, 298, 306, 302, 300, 301]


def test_an_expected_maximum_is_tried_first() -> None:
    result = search(step_device(2000), 1024, expected=Bracket(1000, 5000))
    assert rates(result) == [1024]
    assert result.conclusion == "max_rate_passed"


def test_a_device_that_died_is_found_dead_below_any_expectation() -> None:
    result = search(step_device(0), 1_000_000, expected=Bracket(900_000, 900_001))
    assert result.conclusion == "nothing_passed"
    assert len(result.steps) < 45


brackets = st.tuples(st.integers(0, 10**6), st.integers(1, 10**6)).map(
    lambda pair: Bracket(pair[0], pair[0] + pair[1])
)


@seeded
@given(st.integers(1, 10**6), st.integers(0, 10**6), brackets)
def test_the_expectation_never_changes_what_is_found(
    max_rate_fps: int, capacity_fps: int, expected: Bracket
) -> None:
    device = step_device(capacity_fps)
    plain = search(device, max_rate_fps)
    result = search(device, max_rate_fps, expected=expected)
    assert result.rate_fps == plain.rate_fps
    assert result.upper_fps == plain.upper_fps
    assert result.conclusion == plain.conclusion
    assert len(result.steps) <= 3 + 2 * math.ceil(math.log2(max_rate_fps))


def noise(seed: int) -> Callable[[int], Outcome]:
    draws = random.Random(seed)  # noqa: S311 - repeatable noise

    def measure(rate_fps: int) -> Outcome:
        stall = Outcome("invalid", offered_fps=draws.uniform(0, 1.5) * rate_fps)
        lossy = Outcome("fail", loss_ratio=draws.random())
        return draws.choice([PASS, FAIL, lossy, INVALID, stall])

    return measure


@seeded
@given(
    st.integers(),
    st.integers(1, 10**6),
    brackets,
    st.integers(1, 4),
    st.builds(Verification, st.integers(1, 3), st.floats(0, 1)),
)
def test_any_outcomes_end_the_search_with_proven_bounds(
    seed: int,
    max_rate_fps: int,
    expected: Bracket,
    attempts: int,
    verification: Verification,
) -> None:
    result = search(
        noise(seed),
        max_rate_fps,
        "1%",
        expected=expected,
        attempts=attempts,
        verification=verification,
    )
    lower, upper = 0, max_rate_fps
    for step in result.steps:
        assert lower < step.rate_fps <= upper
        assert lower <= step.lower_fps <= step.upper_fps <= upper
        assert 1 <= step.attempt <= attempts + verification.trials - 1
        lower, upper = step.lower_fps, step.upper_fps
    passed = {s.rate_fps for s in result.steps if s.outcome.verdict == "pass"}
    assert result.rate_fps == max(passed, default=None)
    if result.conclusion == "found":
        failed = {s.rate_fps for s in result.steps if s.outcome.verdict == "fail"}
        assert result.upper_fps in failed
        assert result.rate_fps is not None
        assert Resolution.parse("1%").reached(result.rate_fps, upper) or (
            upper == result.rate_fps + 1
        )


def test_the_recorded_outcomes_ask_for_the_same_trials_again() -> None:
    expected = Bracket(500, 700)
    first = search(noise(3), 1024, "1%", expected=expected, verification=TWICE)
    left = iter(first.steps)

    def replay(rate_fps: int) -> Outcome:
        step = next(left)
        assert step.rate_fps == rate_fps
        return step.outcome

    again = search(replay, 1024, "1%", expected=expected, verification=TWICE)
    assert again == first


@pytest.mark.parametrize("ends", [(-1, 1), (1, 1), (2, 1)])
def test_what_is_no_bracket_is_refused(ends: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="bracket"):
        Bracket(*ends)
