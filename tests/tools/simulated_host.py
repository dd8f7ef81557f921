"""``dutperf`` as a program of its own whose simulated trials take some time.

    python simulated_host.py worker ADDRESS --testbed a.yaml --simulate 300000

The environment may say how long a trial takes, that this dutperf is of another version,
or by how much the clock of its host is wrong:

    DUTPERF_TRIAL_S=0.05   DUTPERF_VERSION=9.9   DUTPERF_AHEAD_S=300
"""

from __future__ import annotations

import os
import sys
import time
from unittest import mock

from dutperf import __version__
from dutperf.cli import app
from dutperf.engine.client import ProgressCallback, ignore_progress
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.remote import messages, worker
from dutperf.simulation.fake_engine import FakeEngine

TRIAL_S = "DUTPERF_TRIAL_S"
VERSION = "DUTPERF_VERSION"
AHEAD_S = "DUTPERF_AHEAD_S"


class SlowEngine(FakeEngine):
    """Each trial takes as long as the environment says."""

    def measure(
        self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        time.sleep(float(os.environ.get(TRIAL_S, "0")))
        return super().measure(trial, on_progress)


class _WrongClock:
    """``time`` of a host whose clock is wrong."""

    monotonic = staticmethod(time.monotonic)
    monotonic_ns = staticmethod(time.monotonic_ns)

    @staticmethod
    def time() -> float:
        return time.time() + float(os.environ.get(AHEAD_S, "0"))


def main() -> int:
    """Run one command; returns its exit code."""
    fields = messages.Claim.model_fields
    version = os.environ.get(VERSION, __version__)
    fields["dutperf_version"].default = version
    messages.Claim.model_rebuild(force=True)
    with (
        mock.patch.object(worker, "FakeEngine", SlowEngine),
        mock.patch.object(worker, "time", _WrongClock),
    ):
        return app.run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
