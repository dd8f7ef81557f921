"""Outages (RFC 6201 4): by frames lost and by time stamps, and what was done."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from planning import TESTBED, Recording, cell, with_hooks

from dutperf.config import Testbed
from dutperf.config.testbed import Hook
from dutperf.model.cell import Cell
from dutperf.procedures.events import Notice
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.outage import measure_outage
from dutperf.protocol.result_messages import Reason, TrialResult, Verdict
from dutperf.results import CellResult
from dutperf.results.details import OutageTime
from dutperf.results.trial_record import HookMoment, HookRun
from dutperf.run.trial_request import trial_request
from dutperf.simulation.fake_engine import FakeEngine, absent, step

MS = 1_000_000
SHORT = {
    "procedure": "outage",
    "rate_fps": 1000,
    "trial_duration_s": 3,
    "trigger_after_s": 1,
    "repeats": 2,
}
LOAD = MaxRate(1000, "load")
OUT = absent((1200 * MS, 1500 * MS))


def outage(testbed: Testbed = TESTBED, /, **keys: object) -> Cell:
    return cell(testbed, **SHORT | keys)


def measured(engine: FakeEngine, **keys: object) -> tuple[CellResult, Recording]:
    recording = Recording(engine)
    return measure_outage(recording.runner, outage(**keys), LOAD), recording


def times(result: CellResult) -> list[OutageTime]:
    assert result.outage
    return [t for d in result.outage.directions for t in d.repeats if t]


def test_it_is_told_by_both_methods() -> None:
    result, _ = measured(FakeEngine(step(1), arrivals=OUT))
    assert result.verdict == "pass"
    assert result.median == 300 * MS
    for time in times(result):
        assert time.lost == time.longest_lost == 300
        assert (time.begin_ns, time.end_ns) == (1200 * MS, 1500 * MS)
        # From the last frame before to the first one after.
        assert time.silence_ns == 301 * MS
        assert time.within_ns == pytest.approx(MS, rel=0.01)


def test_frames_lost_elsewhere_are_in_one_method_only() -> None:
    engine = FakeEngine(
        step(1), arrivals=absent((100 * MS, 110 * MS), (1200 * MS, 1500 * MS))
    )
    result, _ = measured(engine)
    assert result.median == 310 * MS
    assert all(time.longest_lost == 300 for time in times(result))
    assert all(time.silence_ns == 301 * MS for time in times(result))


@pytest.mark.parametrize("percent", [1, 10, 12.34, 33.33, 50])
@pytest.mark.parametrize("begin_ms", [1200, 1207, 1213])
def test_frames_beside_the_stream_change_nothing(percent: float, begin_ms: int) -> None:
    """Neither as frames that are lost, nor as some that come meanwhile."""
    keys = {"ip": [6], "frame_size": 128, "traffic": {"hop_by_hop_percent": percent}}
    request = trial_request(TESTBED, outage(**keys), LOAD.rate_fps, 1)
    (way, *_) = request.directions

    def all_but_the_stream(due_ns: Sequence[int]) -> bytearray:
        arrived = absent((begin_ms * MS, (begin_ms + 300) * MS))(due_ns)
        for n in range(len(arrived)):
            arrived[n] |= way.expected_among(n + 1) == way.expected_among(n)
        return arrived

    result, _ = measured(FakeEngine(step(1), arrivals=all_but_the_stream), **keys)
    assert result.verdict == "pass"
    for time in times(result):
        assert abs(time.value_ns - 300 * MS) <= time.within_ns <= 3.001 * MS
        assert time.lost == time.longest_lost
        assert time.silence_ns is not None
        assert time.begin_ns is not None
        assert 300 * MS <= time.silence_ns <= 303 * MS
        assert 0 <= time.begin_ns - begin_ms * MS <= 1 * MS


def test_broadcast_frames_that_never_come_are_no_outage() -> None:
    traffic = {"traffic": {"broadcast_percent": 1}}
    result, _ = measured(FakeEngine(step(1), arrivals=OUT), **traffic)
    assert result.median == pytest.approx(300 * MS)
    assert {(time.lost, time.silence_ns) for time in times(result)} == {(297, 301 * MS)}
    none, _ = measured(FakeEngine(step(10**6)), **traffic)
    assert none.median == 0
    assert [reason.code for reason in none.reasons] == ["no_outage"]


def test_the_average_counts() -> None:
    ends = iter([1400, 1400, 1600, 1600])

    def forward(due_ns: Sequence[int]) -> bytearray:
        return absent((1200 * MS, next(ends) * MS))(due_ns)

    result, _ = measured(FakeEngine(step(1), arrivals=forward))
    assert result.median == 300 * MS


def test_an_outage_that_lasts_to_the_end_is_a_lower_bound() -> None:
    result, _ = measured(FakeEngine(step(1), arrivals=absent((1200 * MS, 9000 * MS))))
    assert result.bound == "lower"
    assert result.median == 1800 * MS
    assert all(time.end_ns is None for time in times(result))
    assert any("had not ended when the trial did" in r.message for r in result.reasons)


def test_without_a_hook_a_person_is_asked_once_in_each_trial() -> None:
    result, recording = measured(FakeEngine(step(1), arrivals=OUT))
    told = [event.text for event in recording.events if isinstance(event, Notice)]
    assert told == ["now: interrupt the device"] * 2
    assert result.outage
    assert result.outage.actions == []


# --- hooks


class Acting:
    """Runs hooks, which take no time and succeed or not."""

    def __init__(self, exit_code: int = 0) -> None:
        self.ran: list[HookMoment] = []
        self._exit_code = exit_code

    def __call__(self, hooks: Sequence[Hook], moment: HookMoment) -> list[HookRun]:
        self.ran += [moment] * len(hooks)
        return [
            HookRun(
                moment=moment,
                command=hook.command,
                host=None,
                attempts=1,
                exit_code=self._exit_code,
                ended="as it was told",
                output="",
                duration_s=0.25,
            )
            for hook in hooks
        ]


RESETTING = with_hooks(during_trial=[{"command": ["reset", "it"]}])


def acted(engine: FakeEngine, hooks: Acting) -> tuple[CellResult, Recording]:
    recording = Recording(engine, testbed=RESETTING, hooks=hooks)
    return measure_outage(recording.runner, outage(RESETTING), LOAD), recording


def test_what_a_hook_did_stands_beside_the_outage() -> None:
    hooks = Acting()
    result, recording = acted(FakeEngine(step(1), arrivals=OUT), hooks)
    assert hooks.ran == ["during_trial"] * 2
    assert result.outage
    assert [a.repeat for a in result.outage.actions] == [1, 2]
    for action in result.outage.actions:
        assert action.command == ["reset", "it"]
        assert action.duration_ns == 250 * MS
    # When, nobody knows of an engine that does not say when its first frame was due.
    assert [a.started_ns for a in result.outage.actions] == [None, None]
    assert [run.moment for run in recording.records[0].hooks] == ["during_trial"]


def test_when_it_began_is_told_since_the_first_frame() -> None:
    engine = FakeEngine(step(1), arrivals=OUT)
    measure = engine.measure
    engine.measure = lambda *given: measure(*given).model_copy(  # type: ignore[method-assign]
        update={"begin_unix_ns": 10**9}
    )
    result, recording = acted(engine, Acting())
    (run,) = recording.records[0].hooks
    assert run.after_s is not None
    assert run.after_s > 1e9
    assert result.outage
    assert result.outage.actions[0].started_ns == round(run.after_s * 1e9)


def test_a_hook_that_resets_nothing_is_told() -> None:
    result, _ = acted(FakeEngine(step(10**6)), Acting())
    assert result.verdict == "pass"
    assert result.median == 0
    (reason,) = result.reasons
    assert reason.code == "no_outage"
    assert "the hook returned, after 250 ms: it reset nothing" in reason.message


def test_a_hook_that_fails_makes_the_trial_invalid() -> None:
    result, _ = acted(FakeEngine(step(1), arrivals=OUT), Acting(exit_code=1))
    assert result.verdict == "invalid"
    assert any(reason.code == "hook_failed" for reason in result.reasons)


# --- links that go down with the device


def with_link(engine: FakeEngine, *codes: str, sent: bool = True) -> FakeEngine:
    """``engine``, whose trials are invalid for these reasons."""
    measure = engine.measure

    def measured_so(*given: object) -> TrialResult:
        result = measure(*given)  # type: ignore[arg-type]
        reasons = [Reason.model_validate({"code": c, "message": c}) for c in codes]
        directions = result.directions
        if not sent:
            directions = [
                d.model_copy(
                    update={
                        "streams": [
                            s.model_copy(update={"intended": s.intended + 1})
                            for s in d.streams
                        ]
                    }
                )
                for d in directions
            ]
        verdict = Verdict(kind="invalid", reasons=reasons)
        return result.model_copy(update={"verdict": verdict, "directions": directions})

    engine.measure = measured_so  # type: ignore[method-assign, assignment]
    return engine


def test_a_link_may_go_down_if_all_frames_were_sent() -> None:
    engine = with_link(FakeEngine(step(1), arrivals=OUT), "link_changed", "frames_lost")
    result, _ = measured(engine)
    assert result.verdict == "pass"
    assert result.median == 300 * MS


@pytest.mark.parametrize(
    ("codes", "sent"),
    [(["link_changed"], False), (["link_changed", "sender_lag"], True)],
)
def test_otherwise_the_trial_is_invalid(codes: list[str], sent: bool) -> None:
    engine = with_link(FakeEngine(step(1), arrivals=OUT), *codes, sent=sent)
    result, _ = measured(engine)
    assert result.verdict == "invalid"
