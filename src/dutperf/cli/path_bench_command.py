"""``dutperf bench --lab NAME``: the whole path, and where the worker's time goes."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from dutperf.bench.idle_wait import QuietWait
from dutperf.bench.path_bench import (
    PATH_DRIVERS,
    RESOLUTION,
    DriverResult,
    PathDriver,
    PathSettings,
    PathSurroundings,
    Rate,
    bench_path,
)
from dutperf.bench.path_profile import CpuProfile, PerfProfiler
from dutperf.cli.exit_codes import INTERRUPTED, INVALID
from dutperf.cli.failures import PatientConsole
from dutperf.cli.options import DEFAULT_SEED
from dutperf.cli.places import campaign_for, dut_alive, open_place, places_of
from dutperf.cli.terminal import Terminal
from dutperf.config import Testbed, expand
from dutperf.config.specs import ThroughputSpec
from dutperf.lab.cpus import plan_cpus
from dutperf.run.engine_session import prepare_engine

_PATIENCE = 20
"""How long the bench waits for quiet moments in all: so many trials for each round."""
_FULL_PERCENT = 95
_DISTURBING_PERCENT = 10
_WHOSE = {
    "engine": "ours",
    "kernel": "kernel",
    "idle": "idle",
    "other": "others",
}


def bench_lab(
    name: str,
    rules: int | None,
    driver: PathDriver | None,
    *,
    rounds: int,
    trial_duration_s: float,
    as_json: bool,
) -> None:
    """Bench the lab ``name``; ``driver`` None: each in turn; ``rules``: its filters.

    Raises:
        DutperfError: as the measuring commands.
        typer.Exit: with 1 when no trial of a driver was valid, 130 when interrupted.
    """
    campaign = campaign_for(_spec(trial_duration_s), None, name, rules, DEFAULT_SEED)
    (place,) = places_of(campaign)
    drivers = (driver,) if driver else PATH_DRIVERS
    patience_s = _PATIENCE * rounds * trial_duration_s
    with Terminal(PatientConsole(stderr=True)) as terminal:
        try:
            with open_place(place) as testbed:
                settings = PathSettings(rounds, testbed.cores[0], plan_cpus().dut)
                (cell,) = expand(campaign, testbed)
                with contextlib.closing(_profiler(settings)) as profiler:
                    around = PathSurroundings(
                        open_engine=prepare_engine,
                        profiler=profiler,
                        dut_alive=lambda: dut_alive(place),
                        sleep=QuietWait(_cpus(settings), patience_s),
                    )
                    results = bench_path(
                        testbed, cell, drivers, settings, around, terminal.on_event
                    )
        except KeyboardInterrupt:
            terminal.say_interrupted()
            raise typer.Exit(INTERRUPTED) from None
    _show(
        PatientConsole(),
        _as_data(place.name, testbed, settings, results),
        results,
        as_json,
    )
    if any(r.valid and r.valid.median_fps is None for r in results):
        raise typer.Exit(INVALID)


def _spec(trial_duration_s: float) -> ThroughputSpec:
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


def _profiler(settings: PathSettings) -> PerfProfiler:
    return PerfProfiler(_cpus(settings))


def _cpus(settings: PathSettings) -> list[int]:
    device = settings.device_cpu
    return sorted({settings.worker_cpu, *(() if device is None else (device,))})


def _as_data(
    name: str, testbed: Testbed, settings: PathSettings, results: list[DriverResult]
) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "lab": name,
        "device": testbed.description,
        "ip": 4,
        "frame_size": 64,
        "direction": "both",
        **asdict(settings),
        "drivers": [asdict(result) for result in results],
    }


def _show(
    console: Console,
    data: dict[str, Any],
    results: list[DriverResult],
    as_json: bool,
) -> None:
    if as_json:
        console.out(json.dumps(data, indent=2), highlight=False)
        return
    console.print(_rates(data, results))
    for result in results:
        _show_profile(console, result)


def _rates(data: dict[str, Any], results: list[DriverResult]) -> Table:
    table = Table(
        title=f"{data['lab']}: 64-byte IPv4, both directions, one worker on CPU "
        f"{data['worker_cpu']}",
        caption="frames per second and direction; the median (all rounds)",
    )
    table.add_column("driver")
    for name in ("valid: the tester keeps up", "lossless", "trials", "invalid"):
        table.add_column(name, justify="right")
    for result in results:
        if result.unusable:
            table.add_row(result.driver, "does not work here", "", "", "")
            continue
        invalid = sum(trial.verdict == "invalid" for trial in result.trials)
        table.add_row(
            result.driver,
            _rate(result.valid),
            _rate(result.lossless),
            str(len(result.trials)),
            str(invalid),
        )
    return table


def _rate(rate: Rate | None) -> str:
    if rate is None or rate.median_fps is None:
        return "-"
    spread = ", ".join(f"{fps:,}" for fps in sorted(rate.rounds_fps))
    return f"{rate.median_fps:,} ({spread})" if rate.rounds_fps[1:] else spread


def _show_profile(console: Console, result: DriverResult) -> None:
    trial = result.profiled
    if trial is None:
        return
    _say(
        console,
        f"{result.driver} at {trial.rate_fps:,} fps per direction: {trial.verdict}, "
        f"{trial.lost_percent:g} % lost, bursts of {trial.burst_mean:g} on average, "
        f"lag p50 {_time(trial.lag_p50_ns)}, p99 {_time(trial.lag_p99_ns)}",
    )
    if result.worker is None:
        trouble = result.profiler_trouble or "no sample of the worker's CPU"
        _say(console, f"where the time goes is not known: {trouble}")
        return
    console.print(_shares(f"{result.driver}: the worker's CPU", result.worker))
    _say(
        console,
        f"the kernel takes {result.worker.kernel_percent:g} % of the worker's time: "
        f"{_names(result.worker.top_kernel)}",
    )
    if result.device is not None:
        console.print(_shares(f"{result.driver}: the device's CPU", result.device))
        _say(console, _bottleneck(result.device))


def _shares(title: str, profile: CpuProfile) -> Table:
    table = Table(title=f"{title} {profile.cpu}")
    table.add_column("whose")
    table.add_column("what")
    table.add_column("% of time", justify="right")
    for share in profile.shares:
        if share.percent:
            table.add_row(_WHOSE[share.whose], share.name, f"{share.percent:.1f}")
    return table


def _bottleneck(device: CpuProfile) -> str:
    others = sum(s.percent for s in device.shares if s.whose == "other")
    if others >= _DISTURBING_PERCENT:
        return (
            f"other processes take {others:g} % of the device's CPU: the rates without "
            "loss are theirs, too; measure when the machine is quiet"
        )
    behind = f"{device.ksoftirqd_percent:g} % of its time in ksoftirqd"
    if device.busy_percent >= _FULL_PERCENT:
        return f"the device's CPU is full ({behind}): it is the bottleneck"
    return (
        f"the device's CPU is busy {device.busy_percent:g} % of the time ({behind}): "
        "the worker is the bottleneck"
    )


def _names(top: list[tuple[str, float]]) -> str:
    return ", ".join(f"{name} {percent:g} %" for name, percent in top)


def _time(duration_ns: int) -> str:
    if duration_ns < 10_000:
        return f"{duration_ns} ns"
    return f"{duration_ns / 1000:,.0f} us"


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
