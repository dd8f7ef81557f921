"""The running cell on a terminal: where its result lies, its last trials, what is left.

Events alone draw it: it has no thread, so between two events it costs nothing. A trial
tells about twice a second how far it is; it is drawn once a second.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from rich.control import Control
from rich.live import Live
from rich.segment import ControlType
from rich.text import Text

from dutperf.catalogue import PROCEDURES
from dutperf.cli.console import PatientConsole
from dutperf.errors import DutperfError
from dutperf.model.procedure_keys import SearchedKeys
from dutperf.procedures.events import (
    At,
    CellStarted,
    Event,
    IntervalNarrowed,
    RunStarted,
    TrialFinished,
    TrialMoved,
    TrialReplayed,
    TrialStarted,
)
from dutperf.procedures.loss_criterion import loss_percent, own_drops
from dutperf.procedures.throughput import judged_whole
from dutperf.protocol.result_messages import VerdictKind
from dutperf.protocol.trial_messages import TrialProgress
from dutperf.results import TrialRecord
from dutperf.results.trial_record import TrialRole
from dutperf.results.units import about, whole
from dutperf.results.words import RECEIVED
from dutperf.run.preview import CellEstimate, estimate
from dutperf.search import Resolution
from dutperf.visible import visible

# Lines at the end of a terminal that are drawn over and over again, and then go.
#
# The cursor is never hidden, so however the program ends there is nothing to give back.


WIDTH = 79
"""At most: what is narrower than a terminal stays whole when that is made narrower."""


def span(duration_s: float) -> str:
    """``45 s``, ``12 min``, ``3 h 20 min``, ``2 d 4 h``: rounded, as estimates are."""
    if duration_s < 100:
        return f"{duration_s:.0f} s"
    minutes = round(duration_s / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    return f"{hours // 24} d {hours % 24} h"


class LiveLines:
    """Draws on ``console``; what was printed before stands above."""

    def __init__(self, console: PatientConsole) -> None:
        self._console = console
        self._live: Live | None = None
        self._drawn: list[str] = []
        self._width = console.width

    def draw(self, lines: Sequence[Text]) -> None:
        """Show ``lines`` in place of those before."""
        if self._live is None:
            self._live = Live(
                console=self._console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
            self._console.show_cursor(True)
        self._unwrap()
        self._live.update(Text("\n").join(lines), refresh=True)
        self._drawn = [line.plain for line in lines]
        self._width = self._console.width

    def stop(self) -> None:
        """Take them away."""
        if self._live:
            self._unwrap()
            self._live.stop()
            self._live = None

    def _unwrap(self) -> None:
        """A terminal that was made narrower wrapped lines: go up by as many more."""
        width = self._console.width
        if width >= self._width:
            return
        more = sum(-(-len(line) // width) - 1 for line in self._drawn)
        self._width = width
        for _ in range(more):
            self._console.control(
                Control(
                    ControlType.CARRIAGE_RETURN,
                    (ControlType.ERASE_IN_LINE, 2),
                    (ControlType.CURSOR_UP, 1),
                )
            )


# How a trial is called on a terminal, in its line and in the live view.


ROLES: dict[TrialRole, str] = {
    "trial": "",
    "first_frames": ", first frames",
    "probe": ", probe",
    "phase1": ", phase 1",
    "validation": ", validation",
    "damage": f", {RECEIVED}",
    "cache": ", names for the cache",
}
STYLES: dict[VerdictKind, str] = {"pass": "green", "fail": "yellow", "invalid": "red"}


def judged_kind(record: TrialRecord) -> VerdictKind:
    """Its verdict; of the second search that for which damaged frames were received."""
    if record.role == "damage":
        return judged_whole(record) or "invalid"
    return record.result.verdict.kind


_SHOWN_TRIALS = 5
_MOST_PER_S = 4
_MOVED_EVERY_S = 1.0
_MARGIN = "  "

Clock = Callable[[], float]


class TimeToGo:
    """Of the running cell, and of all; corrected by what trials and cells took.

    A cell's own estimate knows its trials and waits, not what the machine adds to each.
    """

    def __init__(self, run: RunStarted | None = None) -> None:
        self._expected = expected(run) if run else {}
        self._waiting_s = {name: e.duration_s for name, e in self._expected.items()}
        self._cell: CellEstimate | None = None
        self._begun_s = self._last_s = 0.0
        self._trials = 0
        self._replayed = False
        self._took_s = self._should_s = 0.0

    def begin(self, cell: str, now_s: float) -> None:
        """The cell before it has ended, unless it is the first."""
        if self._cell and not self._replayed:
            self._took_s += now_s - self._begun_s
            self._should_s += self._cell.duration_s
        self._cell = self._expected.get(cell)
        self._waiting_s.pop(cell, None)
        self._begun_s = self._last_s = now_s
        self._trials, self._replayed = 0, False

    def trial_ended(self, now_s: float, *, replayed: bool) -> None:
        """It was measured, or taken from the journal."""
        self._trials += 1
        self._last_s = now_s
        self._replayed |= replayed

    @property
    def _pace(self) -> float:
        """How long cells took so far, as a share of what was expected."""
        return self._took_s / self._should_s if self._should_s else 1.0

    def cell_s(self, now_s: float, least_trials: int) -> float | None:
        """None: nothing is known. ``least_trials``: so many more are sure to come."""
        if self._cell is None:
            return None
        trials = max(1, self._cell.trials)
        each_s = self._cell.duration_s * self._pace / trials
        if self._trials and not self._replayed:
            each_s = max(each_s, (self._last_s - self._begun_s) / self._trials)
        left_s = max(trials - self._trials, least_trials) * each_s
        return max(0.0, left_s - (now_s - self._last_s))

    @property
    def waiting_s(self) -> float:
        """Of all cells that have not begun."""
        return sum(self._waiting_s.values()) * self._pace


class CellState:
    """What events told of the cell that is measured, and of those after it."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._cell: CellStarted | None = None
        self._begun_s = 0.0
        self._to_go = TimeToGo()
        self._trials: deque[TrialRecord] = deque(maxlen=_SHOWN_TRIALS)
        self._running: TrialStarted | None = None
        self._progress: TrialProgress | None = None
        self._repeat = 0
        self._bounds: tuple[float, float] | None = None
        self._top = 0.0
        self._failed: set[float] = set()

    def on_event(self, event: Event) -> None:
        """Remember what ``event`` tells."""
        match event:
            case RunStarted():
                self._to_go, self._begun_s = TimeToGo(event), self._clock()
            case CellStarted(cell):
                self._cell, self._begun_s = event, self._clock()
                self._to_go.begin(cell.id, self._begun_s)
                self._trials.clear()
                self._running, self._top = None, 0.0
                self._enter(1)
            case TrialStarted(repeat=repeat):
                self._running, self._progress = event, None
                self._enter(repeat)
            case TrialMoved(progress):
                self._progress = progress
            case TrialFinished(record) | TrialReplayed(record):
                self._running = None
                replayed = isinstance(event, TrialReplayed)
                self._to_go.trial_ended(self._clock(), replayed=replayed)
                self._enter(record.repeat)
                self._trials.append(record)
                if record.role == "trial" and record.result.verdict.kind == "fail":
                    self._failed.add(self._asked(record))
            case IntervalNarrowed(lower, upper):
                self._bounds, self._top = (lower, upper), max(self._top, upper)

    def _enter(self, repeat: int) -> None:
        """Each repeat starts with the whole interval."""
        if repeat != self._repeat:
            self._bounds = None
            self._failed.clear()
        self._repeat = repeat

    @property
    def _in_frames(self) -> bool:
        cell = self._cell
        return cell is not None and cell.cell.family == "burst search"

    def _asked(self, record: TrialRecord) -> float:
        """The rate of a trial; of a burst its length in frames."""
        if self._in_frames:
            return record.request.frames(record.request.directions[0])
        return record.load_fps

    def lines(self, width: int, *, ascii_only: bool = False) -> Iterator[Text]:
        """At most nine, none of them longer than ``width``."""
        width = min(width, WIDTH)
        if self._cell is None:
            told = [*self._before()]
        else:
            told = [
                self._title(self._cell),
                *self._interval(width, ascii_only=ascii_only),
                *self._rows(),
                self._clocks(),
            ]
        for line in told:
            line.truncate(width, overflow="crop" if ascii_only else "ellipsis")
            line.no_wrap = True
            yield line

    def _title(self, cell: CellStarted) -> Text:
        repeat = f", repeat {self._repeat}" if self._repeat > 1 else ""
        name = visible(cell.cell.id)
        return Text(f"[{cell.index}/{cell.count}] {name}{repeat}", "bold")

    def _interval(self, width: int, *, ascii_only: bool) -> Iterator[Text]:
        if self._bounds is None or self._cell is None or not self._top:
            return
        lower, upper = self._bounds
        unit = PROCEDURES[self._cell.cell.procedure].unit
        top = f" {whole(self._top)} {unit}"
        yield Text.assemble(
            f"{_MARGIN}0 ",
            bar(
                lower / self._top,
                upper / self._top,
                width - len(top) - len(_MARGIN) - 2,
                ascii_only=ascii_only,
            ),
            top,
        )
        passed = f"highest passed {whole(lower)}" if lower else "none passed yet"
        word = "lowest failed" if upper in self._failed else "looking below"
        share = about((upper - lower) * 100 / upper) if upper else "0"
        yield Text(f"{_MARGIN}{passed}, {word} {whole(upper)} {unit}: {share} % apart")

    def _rows(self) -> Iterator[Text]:
        """The last trials and the one that runs, in columns."""
        unit = "frames" if self._in_frames else "fps"
        rows = [
            (f"{r.number}{ROLES[r.role]}", whole(self._asked(r)), self._told(r))
            for r in self._trials
        ]
        if self._running:
            trial = self._running
            rows.append((f"{trial.number}", whole(trial.rate_fps), self._now(trial)))
        wide = [max((len(row[n]) for row in rows), default=0) for n in (0, 1)]
        for name, load, told in rows:
            yield Text.assemble(
                f"{_MARGIN}trial {name:<{wide[0]}}  {load:>{wide[1]}} {unit}  ", told
            )

    def _told(self, record: TrialRecord) -> Text:
        if record.role == "probe":
            return Text("what the ports can offer")
        kind = judged_kind(record)
        return Text.assemble(
            (f"{kind:<7}", STYLES[kind]), "  ", ", ".join(self._beside(record))
        )

    def _beside(self, record: TrialRecord) -> Iterator[str]:
        result = record.result
        if result.verdict.kind == "invalid":
            yield from (visible(r.message) for r in result.verdict.reasons[:1])
        if any(s.sent for d in result.directions for s in d.streams):
            lost = loss_percent(result)
            if lost or result.verdict.kind != "invalid":
                yield f"lost {about(lost, 3)} %" if lost else "nothing lost"
        shadows = sum(len(d.shadows) for d in result.directions)
        if shadows:
            yield f"{shadows} stall{'' if shadows == 1 else 's'}"
        if own := sum(own_drops(result, d) for d in result.directions):
            yield f"tester dropped {own:,}"
        if record.device_drops and (device := record.device_drops.input_queue):
            yield f"device dropped {device:,}"
        safe_fps = self._cell.safe_fps if self._cell else None
        if safe_fps and not self._in_frames:
            yield f"passport {record.load_fps * 100 / safe_fps:.0f} %"

    def _now(self, trial: TrialStarted) -> Text:
        phase = self._progress.phase if self._progress else "starting"
        elapsed_s = self._progress.elapsed_ns / 1e9 if self._progress else 0.0
        return Text(f"{phase}, {elapsed_s:.1f} of {trial.planned_s:.1f} s", "bold")

    def _before(self) -> Iterator[Text]:
        """Labs, ports and the tester itself come first."""
        if waiting_s := self._to_go.waiting_s:
            took_s = self._clock() - self._begun_s
            words = f"getting ready: {span(took_s)} so far; then all test cases"
            yield Text(f"{_MARGIN}{words}: about {span(waiting_s)}", "dim")

    def _clocks(self) -> Text:
        """Nothing is said of a cell of which nothing is known."""
        now_s = self._clock()
        left_s = self._to_go.cell_s(now_s, self._least_trials())
        words = f"{span(now_s - self._begun_s)} so far"
        if left_s is not None:
            words = f"this one: {words}, {_to_go_words(left_s)}"
            if waiting_s := self._to_go.waiting_s:
                words += f"; all: {_to_go_words(left_s + waiting_s)}"
        return Text(f"{_MARGIN}{words}", "dim")

    def _least_trials(self) -> int:
        """So many halvings of the interval are left, or the trial that runs."""
        running = int(self._running is not None)
        spec = self._cell.cell.spec if self._cell else None
        if self._bounds is None or not isinstance(spec, SearchedKeys):
            return running
        lower, upper = self._bounds
        width = float(Resolution.parse(spec.resolution).width_fps(upper))
        if not width or upper - lower <= width:
            return running
        return math.ceil(math.log2((upper - lower) / width))


def _to_go_words(left_s: float) -> str:
    return f"about {span(left_s)} to go" if left_s >= 1 else "almost done"


def bar(lower: float, upper: float, width: int, *, ascii_only: bool = False) -> Text:
    """Where a result lies: ``lower`` and ``upper`` are shares of the whole, 0 to 1.

    What passed, what is not decided and what is out of reach differ in shape, too; what
    is not decided has at least one character.
    """
    passed, between, beyond = ("-", "#", ".") if ascii_only else ("─", "█", "·")
    width = max(width, 1)
    left = min(int(lower * width), width - 1)
    right = max(min(-int(-upper * width // 1), width), left + 1)
    return Text.assemble(
        (passed * left, "green"),
        (between * (right - left), "bold"),
        (beyond * (width - right), "yellow"),
    )


class State(Protocol):
    """What is drawn: ``CellState``, or of many testbeds ``ManyState``."""

    def on_event(self, event: Event) -> None: ...  # noqa: D102
    def lines(self, width: int, *, ascii_only: bool = False) -> Iterator[Text]: ...  # noqa: D102


class LiveView:
    """Draws a ``State``, at most four times in a second."""

    def __init__(self, console: PatientConsole, clock: Clock = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._state: State = CellState(clock)
        self._lines = LiveLines(console)
        self._last: deque[float] = deque(maxlen=_MOST_PER_S)
        self._ascii = not console.encoding.lower().startswith("utf")

    def show(self, state: State, run: RunStarted | None) -> None:
        """Draw ``state`` from now on, which is told of the run's begin."""
        if run:
            state.on_event(run)
        self._state = state

    def on_event(self, event: Event) -> None:
        """Draw what ``event`` changes, unless it was drawn too often just now."""
        self._state.on_event(event)
        now_s = self._clock()
        least_s = 0.0
        if isinstance(event.event if isinstance(event, At) else event, TrialMoved):
            least_s = _MOVED_EVERY_S
        elif isinstance(event, TrialReplayed):
            return
        if self._last and now_s - self._last[-1] < least_s:
            return
        if len(self._last) == _MOST_PER_S and now_s - self._last[0] < 1:
            return
        self._last.append(now_s)
        self._draw()

    def stop(self) -> None:
        """Take the view away."""
        self._lines.stop()

    def _draw(self) -> None:
        lines = list(self._state.lines(self._console.width - 1, ascii_only=self._ascii))
        if lines:
            self._lines.draw(lines)


def expected(run: RunStarted) -> dict[str, CellEstimate]:
    """What each cell takes; empty where an estimate is refused, but not the run."""
    with contextlib.suppress(DutperfError):
        return {each.cell.id: each for each in estimate(run.cells, run.virtual)}
    return {}
