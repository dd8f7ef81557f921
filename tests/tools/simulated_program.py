"""``dutperf`` as a program of its own whose engine simulates: for tests that kill it.

    python simulated_program.py run campaign.yaml --output DIR

What happens in a trial depends on the trial's number only: the device is the same one,
whoever asks.
"""

from __future__ import annotations

import contextlib
import sys
import time
from unittest import mock

from dutperf.cli import app, measuring
from dutperf.config import Testbed
from dutperf.engine.measurer import ProgressCallback, ignore_progress
from dutperf.protocol import ReasonCode, TrialRequest, TrialResult
from dutperf.run.engine_session import EngineStarter, Notify
from dutperf.simulation.fake_engine import FakeEngine, step

_TRIAL_S = 0.02
_SPOILT: dict[int, ReasonCode] = dict.fromkeys((2, 3, 9, 17), "link_changed")


class SteadyEngine(FakeEngine):
    """Counts trials by their ids, and takes some time."""

    def measure(
        self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        """Simulate ``trial``."""
        time.sleep(_TRIAL_S)
        self.trials[:] = [trial] * (trial.trial_id - 1)
        return super().measure(trial, on_progress)


def main() -> int:
    """Run one command; returns its exit code."""
    engine = SteadyEngine(step(300_000), troubles=_SPOILT)

    def prepare(_testbed: Testbed, _notify: Notify) -> EngineStarter:
        return lambda _log_path: contextlib.nullcontext(engine)

    with mock.patch.object(measuring, "prepare_engine", prepare):
        return app.run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
