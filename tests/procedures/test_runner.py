from __future__ import annotations

import pytest
from planning import TESTBED, Recording, cell

from dutperf.engine.fake import FakeEngine, perfect, step
from dutperf.engine.protocol import TrialRequest, TrialResult
from dutperf.errors import SetupError
from dutperf.procedures import runner as runner_module
from dutperf.procedures.events import TrialFinished, TrialMoved, TrialStarted
from dutperf.procedures.runner import TrialRunner
from dutperf.results import TrialRecord


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
        runner.run(cell(), 1000)
    assert order == ["measure 1", "journal 1", "measure 2", "journal 2"]


def test_the_dut_restabilises_between_trials_and_not_before_the_first() -> None:
    recording = Recording(FakeEngine(perfect()))
    for _ in range(3):
        recording.runner.run(cell(restabilise_wait_s=4), 1000)
    assert recording.waits == [0, 4, 4]


def test_a_record_holds_what_was_asked_and_what_came_out() -> None:
    recording = Recording(FakeEngine(step(500)))
    record = recording.runner.run(cell(), 1000, repeat=3)
    assert (record.number, record.repeat, record.attempt) == (1, 3, 1)
    assert record.load_fps == record.request.directions[0].rate_fps == 1000
    assert record.result.verdict.kind == "fail"
    assert recording.records == [record]


def test_an_invalid_trial_run_again_is_a_second_attempt() -> None:
    engine = FakeEngine(perfect(), troubles={1: "link_changed", 3: "link_changed"})
    recording = Recording(engine)
    for rate_fps in (1000, 1000, 1000, 2000):
        recording.runner.run(cell(), rate_fps)
    assert [record.attempt for record in recording.records] == [1, 2, 1, 1]


def test_trial_ids_start_again_before_they_do_not_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner_module, "_TRIAL_IDS", 2)
    recording = Recording(FakeEngine(perfect()))
    for _ in range(3):
        recording.runner.run(cell(), 1000)
    assert [trial.trial_id for trial in recording.engine.trials] == [1, 2, 1]
    assert [record.number for record in recording.records] == [1, 2, 3]


def test_a_trial_is_announced_watched_and_reported() -> None:
    recording = Recording(FakeEngine(perfect()))
    recording.runner.run(cell(trial_duration_s=1), 1000)
    kinds = [type(event) for event in recording.events]
    assert kinds == [TrialStarted, TrialMoved, TrialFinished]
    started = recording.events[0]
    assert isinstance(started, TrialStarted)
    assert (started.number, started.rate_fps, started.planned_s) == (1, 1000, 5)


def test_a_deleted_lab_is_named_after_a_trial_that_it_spoilt() -> None:
    engine = FakeEngine(perfect(), troubles={1: "link_down"})
    recording = Recording(engine, dut_alive=False)
    with pytest.raises(SetupError, match=r"device under test has gone.*trial 1"):
        recording.runner.run(cell(), 1000)
    assert len(recording.records) == 1
