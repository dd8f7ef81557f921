from __future__ import annotations

import pytest
from planning import TESTBED, Recording, Repeats, cell, spoilt

from dutperf.procedures import conclusions
from dutperf.procedures.events import IntervalNarrowed
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.searching import Evidence, outcome
from dutperf.procedures.throughput import measure_throughput
from dutperf.protocol.result_messages import Reason, ReasonCode, Verdict
from dutperf.results import BoundCause, CellResult
from dutperf.run.trial_request import trial_request
from dutperf.simulation.fake_engine import FakeEngine, noisy, perfect, step

MAX = MaxRate(1_000_000, "media")


def measured(engine: FakeEngine, **keys: object) -> tuple[CellResult, Recording]:
    recording = Recording(engine)
    return measure_throughput(recording.runner, cell(**keys), MAX), recording


def codes(result: CellResult) -> list[str]:
    return [reason.code for reason in result.reasons]


@pytest.mark.parametrize("limit_fps", [1, 999, 333_333, 999_999])
def test_the_result_is_within_the_resolution_below_the_duts_limit(
    limit_fps: int,
) -> None:
    result, _ = measured(FakeEngine(step(limit_fps)), resolution="1")
    assert (result.verdict, result.median) == ("pass", limit_fps)
    assert result.quantity == "throughput per direction (RFC 2544 26.1)"
    assert not result.reasons


def test_a_perfect_dut_is_limited_by_the_media_after_one_trial() -> None:
    result, recording = measured(FakeEngine(perfect()))
    assert (result.verdict, result.median) == ("pass", 1_000_000)
    assert recording.loads_fps == [1_000_000]
    assert "maximum rate of the media" in result.reasons[0].message


def test_a_dut_that_forwards_nothing_fails_with_zero() -> None:
    result, _ = measured(FakeEngine(lambda _rate, _frames: 0))
    assert (result.verdict, result.median, codes(result)) == (
        "fail",
        0,
        ["nothing_passed"],
    )
    told = result.reasons[0]
    assert told.message == "frames were lost at every rate that was tried"
    assert "does the device forward at all?" in (told.hint or "")


@pytest.mark.parametrize(
    ("held_back", "code", "message"),
    [
        (False, "sender_behind", "the tester could offer no rate at which the device"),
        (True, "held_back", "something behind a port stopped the tester"),
    ],
)
def test_without_any_rate_that_was_offered_nothing_is_known(
    held_back: bool, code: str, message: str
) -> None:
    verdict, (reason,) = conclusions.tester_limited(None, Evidence((), held_back))
    assert (verdict, reason.code) == ("invalid", code)
    assert reason.message.startswith(message)


@pytest.mark.parametrize(
    ("held_back", "cause", "code", "deviation"),
    [
        (False, "tester", "sender_behind", "the tester could not offer more"),
        (True, "held_back", "held_back", "something behind a port stopped the tester"),
    ],
)
def test_a_slow_tester_proves_a_lower_bound_only(
    held_back: bool, cause: BoundCause, code: ReasonCode, deviation: str
) -> None:
    result, _ = measured(
        FakeEngine(perfect(), tester_limit_fps=300_000, held_back=held_back)
    )
    assert (result.verdict, result.bound, result.bound_cause) == (
        "pass",
        "lower",
        cause,
    )
    assert result.quantity == "throughput per direction (RFC 2544 26.1)"
    assert result.median is not None
    assert 250_000 <= result.median <= 300_000
    assert codes(result) == [code]
    assert result.deviations[-1].actual == f"a lower bound: {deviation}"
    assert result.spread is not None
    assert "median" in result.spread.lower_bounds


def test_a_tester_that_can_offer_nothing_tells_nothing() -> None:
    behind = spoilt("sender_behind", *range(1, 500))
    engine = FakeEngine(perfect(), troubles=behind, tester_limit_fps=1)
    result, _ = measured(engine)
    assert (result.verdict, result.median, result.bound) == ("invalid", None, None)


@pytest.mark.parametrize(
    ("limit", "cause"),
    [
        (MAX, None),
        (MaxRate(1_000_000, "media", line_rate=False), "nominal"),
        (MaxRate(1_000_000, "set"), "set"),
        (MaxRate(1_000_000, "set", line_rate=True), None),
        (MaxRate(1_000_000, "tester"), "tester"),
    ],
)
def test_the_highest_rate_passes_only_physical_media_end_there(
    limit: MaxRate, cause: str | None
) -> None:
    recording = Recording(FakeEngine(perfect()))
    result = measure_throughput(recording.runner, cell(repeats=2), limit)
    assert (result.verdict, result.bound_cause) == ("pass", cause)
    assert result.bound == ("lower" if cause else None)
    assert {r.bound_cause for r in result.repeats} == {cause}
    assert codes(result) == ["max_rate"]


@pytest.mark.parametrize(
    ("behind_in", "bound"), [(2, None), (3, "lower"), (5, "lower")]
)
def test_of_some_repeats_that_are_bounds_the_median_may_be_exact(
    behind_in: int, bound: str | None
) -> None:
    """The first repeats find 250,000, the last ones what the tester can offer."""
    repeats = Repeats()

    def forward(rate_fps: float, frames: int) -> int:
        fast = repeats.now > 5 - behind_in
        return frames if fast or rate_fps <= 250_000 else 0

    recording = Recording(FakeEngine(forward, tester_limit_fps=300_000))
    repeats.follow(recording)
    asked = cell(repeats=5, resolution="1", search="classic")
    result = measure_throughput(recording.runner, asked, MAX)
    assert [r.bound for r in result.repeats].count("lower") == behind_in
    assert (result.verdict, result.bound) == ("pass", bound)
    assert result.spread is not None
    assert "percentile_99" in result.spread.lower_bounds
    assert result.spread.dispersion_percent is None
    if not bound:
        assert result.median == 250_000


def test_a_slow_tester_does_not_spoil_a_slower_dut() -> None:
    engine = FakeEngine(step(100_000), tester_limit_fps=300_000)
    result, _ = measured(engine, resolution="1")
    assert (result.verdict, result.median) == ("pass", 100_000)


def test_one_invalid_trial_is_repeated_and_changes_nothing() -> None:
    engine = FakeEngine(step(333_333), troubles={2: "receiver_overflow"})
    result, recording = measured(engine, resolution="1")
    assert (result.verdict, result.median) == ("pass", 333_333)
    assert [record.attempt for record in recording.records[:4]] == [1, 1, 2, 1]
    assert result.repeats[0].trials == len(recording.records)


def test_a_tester_that_stays_in_trouble_says_why() -> None:
    troubles = spoilt("receiver_overflow", *range(1, 500))
    result, _ = measured(FakeEngine(perfect(), troubles=troubles))
    assert (result.verdict, result.median) == ("invalid", None)
    assert codes(result) == ["unstable", "receiver_overflow"]


@pytest.mark.parametrize("code", ["sender_burst", "sender_lag", "receiver_lag"])
def test_a_tester_that_is_disturbed_above_what_passed_has_a_lower_bound(
    code: ReasonCode,
) -> None:
    engine = FakeEngine(step(600_000), troubles=spoilt(code, *range(3, 500)))
    result, _ = measured(engine)
    assert (result.verdict, result.median) == ("pass", 500_000)
    assert (result.bound, result.bound_cause) == ("lower", "disturbed")
    assert codes(result) == ["unstable"]
    assert any("disturbed" in point.actual for point in result.deviations)


@pytest.mark.parametrize(
    ("codes", "cause"),
    [
        (["sender_burst"] * 3, "disturbed"),
        (["device_cpu_taken"] * 3, "disturbed"),
        (["receiver_overflow"] * 3, None),
    ],
)
def test_what_bounds_a_search_is_told_though_its_last_trial_passed(
    codes: list[ReasonCode], cause: str | None
) -> None:
    """Three trials at 750,000 fps tell nothing; all below pass."""
    troubles: dict[int, ReasonCode] = dict(enumerate(codes, 3))
    result, recording = measured(FakeEngine(step(760_000), troubles=troubles))
    assert recording.records[-1].result.verdict.kind == "pass"
    assert recording.loads_fps[2:5] == [750_000] * 3
    assert result.bound_cause == cause
    assert result.verdict == ("pass" if cause else "invalid")
    told = {reason.code for reason in result.reasons}
    assert told == ({"unstable"} if cause else {"unstable", "receiver_overflow"})


def test_a_tester_that_is_disturbed_in_every_trial_has_no_result() -> None:
    engine = FakeEngine(perfect(), troubles=spoilt("sender_burst", *range(1, 500)))
    result, _ = measured(engine)
    assert (result.verdict, result.median, result.bound) == ("invalid", None, None)


@pytest.mark.parametrize(
    "code", ["link_down", "flow_control", "neighbour_missing", "nothing_sent"]
)
def test_what_no_rate_changes_ends_the_cell_after_three_attempts(
    code: ReasonCode,
) -> None:
    engine = FakeEngine(step(600_000), troubles=spoilt(code, *range(3, 500)))
    result, recording = measured(engine, repeats=5)
    assert len(recording.records) == 5
    assert (result.verdict, result.median) == ("invalid", 500_000)
    assert (result.bound, result.bound_cause) == ("lower", None)
    assert codes(result) == ["unstable", code]


@pytest.mark.parametrize(
    ("codes_told", "offered_fps"),
    [
        (["sender_behind"], 300),
        (["held_back"], 300),
        (["sender_behind", "receiver_overflow"], 300),
        (["sender_behind", "link_down"], None),
        (["sender_lag"], None),
    ],
)
def test_only_a_sender_on_a_live_link_tells_the_testers_limit(
    codes_told: list[ReasonCode], offered_fps: float | None
) -> None:
    engine = FakeEngine(perfect(), tester_limit_fps=300)
    result = engine.measure(trial_request(TESTBED, cell(), 1000, 1))
    reasons = [Reason(code=code, message="simulated") for code in codes_told]
    verdict = Verdict(kind="invalid", reasons=reasons)
    told = outcome(result.model_copy(update={"verdict": verdict}))
    assert (told.verdict, told.offered_fps) == ("invalid", offered_fps)


def test_the_median_of_a_noisy_dut_is_that_of_its_repeats() -> None:
    result, recording = measured(FakeEngine(noisy(400_000, one_in=20)), repeats=5)
    values = sorted(r.value for r in result.repeats if r.value is not None)
    assert len(values) == 5
    assert result.median == values[2]
    assert {record.repeat for record in recording.records} == {1, 2, 3, 4, 5}


def test_the_interval_left_is_told_after_each_trial() -> None:
    _, recording = measured(FakeEngine(step(1)), resolution="600000")
    told = [e for e in recording.events if isinstance(e, IntervalNarrowed)]
    assert [(e.lower_fps, e.upper_fps) for e in told] == [
        (0, 1_000_000),
        (0, 500_000),
    ]


def test_parameters_say_what_the_maximum_was() -> None:
    result, _ = measured(FakeEngine(perfect()), trial_duration_s=1)
    assert result.parameters["max_load_fps"] == 1_000_000
    assert result.parameters["max_load_is"] == "media"
    assert result.parameters["frame_size"] == 64
    assert [d.rfc for d in result.deviations] == ["RFC 2544 24"]
