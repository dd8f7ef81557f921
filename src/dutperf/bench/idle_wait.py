"""Waiting until the CPUs of a measurement have nothing else to do.

A bench of the tester itself is spoilt by a compiler on the same CPU. Trials that were
spoilt can be repeated; it is cheaper to begin when all is quiet. The patience is
bounded: a machine that is never quiet is measured as it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from pathlib import Path

_STAT = Path("/proc/stat")
_GLANCE_S = 0.1
_QUIET_PERCENT = 20
_PAUSE_S = 0.5


class QuietWait:
    """A ``sleep`` that returns in a quiet moment, as long as there is patience.

    Args:
        cpus: which CPUs have to be idle.
        patience_s: for all waits together, beside what is slept anyway.
        sleep: waits a number of seconds.
        stat: where the kernel accounts for the CPUs' time.
    """

    def __init__(
        self,
        cpus: Collection[int],
        patience_s: float,
        *,
        sleep: Callable[[float], None] = time.sleep,
        stat: Path = _STAT,
    ) -> None:
        self.waited_s = 0.0
        self._names = {f"cpu{cpu}" for cpu in cpus}
        self._patience_s = patience_s
        self._sleep = sleep
        self._stat = stat

    def __call__(self, seconds: float) -> None:
        """Sleep, then wait for a quiet moment."""
        self._sleep(seconds)
        while self.waited_s < self._patience_s and not self._is_quiet():
            self._sleep(_PAUSE_S)
            self.waited_s += _PAUSE_S

    def _is_quiet(self) -> bool:
        before = self._times()
        self._sleep(_GLANCE_S)
        after = self._times()
        return all(
            _busy_percent(before[name], after[name]) <= _QUIET_PERCENT
            for name in before.keys() & after.keys()
        )

    def _times(self) -> dict[str, tuple[int, int]]:
        """CPU -> (idle, all) ticks so far."""
        lines = (line.split() for line in self._stat.read_text().splitlines())
        found = {}
        for name, *ticks in (line for line in lines if line):
            if name in self._names:
                # user nice system idle iowait irq softirq steal; guests are in user.
                numbers = [int(tick) for tick in ticks[:8]]
                found[name] = (sum(numbers[3:5]), sum(numbers))
        return found


def _busy_percent(before: tuple[int, int], after: tuple[int, int]) -> float:
    idle, total = (b - a for a, b in zip(before, after, strict=True))
    return 100 * (total - idle) / total if total > 0 else 0.0
