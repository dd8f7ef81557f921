"""The one way to measure anything: ``Measurer.measure(trial)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from dutperf.protocol import TrialProgress, TrialRequest, TrialResult

ProgressCallback = Callable[[TrialProgress], None]


def ignore_progress(_progress: TrialProgress) -> None:
    """For callers that do not watch."""


class Measurer(Protocol):
    """Runs one trial. Implemented by the engine client and by ``FakeEngine``."""

    def measure(
        self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        """Run ``trial`` to its end.

        Raises:
            EngineError: the engine refused the trial or died; no result exists.
        """
        ...
