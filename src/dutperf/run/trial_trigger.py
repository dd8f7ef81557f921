"""Hooks that run while frames are sent: what a device does under load (RFC 6201 4)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from dutperf.config.hooks import Hook
from dutperf.procedures.trials import RunHooks
from dutperf.protocol import TrialProgress, TrialResult
from dutperf.results.trial_record import HookRun


class Trigger:
    """Runs ``hooks`` once, beside a trial, when it has sent frames for so long.

    Args:
        hooks: of the testbed; none: a person is asked to act.
        run: runs them.
        after_s: since sending began.
        say: tells the person.
    """

    def __init__(
        self,
        hooks: Sequence[Hook],
        run: RunHooks,
        after_s: float,
        say: Callable[[str], None],
    ) -> None:
        self._hooks = hooks
        self._run = run
        self._after_ns = after_s * 1e9
        self._say = say
        self._pulled = False
        self._thread: threading.Thread | None = None
        self._runs: list[tuple[int, HookRun]] = []

    def watch(self, progress: TrialProgress) -> None:
        """Is told, about twice a second, how long the trial has lasted."""
        running = progress.phase == "running"
        if self._pulled or not running or progress.elapsed_ns < self._after_ns:
            return
        self._pulled = True
        if not self._hooks:
            self._say("now: do what is to interrupt the device")
            return
        self._thread = threading.Thread(target=self._act, daemon=True)
        self._thread.start()

    def finished(self, result: TrialResult) -> list[HookRun]:
        """What ran, when the last has ended; with the time since the first frame."""
        if self._thread:
            self._thread.join()
        first_ns = result.begin_unix_ns
        if first_ns is None:
            return [run for _, run in self._runs]
        return [
            run.model_copy(update={"after_s": round((began_ns - first_ns) / 1e9, 6)})
            for began_ns, run in self._runs
        ]

    def _act(self) -> None:
        """As ``run_hooks``, one after the other up to the first that fails."""
        for hook in self._hooks:
            began_ns = time.time_ns()
            runs = self._run([hook], "during_trial")
            self._runs += [(began_ns, run) for run in runs]
            if not all(run.succeeded for run in runs):
                break
