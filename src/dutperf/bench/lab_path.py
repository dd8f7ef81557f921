"""The path through a lab's device: the lab up, its drivers benched, a profile."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from dutperf import lab
from dutperf.bench.idle_wait import QuietWait
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
