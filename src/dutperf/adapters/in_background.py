"""Trials that somebody starts and comes back for: what TRex's client and OTG share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from dutperf.api.frames import Loads, OpenFrames
from dutperf.api.tester import Tester
from dutperf.api.traffic import Trial
from dutperf.errors import SetupError
from dutperf.protocol.result_messages import Reason
from dutperf.protocol.stream_messages import MAX_FRAMES

_UNTIL_STOPPED_S = 86_400
_MOST_FRAMES = MAX_FRAMES // 2
MOST_TRIALS = 1000
"""Whose counts are kept: some 100 MB with the histograms of their delays."""

Ready = Callable[[OpenFrames], tuple[Loads, float | None]]
"""What is sent, and for how long (None: until it is stopped), once ports are open."""


class Background:
    """One trial at a time in a thread of its own; ``trials``: those that have ended."""

    def __init__(self, tester: Tester) -> None:
        self.trials: list[Trial] = []
        self._tester = tester
        self._frames: OpenFrames | None = None
        self._thread: threading.Thread | None = None
        self._failed: BaseException | None = None

    @property
    def is_active(self) -> bool:
        """Whether a trial runs."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, asked: Loads, ready: Ready) -> None:
        """Open the ports and send; returns when that has begun.

        Args:
            asked: whose templates are to be sent; rates do not matter yet.
            ready: see ``Ready``.

        Raises:
            DutperfError: nothing could be sent; or too many trials are counted.
        """
        if len(self.trials) >= MOST_TRIALS:
            raise SetupError(
                f"{len(self.trials):,} trials are counted together; no more are kept",
                "clear the counts (STL: clear_stats; NETCONF: delete the analyzers)",
            )
        begun = threading.Event()
        self._failed = None
        self._thread = threading.Thread(
            target=self._run, args=(asked, ready, begun), name="dutperf"
        )
        self._thread.start()
        begun.wait()
        if self._failed:
            self.join()

    def _run(self, asked: Loads, ready: Ready, begun: threading.Event) -> None:
        try:
            with self._tester.frames(asked) as frames:
                loads, lasts_s = ready(frames)
                self._frames = frames
                begun.set()
                self.trials.append(frames.trial(loads, lasts_s or _longest_s(loads)))
        except BaseException as error:  # noqa: BLE001 - for who waits
            self._failed = error
        finally:
            self._frames = None
            begun.set()

    def stop(self) -> None:
        """Send no more, and count what was sent.

        Raises:
            DutperfError: the trial failed.
        """
        frames = self._frames
        if frames is not None and self.is_active:
            frames.stop()
        self.join()

    def join(self, timeout_s: float | None = None) -> None:
        """Until the trial has ended.

        Raises:
            SetupError: it does not within ``timeout_s``.
            DutperfError: it failed.
        """
        thread = self._thread
        if thread is not None:
            thread.join(timeout_s)
            if thread.is_alive():
                raise SetupError("traffic is still active", "wait longer, or stop it")
            self._thread = None
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed


def _longest_s(loads: Loads) -> float:
    most_fps = max(load.rate_fps for load in loads.values())
    return min(_UNTIL_STOPPED_S, _MOST_FRAMES / most_fps)


def why_invalid(trial: Trial) -> Sequence[Reason]:
    """Why it tells nothing of the device; empty: it tells, or somebody stopped it."""
    if trial.verdict != "invalid":
        return ()
    return [reason for reason in trial.reasons if reason.code != "aborted"]
