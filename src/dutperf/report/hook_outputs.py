"""What the testbed's hooks did and printed around each trial."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dutperf.results import HookRun, TrialRecord

MOST_RUNS = 300
"""A long campaign's counters would make the page slow; the journal has them all."""
MOST_CHARACTERS = 2000


class HookView(NamedTuple):
    """One hook of one trial; ``output`` is the beginning of what it printed."""

    trial: int
    run: HookRun

    @property
    def command(self) -> str:
        """As one would type it."""
        return shlex.join(self.run.command)

    @property
    def output(self) -> str:
        """The beginning of what it printed."""
        text = self.run.output.rstrip()
        cut = len(text) > MOST_CHARACTERS
        return f"{text[:MOST_CHARACTERS]}\n..." if cut else text


@dataclass(frozen=True)
class HookViews:
    """The hooks to show; ``left_out`` of those that succeeded are not."""

    shown: tuple[HookView, ...]
    left_out: int


def hook_views(trials: Sequence[TrialRecord]) -> HookViews:
    """Hooks that failed or said something; if those are too many, the former only."""
    runs = [HookView(trial.number, run) for trial in trials for run in trial.hooks]
    telling = [view for view in runs if view.output or not view.run.succeeded]
    if len(telling) <= MOST_RUNS:
        return HookViews(tuple(telling), 0)
    failed = tuple(view for view in telling if not view.run.succeeded)[:MOST_RUNS]
    return HookViews(failed, len(telling) - len(failed))
