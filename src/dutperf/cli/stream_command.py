"""``dutperf stream``: frames at a rate that keys change, watched as they are sent.

A demonstration, and a tool to find faults with: what it shows is no result of any RFC,
and nothing is stored.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Annotated

import typer

from dutperf.api.places import campaign_for, planned_testbeds, surroundings
from dutperf.cli import INTERRUPTED, INVALID
from dutperf.cli.console import PatientConsole, print_versioned
from dutperf.cli.live_view import LiveLines
from dutperf.cli.options import AsJson, LabNames, Plain, Rules, TestbedFile, one_lab
from dutperf.cli.procedure_options import DEFAULT_SEED, Seed, with_frame_options
from dutperf.cli.stream_keys import (
    Action,
    Say,
    Scale,
    SetRate,
    TypedKeys,
    has_keyboard,
    keyboard,
    parse_rate,
)
from dutperf.cli.stream_view import Screen, lines, piece_line, summary_lines
from dutperf.config import Campaign, PlannedTestbed
from dutperf.errors import InputError
from dutperf.model.specs import ProcedureSpec
from dutperf.procedures.events import (
    Event,
    Notice,
    TrialFinished,
    TrialMoved,
    TrialStarted,
)
from dutperf.programs import terminate_as_interrupt
from dutperf.protocol.trial_messages import TrialProgress
from dutperf.run.stream_counts import StreamCounts
from dutperf.run.streaming import (
    OpenStream,
    PieceTimes,
    StreamControl,
    name_of,
    opened_stream,
    stream_cell,
)

_VERSION = 1
_NO_RESULT = "nothing was stored: these figures are no results by an RFC"

Rate = Annotated[
    str,
    typer.Option("--rate", metavar="RATE", help="of each direction: 25000, 10k, 1.5M"),
]
MaxRateFps = Annotated[
    int | None,
    typer.Option(
        "--max-rate",
        metavar="FPS",
        min=1,
        max=10**12,
        help="no key goes beyond it; default: the testbed's, else the media's",
    ),
]
Duration = Annotated[
    float | None,
    typer.Option(
        "--duration",
        metavar="S",
        min=0.1,
        max=10**7,
        help="end after so long; default: when q is pressed",
    ),
]
PieceDuration = Annotated[
    float,
    typer.Option(
        "--trial-duration",
        metavar="S",
        min=0.1,
        max=10,
        help="of each piece; a new rate ends it",
    ),
]
ResidualWait = Annotated[
    float,
    typer.Option(
        "--residual-wait",
        metavar="S",
        min=0,
        max=10,
        help="for late frames, after each piece",
    ),
]


@with_frame_options
def stream(
    spec: ProcedureSpec,
    rate: Rate,
    testbed: TestbedFile = None,
    lab: LabNames = None,
    rules: Rules = None,
    duration_s: Duration = None,
    max_rate_fps: MaxRateFps = None,
    piece_s: PieceDuration = 1.0,
    residual_wait_s: ResidualWait = 0.1,
    plain: Plain = False,
    as_json: AsJson = False,
    seed: Seed = DEFAULT_SEED,
) -> None:
    """Send frames at a rate that keys change; show who loses what, live.

    To demonstrate and to find faults: these are no results by an RFC, and not
    stored. Keys: + - 10 %, ] [ 1 %, r types a rate, space pauses, 0 clears,
    ? helps, q ends. Without a keyboard it needs --duration.
    """
    rate_fps = parse_rate(rate)
    console = PatientConsole(stderr=True)
    can_move = console.is_terminal and not console.is_dumb_terminal
    by_keys = can_move and not plain and has_keyboard()
    if not by_keys and duration_s is None:
        raise InputError(
            "--duration is missing: there is no keyboard to end the stream with",
            "give it in seconds; or run it in the foreground of a terminal, without "
            "--plain",
        )
    if max_rate_fps is not None and rate_fps > max_rate_fps:
        raise InputError(
            f"--rate {rate_fps:,} is more than --max-rate, {max_rate_fps:,}",
            "lower the one, or raise the other",
        )
    campaign = campaign_for(spec, testbed, one_lab(lab), rules, seed)
    (planned,) = planned_testbeds(campaign)
    session = _Session(
        campaign,
        planned,
        PieceTimes(piece_s, residual_wait_s),
        rate_fps=rate_fps,
        max_rate_fps=max_rate_fps,
        duration_s=duration_s,
        console=console,
        by_keys=by_keys,
    )
    try:
        session.run()
    finally:
        session.show_summary(as_json=as_json)
    if session.interrupted and (duration_s is not None or not session.counts.pieces):
        raise typer.Exit(INTERRUPTED)
    if session.counts.pieces == session.counts.invalid:
        raise typer.Exit(INVALID)


class _Session:
    """One stream from begin to end, and what is shown of it.

    Two threads come here, the one that sends and the one that reads keys: what both
    touch is touched with the lock.
    """

    def __init__(
        self,
        campaign: Campaign,
        planned: PlannedTestbed,
        pace: PieceTimes,
        *,
        rate_fps: int,
        max_rate_fps: int | None,
        duration_s: float | None,
        console: PatientConsole,
        by_keys: bool,
    ) -> None:
        self.counts = StreamCounts()
        self.interrupted = False
        self._campaign, self._planned, self._pace = campaign, planned, pace
        self._rate_fps, self._max_rate_fps = rate_fps, max_rate_fps
        self._duration_s = duration_s
        self._console = console
        self._by_keys = by_keys
        self._lock = threading.RLock()
        self._live = LiveLines(console)
        self._keys = TypedKeys()
        self._stream: OpenStream | None = None
        self._control: StreamControl | None = None
        self._running: TrialStarted | None = None
        self._progress: TrialProgress | None = None
        self._said = ""
        self._helps = False
        self._lasted_s = 0.0

    def run(self) -> None:
        """Open the stream, send it to its end, close what was opened.

        Raises:
            DutperfError: it cannot be sent, or not to its end.
        """
        try:
            cell = stream_cell(
                self._campaign,
                self._planned.testbed,
                max_rate_fps=self._max_rate_fps,
                pace=self._pace,
                on_event=self._on_event,
            )
            with (
                terminate_as_interrupt(),
                opened_stream(
                    cell,
                    self._planned,
                    surroundings(),
                    rate_fps=self._rate_fps,
                    on_event=self._on_event,
                ) as stream,
            ):
                self._send(stream)
        except KeyboardInterrupt:
            self.interrupted = True

    def show_summary(self, *, as_json: bool) -> None:
        """What was sent and lost, if anything was sent."""
        if not self.counts.pieces or self._stream is None:
            return
        if as_json:
            where = {"frames": name_of(self._stream.cell), "place": self._planned.name}
            lasted = {"elapsed_s": round(self._lasted_s, 3)}
            print_versioned(_VERSION, {**where, **lasted, **self.counts.summary()})
            return
        out = PatientConsole()
        name = f"{name_of(self._stream.cell)} at {self._planned.name}"
        for line in summary_lines(name, self._lasted_s, self.counts):
            out.print(line, soft_wrap=True)
        out.print(_NO_RESULT, soft_wrap=True)

    def _send(self, stream: OpenStream) -> None:
        control = StreamControl(
            self._rate_fps, self._pace.piece_s, self._duration_s, stream.limit
        )
        self._stream, self._control = stream, control
        try:
            with self._listening(stream, control):
                while (piece := control.next_piece(self._on_pause)) is not None:
                    stream.send(piece.rate_fps, piece.duration_s)
        finally:
            self._lasted_s = control.elapsed_s

    @contextlib.contextmanager
    def _listening(self, stream: OpenStream, control: StreamControl) -> Iterator[None]:
        """The view is there and keys are heeded, if there is a keyboard."""
        if not self._by_keys:
            yield
            return

        def pressed(key: str) -> None:
            with self._lock:
                self._do(control, self._keys.press(key))
                self._heed(stream, control)
                self._draw()

        try:
            with keyboard(pressed, control.fail):
                yield
        finally:
            with self._lock:
                self._by_keys = False
                self._live.stop()

    def _heed(self, stream: OpenStream, control: StreamControl) -> None:
        """Stop the piece that runs, if it is no more what was asked for."""
        running = self._running
        if running and (control.paused or control.rate_fps != running.rate_fps):
            stream.stop_piece()

    def _do(self, control: StreamControl, action: Action) -> None:
        done: dict[str, Callable[[], str]] = {
            "pause": control.pause,
            "clear": self._clear,
            "help": self._help,
            "end": control.end,
            "typing": str,
        }
        match action:
            case Scale(up, down):
                self._said = control.scale(up, down)
            case SetRate(rate_fps):
                self._said = control.set_rate(rate_fps)
            case Say(text):
                self._said = text
            case _:
                self._said = done[action]()

    def _clear(self) -> str:
        self.counts.clear()
        return "cleared: totals begin anew with the next piece"

    def _help(self) -> str:
        self._helps = not self._helps
        return ""

    def _on_pause(self) -> None:
        with self._lock:
            self.counts.interrupt()
            self._draw()

    def _on_event(self, event: Event) -> None:
        with self._lock:
            match event:
                case Notice(text):
                    self._console.print(f"notice: {text}", soft_wrap=True)
                case TrialStarted():
                    self._running, self._progress = event, None
                case TrialMoved(progress):
                    self._progress = progress
                    # A key may have come just before the piece began.
                    if self._stream and self._control:
                        self._heed(self._stream, self._control)
                case TrialFinished(record):
                    self._running = None
                    if record.role == "trial":
                        self.counts.add(record)
                        self._tell_piece()
            self._draw()

    def _tell_piece(self) -> None:
        """Where no view is, a line."""
        if not self._by_keys and self._control:
            line = piece_line(self._control.elapsed_s, self.counts)
            self._console.print(line, soft_wrap=True)

    def _draw(self) -> None:
        if self._by_keys and self._stream and self._control:
            screen = self._screen(self._stream, self._control)
            columns, rows = (size - 1 for size in self._console.size)
            self._live.draw(list(lines(screen, self.counts, columns, rows)))

    def _screen(self, stream: OpenStream, control: StreamControl) -> Screen:
        running = self._running
        return Screen(
            frames=name_of(stream.cell),
            place=self._planned.name,
            limit=stream.limit,
            rate_fps=control.rate_fps,
            running_fps=running.rate_fps if running else None,
            running_s=self._pace.piece_s,
            elapsed_s=control.elapsed_s,
            duration_s=self._duration_s,
            progress=self._progress if running else None,
            paused=control.paused,
            ending=control.ending,
            typed=self._keys.typed,
            said=self._said,
            helps=self._helps,
        )
