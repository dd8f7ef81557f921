"""The ways to search a throughput, on simulated devices, and what they store."""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path

import pytest
from planning import Recording, Repeats, Run, campaign, cell, doubling, spec, spoilt

from dutperf.errors import InputError
from dutperf.procedures.events import Notice
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.searching import SearchTrials, Troubles, goals_of
from dutperf.procedures.throughput import measure_throughput
from dutperf.protocol.result_messages import Reason, ReasonCode, Verdict
from dutperf.results import CellResult, ResultsFile, settled_words
from dutperf.simulation.fake_engine import Dut, FakeEngine, every, noisy, perfect, step

MAX = MaxRate(1_000_000, "media")
LIMIT_FPS = 400_000
GOALS = ["0", "1%:50%"]


def measured(engine: FakeEngine, **keys: object) -> tuple[CellResult, Recording]:
    recording = Recording(engine)
    wanted = cell(**{"trial_duration_s": 60, "resolution": "1%", **keys})
    return measure_throughput(recording.runner, wanted, MAX), recording


def wandering(deviation: float) -> Dut:
    """Each trial has a limit of its own; the same ones in each test."""
    draw = random.Random(3)  # noqa: S311 - repeatable noise

    def forward(rate_fps: float, frames: int) -> int:
        limit_fps = draw.gauss(LIMIT_FPS, LIMIT_FPS * deviation)
        return step(limit_fps)(rate_fps, frames)

    return forward


def codes(result: CellResult) -> list[str]:
    return [reason.code for reason in result.reasons]


# --- narrowed


@pytest.mark.parametrize("search", ["narrowed", "classic", "verified"])
def test_every_search_finds_the_limit_within_the_resolution(search: str) -> None:
    result, _ = measured(FakeEngine(step(LIMIT_FPS)), search=search, repeats=3)
    assert result.verdict == "pass"
    assert {r.verdict for r in result.repeats} == {"pass"}
    assert all(0.99 * LIMIT_FPS <= (r.value or 0) <= LIMIT_FPS for r in result.repeats)
    assert result.parameters["search"] == search


def test_whole_trials_only_and_two_a_repeat_once_four_agree() -> None:
    result, recording = measured(FakeEngine(step(LIMIT_FPS)), repeats=6)
    assert {r.request.duration_ns for r in recording.records} == {60 * 10**9}
    trials = Counter(r.repeat for r in recording.records)
    assert [trials[n] for n in range(1, 7)] == [trials[1]] * 4 + [2, 2]
    assert [r.trials for r in result.repeats] == [trials[n] for n in range(1, 7)]
    assert result.withdrawn is None


def changing(after: int) -> FakeEngine:
    """A device that does a fifth less after so many trials."""
    trials = 0

    def forward(rate_fps: float, frames: int) -> int:
        nonlocal trials
        trials += 1
        now_fps = LIMIT_FPS if trials <= after else 0.8 * LIMIT_FPS
        return step(now_fps)(rate_fps, frames)

    return FakeEngine(forward)


def test_narrowed_repeats_that_are_contradicted_do_not_count() -> None:
    one_way = {"direction": "forward"}
    _, steady = measured(FakeEngine(step(LIMIT_FPS)), repeats=6, **one_way)
    engine = changing(len(steady.records))
    result, recording = measured(engine, repeats=8, **one_way)
    assert result.withdrawn is not None
    assert result.withdrawn.repeats == [5, 6, 7]
    trials = Counter(r.repeat for r in recording.records)
    assert result.withdrawn.trials == trials[5] + trials[6] + trials[7] == 5
    assert sorted(trials) == list(range(1, 12))
    values = [repeat.value or 0 for repeat in result.repeats]
    assert len(values) == 8
    assert len(set(values[:4])) == len(set(values[4:])) == 1
    assert values[4] <= 0.8 * LIMIT_FPS
    assert [r.trials for r in result.repeats[4:]] == [trials[n] for n in range(8, 12)]
    told = [e.text for e in recording.events if isinstance(e, Notice)]
    assert [text for text in told if "repeats 5 to 7 do not count" in text]


def test_the_interval_is_never_narrower_than_the_resolution() -> None:
    result, _ = measured(FakeEngine(step(LIMIT_FPS)), repeats=6)
    spread, value = result.spread, result.median or 0
    assert spread is not None
    assert spread.interval_lower == value
    assert (spread.interval_upper or 0) - value == math.ceil(value / 100)


def test_the_interval_does_not_exceed_the_highest_rate_that_may_be() -> None:
    result, _ = measured(FakeEngine(step(998_000)), search="classic", repeats=6)
    assert result.median is not None
    assert result.median * 1.01 > MAX.rate_fps
    assert result.spread is not None
    assert result.spread.interval_upper == MAX.rate_fps


def test_a_faster_device_than_before_is_found() -> None:
    """Each repeat doubles what the device can do."""
    trials: list[float] = []

    def forward(rate_fps: float, frames: int) -> int:
        trials.append(rate_fps)
        limit_fps = 100_000 if len(trials) < 60 else 400_000
        return step(limit_fps)(rate_fps, frames)

    result, _ = measured(FakeEngine(forward), repeats=20)
    values = [r.value or 0 for r in result.repeats]
    assert values[0] <= 100_000
    assert 396_000 <= values[-1] <= 400_000


# --- hopeless trials


@pytest.mark.parametrize(
    ("keys", "stops"),
    [
        ({}, True),
        ({"early_stop": False}, False),
        ({"search": "verified", "max_verify_loss_percent": 10}, False),
        ({"search": "mlrsearch"}, False),
    ],
)
def test_who_needs_the_verdict_only_ends_hopeless_trials(
    keys: dict[str, object], stops: bool
) -> None:
    _, recording = measured(FakeEngine(step(LIMIT_FPS)), **keys)
    assert {r.request.stop_when_lost for r in recording.records} == {stops}
    assert any(r.result.ended_early for r in recording.records) == stops


def test_ending_them_changes_no_result() -> None:
    early, with_early = measured(FakeEngine(step(LIMIT_FPS)), repeats=2)
    late, with_late = measured(FakeEngine(step(LIMIT_FPS)), repeats=2, early_stop=False)
    assert early.repeats == late.repeats
    assert with_early.loads_fps == with_late.loads_fps


# --- verified


def test_a_rare_loss_is_verified_and_decides_nothing() -> None:
    classic, _ = measured(
        FakeEngine(noisy(LIMIT_FPS, one_in=20)), search="classic", repeats=5
    )
    verified, recording = measured(
        FakeEngine(noisy(LIMIT_FPS, one_in=20)), search="verified", repeats=5
    )
    assert min(r.value or 0 for r in classic.repeats) < 0.9 * LIMIT_FPS
    assert min(r.value or 0 for r in verified.repeats) > 0.96 * LIMIT_FPS
    assert verified.quantity == (
        "throughput per direction, losses verified by 2 trials"
    )
    assert verified.parameters["verify_trials"] == 2
    assert max(recording.loads_fps.count(rate) for rate in recording.loads_fps) >= 2


def test_a_hopeless_loss_is_not_verified() -> None:
    engine = FakeEngine(step(LIMIT_FPS))
    _, recording = measured(
        engine, search="verified", max_verify_loss_percent=20, trial_duration_s=10
    )
    hopeless = [rate for rate in recording.loads_fps if rate > LIMIT_FPS / 0.8]
    assert len(hopeless) == len(set(hopeless))
    lost = [r for r in recording.loads_fps if LIMIT_FPS < r < LIMIT_FPS / 0.8]
    assert len(lost) == 2 * len(set(lost))


def test_one_pass_does_not_outvote_large_losses() -> None:
    """Two trials at each rate lose a quarter of the frames, the third one passes."""
    trials: Counter[float] = Counter()

    def forward(rate_fps: float, frames: int) -> int:
        trials[rate_fps] += 1  # of each direction
        hit = rate_fps > LIMIT_FPS and trials[rate_fps] <= 4
        return frames * 3 // 4 if hit else frames

    result, _ = measured(FakeEngine(forward), search="verified", verify_trials=3)
    assert (result.median or 0) <= LIMIT_FPS


@pytest.mark.parametrize(("lost", "times"), [(0.005, 2), (0.0051, 1)])
def test_small_losses_alone_are_verified(lost: float, times: int) -> None:
    engine = FakeEngine(lambda rate, n: n if rate <= LIMIT_FPS else round(n - n * lost))
    _, recording = measured(engine, search="verified", trial_duration_s=10)
    tried = Counter(rate for rate in recording.loads_fps if rate > LIMIT_FPS)
    assert set(tried.values()) == {times}


@pytest.mark.parametrize(("lost", "times"), [(0.2, 2), (0.21, 1)])
def test_more_than_the_highest_loss_that_is_verified_is_hopeless(
    lost: float, times: int
) -> None:
    engine = FakeEngine(lambda rate, n: n if rate <= LIMIT_FPS else round(n - n * lost))
    keys = {"search": "verified", "max_verify_loss_percent": 20, "trial_duration_s": 10}
    _, recording = measured(engine, **keys)
    tried = Counter(rate for rate in recording.loads_fps if rate > LIMIT_FPS)
    assert set(tried.values()) == {times}


# --- until the median is settled


def test_a_steady_device_is_settled_at_the_first_look() -> None:
    result, _ = measured(FakeEngine(step(LIMIT_FPS)), repeats="auto")
    assert len(result.repeats) == 8
    assert result.settled is not None
    assert (result.settled.reached, result.settled.looks) == (True, 1)
    assert result.spread is not None
    low, high = result.spread.interval_lower, result.spread.interval_upper
    assert low is not None
    assert high is not None
    assert high - low <= 0.01 * LIMIT_FPS
    # One of four looks, which share the 5 %.
    assert result.spread.interval_percent is not None
    assert result.spread.interval_percent >= 98.75
    assert result.parameters["repeats"] == "auto, at most 64"


def test_a_noisy_device_is_repeated_up_to_the_cap_and_that_is_said() -> None:
    result, _ = measured(
        FakeEngine(wandering(0.03)),
        repeats="auto",
        interval_width="0.1%",
        max_repeats=16,
        resolution="0.1%",
    )
    assert len(result.repeats) == 16
    assert result.settled is not None
    assert (result.settled.reached, result.settled.looks) == (False, 2)
    assert result.verdict == "pass"


def test_a_wider_target_is_settled_earlier() -> None:
    wide, _ = measured(
        FakeEngine(wandering(0.03)), repeats="auto", interval_width="20%"
    )
    assert len(wide.repeats) == 8
    absolute, _ = measured(
        FakeEngine(wandering(0.03)), repeats="auto", interval_width=80_000
    )
    assert len(absolute.repeats) == 8


def test_a_given_number_has_its_own_interval_and_no_target() -> None:
    result, _ = measured(FakeEngine(wandering(0.01)), repeats=6)
    assert result.settled is None
    assert result.spread is not None
    assert result.spread.interval_percent is not None
    assert 95 <= result.spread.interval_percent < 98


def test_what_is_invalid_is_not_repeated_until_the_cap() -> None:
    troubles = spoilt("receiver_overflow", *range(1, 500))
    result, _ = measured(FakeEngine(perfect(), troubles=troubles), repeats="auto")
    assert (result.verdict, len(result.repeats)) == ("invalid", 8)


def test_nor_is_a_lower_bound_and_it_is_not_called_settled() -> None:
    engine = FakeEngine(perfect(), tester_limit_fps=300_000)
    result, _ = measured(engine, repeats="auto")
    assert (result.verdict, result.bound, len(result.repeats)) == ("pass", "lower", 8)
    assert result.settled is not None
    assert not result.settled.reached
    assert "the median is a lower bound" in settled_words(result)


def test_bounds_among_the_repeats_widen_the_interval_to_the_unknown() -> None:
    """Two of eight end at the tester: nobody knows how wide the interval is.

    After sixteen both of its ends are exact.
    """
    repeats = Repeats()

    def forward(rate_fps: float, frames: int) -> int:
        return frames if repeats.now in (2, 5) or rate_fps <= LIMIT_FPS else 0

    recording = Recording(FakeEngine(forward, tester_limit_fps=500_000))
    repeats.follow(recording)
    asked = cell(repeats="auto", search="classic")
    result = measure_throughput(recording.runner, asked, MAX)
    assert (result.bound, result.verdict, len(result.repeats)) == (None, "pass", 16)
    assert result.settled is not None
    assert result.settled.reached
    assert result.spread is not None
    assert result.spread.lower_bounds == ["percentile_99", "maximum"]


def test_a_device_that_forwards_nothing_is_settled_at_zero() -> None:
    result, _ = measured(FakeEngine(lambda _rate, _frames: 0), repeats="auto")
    assert (result.verdict, result.median, len(result.repeats)) == ("fail", 0, 8)
    assert result.settled is not None
    assert result.settled.reached


# --- MLRsearch


@pytest.mark.parametrize("search", ["classic", "narrowed", "verified", "mlrsearch"])
def test_no_search_passes_a_device_that_duplicates_frames(search: str) -> None:
    """Whatever loss a goal tolerates: nothing is lost here."""
    goals: dict[str, object] = {"goals": ["5%:50%"]} if search == "mlrsearch" else {}
    result, _ = measured(doubling(FakeEngine(perfect())), search=search, **goals)
    assert result.verdict == "fail"
    assert not result.median
    assert codes(result) == ["nothing_passed", "duplicates"]
    assert result.reasons[0].message.startswith("trials failed at every rate that ")
    assert not result.reasons[0].hint, "it does forward"


@pytest.mark.parametrize("loses_slow", [False, True])
def test_it_is_told_how_the_last_trial_failed(loses_slow: bool) -> None:
    """Faster ones may fail otherwise."""

    def loses(rate_fps: float) -> bool:
        return (rate_fps < LIMIT_FPS) == loses_slow

    engine = doubling(
        FakeEngine(lambda rate_fps, frames: 0 if loses(rate_fps) else frames),
        lambda trial: not loses(trial.directions[0].rate_fps),
    )
    result, _ = measured(engine, search="classic")
    others = [] if loses_slow else ["duplicates"]
    assert codes(result) == ["nothing_passed", *others]


def test_mlrsearch_has_a_result_for_each_goal() -> None:
    engine = FakeEngine(step(LIMIT_FPS))
    result, recording = measured(engine, search="mlrsearch", goals=GOALS)
    durations_ns = [record.request.duration_ns for record in recording.records]
    assert (durations_ns[0], durations_ns[-1]) == (10**9, 60 * 10**9)
    assert (result.verdict, result.unit, len(result.repeats)) == ("pass", "fps", 1)
    assert result.quantity == "throughput per direction (RFC 2544 26.1)"
    zero, some = result.goals
    assert (zero.name, some.name) == (
        "no loss",
        "losing up to 1 % in all but 50 % of the time",
    )
    assert (zero.loss_ratio, zero.exceed_ratio, zero.duration_sum_s) == (0, 0, 60)
    assert (some.loss_ratio, some.exceed_ratio, some.duration_sum_s) == (0.01, 0.5, 120)
    for goal in result.goals:
        assert goal.regular
        assert goal.lower_fps is not None
        assert goal.upper_fps is not None
        assert goal.upper_fps - goal.lower_fps <= goal.width * goal.upper_fps
    assert result.median == zero.lower_fps == zero.conditional_fps
    assert some.lower_fps is not None
    assert some.conditional_fps is not None
    # 1 % more than the limit loses 1 %; what comes out is the limit.
    assert LIMIT_FPS < some.lower_fps < 1.011 * LIMIT_FPS
    assert some.conditional_fps <= LIMIT_FPS
    assert result.parameters["goals"] == "0%:0%:60s, 1%:50%:120s"
    assert result.parameters["min_load_fps"] == 1000


def test_a_goal_that_tolerates_a_loss_is_no_rfc_2544_throughput() -> None:
    result, _ = measured(
        FakeEngine(step(LIMIT_FPS)), search="mlrsearch", goals=GOALS[::-1]
    )
    assert "RFC 2544" not in result.quantity
    assert result.quantity == (
        "throughput per direction, losing up to 1 % in all but 50 % of the time"
    )
    assert result.median == result.goals[0].lower_fps


def test_late_frames_are_lost_to_a_goal() -> None:
    engine = FakeEngine(perfect(), delays=every(10, 1_000_000_000))
    keys: dict[str, object] = {"search": "mlrsearch", "frame_timeout_ms": 10}
    strict, _ = measured(engine, goals=["0"], **keys)
    lax, _ = measured(engine, goals=["20%"], **keys)
    assert (strict.verdict, strict.median, codes(strict)) == (
        "fail",
        None,
        ["nothing_passed"],
    )
    assert strict.reasons[0].message == (
        "frames were lost or late at every rate that was tried, down to 1,000 fps"
    )
    assert not strict.goals[0].regular
    assert lax.median == 1_000_000
    assert lax.quantity == (
        "throughput per direction, frames within 10 ms, losing up to 20 %"
    )


def test_a_maximum_that_passed_is_an_irregular_result_and_is_named() -> None:
    result, _ = measured(FakeEngine(perfect()), search="mlrsearch", goals=GOALS)
    assert (result.verdict, result.median) == ("pass", 1_000_000)
    assert [goal.regular for goal in result.goals] == [False, False]
    assert codes(result) == ["max_rate", "max_rate"]
    zero, some = (reason.message for reason in result.reasons)
    assert zero.startswith("goal no loss: limited by")
    assert zero.endswith("no frame was lost")
    assert some.endswith("it passed, losing up to 1 % in all but 50 % of the time")


@pytest.mark.parametrize(
    ("held_back", "cause", "code"),
    [(False, "tester", "sender_behind"), (True, "held_back", "held_back")],
)
def test_a_slow_tester_proves_lower_bounds_only(
    held_back: bool, cause: str, code: ReasonCode
) -> None:
    engine = FakeEngine(perfect(), tester_limit_fps=300_000, held_back=held_back)
    result, _ = measured(engine, search="mlrsearch")
    assert (result.verdict, codes(result)) == ("pass", [code])
    assert result.median is not None
    assert 250_000 <= result.median <= 300_000
    (goal,) = result.goals
    assert (result.bound, goal.bound, goal.bound_cause) == ("lower", "lower", cause)
    assert not goal.regular


def test_what_spoilt_a_rate_is_told_or_else_what_spoilt_a_trial_last() -> None:
    troubles = Troubles()
    assert troubles.at(None) == []
    codes: list[ReasonCode] = ["held_back", "receiver_lag", "sender_lag"]
    for rate_fps, code in zip((2, 1, 2), codes, strict=True):
        reasons = [Reason(code=code, message="it was")]
        troubles.note(rate_fps, Verdict(kind="invalid", reasons=reasons))
    troubles.note(3, Verdict(kind="fail", reasons=[]))
    told = [troubles.at(rate_fps)[0].code for rate_fps in (1, 2, 3, None)]
    assert told == ["receiver_lag", "sender_lag", "sender_lag", "sender_lag"]
    assert troubles.held_back, "in one of them"


def test_only_valid_trials_of_full_length_count_at_a_rate() -> None:
    engine = FakeEngine(perfect(), troubles=spoilt("receiver_overflow", 3))
    recording = Recording(engine)
    asked = cell(search="mlrsearch", resolution="1%", trial_duration_s=60)
    trials = SearchTrials(recording.runner, asked, 1)
    for duration_s in (60, 1, 60):
        trials.measure(500, duration_s)
    whole = recording.records[0]
    assert trials.at(500) == whole.result
    assert [each.record for each in trials.valid_in_full(500)] == [whole]
    assert trials.valid_in_full(501) == []


def test_no_trial_of_a_goal_is_longer_than_the_last_one() -> None:
    asked = cell(search="mlrsearch", resolution="1%", trial_duration_s=0.5)
    (goal,) = goals_of(asked)
    assert (goal.initial_duration_s, goal.final_duration_s) == (0.5, 0.5)


def test_trials_that_stay_invalid_say_why() -> None:
    engine = FakeEngine(
        step(LIMIT_FPS), troubles=spoilt("receiver_overflow", *range(4, 500))
    )
    result, _ = measured(engine, search="mlrsearch")
    assert (result.verdict, codes(result)) == (
        "invalid",
        ["unstable", "receiver_overflow"],
    )


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("sender_lag", ("pass", "lower", "disturbed")),
        ("receiver_overflow", ("invalid", "lower", None)),
    ],
)
def test_a_goal_whose_last_trials_were_spoilt_is_a_bound_of_its_own(
    code: ReasonCode, told: tuple[str, str, str | None]
) -> None:
    engine = FakeEngine(step(LIMIT_FPS), troubles=spoilt(code, *range(8, 500)))
    result, _ = measured(engine, search="mlrsearch", goals=GOALS)
    assert [(g.verdict, g.bound, g.bound_cause) for g in result.goals] == [
        ("pass", None, None),
        told,
    ]


def test_where_no_trial_tells_anything_there_is_no_goal() -> None:
    engine = FakeEngine(perfect(), troubles=spoilt("link_down", *range(1, 500)))
    result, _ = measured(engine, search="mlrsearch", goals=GOALS)
    assert (result.verdict, result.goals) == ("invalid", [])
    assert codes(result) == ["unstable", "link_down"]


def test_a_sweep_is_of_the_trial_at_the_lower_bound() -> None:
    engine = FakeEngine(step(LIMIT_FPS), delays=every(10, 8_000_000))
    result, _ = measured(engine, search="mlrsearch", timeout_sweep_ms=[1, 10])
    assert [t.loss_percent for t in result.timeouts] == [pytest.approx(10), 0]


@pytest.mark.parametrize("most_fps", [9_000, 10_000])
def test_a_maximum_below_what_mlrsearch_tries_is_refused_before_the_first_frame(
    tmp_path: Path, most_fps: int
) -> None:
    run = Run(tmp_path / "run", FakeEngine(perfect()))
    asked = spec(search="mlrsearch", resolution="0.1%", max_rate_fps=most_fps)
    with pytest.raises(InputError, match=r"lowest rate .* is 10,000 fps"):
        run(campaign(asked))
    assert not run.engine.trials
    assert not (tmp_path / "run").exists()


# --- resumed

SEARCHES = campaign(
    spec(repeats=6, resolution="1%", trial_duration_s=60),
    spec(repeats="auto", resolution="1%", max_repeats=8, ip=[6], direction="forward"),
    spec(search="verified", resolution="1%", repeats=2),
    spec(search="mlrsearch", resolution="1%", goals=GOALS),
)


def engine(done: int = 0, end: int | None = None) -> FakeEngine:
    """One device with rare losses; ``done`` trials were measured on it before."""
    troubles: dict[int, ReasonCode | BaseException] = {
        2 - done: "link_changed",
        40 - done: "clock_unstable",
    }
    if end:
        troubles[end] = KeyboardInterrupt()

    def forward(rate_fps: float, frames: int) -> int:
        limit_fps = LIMIT_FPS * (1 + 0.01 * ((int(rate_fps) * 7 + frames) % 3 - 1))
        return step(limit_fps)(rate_fps, frames)

    return FakeEngine(forward, troubles=troubles)


def told(results: ResultsFile) -> tuple[object, ...]:
    return results.cells, [
        (t.number, t.cell, t.repeat, t.attempt, t.load_fps, t.request, t.result.verdict)
        for t in results.trials
    ]


def test_every_search_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    whole = Run(tmp_path / "whole", engine())(SEARCHES)
    moments = random.Random(4).sample(range(2, len(whole.trials)), 4)  # noqa: S311
    for last in moments:
        path = tmp_path / str(last)
        with pytest.raises(KeyboardInterrupt):
            Run(path, engine(end=last))(SEARCHES)
        rest = Run(path, engine(last - 1))
        assert told(rest.resume(SEARCHES)) == told(whole)
        assert len(rest.engine.trials) == len(whole.trials) - (last - 1)
