"""A worker without hardware: its devices are simulated, and no frame is sent."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from dutperf.config import PlannedTestbed, Testbed
from dutperf.engine.client import ProgressCallback, ignore_progress
from dutperf.protocol import TrialRequest, TrialResult
from dutperf.routing.speaker import no_speaker
from dutperf.run.engine_session import EngineStarter, Notify
from dutperf.run.local_executor import Surroundings, no_passport
from dutperf.simulation.fake_engine import FakeEngine, step


def _forgetful(rate_fps: int) -> FakeEngine:
    """Of tens of thousands of trials it does not remember any."""
    engine = FakeEngine(step(rate_fps))
    measure = engine.measure

    def measured(
        trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        result = measure(trial, on_progress)
        engine.trials.clear()
        return result

    vars(engine)["measure"] = measured
    return engine


def simulating(around: Surroundings, rate_fps: int) -> Surroundings:
    """``around``, with devices that forward up to ``rate_fps`` in each direction.

    No time passes in a trial. What is stored says that it was simulated.
    """

    @contextlib.contextmanager
    def opened(planned: PlannedTestbed) -> Iterator[Testbed]:
        told = f"simulated, forwards {rate_fps:,} fps; no frame was sent"
        yield planned.testbed.model_copy(update={"description": told})

    def prepare(_testbed: Testbed, _notify: Notify) -> EngineStarter:
        return lambda _log: contextlib.nullcontext(_forgetful(rate_fps))

    return replace(
        around,
        open_engine=prepare,
        open_testbed=opened,
        dut_alive=lambda _planned: True,
        watch_dut=lambda _planned: None,
        sleep=lambda _seconds: None,
        openings=lambda _testbed: None,
        examine=lambda _testbed, _ns: (),
        passport=no_passport,
        speaking=no_speaker,
    )
