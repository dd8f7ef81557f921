"""Results of streams with frames beside them, on simulated devices."""

from __future__ import annotations

from typing import Any

import pytest
from planning import TESTBED, Recording, cell

from dutperf.model.cell import Cell
from dutperf.procedures.cell_results import with_beside
from dutperf.procedures.max_rate import MaxRate
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import CellResult
from dutperf.results.words import beside_sentence
from dutperf.run.local_executor import measure_cell
from dutperf.run.trial_request import trial_request
from dutperf.simulation.fake_engine import FakeEngine, perfect, step

LIMIT = MaxRate(20_000, "media")
KEYS: dict[str, Any] = {
    "trial_duration_s": 1,
    "resolution": "1%",
    "max_rate_fps": LIMIT.rate_fps,
}


def broadcast(**keys: Any) -> Cell:  # noqa: ANN401 - YAML
    return cell(**KEYS | {"traffic": {"broadcast_percent": 1}} | keys)


def measured(engine: FakeEngine, asked: Cell) -> tuple[CellResult, Recording]:
    recording = Recording(engine)
    result = measure_cell(recording.runner, asked, LIMIT)
    return with_beside(result, asked, recording.records), recording


def request(asked: Cell, **keys: Any) -> TrialRequest:  # noqa: ANN401 - of a request
    made = trial_request(TESTBED, asked, 10_000, 1)
    return made.model_copy(update=keys)


def test_a_trial_passes_if_the_stream_arrives() -> None:
    result = FakeEngine(perfect()).measure(request(broadcast()))
    assert result.verdict.kind == "pass"
    for way in result.directions:
        (stream,) = way.streams
        assert (stream.sent, stream.received) == (9900, 9900)
        assert way.beside
        assert (way.beside.intended, way.beside.sent, way.beside.received) == (
            100,
            100,
            0,
        )


def losing(last: int) -> FakeEngine:
    """A device that loses so many frames at the end of each direction."""
    return FakeEngine(lambda _rate_fps, frames: frames - last)


@pytest.mark.parametrize(
    ("last", "lost", "kind"), [(100, 99, "pass"), (101, 100, "fail")]
)
def test_what_is_tolerated_is_a_share_of_the_stream(
    last: int, lost: int, kind: str
) -> None:
    """1 % of 9,900 frames: 99, and not 100; one in a hundred is beside it."""
    asked = request(broadcast(), loss_tolerance_ppb=10**7)
    result = losing(last).measure(asked)
    assert {way.streams[0].lost for way in result.directions} == {lost}
    assert result.verdict.kind == kind


def test_a_trial_ends_early_for_the_streams_losses_alone() -> None:
    asked = trial_request(TESTBED, broadcast(), 10_000, 1, 5, stop_when_lost=True)
    assert not FakeEngine(perfect()).measure(asked).ended_early
    result = FakeEngine(step(9_000)).measure(asked)
    assert result.ended_early
    assert result.verdict.kind == "fail"


def test_the_throughput_is_of_the_load_with_both() -> None:
    result, recording = measured(FakeEngine(step(5_000)), broadcast())
    assert result.median == pytest.approx(5_000, rel=0.02)
    assert result.quantity.endswith("1 % broadcast frames in the load (RFC 2544 11.1)")
    assert result.parameters["beside"] == "1 % broadcast frames"
    forward, reverse = result.beside
    trials = [r.result for r in recording.records if r.role == "trial"]
    passed = [result for result in trials if result.verdict.kind == "pass"]
    sent = [d.beside.sent for r in passed for d in r.directions[:1] if d.beside]
    assert (forward.direction, forward.sent, forward.received) == (
        "forward",
        sum(sent),
        0,
    )
    assert beside_sentence(result) == (
        f"1 % broadcast frames beside the stream: {2 * sum(sent):,} sent, none came"
    )
    assert reverse.sent == forward.sent


def test_hop_by_hop_frames_that_a_device_forwards_are_told() -> None:
    asked = cell(
        procedure="frame-loss",
        ip=[6],
        traffic={"hop_by_hop_percent": 50},
        load_percent=[100, 50],
        max_rate_fps=LIMIT.rate_fps,
        trial_duration_s=1,
    )
    result, _ = measured(FakeEngine(perfect()), asked)
    assert "all came" in beside_sentence(result)
    assert [point.loss_percent for point in result.points] == [0, 0]


def test_without_them_nothing_is_said() -> None:
    result, _ = measured(FakeEngine(perfect()), cell(**KEYS))
    assert result.beside == []
    assert beside_sentence(result) == ""
    assert "beside" not in result.parameters
