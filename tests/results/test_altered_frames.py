"""What is told of frames that arrived with another TTL, DSCP or payload."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from planning import Run, campaign, spec

from dutperf.protocol.base import DirectionName
from dutperf.protocol.result_messages import Inspected, TrialResult
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import ResultsFile
from dutperf.results.device_words import inspected
from dutperf.simulation.fake_engine import FakeEngine, step

CELLS: list[dict[str, Any]] = [
    {"procedure": "throughput"},
    {"procedure": "frame-loss"},
    {"procedure": "pdv", "rate_fps": 20_000, "repeats": 1},
]


class Altering(FakeEngine):
    """A device that forwards as another, and alters what arrives in ``direction``."""

    def __init__(self, direction: DirectionName, found: Inspected) -> None:
        super().__init__(step(50_000))
        self._direction = direction
        self._found = found

    def measure(self, trial: TrialRequest, *_progress: object) -> TrialResult:
        result = super().measure(trial)
        ways = [
            way.model_copy(
                update={
                    "streams": [
                        stream.model_copy(update={"inspected": self._found})
                        for stream in way.streams
                    ]
                }
            )
            if way.name == self._direction
            else way
            for way in result.directions
        ]
        return result.model_copy(update={"directions": ways})


def run(
    folder: Path, engine: FakeEngine, **keys: object
) -> tuple[ResultsFile, list[str]]:
    results = Run(folder, engine)(campaign(spec(**keys)))
    found = [f for cell in results.cells for f in cell.findings]
    return results, [each.message for each in found if each.kind == "altered"]


ROUTED = Inspected(
    frames=10, ttl=10, dscp=4, payload=1, least_ttl=10, most_ttl=10, other_dscp=46
)


@pytest.mark.parametrize("keys", CELLS)
def test_a_device_that_alters_frames_is_told_and_its_figures_stay(
    tmp_path: Path, keys: dict[str, Any]
) -> None:
    plain, nothing = run(tmp_path / "a", FakeEngine(step(50_000)), **keys)
    results, [message] = run(tmp_path / "b", Altering("forward", ROUTED), **keys)
    assert nothing == []
    [cell], [as_ever] = results.cells, plain.cells
    assert (cell.verdict, cell.median) == (as_ever.verdict, as_ever.median)
    verdicts = [trial.result.verdict for trial in results.trials]
    assert verdicts == [trial.result.verdict for trial in plain.trials]
    frames = 10 * len(results.trials)
    assert message == (
        f"forward: of {frames:,} frames that were inspected {frames:,} had not the TTL "
        "or hop limit of 9 but 10 (10 was sent, less 1 by hops of the testbed), "
        f"{frames * 4 // 10:,} had another DSCP than 0, 46 for example, "
        f"{frames // 10:,} had another payload, though their checksums hold"
    )


def test_a_range_of_ttls_is_told_as_one(tmp_path: Path) -> None:
    found = Inspected(frames=10, ttl=3, least_ttl=7, most_ttl=9)
    _, [message] = run(tmp_path, Altering("reverse", found), procedure="throughput")
    assert message.startswith("reverse: ")
    assert "9 but 7 to 9" in message


def test_both_streams_and_directions_are_counted_apart(tmp_path: Path) -> None:
    mix = {"mix": "90/10", "background_ip": 6}
    results, [message] = run(
        tmp_path,
        Altering("forward", ROUTED),
        procedure="frame-loss",
        ip=[4],
        frame_size=[84],
        traffic=mix,
    )
    assert "; forward background: of " in message
    streams = inspected(results.trials)
    assert [(each.direction, each.name) for each in streams] == [
        ("forward", "foreground"),
        ("forward", "background"),
        ("reverse", "foreground"),
        ("reverse", "background"),
    ]
    assert [bool(each.altered) for each in streams] == [True, True, False, False]
    assert all(each.frames for each in streams)
