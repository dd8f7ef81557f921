"""The journal of the run that is resumed, as the answer to the first trials.

A run that is resumed asks for the same trials in the same order, as searches are pure.
Those that the journal holds already are answered from it, without a frame or a wait;
the first one that it does not hold is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.procedures.trials import PASSED
from dutperf.protocol.result_messages import VerdictKind
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results.environment import differences, listed
from dutperf.results.trial_record import TrialRecord

_TRIAL_IDS = 65535


class JournalEndsError(Exception):
    """The next trial is not in the journal, and nothing is there to measure it."""


class Replay:
    """Where in the journal of one testbed a run is; ``finished`` counts beyond its end.

    Args:
        stored: what it holds of the testbed, in order.
        elsewhere: how many trials of other testbeds it holds.
    """

    def __init__(self, stored: Sequence[TrialRecord] = (), elsewhere: int = 0) -> None:
        self.finished = 0
        self._stored = tuple(stored)
        self._elsewhere = elsewhere

    @property
    def replaying(self) -> bool:
        """Whether the next trial is in the journal already."""
        return self.finished < len(self._stored)

    @property
    def next(self) -> TrialRecord:
        """The next trial, while ``replaying``."""
        return self._stored[self.finished]

    @property
    def next_number(self) -> int:
        """Trials are numbered through all testbeds, in the order of the journal."""
        if self.replaying:
            return self.next.number
        return self._elsewhere + self.finished + 1

    @property
    def next_id(self) -> int:
        """What tells the next trial's frames from those of the ones before it.

        Trials of one testbed are counted, so it does not depend on what is measured
        elsewhere.
        """
        if self.replaying:
            return self.next.request.trial_id
        return self.finished % _TRIAL_IDS + 1

    def take(self, asked: dict[str, Any]) -> TrialRecord:
        """The next one, which must be what is ``asked`` for; it is not counted yet.

        Raises:
            InputError: it is another one.
        """
        record = self.next
        changes = differences(record.model_dump(include=set(asked)), asked)
        if changes:
            raise InputError(
                f"trial {record.number} of the journal is not the one that this run "
                f"would measure:\n{listed(changes, 3)}",
                "the ports, the lab or dutperf have changed since the run began; give "
                "--output with a new directory to start anew",
            )
        return record

    def opened(
        self,
        phase1: Callable[[], TrialRecord],
        goes_on: Collection[VerdictKind] = PASSED,
    ) -> TrialRecord:
        """See ``DeviceTrials``."""
        replayed = self.replaying
        record = phase1()
        while replayed and record.result.verdict.kind in goes_on:
            if self.replaying and not opens(self.next.request):
                break
            replayed = self.replaying
            record = phase1()
        return record

    def can_check(self) -> bool:
        """See ``DeviceTrials``."""
        if self.replaying:
            return self.next.role == "validation"
        return self.finished > len(self._stored)

    def is_of(self, cell: Cell) -> bool:
        """Whether the next trial is in the journal already, and one of ``cell``."""
        return self.replaying and self.next.cell == cell.id


def opens(request: TrialRequest) -> bool:
    """Whether it is phase 1 of a stateful test."""
    return request.learn is not None and not request.learn.keep
