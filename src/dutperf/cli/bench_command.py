"""``dutperf bench``: what each mode of the data path costs on this machine.

With ``--lab`` the whole path is measured instead, see ``path_bench_command``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Annotated, Literal

import typer
from rich.table import Table

from dutperf.bench.data_path import Result, bench_data_path
from dutperf.cli.failures import PatientConsole
from dutperf.cli.json_print import print_json
from dutperf.cli.options import AsJson, Rules
from dutperf.cli.path_bench_command import bench_lab
from dutperf.config.document import shown
from dutperf.errors import InputError

_MAX_ENTRIES = 2**40  # of the engine's index draws
_SUFFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
_SIZE = re.compile(r"(\d[\d_]{0,20})([kMG]?)", re.ASCII)
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
    told = [
        *_learned(result),
        *_workers(result["workers"]),
        *_pacing(result["pacing"]),
        *_memif(result.get("memif")),
    ]
    for line in told:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _sizes(text: str) -> list[int]:
    """Of ``--entries``: whole numbers, also as ``4M``; rising, each once."""
    sizes = set()
    for part in text.split(","):
        found = _SIZE.fullmatch(part.strip())
        size = int(found[1].replace("_", "")) * _SUFFIXES[found[2]] if found else 0
        if not 1 <= size <= _MAX_ENTRIES:
            raise InputError(
                f"--entries: {shown(part.strip())} is no number of entries",
                f"whole numbers from 1 to {_MAX_ENTRIES:,}, separated by commas: "
                "4000000,400M",
            )
        sizes.add(size)
    return sorted(sizes)


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


def _workers(workers: Result) -> Iterator[str]:
    one = workers["one"]
    yield f"one worker on net_null: {one['fps'] / 1e6:.1f} million frames per second"
    if "skipped" in workers:
        yield f"two workers: not measured, {workers['skipped']}"
        return
    first, second = workers["cpus"]
    yield (
        f"two workers on CPUs {first} and {second}: "
        f"{workers['two']['fps'] / 1e6:.1f} million, {workers['ratio']:.2f} times one; "
        f"a question from CPU to CPU takes {workers['there_and_back_cycles']:.0f} "
        "cycles there and back"
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
