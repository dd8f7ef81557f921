"""Binary search with loss verification, and what confirms where it ended."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dutperf.search import Bracket, Outcome, Resolution, SearchResult, Verification
from dutperf.search.binary import binary_search, confirm

seeded = settings(derandomize=True, deadline=None, database=None, max_examples=300)
PASS, FAIL, INVALID = Outcome("pass"), Outcome("fail"), Outcome("invalid")
TWICE = Verification(trials=2)


def search(
    measure: Callable[[int], Outcome],
    max_rate_fps: int,
    resolution: str = "1",
    *,
    verification: Verification | None = None,
    attempts: int = 3,
) -> SearchResult:
    return binary_search(
        lambda rate_fps, _duration_s: measure(rate_fps),
        max_rate_fps=max_rate_fps,
        duration_s=1,
        resolution=Resolution.parse(resolution),
        verification=verification or Verification(),
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


@pytest.mark.parametrize("loss_ratio", [0.0, 0.01, None])
def test_loss_up_to_there_or_of_an_unknown_share_is_verified(
    loss_ratio: float | None,
) -> None:
    verification = Verification(trials=2, hopeless=0.01)
    lossy = Outcome("fail", loss_ratio=loss_ratio)
    result = search(scripted([lossy, PASS]), 8, verification=verification)
    assert rates(result) == [8, 8]
    assert result.conclusion == "max_rate_passed"


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


# --- the two rates where a search ended -----------------------------------------------


def ask(
    measure: Callable[[int], Outcome],
    *,
    verification: Verification | None = None,
    attempts: int = 3,
) -> SearchResult:
    return confirm(
        lambda rate_fps, _duration_s: measure(rate_fps),
        ENDS,
        duration_s=1,
        verification=verification or Verification(),
        attempts=attempts,
    )


ENDS = Bracket(300, 310)


def told(result: SearchResult) -> tuple[int | None, int | None, str]:
    return result.rate_fps, result.upper_fps, result.conclusion


def test_where_searches_end_two_trials_say_so_again() -> None:
    result = ask(step_device(305))
    assert rates(result) == [300, 310]
    assert told(result) == (300, 310, "found")


def test_a_lower_end_that_fails_is_all_that_is_asked() -> None:
    result = ask(step_device(299))
    assert rates(result) == [300]
    assert told(result) == (None, 300, "nothing_passed")


def test_an_upper_end_that_passes_is_no_end() -> None:
    result = ask(step_device(310))
    assert rates(result) == [300, 310]
    assert told(result) == (310, None, "max_rate_passed")


def test_both_ends_are_verified_and_asked_again_while_they_are_invalid() -> None:
    outcomes = [INVALID, FAIL, INVALID, PASS, FAIL, INVALID, INVALID, FAIL]
    result = ask(scripted(outcomes), verification=TWICE)
    assert rates(result) == [300] * 4 + [310] * 4
    assert [step.attempt for step in result.steps] == [1, 2, 3, 4] * 2
    assert told(result) == (300, 310, "found")


@pytest.mark.parametrize(
    ("outcomes", "conclusion"),
    [
        ([INVALID] * 3, "unstable"),
        ([PASS, *[INVALID] * 3], "unstable"),
        ([Outcome("invalid", offered_fps=200)] * 2, "tester_limited"),
        ([PASS, *[Outcome("invalid", offered_fps=305)] * 2], "tester_limited"),
    ],
)
def test_a_tester_in_trouble_confirms_nothing(
    outcomes: list[Outcome], conclusion: str
) -> None:
    result = ask(scripted(outcomes))
    assert result.conclusion == conclusion
    assert len(result.steps) == len(outcomes)


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
    st.integers(1, 4),
    st.builds(Verification, st.integers(1, 3), st.floats(0, 1)),
)
def test_any_outcomes_end_the_search_with_proven_bounds(
    seed: int,
    max_rate_fps: int,
    attempts: int,
    verification: Verification,
) -> None:
    result = search(
        noise(seed),
        max_rate_fps,
        "1%",
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
    first = search(noise(3), 1024, "1%", verification=TWICE)
    left = iter(first.steps)

    def replay(rate_fps: int) -> Outcome:
        step = next(left)
        assert step.rate_fps == rate_fps
        return step.outcome

    again = search(replay, 1024, "1%", verification=TWICE)
    assert again == first


@pytest.mark.parametrize("ends", [(-1, 1), (0, 1), (1, 1), (2, 1)])
def test_what_is_no_bracket_is_refused(ends: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="bracket"):
        Bracket(*ends)


def test_the_lowest_rate_there_is_may_be_one_of_two() -> None:
    assert Bracket(1, 2).lower_fps == 1
