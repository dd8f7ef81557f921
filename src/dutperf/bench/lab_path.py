"""The path through a lab's device: the lab up, its drivers benched, a profile."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dutperf import lab
from dutperf.bench.path_bench import (
    RESOLUTION,
    DriverResult,
    PathDriver,
    PathSettings,
    PathSurroundings,
    bench_path,
)
from dutperf.bench.path_profile import PerfProfiler
from dutperf.config import Campaign, PlannedTestbed, Testbed, expand
from dutperf.model.rate_specs import ThroughputSpec
from dutperf.procedures.events import OnEvent
from dutperf.run.engine_session import EngineStarter, Notify, prepare_engine

# Waiting until the CPUs of a measurement have nothing else to do.
#
# A bench of the tester itself is spoilt by a compiler on the same CPU. Trials that were
# spoilt can be repeated; it is cheaper to begin when all is quiet. The patience is
# bounded: a machine that is never quiet is measured as it is.


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


_PATIENCE = 20
"""How long the bench waits for quiet moments in all: so many trials for each round."""


@dataclass(frozen=True)
class LabBench:
    """What the drivers do at one lab; ``description`` is that of its device."""

    lab: str
    description: str
    settings: PathSettings
    drivers: list[DriverResult]

    @property
    def valid(self) -> bool:
        """Whether each driver that works here had a valid trial."""
        return all(not d.valid or d.valid.median_fps is not None for d in self.drivers)

    def as_data(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "lab": self.lab,
            "device": self.description,
            "ip": 4,
            "frame_size": 64,
            "direction": "both",
            **asdict(self.settings),
            "drivers": [asdict(result) for result in self.drivers],
        }


@dataclass(frozen=True)
class LabAccess:
    """How a lab is brought up, and asked whether its device is still there."""

    open_testbed: Callable[[PlannedTestbed], AbstractContextManager[Testbed]]
    dut_alive: Callable[[PlannedTestbed], bool]


def bench_lab_path(
    campaign: Campaign,
    planned: PlannedTestbed,
    access: LabAccess,
    drivers: Sequence[PathDriver],
    rounds: int,
    on_event: OnEvent,
) -> LabBench:
    """Bench ``drivers`` at ``planned``, where the campaign has one cell.

    Raises:
        DutperfError: as the measuring commands.
    """
    with access.open_testbed(planned) as testbed:
        own = planned.lab.own_name if planned.lab else None
        settings = PathSettings(rounds, testbed.cores[0], lab.cpu_of_device(own))
        (cell,) = expand(campaign, testbed)
        cpus = _cpus(settings)
        patience_s = _PATIENCE * rounds * cell.spec.trial_duration_s
        with contextlib.closing(PerfProfiler(cpus)) as profiler:
            around = PathSurroundings(
                open_engine=partial(_open_engine, own),
                profiler=profiler,
                dut_alive=lambda: access.dut_alive(planned),
                sleep=QuietWait(cpus, patience_s),
            )
            results = bench_path(testbed, cell, drivers, settings, around, on_event)
    return LabBench(planned.name, testbed.description, settings, results)


def _open_engine(own: str | None, testbed: Testbed, notify: Notify) -> EngineStarter:
    lab.renew_receiving(own)  # the driver before took its rings away
    return prepare_engine(testbed, notify)


def path_spec(trial_duration_s: float) -> ThroughputSpec:
    """Short trials: what is measured is the tester, by the device's example."""
    return ThroughputSpec(
        procedure="throughput",
        ip=[4],
        frame_size=[64],
        trial_duration_s=trial_duration_s,
        settle_wait_s=0.1,
        residual_wait_s=min(0.3, trial_duration_s),
        restabilise_wait_s=0.05,
        resolution=RESOLUTION,
    )


def _cpus(settings: PathSettings) -> list[int]:
    device = settings.device_cpu
    return sorted({settings.worker_cpu, *(() if device is None else (device,))})
