"""The second figure of a throughput that damaged frames alone limit."""

from __future__ import annotations

from pathlib import Path

import pytest
from planning import FakeWatch, Recording, Repeats, Run, campaign, cell, spec, spoilt

from dutperf.procedures.events import IntervalNarrowed
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.throughput import (
    damaged_frames,
    judged_whole,
    measure_throughput,
)
from dutperf.procedures.trials import Ask
from dutperf.protocol.result_messages import Damage, ReasonCode, VerdictKind
from dutperf.results import CellResult, load_results
from dutperf.results.rate_results import DamagedFrames, DamageFigure
from dutperf.results.words import (
    RECEIVED,
    damage_sentence,
    kinds_words,
    received_figure,
)
from dutperf.simulation.fake_engine import FakeEngine, perfect, step, without_checksum

MAX = MaxRate(1_000_000, "media")
ONE_IN = 65_535
CLEAN = 6_553
"""The fastest rate whose 10 s have fewer frames than that."""
LIMIT = 30_000

SEARCHES: list[dict[str, object]] = [
    {"search": "classic"},
    {"search": "narrowed", "repeats": 7},
    {"search": "verified", "verify_trials": 2},
    {"search": "mlrsearch"},
]


def engine(limit_fps: int = LIMIT, one_in: int = ONE_IN, **keys: object) -> FakeEngine:
    damages = without_checksum(one_in)
    return FakeEngine(step(limit_fps), damages=damages, **keys)  # type: ignore[arg-type]


def measured(dut: FakeEngine, **keys: object) -> tuple[CellResult, Recording]:
    recording = Recording(dut)
    given: dict[str, object] = {"resolution": "1%", "search": "classic", **keys}
    return measure_throughput(recording.runner, cell(**given), MAX), recording


def second(result: CellResult) -> DamageFigure:
    assert result.damage is not None
    return result.damage


@pytest.mark.parametrize("keys", SEARCHES, ids=lambda keys: str(keys["search"]))
def test_both_figures_are_found(keys: dict[str, object]) -> None:
    result, recording = measured(engine(), **keys)
    damage = second(result)
    assert result.median is not None
    assert damage.value is not None
    assert 0.98 * CLEAN <= result.median <= CLEAN
    assert 0.98 * LIMIT <= damage.value <= LIMIT
    assert (damage.verdict, damage.bound) == ("pass", None)
    own = [record for record in recording.records if record.role == "damage"]
    assert damage.trials == len(own) <= result.repeats[0].trials
    assert damage.reused > 0
    assert all(record.repeat == 1 for record in own), "once, whatever the repeats"


def test_trials_that_were_measured_are_not_measured_again() -> None:
    result, recording = measured(engine(), early_stop=False)
    rates = recording.loads_fps
    assert len(rates) == len(set(rates))
    assert second(result).reused + second(result).trials <= len(rates)


def test_trials_that_lost_frames_anyway_are_taken_each_once() -> None:
    result, recording = measured(engine(), early_stop=True)
    lossy = [fps for fps in recording.loads_fps if fps > LIMIT]
    own = [r.load_fps for r in recording.records if r.role == "damage"]
    assert second(result).reused == len([fps for fps in lossy if fps not in own])


def test_whoever_watches_is_told_how_far_it_is() -> None:
    _, recording = measured(engine())
    steps = [e for e in recording.events if isinstance(e, IntervalNarrowed)]
    assert any((step.lower_fps or 0) > 0.9 * LIMIT for step in steps)


def test_a_rate_counts_as_too_fast_only_after_as_many_trials_as_it_asks_for() -> None:
    """5 % are lost beside the damage, and that is no reason to be sure at once."""
    keys = {"search": "verified", "verify_trials": 2, "max_verify_loss_percent": 10}
    _, recording = measured(engine(), **keys)
    own = [r.load_fps for r in recording.records if r.role == "damage"]
    above = [fps for fps in own if LIMIT < fps < 1.1 * LIMIT]
    assert above
    assert all(above.count(fps) == 2 for fps in above)


def test_it_follows_the_repeat_that_damage_limited() -> None:
    repeats = Repeats()
    damaging, whole = without_checksum(ONE_IN), without_checksum(10**12)

    def damages(frames: int) -> Damage:
        return damaging(frames) if repeats.now == 2 else whole(frames)

    recording = Recording(FakeEngine(step(LIMIT), damages=damages))
    repeats.follow(recording)
    asked = cell(resolution="1%", search="classic", repeats=3)
    result = measure_throughput(recording.runner, asked, MAX)
    assert second(result).value is not None
    own = [record for record in recording.records if record.role == "damage"]
    assert {record.repeat for record in own} == {2}


def test_trials_that_ended_early_are_measured_in_full_if_only_damage_ended_them() -> (
    None
):
    result, recording = measured(engine(), early_stop=True)
    ended = {r.load_fps for r in recording.records if r.result.ended_early}
    own = [record for record in recording.records if record.role == "damage"]
    assert not any(record.request.stop_when_lost for record in own)
    assert {r.load_fps for r in own} & ended
    value = second(result).value
    assert value is not None
    assert 0.98 * LIMIT <= value <= LIMIT


@pytest.mark.parametrize("one_in", [ONE_IN, 10**12])
def test_there_is_no_second_figure_where_frames_were_really_lost(one_in: int) -> None:
    result, recording = measured(engine(limit_fps=5_000, one_in=one_in))
    assert result.damage is None
    assert {record.role for record in recording.records} == {"trial"}


def test_a_tolerance_covers_damaged_frames_as_well() -> None:
    tolerant, _ = measured(engine(), loss_tolerance_percent=0.01)
    assert tolerant.damage is None
    assert tolerant.median is not None
    assert tolerant.median > 0.98 * LIMIT


def test_goals_of_mlrsearch_count_damaged_frames_as_lost() -> None:
    goals = [{"loss_percent": 0.01}, {"loss_percent": 0}]
    result, _ = measured(engine(), search="mlrsearch", goals=goals)
    lossy, clean = (goal.lower_fps or 0 for goal in result.goals)
    assert lossy > 0.98 * LIMIT
    assert clean <= CLEAN
    assert result.damage is None, "the first goal is the result, and forgives it"


def test_the_first_goal_covers_what_is_lost_beside_damaged_frames() -> None:
    """One frame in 5,000 is damaged, as many as the goal allows are lost beside."""

    def losing(rate_fps: float, frames: int) -> int:
        return step(LIMIT)(rate_fps, frames) - frames // 10_000

    dut = FakeEngine(losing, damages=without_checksum(5000))
    result, _ = measured(dut, search="mlrsearch", goals=[{"loss_percent": 0.01}])
    assert result.median is None or result.median < LIMIT / 2
    value = second(result).value
    assert value is not None
    assert 0.98 * LIMIT <= value <= LIMIT


@pytest.mark.parametrize(
    ("lost", "one_in", "verdict"),
    [(20, 5000, "pass"), (21, 5000, "fail"), (20, 10**12, "fail")],
)
def test_a_tolerance_is_exact_and_of_damaged_trials_only(
    lost: int, one_in: int, verdict: VerdictKind
) -> None:
    """Of 200,000 frames 20 are 0.01 %."""
    dut = FakeEngine(lambda _r, n: n - lost, damages=without_checksum(one_in))
    record = Recording(dut).runner.run(Ask(cell(), 20_000))
    assert judged_whole(record, 0.0001) == verdict


def test_a_device_that_damages_frames_at_any_rate_has_its_second_figure() -> None:
    result, _ = measured(engine(one_in=5))
    assert (result.verdict, result.median) == ("fail", 0)
    value = second(result).value
    assert value is not None
    assert 0.98 * LIMIT <= value <= LIMIT


def test_the_second_figure_is_a_bound_where_the_first_would_be_one() -> None:
    limit = MaxRate(1_000_000, "set")
    dut = FakeEngine(perfect(), damages=without_checksum(ONE_IN))
    recording = Recording(dut)
    damage = second(measure_throughput(recording.runner, cell(), limit))
    assert (damage.value, damage.bound, damage.bound_cause) == (
        1_000_000,
        "lower",
        "set",
    )


def test_the_second_figure_ends_where_the_tester_is_held_back() -> None:
    dut = engine(limit_fps=10**6, tester_limit_fps=20_000, held_back=True)
    result, _ = measured(dut)
    damage = second(result)
    assert damage.value is not None
    assert 0.98 * 20_000 <= damage.value <= 20_000
    assert (damage.verdict, damage.bound, damage.bound_cause) == (
        "pass",
        "lower",
        "held_back",
    )


@pytest.mark.parametrize("code", ["link_changed", "sender_burst"])
def test_it_measures_no_more_trials_than_the_search_before_it(
    code: ReasonCode,
) -> None:
    """Each of its trials is spoilt twice."""
    first, recording = measured(engine())
    count = first.repeats[0].trials
    second_begins = count + 1
    odd = [n for n in range(second_begins, 500) if (n - second_begins) % 3 != 2]
    result, recording = measured(engine(troubles=spoilt(code, *odd)))
    damage = second(result)
    assert (damage.trials, damage.exhausted) == (count, True)
    assert len(recording.records) == 2 * count
    assert (damage.verdict, damage.bound) == ("pass", "lower")
    assert damage.bound_cause is None, "it ended for want of trials"


def test_it_ends_where_no_trial_is_any_use() -> None:
    first, _ = measured(engine())
    begins = first.repeats[0].trials + 1
    down = spoilt("link_down", *range(begins, 500))
    result, _ = measured(engine(troubles=down))
    damage = second(result)
    assert damage.trials == 3
    assert (damage.verdict, damage.value, damage.bound) == ("invalid", None, None)
    assert [r.code for r in damage.reasons][-1] == "link_down"


@pytest.mark.parametrize(
    ("code", "cause"), [("sender_burst", "disturbed"), ("receiver_overflow", None)]
)
def test_what_bounds_the_second_figure_is_told_though_its_last_trial_passed(
    code: ReasonCode, cause: str | None
) -> None:
    """The first rate that it measures is spoilt three times, all below it pass.

    A trial below is spoilt by something else and repeated.
    """
    first, _ = measured(engine())
    begins = first.repeats[0].trials + 1
    spoils = spoilt(code, *range(begins, begins + 3))
    spoils |= spoilt("link_changed", begins + 3)
    result, recording = measured(engine(troubles=spoils))
    damage = second(result)
    assert recording.records[-1].result.verdict.kind != "invalid"
    assert damage.value is not None
    assert not damage.exhausted
    assert (damage.bound, damage.bound_cause) == ("lower", cause)
    assert damage.verdict == ("pass" if cause else "invalid")
    told = {reason.code for reason in damage.reasons}
    assert told == (set() if cause else {"unstable", code})


def test_loss_for_want_of_the_devices_cpu_is_not_taken_for_the_devices() -> None:
    """Damage decides the first judgement; what else is missing, the second one."""
    dut = engine(limit_fps=CLEAN * 2)
    recording = Recording(dut, device=FakeWatch(10**9, trials=1))
    record = recording.runner.run(Ask(cell(), 13_200))
    assert record.result.verdict.kind == "fail"
    assert judged_whole(record) == "invalid"
    again = recording.runner.run(Ask(cell(), 13_200))
    assert judged_whole(again) == "fail"


def test_loss_for_want_of_cpu_counts_when_repeating_has_not_helped() -> None:
    recording = Recording(engine(), device=FakeWatch(10**9))
    keys = {"resolution": "5%", "search": "classic"}
    result = measure_throughput(recording.runner, cell(**keys), MAX)
    damage = second(result)
    assert damage.value is not None
    assert 0.95 * LIMIT <= damage.value <= LIMIT
    assert (damage.verdict, damage.bound) == ("pass", None)
    own = [r.load_fps for r in recording.records if r.role == "damage"]
    assert {own.count(fps) for fps in own if fps > LIMIT} == {3}


@pytest.mark.parametrize("late", [0, 5])
def test_loss_in_the_shadow_of_a_stall_is_not_taken_for_the_devices(late: int) -> None:
    recording = Recording(engine(limit_fps=CLEAN * 2))
    record = recording.runner.run(Ask(cell(), 13_200))
    assert judged_whole(record) == "fail"
    directions = [
        direction.model_copy(
            update={
                "streams": [
                    stream.model_copy(
                        update={
                            "lost": stream.lost - late,
                            "lost_in_shadow": stream.lost - late,
                            "late": late,
                            "late_in_shadow": late,
                        }
                    )
                    for stream in direction.streams
                ]
            }
        )
        for direction in record.result.directions
    ]
    result = record.result.model_copy(update={"directions": directions})
    assert judged_whole(record.model_copy(update={"result": result})) == "invalid"


def test_what_else_failed_a_trial_fails_it_whatever_was_damaged() -> None:
    recording = Recording(engine())
    record = recording.runner.run(Ask(cell(), 20_000))
    assert judged_whole(record) == "pass"
    verdict = record.result.verdict
    reason = verdict.reasons[0].model_copy(update={"code": "duplicates"})
    worse = verdict.model_copy(update={"reasons": [*verdict.reasons, reason]})
    result = record.result.model_copy(update={"verdict": worse})
    assert judged_whole(record.model_copy(update={"result": result})) == "fail"


def test_the_sentence_tells_both_figures_the_share_and_the_cause() -> None:
    result, _ = measured(engine(), direction="forward")
    said = damage_sentence(result, "at least ")
    assert said.startswith(f"0 damaged: {result.median:,.0f} fps; damaged frames")
    assert (
        f"counted as received: {second(result).value:,.0f} fps; forward, 1 in" in said
    )
    assert "without a UDP checksum" in said
    assert said.endswith("IPv6 hosts drop such frames (RFC 8200 8.1)")
    assert not second(result).quantity.startswith("throughput")


@pytest.mark.parametrize(
    ("first", "value", "told"),
    [
        ({"median": 900}, 2000, "0 damaged: 900 fps; {}: 2,000 fps; forward,"),
        (
            {"median": 900, "bound": "lower"},
            2000,
            "0 damaged: at least 900 fps; {}: 2,000 fps; forward,",
        ),
        ({"median": None}, None, "0 damaged: none; {}: not measured; forward,"),
    ],
)
def test_of_either_figure_it_is_told_whether_there_is_one_and_a_bound(
    first: dict[str, object], value: float | None, told: str
) -> None:
    result, _ = measured(engine(), direction="forward")
    damage = second(result).model_copy(update={"value": value})
    cell = result.model_copy(update={**first, "damage": damage})
    said = damage_sentence(cell, "at least ")
    assert said.startswith(told.format(RECEIVED))
    damage = damage.model_copy(update={"bound": "lower"})
    bounded = cell.model_copy(update={"damage": damage})
    figure = received_figure(bounded, "at least ")
    assert figure == ("not measured" if value is None else "at least 2,000 fps")
    assert f"{RECEIVED}: {figure};" in damage_sentence(bounded, "at least ")


def test_without_a_second_figure_nothing_is_said_of_damage() -> None:
    result, _ = measured(engine(limit_fps=5_000))
    assert damage_sentence(result, "") == received_figure(result, "") == ""
    assert kinds_words(None) == kinds_words(Damage()) == ""
    some = Damage(truncated=1000, checksum_zero=3)
    assert kinds_words(some) == "3 without a UDP checksum, 1,000 truncated"


@pytest.mark.parametrize(
    ("sent", "told"),
    [(200, "1 in 2"), (199, "1 in 2"), (150, "1 in 1.5"), (1_234_567, "1 in 12,346")],
)
def test_the_share_is_not_told_as_more_than_it_is(sent: int, told: str) -> None:
    result, _ = measured(engine(), direction="forward")
    hundred = DamagedFrames(
        direction="forward", sent=sent, damaged=Damage(checksum_wrong=100)
    )
    damage = second(result).model_copy(update={"frames": [hundred]})
    said = damage_sentence(result.model_copy(update={"damage": damage}), "")
    share = (
        f"forward, {told}: 100 of {sent:,} frames damaged (100 with a wrong checksum"
    )
    assert share in said


def test_the_share_is_told_for_each_direction_that_damages() -> None:
    result, _ = measured(engine())
    frames = second(result).frames
    assert [each.direction for each in frames] == ["forward", "reverse"]
    for each in frames:
        assert each.damaged == Damage(checksum_zero=each.damaged.total)
        assert each.sent // each.damaged.total >= ONE_IN


def test_what_was_damaged_is_counted_up_to_that_rate() -> None:
    recording = Recording(engine())
    fast, at, slow = (recording.runner.run(Ask(cell(), n * 10_000)) for n in (3, 2, 1))
    (forward, _) = damaged_frames([fast, at, slow], 20_000)
    assert (forward.sent, forward.damaged.checksum_zero) == (300_000, 3 + 1)
    (forward, _) = damaged_frames([fast, at, slow], None)
    assert (forward.sent, forward.damaged.checksum_zero) == (600_000, 4 + 3 + 1)


def test_the_share_is_of_trials_up_to_the_second_figure() -> None:
    result, recording = measured(engine())
    value = second(result).value
    assert value is not None
    sent = sum(
        record.result.directions[0].streams[0].sent
        for record in recording.records
        if record.load_fps <= value
    )
    assert second(result).frames[0].sent <= sent


def test_damage_above_the_second_figure_is_told_as_well() -> None:
    """What made the trials fail is damage; then they are spoilt."""
    first, _ = measured(engine())
    begins = first.repeats[0].trials + 1
    spoils = spoilt("link_changed", *range(begins, 500))
    result, _ = measured(engine(troubles=spoils))
    assert second(result).frames
    assert all(each.damaged.checksum_zero for each in second(result).frames)


def test_a_run_is_stored_and_resumed_in_the_middle_of_it(tmp_path: Path) -> None:
    what = campaign(spec(resolution="1%", repeats=2), spec(ip=[6], resolution="5%"))
    whole = Run(tmp_path / "whole", engine())(what)
    roles = [trial.role for trial in whole.trials]
    assert load_results(tmp_path / "whole") == whole
    for last in (roles.index("damage"), roles.index("damage") + 2):
        path = tmp_path / str(last)
        with pytest.raises(KeyboardInterrupt):
            Run(path, engine(troubles={last + 1: KeyboardInterrupt()}))(what)
        resumed = Run(path, engine()).resume(what)
        assert resumed.cells == whole.cells
