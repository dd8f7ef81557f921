"""The device's own count of connections beside what the tester believes.

All frames of phase 1 arrived, so all connections should be there. A device that counts
fewer has forgotten some already, or forwards without remembering: what RFC 9693 4.6
validates is seen at once. Where no hook counts, nothing is asked.
"""

from __future__ import annotations

import re

from dutperf.config.stateful_keys import Stateful
from dutperf.procedures.events import Notice
from dutperf.procedures.trials import DeviceTrials
from dutperf.protocol import TrialResult
from dutperf.results.trial_record import HookRun, TrialRecord

_TOLERANCE = 0.01
"""Of the connections: what a device may have beside them, or already have lost."""


def number_in(run: HookRun) -> int | None:
    """The first number that a hook printed."""
    found = re.search(r"[0-9]+", run.output)
    return int(found.group()) if found else None


def agrees(counted: int, connections: int) -> bool:
    """Whether a device that counts so many may have just these connections."""
    return abs(counted - connections) <= _TOLERANCE * connections


class Counting:
    """Asks for the device's count after phase 1; tells once where it is another one."""

    def __init__(self, runner: DeviceTrials) -> None:
        self._runner = runner
        self._told = False

    def ask(self, result: TrialResult) -> list[HookRun]:
        """For ``Trials.run``, as what is done right after a trial."""
        hook = self._runner.hooks.table_count
        if hook is None or result.verdict.kind != "pass":
            return []
        return self._runner.run_hooks([hook], "table_count")

    def compare(self, record: TrialRecord, stateful: Stateful) -> None:
        """Tell whoever watches of a count that is not that of the connections."""
        asked = [run for run in record.hooks if run.moment == "table_count"]
        counted = number_in(asked[0]) if asked else None
        if counted is None or self._told or agrees(counted, stateful.connections):
            return
        if record.earlier and counted >= stateful.connections:
            return  # those of earlier tests are known to be there
        self._told = True
        self._runner.on_event(
            Notice(
                f"trial {record.number}: {stateful.connections:,} connections were "
                f"opened, but the device counts {counted:,} right after: it has "
                "forgotten some, or never remembered them"
                if counted < stateful.connections
                else f"trial {record.number}: the device counts {counted:,} "
                f"connections, of which this test opened {stateful.connections:,}: "
                "its table was not empty"
            )
        )
