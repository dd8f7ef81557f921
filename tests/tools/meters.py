"""A power meter whose truth is known: watts by the frames that a device forwards."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from planning import TESTBED

from dutperf.config import Testbed
from dutperf.engine.client import ProgressCallback, ignore_progress
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results.power_results import Lasting, Metered, PowerReading
from dutperf.simulation.fake_engine import FakeEngine

S = 10**9
IDLE_W = 40.0
JOULES_PER_FRAME = 10e-6
_T = TypeVar("_T")
_BEGIN_NS = 1_700_000_000 * S


def with_meter(testbed: Testbed, **keys: object) -> Testbed:
    """``testbed`` with a meter, which is none but in its name."""
    given = {"command": ["watts"], "accuracy_percent": 1} | keys
    power = {key: value for key, value in given.items() if value}
    data = testbed.model_dump(exclude_none=True)
    return Testbed.model_validate(data | {"power": power})


METERED = with_meter(TESTBED)


class TimedEngine(FakeEngine):
    """Tells when its trials begin, as the engine does."""

    def measure(
        self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        result = super().measure(trial, on_progress)
        begin_ns = _BEGIN_NS + 1000 * S * trial.trial_id
        return result.model_copy(update={"begin_unix_ns": begin_ns})


def forwarded_fps(result: TrialResult) -> float:
    """All directions, by what came back."""
    return sum(
        d.offered_rate_fps * sum(s.received for s in d.streams) / sent
        for d in result.directions
        if (sent := sum(s.sent for s in d.streams))
    )


def true_watts(fps: float) -> float:
    return IDLE_W + JOULES_PER_FRAME * fps


@dataclass
class SimulatedMeter:
    """Reads ``bias`` times the truth, and noise; before and after a trial far more.

    ``spoils`` changes the readings of the trials that it is told the rate of.
    """

    bias: float = 1.0
    noise_w: float = 0.0
    accuracy_percent: float = 1.0
    averaging_s: float = 0.0
    idle_s: float = 60.0
    counts: bool = False
    spoils: Callable[[float, list[PowerReading]], list[PowerReading]] = (
        lambda _fps, readings: readings
    )

    def beside(self, of: Lasting, act: Callable[[], _T]) -> tuple[_T, Metered]:
        found = act()
        fps, begin_ns, seconds = 0.0, _BEGIN_NS, self.idle_s
        if isinstance(found, TrialResult):
            fps, begin_ns = forwarded_fps(found), found.begin_unix_ns or 0
            seconds = found.directions[0].sending_ns / S
        told = self.reading(of, begin_ns, seconds, true_watts(fps))
        return found, told.model_copy(
            update={"readings": self.spoils(fps, told.readings)}
        )

    def reading(
        self,
        of: Lasting,
        begin_ns: int,
        seconds: float,
        watts: float,
    ) -> Metered:
        """One a second, of a truth that does not change."""
        end_ns = begin_ns + round(seconds * S)
        readings: list[PowerReading] = []
        noise = random.Random(f"{of} {begin_ns}")  # noqa: S311 - of a simulation
        joules = 0.0
        for second in range(-2, int(seconds) + 3):
            at_ns = begin_ns + second * S + S // 3
            during = begin_ns <= at_ns and at_ns + S // 100 <= end_ns
            told = watts * self.bias + noise.gauss(0, self.noise_w)
            told = told if during else 50 * watts
            joules += told
            each = PowerReading(
                asked_ns=at_ns,
                answered_ns=at_ns + S // 100,
                watts=None if self.counts else told,
                joules=joules if self.counts else None,
            )
            readings.append(each)
        return Metered(
            of=of,
            begin_ns=begin_ns,
            end_ns=end_ns,
            clock_set=False,
            meter="simulated",
            accuracy_percent=self.accuracy_percent,
            accuracy_w=0,
            averaging_s=self.averaging_s,
            readings=readings,
        )


def failing(readings: Sequence[PowerReading]) -> list[PowerReading]:
    """From the middle on there is no answer."""
    half = len(readings) // 2
    dead = {"watts": None, "joules": None, "failed": "it ended with exit code 1"}
    return [
        each if place < half else each.model_copy(update=dead)
        for place, each in enumerate(readings)
    ]
