"""Many testbeds on a terminal at once: a line for each that measures, and the whole.

Those that measure stand first, in the order of the campaign; of hundreds as many as a
terminal has room for.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from rich.text import Text

from dutperf.cli.dry_run import span
from dutperf.cli.live_lines import WIDTH
from dutperf.cli.live_view import expected_s
from dutperf.cli.trial_words import STYLES, judged_kind
from dutperf.procedures.events import (
    At,
    CellMeasured,
    CellStarted,
    Event,
    RunStarted,
    TestbedState,
    TrialFinished,
    TrialMoved,
    TrialStarted,
)
from dutperf.protocol import TrialProgress
from dutperf.results import TrialRecord
from dutperf.results.units import whole
from dutperf.visible import visible

_SHOWN_TESTBEDS = 10
_MEASURING = "measuring"


@dataclass
class _Bed:
    """What is known of one testbed."""

    state: str = "waiting"
    cell: CellStarted | None = None
    running: TrialStarted | None = None
    progress: TrialProgress | None = None
    last: TrialRecord | None = None
    left_s: dict[str, float] = field(default_factory=dict)

    def on_event(self, event: Event) -> None:
        match event:
            case TestbedState(state):
                self.state, self.running = state, None
            case CellStarted():
                self.state, self.cell, self.last = _MEASURING, event, None
            case TrialStarted():
                self.state, self.running, self.progress = _MEASURING, event, None
            case TrialMoved(progress):
                self.progress = progress
            case TrialFinished(record):
                self.running, self.last = None, record
            case CellMeasured(result):
                self.left_s.pop(result.id, None)

    def told(self) -> Text:
        if self.state != _MEASURING or self.cell is None:
            return Text(self.state)
        name = visible(self.cell.cell.id).rpartition("@")[0] or self.cell.cell.id
        text = Text.assemble(name, "  ")
        if self.running:
            return text.append_text(self._now(self.running))
        if self.last:
            kind = judged_kind(self.last)
            load = f"{whole(self.last.load_fps)} fps "
            text.append_text(Text.assemble(load, (kind, STYLES[kind])))
        return text

    def _now(self, trial: TrialStarted) -> Text:
        phase = self.progress.phase if self.progress else "starting"
        elapsed_s = self.progress.elapsed_ns / 1e9 if self.progress else 0.0
        return Text(
            f"{whole(trial.rate_fps)} fps {phase}, {elapsed_s:.1f} of "
            f"{trial.planned_s:.1f} s"
        )


class ManyState:
    """What events told of all testbeds of a run."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun_s = clock()
        self._beds: dict[str, _Bed] = {}
        self._cells = self._done = 0

    def on_event(self, event: Event) -> None:
        """Remember what ``event`` tells."""
        match event:
            case RunStarted(cells=cells):
                self._cells = len(cells)
                expected = expected_s(event)
                for cell in cells:
                    bed = self._beds.setdefault(cell.testbed or "", _Bed())
                    bed.left_s[cell.id] = expected.get(cell.id, 0.0)
            case At(testbed, what):
                self._done += isinstance(what, CellMeasured)
                self._beds.setdefault(testbed, _Bed()).on_event(what)

    def lines(self, width: int, *, ascii_only: bool = False) -> Iterator[Text]:
        """At most twelve, none of them longer than ``width``."""
        width = min(width, WIDTH)
        beds = sorted(self._beds.items(), key=lambda each: each[1].state != _MEASURING)
        shown = beds[:_SHOWN_TESTBEDS]
        wide = max((len(name) for name, _ in shown), default=0)
        rows = [
            Text.assemble(f"  {visible(name):<{wide}}  ", bed.told())
            for name, bed in shown
        ]
        if len(beds) > len(shown):
            rows.append(Text(f"  and {len(beds) - len(shown)} more", "dim"))
        for line in (self._title(), *rows):
            line.truncate(width, overflow="crop" if ascii_only else "ellipsis")
            line.no_wrap = True
            yield line

    def _title(self) -> Text:
        states = Counter(bed.state for bed in self._beds.values())
        told = ", ".join(f"{count} {state}" for state, count in states.items())
        took_s = self._clock() - self._begun_s
        left_s = max((sum(b.left_s.values()) for b in self._beds.values()), default=0)
        to_go = f"about {span(left_s)} to go" if left_s else "almost done"
        return Text(
            f"[{self._done}/{self._cells}] {span(took_s)} so far, {to_go}; testbeds: "
            f"{told}",
            "bold",
        )
