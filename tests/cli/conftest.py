"""For all tests of commands: a simulated device needs no rest between trials."""

from __future__ import annotations

from functools import partial

import pytest

from dutperf.api import places
from dutperf.bench import benches
from dutperf.run.local_executor import Surroundings


@pytest.fixture(autouse=True)
def _no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    patient = partial(Surroundings, sleep=lambda _seconds: None)
    for module in (places, benches):
        monkeypatch.setattr(module, "Surroundings", patient)
