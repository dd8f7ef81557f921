from __future__ import annotations

import pytest
from planning import TESTBED, Recording, cell, spoilt

from dutperf import run
from dutperf.errors import SetupError
from dutperf.procedures.events import TrialFinished, TrialMoved, TrialStarted
from dutperf.procedures.trials import Ask
from dutperf.protocol.result_messages import ReasonCode, TrialResult
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import TrialRecord
from dutperf.run.trial_runner import TrialRunner
from dutperf.simulation.fake_engine import FakeEngine, every, perfect, step


def test_a_trial_is_in_the_journal_before_the_next_one_starts() -> None:
    order: list[str] = []

    class Watched(FakeEngine):
        def measure(self, trial: TrialRequest, *_progress: object) -> TrialResult:
            order.append(f"measure {trial.trial_id}")
            return super().measure(trial)

    def journal(record: TrialRecord) -> None:
        order.append(f"journal {record.number}")

    runner = TrialRunner(
        Watched(perfect()),
        TESTBED,
        journal=journal,
        on_event=lambda _event: None,
        sleep=lambda _seconds: None,
    )
    for _ in range(2):
        runner.run(Ask(cell(), 1000))
    assert order == ["measure 1", "journal 1", "measure 2", "journal 2"]


def test_the_dut_restabilises_between_trials_and_not_before_the_first() -> None:
    recording = Recording(FakeEngine(perfect()))
    for _ in range(3):
        recording.runner.run(Ask(cell(restabilise_wait_s=4), 1000))
    assert recording.waits == [0, 4, 4]


@pytest.mark.parametrize(
    ("code", "waits"),
    [
        ("sender_burst", [0, 5, 6, 7, 9, 9]),
        ("receiver_overflow", [0, 5, 5, 5, 5, 5]),
    ],
)
def test_what_comes_and_goes_is_waited_for_longer_and_longer(
    code: ReasonCode, waits: list[float]
) -> None:
    recording = Recording(FakeEngine(perfect(), troubles=spoilt(code, *range(1, 9))))
    for _ in waits:
        recording.runner.run(Ask(cell(restabilise_wait_s=5), 1000))
    assert recording.waits == waits


def test_a_record_holds_what_was_asked_and_what_came_out() -> None:
    recording = Recording(FakeEngine(step(500)))
    record = recording.runner.run(Ask(cell(), 1000, repeat=3))
    assert (record.number, record.repeat, record.attempt) == (1, 3, 1)
    assert record.load_fps == record.request.directions[0].rate_fps == 1000
    assert record.result.verdict.kind == "fail"
    assert recording.records == [record]


def test_an_invalid_trial_run_again_is_a_second_attempt() -> None:
    engine = FakeEngine(perfect(), troubles={1: "link_changed", 3: "link_changed"})
    recording = Recording(engine)
    for rate_fps in (1000, 1000, 1000, 2000):
        recording.runner.run(Ask(cell(), rate_fps))
    assert [record.attempt for record in recording.records] == [1, 2, 1, 1]


def test_trial_ids_start_again_before_they_do_not_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run, "_TRIAL_IDS", 2)
    recording = Recording(FakeEngine(perfect()))
    for _ in range(3):
        recording.runner.run(Ask(cell(), 1000))
    assert [trial.trial_id for trial in recording.engine.trials] == [1, 2, 1]
    assert [record.number for record in recording.records] == [1, 2, 3]


def test_a_trial_is_announced_watched_and_reported() -> None:
    recording = Recording(FakeEngine(perfect()))
    recording.runner.run(Ask(cell(trial_duration_s=1), 1000))
    kinds = [type(event) for event in recording.events]
    assert kinds == [TrialStarted, TrialMoved, TrialFinished]
    started = recording.events[0]
    assert isinstance(started, TrialStarted)
    assert (started.number, started.rate_fps, started.planned_s) == (1, 1000, 5)


def test_a_deleted_lab_is_named_after_a_trial_that_it_spoilt() -> None:
    engine = FakeEngine(perfect(), troubles={1: "link_down"})
    recording = Recording(engine, dut_alive=False)
    with pytest.raises(SetupError, match=r"device under test has gone.*trial 1"):
        recording.runner.run(Ask(cell(), 1000))
    assert len(recording.records) == 1


def test_a_trial_that_was_stopped_in_error_is_measured_in_full() -> None:
    """All of its frames come back, some after a second: they seem lost."""
    recording = Recording(FakeEngine(perfect(), delays=every(10, 1_000_000_000)))
    for rate_fps in (1000, 1000, 2000, 1000):
        recording.runner.run(Ask(cell(), rate_fps, stop_when_lost=True))
    told = [(r.attempt, r.request.stop_when_lost) for r in recording.records]
    assert told == [(1, True), (2, False), (1, True), (1, True)]
    kinds = [r.result.verdict.kind for r in recording.records]
    assert kinds == ["invalid", "pass", "invalid", "invalid"]


def test_once_measured_in_full_it_stays_so_while_it_is_invalid() -> None:
    engine = FakeEngine(
        perfect(), delays=every(10, 1_000_000_000), troubles={2: "link_changed"}
    )
    recording = Recording(engine)
    for _ in range(3):
        recording.runner.run(Ask(cell(), 1000, stop_when_lost=True))
    asked = [record.request.stop_when_lost for record in recording.records]
    assert asked == [True, False, False]
    assert recording.records[-1].result.verdict.kind == "pass"


def test_a_trial_that_another_trouble_spoilt_may_be_stopped_again() -> None:
    recording = Recording(FakeEngine(perfect(), troubles={1: "link_changed"}))
    for _ in range(2):
        recording.runner.run(Ask(cell(), 1000, stop_when_lost=True))
    assert all(record.request.stop_when_lost for record in recording.records)


def test_a_resumed_run_asks_for_the_same_repetition_in_full() -> None:
    engine = FakeEngine(perfect(), delays=every(10, 1_000_000_000))
    first = Recording(engine)
    for _ in range(2):
        first.runner.run(Ask(cell(), 1000, stop_when_lost=True))
    resumed = TrialRunner(
        engine,
        TESTBED,
        journal=lambda _record: None,
        on_event=lambda _event: None,
        sleep=lambda _seconds: None,
        stored=first.records,
    )
    again = [resumed.run(Ask(cell(), 1000, stop_when_lost=True)) for _ in range(2)]
    assert again == first.records
