"""A stream on a simulated engine: its control, its pieces, what they add up to."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType

import pytest
from planning import TESTBED, FakeOpener, Run, campaign, cell, spec, spoilt, with_hooks

from dutperf.config import PlannedTestbed, Testbed
from dutperf.errors import EngineError, InputError
from dutperf.procedures.events import Event, Notice, OnEvent, TrialFinished
from dutperf.procedures.max_rate import MaxRate
from dutperf.protocol.result_messages import (
    DirectionResult,
    LossRun,
    Silence,
    TrialResult,
)
from dutperf.results.trial_record import TrialRecord
from dutperf.run.local_executor import Surroundings
from dutperf.run.stream_counts import LongestSilence, StreamCounts
from dutperf.run.streaming import (
    OpenStream,
    Piece,
    PieceTimes,
    StreamControl,
    name_of,
    opened_stream,
    stream_cell,
)
from dutperf.simulation.fake_engine import FakeEngine, fixed, lossy, perfect, step

LIMIT = MaxRate(1_000_000, "set")
S = 10**9


class Clock:
    """Stands still unless it is moved."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def control(
    rate_fps: int = 1000, duration_s: float | None = None, clock: Clock | None = None
) -> StreamControl:
    return StreamControl(rate_fps, 1.0, duration_s, LIMIT, clock or Clock())


def never() -> None:
    raise AssertionError("the stream is not paused")


def test_up_and_down_undo_each_other_and_move_by_one_frame_at_least() -> None:
    steered = control(10_000)
    steered.scale(11, 10)
    assert steered.rate_fps == 11_000
    steered.scale(10, 11)
    assert steered.rate_fps == 10_000
    steered.set_rate(2)
    steered.scale(101, 100)
    assert steered.rate_fps == 3
    steered.scale(100, 101)
    assert steered.rate_fps == 2


def test_the_rate_stays_between_one_and_the_limit_and_it_is_said() -> None:
    steered = control()
    assert steered.set_rate(2_000_000) == (
        "at most 1,000,000 fps: the maximum rate that was set"
    )
    assert steered.rate_fps == 1_000_000
    assert steered.set_rate(0) == "at least 1 fps"
    assert steered.scale(10, 11) == "at least 1 fps"
    assert steered.rate_fps == 1


def test_pieces_follow_until_somebody_ends_it() -> None:
    steered = control()
    assert steered.next_piece(never) == Piece(1000, 1.0)
    steered.set_rate(5)
    assert steered.next_piece(never) == Piece(5, 1.0)
    steered.end()
    assert steered.next_piece(never) is None


def test_the_last_piece_ends_with_the_duration() -> None:
    clock = Clock()
    steered = control(duration_s=2.5, clock=clock)
    assert steered.next_piece(never) == Piece(1000, 1.0)
    clock.now_s += 2.25
    assert steered.next_piece(never) == Piece(1000, 0.25)
    clock.now_s += 0.24
    assert steered.next_piece(never) is None


@pytest.mark.parametrize("then", ["goes on", "ends", "fails"])
def test_a_pause_lasts_until_a_key(then: str) -> None:
    steered = control()
    steered.pause()
    waiting = threading.Event()

    def key() -> None:
        waiting.wait()
        if then == "goes on":
            steered.pause()
        elif then == "ends":
            steered.end()
        else:
            steered.fail(RuntimeError("of a key"))

    presser = threading.Thread(target=key)
    presser.start()
    if then == "fails":
        with pytest.raises(RuntimeError, match="of a key"):
            steered.next_piece(waiting.set)
    else:
        piece = steered.next_piece(waiting.set)
        assert piece == (Piece(1000, 1.0) if then == "goes on" else None)
    presser.join()


def opened(
    around: Surroundings,
    rate_fps: int,
    *,
    testbed: Testbed = TESTBED,
    max_rate_fps: int | None = None,
    on_event: OnEvent = lambda _event: None,
    keys: Mapping[str, object] = MappingProxyType({}),
) -> AbstractContextManager[OpenStream]:
    chosen = stream_cell(
        campaign(spec(**keys)),
        testbed,
        max_rate_fps=max_rate_fps,
        pace=PieceTimes(),
        on_event=on_event,
    )
    planned = PlannedTestbed(testbed=testbed)
    return opened_stream(chosen, planned, around, rate_fps=rate_fps, on_event=on_event)


def sent(
    engine: FakeEngine, rates: Sequence[int], path: Path, **keys: object
) -> tuple[StreamCounts, list[Event]]:
    """A stream of pieces at ``rates``."""
    events: list[Event] = []
    counts = StreamCounts()
    around = Run(path, engine).around
    with opened(around, rates[0], on_event=events.append, keys=keys) as stream:
        for rate_fps in rates:
            counts.add(stream.send(rate_fps, 1.0))
    return counts, events


def test_pieces_are_whole_trials_without_waits_between(tmp_path: Path) -> None:
    engine = FakeEngine(perfect())
    counts, events = sent(engine, [1000, 2000], tmp_path)
    first, *pieces = engine.trials
    assert first.duration_ns == S // 10
    assert [t.directions[0].rate_fps for t in pieces] == [1000, 2000]
    for trial in pieces:
        assert trial.duration_ns == S
        assert (trial.settle_ns, trial.residual_wait_ns) == (0, S // 10)
        assert not trial.stop_when_lost
    assert len({trial.trial_id for trial in engine.trials}) == 3
    assert sum(isinstance(event, TrialFinished) for event in events) == 3
    assert counts.pieces == 2
    assert counts.sending_s == 2.0


def test_frames_and_delays_are_added_up_by_direction(tmp_path: Path) -> None:
    engine = FakeEngine(lossy(10_000), delays=fixed(20_000))
    counts, _ = sent(engine, [1000, 2000], tmp_path)
    for name in ("forward", "reverse"):
        total = counts.all[name]
        assert total.sent == 3000
        assert total.lost == total.sent - total.received > 0
        assert total.by_device == total.lost
        assert total.delays is not None
        assert total.delays.each == (20_000,) * 4
    assert [each.sent for each in counts.of_last] == [2000, 2000]
    assert [(r.rate_fps, r.sent) for r in counts.rates] == [(1000, 2000), (2000, 4000)]
    counts.clear()
    assert counts.shown == {}
    assert counts.summary()["directions"][0]["sent"] == 3000


def test_a_tester_that_is_too_slow_is_told_from_a_device(tmp_path: Path) -> None:
    engine = FakeEngine(perfect(), tester_limit_fps=1500)
    counts, _ = sent(engine, [1000, 2000], tmp_path)
    assert counts.invalid == 1
    assert counts.summary()["invalid_because"] == {"sender_behind": 1}
    assert [r.invalid for r in counts.rates] == [0, 1]
    assert counts.sending_s < 1.5


def test_an_invalid_piece_is_not_sent_again(tmp_path: Path) -> None:
    engine = FakeEngine(perfect(), troubles=spoilt("link_changed", *range(2, 9)))
    counts, _ = sent(engine, [1000] * 5, tmp_path)
    assert len(engine.trials) == 6
    assert counts.invalid == 5


def test_a_device_that_forwards_nothing_is_told_and_the_stream_goes_on(
    tmp_path: Path,
) -> None:
    counts, events = sent(FakeEngine(step(0.5)), [1000], tmp_path)
    told = [event.text for event in events if isinstance(event, Notice)]
    assert any("the device forwards nothing" in text for text in told)
    assert counts.all["forward"].received == 0


def test_of_several_kinds_of_frames_the_first_is_sent(tmp_path: Path) -> None:
    engine = FakeEngine(perfect())
    _, events = sent(engine, [1000], tmp_path, ip=[4, 6], frame_size=[128])
    told = [event.text for event in events if isinstance(event, Notice)]
    assert any("of 2 kinds of frames" in text for text in told)
    assert engine.trials[-1].directions[0].streams[0].ip_version == 4


def test_a_rate_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="more than 1,000,000 fps"):
        sent(FakeEngine(perfect()), [1_000_001], tmp_path)


def test_an_engine_that_fails_is_told_and_leaves_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    engine = FakeEngine(perfect(), troubles={3: EngineError("it died")})
    with pytest.raises(EngineError, match="it died"):
        sent(engine, [1000] * 3, tmp_path)
    assert len([*tmp_path.glob("dutperf-stream-*/engine.log")]) == 1


def test_ctrl_c_ends_the_running_trial_and_the_engine(tmp_path: Path) -> None:
    engine = FakeEngine(perfect(), troubles={3: KeyboardInterrupt()})
    opener = FakeOpener(engine)
    around = Run(tmp_path, engine, opener=opener).around
    stream = opened(around, 1, max_rate_fps=10)
    with pytest.raises(KeyboardInterrupt), stream as sending:
        [sending.send(1, 1.0) for _ in range(3)]
    assert engine.aborted
    assert opener.ended


def test_hooks_after_trials_are_not_run_for_each_piece(tmp_path: Path) -> None:
    told = tmp_path / "told"
    note = {"command": ["sh", "-c", f'echo "$0" >> {told}']}
    hooks = {
        moment: [{"command": [*note["command"], moment]}]
        for moment in ("before_campaign", "before_trial", "after_trial")
    }
    testbed = with_hooks(**hooks)
    around = Run(tmp_path, FakeEngine(perfect())).around
    with opened(around, 1000, testbed=testbed) as stream:
        stream.send(1000, 1.0)
        stream.send(1000, 1.0)
    assert told.read_text("utf-8").split() == ["before_campaign", "before_trial"]


def piece(tmp_path: Path) -> TrialRecord:
    """Of 1 s and 1,000 fps, forward."""
    counts, _ = sent(FakeEngine(perfect()), [1000], tmp_path, direction=["forward"])
    assert counts.last is not None
    return counts.last


def silent(
    record: TrialRecord, begins_s: float, begin_s: float, end_s: float | None
) -> tuple[TrialResult, DirectionResult]:
    """``record`` begun at a time, with its longest silence; None: to its end.

    If it is silent from the begin, the frames that were due were lost.
    """
    end_ns = None if end_s is None else round(end_s * S)
    silence = Silence(begin_ns=round(begin_s * S), end_ns=end_ns)
    (direction,) = record.result.directions
    streams = direction.streams
    if end_s is None and begin_s < 0.001:
        streams = [s.model_copy(update={"received": 0}) for s in streams]
    elif not begin_s and end_s:
        run = {"first": 0, "frames": 9, "begin_ns": 0, "last_ns": 9, "end_ns": end_ns}
        lost = LossRun.model_validate(run)
        streams = [s.model_copy(update={"longest_loss": lost}) for s in streams]
    direction = direction.model_copy(
        update={"longest_silence": silence, "sending_ns": S, "streams": streams}
    )
    begun = {"begin_unix_ns": round(begins_s * S), "directions": [direction]}
    return record.result.model_copy(update=begun), direction


Told = tuple[float, float, float | None]


@pytest.mark.parametrize(
    ("pieces", "longest_s", "is_open"),
    [
        ([(10, 0.25, 0.5)], 0.25, False),
        ([(10, 0.25, 0.5), (11, 0.25, 0.26)], 0.25, False),
        ([(10, 0.75, None)], 0.25, True),
        # Through a whole piece, with the times between.
        ([(10, 0.75, None), (11.125, 0.0005, None), (12.25, 0, 0.25)], 1.75, False),
        ([(10, 0.75, None), (11.125, 0, None)], 1.375, True),
        # It ended between two pieces: as long as is known.
        ([(10, 0.75, None), (11.125, 0.5, 0.625)], 0.25, False),
        # One lost frame at the end is no interruption.
        ([(10, 0.9985, None), (11.125, 0, 0.25)], 0.25, False),
    ],
)
def test_a_silence_goes_on_from_piece_to_piece(
    tmp_path: Path, pieces: list[Told], longest_s: float, is_open: bool
) -> None:
    record = piece(tmp_path)
    silence = LongestSilence()
    for told in pieces:
        silence.add(*silent(record, *told))
    assert silence.longest_ns == round(longest_s * S)
    assert silence.open is is_open


def test_a_pause_ends_what_is_known_of_a_silence(tmp_path: Path) -> None:
    record = piece(tmp_path)
    silence = LongestSilence()
    silence.add(*silent(record, 10, 0.75, None))
    silence.interrupt()
    silence.add(*silent(record, 20, 0, 0.125))
    assert silence.longest_ns == S // 4
    assert silence.open


def test_a_cell_is_called_without_its_procedure() -> None:
    assert name_of(cell(ip=[4])) == "ip4-64-both"
