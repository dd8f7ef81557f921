"""A run of back-to-back frames on a simulated device whose buffer is known."""

from __future__ import annotations

import tempfile
from pathlib import Path

from planning import Run, campaign, spec

from dutperf.model.specs import ProcedureSpec
from dutperf.results import ResultsFile
from dutperf.simulation.fake_engine import FakeEngine, buffered, step

QUEUE = 999
SERVICE_FPS = 200_000


def burst_results() -> ResultsFile:
    """A throughput of 200,000 fps, and bursts at 1,000,000 fps in two repeats."""
    return _results(
        spec(procedure="throughput", trial_duration_s=10),
        spec(procedure="back-to-back", repeats=2),
    )


def bursts_and_a_group() -> ResultsFile:
    """The same, a throughput of frames for a multicast group, and connections."""
    return _results(
        spec(procedure="throughput", trial_duration_s=10),
        spec(procedure="back-to-back", repeats=2),
        spec(procedure="multicast-throughput", trial_duration_s=10),
        spec(procedure="tcp-connection-rate", trial_duration_s=1),
    )


def connections_alone() -> ResultsFile:
    """A TCP connection rate of 9,000 a second, in short trials."""
    what = campaign(spec(procedure="tcp-connection-rate", trial_duration_s=1))
    with tempfile.TemporaryDirectory() as directory:
        return Run(Path(directory) / "run", FakeEngine(step(9000)))(what)


def bursts_of_flows() -> ResultsFile:
    """The same bursts as one flow, and spread over four."""
    return _results(
        spec(procedure="throughput", trial_duration_s=10, flows=[1, 4]),
        spec(procedure="back-to-back", repeats=2, flows=[1, 4]),
    )


def _results(*procedures: ProcedureSpec) -> ResultsFile:
    what = campaign(*procedures)
    engine = FakeEngine(buffered(QUEUE, SERVICE_FPS))
    with tempfile.TemporaryDirectory() as directory:
        return Run(Path(directory) / "run", engine)(what)
