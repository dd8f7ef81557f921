"""``dutperf bench``: what the data path costs, alone and through a lab's device."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Literal

import typer
from rich.table import Table

from dutperf.api.places import campaign_for, dut_alive, open_testbed, planned_testbeds
from dutperf.bench.benches import (
    LabAccess,
    LabBench,
    Result,
    bench_data_path,
    bench_lab_path,
    path_spec,
)
from dutperf.bench.path_bench import PATH_DRIVERS, DriverResult, PathDriver, Rate
from dutperf.bench.path_profile import CpuProfile
from dutperf.cli import INTERRUPTED, INVALID
from dutperf.cli.console import PatientConsole, print_json, print_versioned
from dutperf.cli.options import AsJson, Rules
from dutperf.cli.procedure_options import DEFAULT_SEED
from dutperf.cli.terminal import Terminal
from dutperf.config.document import shown
from dutperf.errors import InputError
from dutperf.model.fields import written_number

# ``dutperf bench --lab NAME``: the whole path, and where the worker's time goes.


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
    _show_path(PatientConsole(), found, as_json=as_json)
    if not found.valid:
        raise typer.Exit(INVALID)


def _show_path(console: PatientConsole, found: LabBench, *, as_json: bool) -> None:
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


# ``dutperf bench``: what each mode of the data path costs on this machine.


_MAX_ENTRIES = 2**40  # of the engine's index draws
_MAX_CORES = 1024
_ROUNDS = 15
_LAB_ROUNDS = 3

Driver = Literal["af_xdp", "af_packet", "both"]

Cpu = Annotated[int, typer.Option(help="CPU to measure on")]
HugePages = Annotated[
    bool, typer.Option("--hugepages", help="take buffers from huge pages")
]
Rounds = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=1000,
        help="rounds; the medians are shown; default: 15, of a lab 3",
        show_default=False,
    ),
]
Entries = Annotated[
    str | None,
    typer.Option(
        metavar="N[,N...]",
        help="of the table of learned four-tuples; default: 4M",
        show_default=False,
    ),
]
Cores = Annotated[
    str | None,
    typer.Option(
        metavar="N[,N...]",
        help="how many shares of a direction, a core each; default: 1,2",
        show_default=False,
    ),
]
Instructions = Annotated[
    bool, typer.Option("--instructions", help="count instructions with valgrind")
]
Lab = Annotated[
    str | None,
    typer.Option(
        "--lab",
        metavar="NAME",
        help="measure the path through a lab's device instead",
        rich_help_panel="Path",
    ),
]
Drivers = Annotated[
    Driver, typer.Option(help="of the lab's ports", rich_help_panel="Path")
]
TrialDuration = Annotated[
    float,
    typer.Option(
        "--trial-duration",
        metavar="S",
        min=0.05,
        max=60,
        help="of each trial of the search",
        rich_help_panel="Path",
    ),
]


def bench(
    cpu: Cpu = 0,
    hugepages: HugePages = False,
    rounds: Rounds = None,
    entries: Entries = None,
    cores: Cores = None,
    instructions: Instructions = False,
    lab: Lab = None,
    rules: Rules = None,
    driver: Drivers = "both",
    trial_duration_s: TrialDuration = 1.0,
    as_json: AsJson = False,
) -> None:
    """Cycles per frame of each mode, and the ratio to what DPDK itself needs."""
    if lab is not None:
        bench_lab(
            lab,
            rules,
            None if driver == "both" else driver,
            rounds=rounds or _LAB_ROUNDS,
            trial_duration_s=trial_duration_s,
            as_json=as_json,
        )
        return
    if rules is not None:
        raise InputError("--rules is of a lab", "leave it out, or give --lab")
    result = bench_data_path(
        cpu,
        _sizes(entries) if entries is not None else [],
        _counts(cores) if cores is not None else [],
        hugepages=hugepages,
        rounds=rounds or _ROUNDS,
        instructions=instructions,
    )
    _show(result, as_json=as_json)


def _show(result: Result, *, as_json: bool) -> None:
    console = PatientConsole()
    if as_json:
        print_json(console, json.dumps(result, indent=2))
        return
    console.print(_table(result))
    console.print(_cores(result))
    told = [
        *_learned(result),
        *_between_cpus(result),
        *_pacing(result["pacing"]),
        *_connections(result["connections"]),
        _queries(result["queries"]),
        *_memif(result.get("memif")),
    ]
    for line in told:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _sizes(text: str) -> list[int]:
    return _numbers("entries", text, _MAX_ENTRIES, "4000000,400M")


def _counts(text: str) -> list[int]:
    return _numbers("cores", text, _MAX_CORES, "1,2")


def _numbers(option: str, text: str, most: int, example: str) -> list[int]:
    """Whole numbers, also as ``4M``; rising, each once."""
    numbers = set()
    for part in text.split(","):
        exact = written_number(part.strip().replace("_", ""))
        number = int(exact) if exact and exact.denominator == 1 else 0
        if not 1 <= number <= most:
            raise InputError(
                f"--{option}: {shown(part.strip())} is no number of {option}",
                f"whole numbers from 1 to {most:,}, separated by commas: {example}",
            )
        numbers.add(number)
    return sorted(numbers)


def _table(result: Result) -> Table:
    memory = "huge pages" if result["hugepages"] else "no huge pages"
    table = Table(title=f"Data path, CPU {result['cpu']}, {memory}")
    table.add_column("mode")
    for name in ("cycles per frame", "ratio to the floor", "instructions per frame"):
        table.add_column(name, justify="right")
    for mode in result["modes"]:
        counted = mode.get("instructions_per_frame")
        entries = f", {mode['entries']:,} entries" if "entries" in mode else ""
        table.add_row(
            mode["name"] + entries,
            f"{mode['cycles_per_frame']:.1f}",
            f"{mode['ratio']:.2f}",
            "" if counted is None else f"{counted:.1f}",
        )
    return table


def _learned(result: Result) -> Iterator[str]:
    table = result["table"]
    pages = "huge pages" if table["hugepages"] else "small pages"
    size = _mebibytes(table["memory_bytes"])
    yield (
        f"table of four-tuples: {table['entries']:,} entries of "
        f"{table['bytes_per_entry']} bytes, {size:,} MiB in {pages}, "
        f"allocated in {table['allocation_ns'] / 1e9:.2f} s"
    )
    if table["asked_entries"] > table["entries"]:
        needed = table["asked_entries"] * table["bytes_per_entry"]
        yield (
            f"not measured with {table['asked_entries']:,} entries: they need "
            f"{_mebibytes(needed):,} MiB, "
            f"{_mebibytes(table['available_bytes']):,} MiB are available"
        )
    cycles = {mode["name"]: mode["cycles_per_frame"] for mode in result["modes"]}
    for mode in result["modes"]:
        if mode["name"].startswith("receive.learn"):
            above = mode["cycles_per_frame"] - cycles["receive.count"]
            yield (
                f"{mode['name']}, {mode['entries']:,} entries: {above:.1f} cycles "
                "above receive.count"
            )


def _mebibytes(size: int) -> int:
    return -(-size // 2**20)


_WAYS = {
    "send": "send (net_null)",
    "loop": "send, receive what it sent (rings)",
    "across": "send, receive another core's",
    "handed_over": "the same, and hand it over",
}


def _cores(result: Result) -> Table:
    table = Table(title="Shares of a direction, a core each")
    for name in ("cores", "what"):
        table.add_column(name)
    for name in ("million fps", "cycles per frame", "times one core"):
        table.add_column(name, justify="right")
    table.add_column("cycles per frame of each share")
    for row in result["cores"]:
        for way in (way for way in _WAYS if way in row):
            found = row[way]
            shares = found["by_share_cycles_per_frame"]
            table.add_row(
                str(row["cores"]),
                _WAYS[way],
                f"{found['fps'] / 1e6:.1f}",
                f"{found['cycles_per_frame']:.1f}",
                f"{found['ratio']:.2f}",
                ", ".join(f"{cycles:.1f}" for cycles in shares),
            )
    return table


def _between_cpus(result: Result) -> Iterator[str]:
    cycles = result["there_and_back_cycles"]
    if cycles is None:
        yield "several cores: not measured, only one CPU is available"
        return
    yield f"a question from CPU to CPU takes {cycles:.0f} cycles there and back"


def _connections(connections: Result) -> Iterator[str]:
    told = (
        f"{name} {each['per_s'] / 1e6:.1f} million a second "
        f"({each['cycles_per_segment']:.0f} cycles a segment)"
        for name, each in connections.items()
    )
    yield f"TCP connections, both ends on one core, on rings: {', '.join(told)}"


def _queries(queries: Result) -> str:
    asked, answered = (
        queries[f"{what}_per_s_by_a_core"] / 1e6 for what in ("queries", "answers")
    )
    return (
        f"DNS queries, both ends on one core, on rings: {queries['per_s'] / 1e6:.1f} "
        f"million a second; a core for each end: {asked:.1f} million asked, "
        f"{answered:.1f} million answered"
    )


def _memif(memif: Result | None) -> Iterator[str]:
    """None: there was no second CPU for the device."""
    if memif is None:
        return
    if "skipped" in memif:
        yield f"memif: not measured, {memif['skipped']}"
        return
    yield (
        "one worker on memif, through a device on the other CPU that only moves "
        f"frames: {memif['fps_per_direction'] / 1e6:.1f} million sent and received in "
        f"each direction, {memif['cycles_per_frame']:.0f} cycles for both"
    )


def _pacing(pacing: Result) -> Iterator[str]:
    p50, p99, most = (pacing[f"lag_{name}_ns"] for name in ("p50", "p99", "max"))
    yield (
        f"at a tenth of one worker's limit, {pacing['rate_fps'] / 1e6:.1f} million: "
        f"median burst {pacing['burst_p50_frames']:g}, lag p50 {p50:,.0f} ns, p99 "
        f"{p99:,.0f} ns, largest {most:,.0f} ns (medians of the rounds)"
    )
