"""``dutperf bench --lab NAME``: the whole path, and where the worker's time goes."""

from __future__ import annotations

import typer
from rich.table import Table

from dutperf.bench.lab_path import LabAccess, LabBench, bench_lab_path, path_spec
from dutperf.bench.path_bench import PATH_DRIVERS, DriverResult, PathDriver, Rate
from dutperf.bench.path_profile import CpuProfile
from dutperf.cli.exit_codes import INTERRUPTED, INVALID
from dutperf.cli.failures import PatientConsole
from dutperf.cli.json_print import print_versioned
from dutperf.cli.procedure_options import DEFAULT_SEED
from dutperf.cli.terminal import Terminal
from dutperf.cli.testbeds import campaign_for, dut_alive, open_testbed, planned_testbeds

_PATH_VERSION = 1
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
    spec = path_spec(trial_duration_s)
    campaign = campaign_for(spec, None, name, rules, DEFAULT_SEED)
    (planned,) = planned_testbeds(campaign)
    drivers = (driver,) if driver else PATH_DRIVERS
    access = LabAccess(open_testbed, dut_alive)
    with Terminal(PatientConsole(stderr=True)) as terminal:
        try:
            found = bench_lab_path(
                campaign, planned, access, drivers, rounds, terminal.on_event
            )
        except KeyboardInterrupt:
            terminal.say_interrupted()
            raise typer.Exit(INTERRUPTED) from None
    _show(PatientConsole(), found, as_json=as_json)
    if not found.valid:
        raise typer.Exit(INVALID)


def _show(console: PatientConsole, found: LabBench, *, as_json: bool) -> None:
    if as_json:
        print_versioned(_PATH_VERSION, found.as_data())
        return
    console.print(_rates(found))
    for result in found.drivers:
        _show_profile(console, result)


def _rates(found: LabBench) -> Table:
    table = Table(
        title=f"{found.lab}: 64-byte IPv4, both directions, one worker on CPU "
        f"{found.settings.worker_cpu}",
        caption="frames per second and direction; the median (all rounds)",
    )
    table.add_column("driver")
    for name in ("valid: the tester keeps up", "lossless", "trials", "invalid"):
        table.add_column(name, justify="right")
    for result in found.drivers:
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


def _show_profile(console: PatientConsole, result: DriverResult) -> None:
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


def _say(console: PatientConsole, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
