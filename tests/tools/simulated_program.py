"""``dutperf`` as a program of its own whose engine simulates: for tests that kill it.

    python simulated_program.py run campaign.yaml --output DIR

What happens in a trial depends on the trial's number only: the device is the same one,
whoever asks. The environment may name a moment of the run and what happens to the
program then, a signal or an error of the file system:

    DUTPERF_FAULT=results:SIGKILL      DUTPERF_FAULT=journal:ENOSPC

Or by how many seconds the time of day jumps whenever it is asked for, the first number
after the first time, then around: DUTPERF_JUMPS=86400,-86400
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Self
from unittest import mock

from dutperf.api import places
from dutperf.cli import app
from dutperf.config import Testbed
from dutperf.engine.client import ProgressCallback, ignore_progress
from dutperf.protocol.port_messages import NeighboursParams, NeighboursResult
from dutperf.protocol.result_messages import ReasonCode, TrialResult
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import directory, environment, storage
from dutperf.run import trial_runner
from dutperf.run.engine_session import EngineStarter, Notify
from dutperf.simulation.fake_engine import FakeEngine, step

PLACE = """\
testbed:
  name: simulated
  left:
    port: {interface: left}
    ipv4: {address: 198.18.0.2, gateway: 198.18.0.1}
  right:
    port: {interface: right}
    ipv4: {address: 198.19.0.2, gateway: 198.19.0.1}
"""
"""Of a campaign file: a testbed that the simulation has."""
FAULT_VARIABLE = "DUTPERF_FAULT"
JUMPS_VARIABLE = "DUTPERF_JUMPS"
FILES = {
    "campaign": ".campaign.yaml.new",
    "environment": ".environment.json.new",
    "journal": "journal.jsonl",
    "results": ".results.json.new",
    "report": ".report.html.new",
}
"""Moments in the middle of writing a file: half of what is to be written is there."""
STEPS = ("engine start", "next hops", "sending", "sent", "engine end")
"""Moments between two steps of the run."""
FAULTY_TRIAL = 7
"""In which trial what happens in every trial goes wrong, and after which the rest."""
_TRIAL_S = 0.02
_SPOILT: dict[int, ReasonCode] = dict.fromkeys((2, 3, 9, 17), "link_changed")


class _Fault:
    """What happens at one moment; once."""

    def __init__(self, told: str) -> None:
        self.moment, _, self._what = told.partition(":")
        self._lines = 0
        self._write_all = storage._write_all

    def at(self, moment: str) -> None:
        """It happens, if this is the moment."""
        if moment == self.moment:
            self._strike()

    def writing(self, descriptor: int, data: bytes) -> None:
        """In place of the function that writes a file."""
        name = Path(f"/proc/self/fd/{descriptor}").readlink().name
        name = re.sub(r"\.[0-9a-f]{16}\.new$", ".new", name)
        if name == FILES.get(self.moment) and self._is_due(name):
            half = len(data) // 2
            self._write_all(descriptor, data[:half])
            self._strike()
            data = data[half:]
        self._write_all(descriptor, data)

    def _is_due(self, name: str) -> bool:
        if name != FILES["journal"]:
            return True
        self._lines += 1
        return self._lines > FAULTY_TRIAL

    def _strike(self) -> None:
        self.moment = ""
        if self._what.startswith("SIG"):
            os.kill(os.getpid(), signal.Signals[self._what])
        elif self._what == "MemoryError":
            raise MemoryError
        else:
            number = getattr(errno, self._what)
            raise OSError(number, os.strerror(number))


class _JumpingClock(datetime):
    """``datetime``, of a machine whose clock is set again and again."""

    jumps: Iterator[int]
    ahead_s = 0

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        """Jump before the next time."""
        told = cls.fromtimestamp(time.time() + cls.ahead_s, tz)
        cls.ahead_s += next(cls.jumps)
        return told


class SteadyEngine(FakeEngine):
    """Counts trials by their ids, and takes some time."""

    def __init__(self, fault: _Fault) -> None:
        super().__init__(step(300_000), troubles=_SPOILT)
        self._fault = fault

    def set_neighbours(self, params: NeighboursParams) -> NeighboursResult:
        """Resolve all."""
        self._fault.at("next hops")
        return super().set_neighbours(params)

    def measure(
        self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        """Simulate ``trial``."""
        is_faulty = trial.trial_id == FAULTY_TRIAL
        if is_faulty:
            self._fault.at("sending")
        time.sleep(_TRIAL_S)
        self.trials[:] = [trial] * (trial.trial_id - 1)
        result = super().measure(trial, on_progress)
        if is_faulty:
            self._fault.at("sent")
        return result


@contextlib.contextmanager
def simulated() -> Iterator[None]:
    """Within, dutperf's engine is a simulated one, and what is asked for goes wrong."""
    fault = _Fault(os.environ.get(FAULT_VARIABLE, ""))

    @contextlib.contextmanager
    def start(_log_path: Path) -> Iterator[SteadyEngine]:
        fault.at("engine start")
        yield SteadyEngine(fault)
        fault.at("engine end")

    def prepare(_testbed: Testbed, _notify: Notify) -> EngineStarter:
        return start

    jumps = map(int, os.environ.get(JUMPS_VARIABLE, "0").split(","))
    _JumpingClock.jumps = itertools.cycle([*jumps])
    with (
        mock.patch.multiple(trial_runner, datetime=_JumpingClock),
        mock.patch.multiple(directory, datetime=_JumpingClock),
        mock.patch.multiple(environment, datetime=_JumpingClock),
        mock.patch.object(places, "prepare_engine", prepare),
        mock.patch.object(storage, "_write_all", fault.writing),
    ):
        yield


def main() -> int:
    """Run one command; returns its exit code."""
    with simulated():
        return app.run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
