"""A stream whose rate changes while it is sent: trials one after the other, no rest.

    open      testbed, engine, ports and next hops, as for every procedure
    first     a hundred frames: does the device forward at all?
    pieces    trials of one rate each, as short as somebody waits who watches

A piece is a whole trial with its own wait for late frames, so what it counts is exact;
between two of them nothing is sent for that long. A rate changes with the next piece,
for which the one that runs is stopped: it sends no more, waits, and counts what it has
sent.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from dutperf.config import Campaign, PlannedTestbed, Testbed, expand, notices
from dutperf.errors import EngineError, InputError
from dutperf.model.cell import Cell
from dutperf.procedures.events import Notice, OnEvent
from dutperf.procedures.first_frames import is_tried_first, try_first_frames
from dutperf.procedures.max_rate import MaxRate, check_links, max_rate
from dutperf.procedures.stateful.phased import trials_of
from dutperf.procedures.trials import Ask
from dutperf.protocol.base import Side
from dutperf.protocol.port_messages import AddressRange
from dutperf.results.trial_record import TrialRecord
from dutperf.run.engine_session import (
    aborting,
    far_cores,
    main_core,
    open_ports,
    resolve_neighbours,
)
from dutperf.run.local_executor import Surroundings
from dutperf.run.trial_runner import TrialRunner, explaining


@dataclass(frozen=True)
class PieceTimes:
    """How long a piece sends, and then waits for its late frames, in seconds."""

    piece_s: float = 1.0
    residual_wait_s: float = 0.1


class OpenStream:
    """An open stream: ``cell`` says what is in its frames, ``limit`` how many at most.

    Args:
        runner: runs its trials.
        cell: see above.
        limit: see above.
        stop: ends sending of the piece that runs; from any thread.
    """

    def __init__(
        self,
        runner: TrialRunner,
        cell: Cell,
        limit: MaxRate,
        stop: Callable[[], None],
    ) -> None:
        self.cell = cell
        self.limit = limit
        self.stop_piece = stop
        self.trials = trials_of(cell, runner)
        """As procedures run them: what has to come before each of them does."""
        self._runner = runner

    def send(self, rate_fps: int, duration_s: float) -> TrialRecord:
        """One piece, right after the one before.

        Raises:
            EngineError, SetupError: see ``Trials.run``.
        """
        ask = Ask(
            self.cell, rate_fps, duration_s=duration_s, continues=True, attempts=1
        )
        return self._runner.run(ask)


@contextmanager
def opened_stream(
    cell: Cell,
    planned: PlannedTestbed,
    around: Surroundings,
    *,
    on_event: OnEvent,
    rate_fps: int | None = None,
    hooks_of_trials: bool = False,
    own: Mapping[Side, Sequence[AddressRange]] | None = None,
) -> Iterator[OpenStream]:
    """Open ``planned`` and send its first frames; the stream is open in the context.

    Args:
        cell: what is sent.
        planned: where.
        around: engine, lab, and the rest of the world.
        on_event: is told what happens, of each piece, too.
        rate_fps: the first rate; None: it is not known yet.
        hooks_of_trials: whether those run that the testbed has for them.
        own: the tester answers for these addresses, too; frames of others than the
            cell's will be sent, and none of the cell's before.

    Raises:
        InputError: found before the first frame was sent.
        SetupError, EngineError: machine, lab, device or engine are not as needed.
    """

    def notify(text: str) -> None:
        on_event(Notice(text))

    for text in notices(planned.testbed, [cell]):
        notify(text)
    with ExitStack() as stack:
        logs = stack.enter_context(_log_directory())
        testbed = stack.enter_context(around.open_testbed(planned))
        speaker = stack.enter_context(
            around.speaking(testbed, [cell], main_core(testbed), notify)
        )
        start = around.open_engine(testbed, notify)
        stack.enter_context(explaining(lambda: around.dut_alive(planned)))
        engine = stack.enter_context(start(logs / "engine.log"))
        stack.enter_context(aborting(engine))
        ports = open_ports(engine, testbed, notify, speaker.taps if speaker else None)
        check_links(testbed, ports, [cell])
        for text in far_cores(ports, testbed.cores):
            notify(text)
        limit = max_rate(cell, ports.ports)
        check_rate(rate_fps or 1, limit, "--rate")
        resolve_neighbours(engine, testbed, [cell], notify, own)
        if speaker:
            speaker.begin()
        runner = TrialRunner(
            engine,
            testbed if hooks_of_trials else _without_hooks_of_trials(testbed),
            journal=lambda _record: None,
            on_event=on_event,
            sleep=around.sleep,
            dut_alive=lambda: around.dut_alive(planned),
            device=around.watch_dut(planned),
            openings=around.openings(testbed) if cell.stateful else None,
            speaker=speaker,
        )
        runner.prepare()
        if own is None and is_tried_first(cell):
            for reason in try_first_frames(runner, cell, rate_fps or limit.rate_fps):
                notify("; ".join(filter(None, (reason.message, reason.hint))))
        yield OpenStream(runner, cell, limit, engine.stop)


def check_rate(rate_fps: int, limit: MaxRate, where: str) -> None:
    """Refuse a rate that nothing may be sent at.

    Raises:
        InputError: it is more than ``limit``; names ``where`` it was given.
    """
    if rate_fps > limit.rate_fps:
        raise InputError(
            f"{where}: {rate_fps:,} fps is more than {limit.rate_fps:,} fps, "
            f"{limit.words}",
            "lower it; of a link whose speed is only nominal set the highest one "
            "(--max-rate, max_rate_fps)",
            where,
        )


@contextmanager
def _log_directory() -> Iterator[Path]:
    """An engine that failed leaves its log: the error's message names it."""
    path = Path(tempfile.mkdtemp(prefix="dutperf-stream-"))
    kept = False
    try:
        yield path
    except EngineError:
        kept = True
        raise
    finally:
        if not kept:
            shutil.rmtree(path, ignore_errors=True)


def stream_cell(
    campaign: Campaign,
    testbed: Testbed,
    *,
    max_rate_fps: int | None,
    pace: PieceTimes,
    on_event: OnEvent,
) -> Cell:
    """The first of what ``campaign`` asks for, with the times of a stream.

    Args:
        campaign: see above.
        testbed: where.
        max_rate_fps: the highest rate; None: the testbed's, else the media's.
        pace: of its pieces.
        on_event: is told what is not sent.
    """
    cells = expand(campaign, testbed)
    cell = cells[0]
    if len(cells) > 1:
        on_event(
            Notice(
                f"of {len(cells)} kinds of frames that are asked for, the first is "
                f"sent, {name_of(cell)}; --ip, --frame-size and --direction choose"
            )
        )
    keys: dict[str, object] = {
        "trial_duration_s": pace.piece_s,
        "settle_wait_s": 0.0,
        "residual_wait_s": pace.residual_wait_s,
        "restabilise_wait_s": 0.0,
    }
    if max_rate_fps is not None:
        keys["max_rate_fps"] = max_rate_fps
    return cell.with_keys(**keys)


def name_of(cell: Cell) -> str:
    """What its frames are: its id without the procedure, which a stream is none of."""
    return cell.id.removeprefix(f"{cell.procedure}-")


def _without_hooks_of_trials(testbed: Testbed) -> Testbed:
    """Commands that run after each trial are not meant for every second."""
    none: dict[str, object] = {"after_trial": [], "during_trial": [], "is_alive": None}
    hooks = testbed.hooks.model_copy(update=none)
    return testbed.model_copy(update={"hooks": hooks})


# What whoever watches a stream asks for; it is heeded with the next piece.
#
# Shared by the thread that sends and the one that reads keys: each method takes the
# lock. What one says is an answer for whoever asked, in words.


_LEAST_S = 0.05
"""A piece shorter than this tells nothing, so a stream ends earlier by that much."""


@dataclass(frozen=True)
class Piece:
    """What is sent next."""

    rate_fps: int
    duration_s: float


class StreamControl:
    """The rate, and whether the stream goes on.

    Args:
        rate_fps: the first one.
        piece_s: how long a piece is.
        duration_s: after how long the stream ends by itself; None: not at all.
        limit: the highest rate.
        clock: says how many seconds have passed.
    """

    def __init__(
        self,
        rate_fps: int,
        piece_s: float,
        duration_s: float | None,
        limit: MaxRate,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit = limit
        self._rate_fps = rate_fps
        self._piece_s = piece_s
        self._duration_s = duration_s
        self._clock = clock
        self._begun_s = clock()
        self._changed = threading.Condition()
        self._paused = False
        self._ending = False
        self._failure: Exception | None = None

    @property
    def rate_fps(self) -> int:
        """What the next piece is to have."""
        return self._rate_fps

    @property
    def paused(self) -> bool:
        """Whether nothing is sent, or nothing more after the piece that runs."""
        return self._paused

    @property
    def ending(self) -> bool:
        """Whether the piece that runs is the last."""
        return self._ending

    @property
    def elapsed_s(self) -> float:
        """Since the stream began."""
        return self._clock() - self._begun_s

    @property
    def is_over(self) -> bool:
        """Whether it has lasted as long as it was to, or somebody ended it."""
        return self._ending or self._left_s() < _LEAST_S

    def set_rate(self, rate_fps: int) -> str:
        """As near to it as the limit allows."""
        limit = self.limit
        with self._changed:
            self._rate_fps = min(max(rate_fps, 1), limit.rate_fps)
        if rate_fps > limit.rate_fps:
            return f"at most {limit.rate_fps:,} fps: {limit.words}"
        return "at least 1 fps" if rate_fps < 1 else ""

    def scale(self, up: int, down: int) -> str:
        """The rate times ``up`` / ``down``, and by one frame a second at least."""
        rate_fps = round(self._rate_fps * up / down)
        step = 1 if up > down else -1
        if rate_fps == self._rate_fps:
            rate_fps += step
        return self.set_rate(rate_fps)

    def pause(self) -> str:
        """Send nothing more; or go on."""
        with self._changed:
            self._paused = not self._paused
            self._changed.notify_all()
        return "paused" if self._paused else "goes on"

    def end(self) -> str:
        """No more pieces."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        return "ends with this piece; Ctrl-C at once"

    def fail(self, error: Exception) -> None:
        """No more pieces: ``next_piece`` raises ``error``."""
        self._failure = error
        self.end()

    def next_piece(self, on_pause: Callable[[], None]) -> Piece | None:
        """What is sent next, once the stream goes on; None: it ends.

        Args:
            on_pause: is called when nothing is sent for a while.
        """
        with self._changed:
            waits = self._paused and not self.is_over
        if waits:
            on_pause()
        with self._changed:
            while self._paused and not self.is_over:
                self._changed.wait(self._left_s() if self._duration_s else None)
            if self._failure:
                raise self._failure
            if self.is_over:
                return None
            return Piece(self._rate_fps, min(self._piece_s, self._left_s()))

    def _left_s(self) -> float:
        if self._duration_s is None:
            return self._piece_s
        return self._duration_s - self.elapsed_s
