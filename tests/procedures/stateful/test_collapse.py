"""What a trial's hooks say of a device: whether it works, and was brought back."""

from __future__ import annotations

import pytest
from planning import Recording, cell

from dutperf.procedures.stateful.table_capacity import came_back, collapsed
from dutperf.procedures.trials import Ask
from dutperf.results import HookRun, TrialRecord
from dutperf.results.trial_record import HookMoment
from dutperf.simulation.fake_engine import FakeEngine, perfect

Done = tuple[HookMoment, bool]
ALIVE: Done = ("is_alive", True)
DEAD: Done = ("is_alive", False)
RESTARTED: Done = ("restart", True)


def after(*done: Done) -> TrialRecord:
    """A trial all of whose frames came back, and what its hooks did then."""
    recording = Recording(FakeEngine(perfect()))
    record = recording.runner.run(Ask(cell(), 1000, repeat=1))
    hooks = [
        HookRun(
            moment=moment,
            command=[moment],
            host=None,
            attempts=1,
            exit_code=0 if succeeded else 1,
            ended="ended",
            output="",
            duration_s=0,
        )
        for moment, succeeded in done
    ]
    return record.model_copy(update={"hooks": hooks})


@pytest.mark.parametrize(
    ("done", "has_collapsed"),
    [
        ([], False),
        ([ALIVE], False),
        ([DEAD], True),  # though the frames came back
        ([("after_trial", False)], False),  # another hook says nothing of it
        ([DEAD, RESTARTED, ALIVE], True),
        ([ALIVE, RESTARTED, DEAD], False),  # only the revival failed
    ],
)
def test_what_counts_is_what_the_device_said_before_it_was_revived(
    done: list[Done], has_collapsed: bool
) -> None:
    assert collapsed(after(*done)) == has_collapsed


@pytest.mark.parametrize(
    ("done", "is_back"),
    [
        ([DEAD], False),  # nobody brought it back
        ([DEAD, RESTARTED], True),
        ([DEAD, RESTARTED, ALIVE], True),
        ([DEAD, RESTARTED, DEAD], False),
        ([DEAD, ("restart", False), ALIVE], False),
    ],
)
def test_a_device_is_back_once_all_since_its_revival_succeeded(
    done: list[Done], is_back: bool
) -> None:
    assert came_back(after(*done)) == is_back
