"""A load over time, on crossed rings: a perfect wire."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest
from captures import timed_capture
from livetools import BOTH, MS, Trial, codes, counting, open_rings, running_engine
from readers import tag_of
from scapy.utils import rdpcap

from dutperf.engine.client import Engine
from dutperf.procedures.bursts import captured_steps, with_steps
from dutperf.protocol.methods import PreviewParams
from dutperf.protocol.stream_messages import RateStep
from dutperf.protocol.trial_messages import TrialRequest

pytestmark = counting(__name__)

STEPS = [
    RateStep(rate_fps=20_000, duration_ns=30 * MS),
    RateStep(rate_fps=0, duration_ns=150 * MS),
    RateStep(rate_fps=1_000, duration_ns=40 * MS),
]
FRAMES = 1240
"""Of 280 ms: 600, none, 40, and 600 once more."""
PERIOD_NS = sum(step.duration_ns for step in STEPS)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with running_engine(tmp_path_factory.mktemp("steps")) as it:
        open_rings(it)
        yield it


def request(ms: int = 280) -> TrialRequest:
    trial = Trial(fps=20_000, ms=ms).request()
    record = trial.record.model_copy(update={"series_interval_ns": 10 * MS})
    directions = [d.model_copy(update={"steps": STEPS}) for d in trial.directions]
    changed = trial.model_copy(update={"directions": directions, "record": record})
    return TrialRequest.model_validate(changed.model_dump())


def due_ns(frame: int, *, reverse: bool) -> int:
    """When frame ``frame`` of the steps is due; half an interval later in reverse."""
    rounds, number = divmod(frame, 640)
    begin_ns, rate_fps = 0, 20_000
    if number >= 600:
        begin_ns, number, rate_fps = 180 * MS, number - 600, 1_000
    interval_ns = 10**9 // rate_fps
    offset_ns = interval_ns // 2 if reverse else 0
    return rounds * PERIOD_NS + begin_ns + number * interval_ns + offset_ns


def test_frames_of_each_step_are_due_when_it_says(
    engine: Engine, tmp_path: Path
) -> None:
    path = tmp_path / "frames.pcap"
    params = PreviewParams(trial=request(), count=FRAMES + 5, path=str(path))
    assert engine.preview(params).frames == 2 * FRAMES
    stamps = [tag_of(bytes(packet)).stamp_ns for packet in rdpcap(str(path))]
    assert stamps == [
        due_ns(frame, reverse=reverse)
        for reverse in (False, True)
        for frame in range(FRAMES)
    ]


def test_all_are_sent_and_none_before_its_time(engine: Engine) -> None:
    result = engine.measure(request())
    for direction in result.directions:
        (stream,) = direction.streams
        assert (stream.intended, stream.sent, stream.received) == (FRAMES,) * 3
        assert (stream.longest_loss, stream.last_loss) == (None, None)
        reverse = direction.name == "reverse"
        due = [due_ns(frame, reverse=reverse) for frame in range(FRAMES)]
        for interval, sent in enumerate(accumulate(stream.series.sent[:-1]), 1):
            assert sent <= sum(ns < interval * 10 * MS for ns in due)


def test_the_pause_is_the_longest_silence(engine: Engine) -> None:
    for direction in engine.measure(request()).directions:
        silence = direction.longest_silence
        assert silence is not None
        assert silence.end_ns is not None
        assert silence.end_ns >= due_ns(600, reverse=direction.name == "reverse")
        assert silence.end_ns - silence.begin_ns > 75 * MS


def test_a_load_that_ends_in_a_pause_was_offered(engine: Engine) -> None:
    result = engine.measure(request(ms=170))
    assert "sender_behind" not in codes(result)
    assert [d.streams[0].received for d in result.directions] == [600] * len(BOTH)
    # Waiting for frames that are still on their way is no silence, nor is the pause.
    for direction in result.directions:
        assert direction.longest_silence is not None
        assert direction.longest_silence.end_ns is not None


def test_frames_of_a_capture_are_sent_at_its_times(
    engine: Engine, tmp_path: Path
) -> None:
    times_ns = [0, 0, 1_000, 1_500, 40 * MS, 41 * MS, 99 * MS]
    capture = timed_capture(*times_ns)
    own_fps = capture.own_fps(4)
    assert own_fps
    trial = with_steps(
        Trial(fps=1000, ms=100).request(), captured_steps(capture, 4, round(own_fps))
    )
    trial = TrialRequest.model_validate(trial.model_dump())
    path = tmp_path / "frames.pcap"
    engine.preview(PreviewParams(trial=trial, count=len(times_ns), path=str(path)))
    stamps = [tag_of(bytes(packet)).stamp_ns for packet in rdpcap(str(path))]
    due = [0, 1, *times_ns[2:]]
    assert len(stamps) == 2 * len(due)
    for stamp, at_ns in zip(stamps, due + due, strict=True):
        assert 0 <= stamp - at_ns <= 501
    assert stamps[: len(due)] == due
    result = engine.measure(trial)
    assert codes(result) == set() or "sender_lag" in codes(result)
    for direction in result.directions:
        (stream,) = direction.streams
        assert (stream.sent, stream.received) == (len(due), len(due))
