"""Waiting for a quiet moment, on an imitated /proc/stat; no time passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from dutperf.bench.benches import QuietWait


class Machine:
    """CPU 0 is idle; CPU 1 is busy for ``busy_s`` seconds, then idle as well."""

    def __init__(self, stat: Path, busy_s: float) -> None:
        self.stat = stat
        self.slept: list[float] = []
        self._busy_s = busy_s
        self._write()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._write()

    def _write(self) -> None:
        now = sum(self.slept)
        busy = round(1000 * min(now, self._busy_s))
        idle = round(1000 * now) - busy
        self.stat.write_text(
            f"cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\n"
            f"cpu0 0 0 0 {round(1000 * now)} 0 0 0 0 0 0\n"
            f"cpu1 {busy} 0 0 {idle} 0 0 0 0 0 0\n"
            "intr 1 2 3\n"
        )


@pytest.fixture
def stat(tmp_path: Path) -> Path:
    return tmp_path / "stat"


def test_a_quiet_machine_is_not_waited_for(stat: Path) -> None:
    machine = Machine(stat, busy_s=0)
    quiet = QuietWait([0, 1], 10, sleep=machine.sleep, stat=stat)
    quiet(2)
    assert quiet.waited_s == 0
    assert machine.slept[0] == 2


def test_a_busy_cpu_is_waited_for(stat: Path) -> None:
    machine = Machine(stat, busy_s=3)
    quiet = QuietWait([0, 1], 10, sleep=machine.sleep, stat=stat)
    quiet(0)
    assert 2 <= quiet.waited_s <= 4


def test_other_cpus_may_be_busy(stat: Path) -> None:
    machine = Machine(stat, busy_s=3)
    quiet = QuietWait([0], 10, sleep=machine.sleep, stat=stat)
    quiet(0)
    assert quiet.waited_s == 0


def test_patience_ends_for_all_waits_together(stat: Path) -> None:
    machine = Machine(stat, busy_s=1000)
    quiet = QuietWait([1], 5, sleep=machine.sleep, stat=stat)
    quiet(0)
    quiet(0)
    assert quiet.waited_s == 5
