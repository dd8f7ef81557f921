"""``dutperf selftest``: the tester measured by itself, its ports connected.

What is found is the tester's own limit: a device that is measured near it is not what
limits. It is kept as this machine's passport, which results are held against.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from dutperf import lab
from dutperf.api.places import campaign_for, open_testbed, planned_testbeds
from dutperf.bench.benches import SelftestSettings, fell_short, run_selftest
from dutperf.cli import INTERRUPTED, INVALID
from dutperf.cli.console import PatientConsole, print_versioned, show_notice
from dutperf.cli.measuring import watched
from dutperf.cli.options import AsJson, LabNames, Output, Quick, TestbedFile, one_lab
from dutperf.cli.procedure_options import DEFAULT_SEED
from dutperf.cli.summary import entry_text, show_json
from dutperf.config import Campaign, PlannedTestbed, expand, load_testbed, spec_from
from dutperf.errors import InputError
from dutperf.model.frames import version_of
from dutperf.model.specs import ConnectionRateSpec
from dutperf.passport.keeping import VARIABLE, check_loop, directory, loop_of
from dutperf.passport.making import Maker, default_grid, describe
from dutperf.passport.measuring import FULL, SHORT
from dutperf.procedures.passport_use import sent_by
from dutperf.protocol.base import IpVersion
from dutperf.results import CellResult, ResultsFile, spread_of, valued
from dutperf.results.passport import Passport, PassportEntry, Sent
from dutperf.run.campaign_run import campaign_to_run
from dutperf.tables.table_model import count, duration

# ``dutperf selftest``: passports of the tester measured and printed.


_VERSION = 1


def measure_passports(
    testbed: Path | None,
    lab_name: str | None,
    campaign: Path | None,
    versions: Sequence[IpVersion],
    *,
    cabled: bool,
    quick: bool,
    as_json: bool,
) -> None:
    """Measure one of each kind of link that is asked for, and print them.

    Raises:
        DutperfError: a loop cannot be made, or not measured.
        typer.Exit: with 1 if no rate is safe with some of the frames.
    """
    wanted = _wanted(testbed, lab_name, campaign, versions)
    kept = directory()
    if kept is None:
        raise InputError(
            f"${VARIABLE} says that no passport is kept",
            "unset it, or name a directory",
        )
    maker = Maker(kept, open_testbed, pace=SHORT if quick else FULL)
    loops = [
        (check_loop(loop_of(planned, cabled=cabled)), sent) for planned, sent in wanted
    ]
    made = []
    for loop, sent in loops:
        try:
            made.append(maker.made(loop, sent, show_notice))
        except KeyboardInterrupt:
            show_notice("interrupted; what was measured is kept")
            raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_versioned(_VERSION, {"passports": [p.model_dump() for p in made]})
    else:
        for passport in made:
            _show_passport(PatientConsole(), passport)
    entries = [entry for passport in made for entry in passport.entries]
    if any(entry.safe_rate_fps is None for entry in entries):
        raise typer.Exit(INVALID)


def _wanted(
    testbed: Path | None,
    lab_name: str | None,
    campaign: Path | None,
    versions: Sequence[IpVersion],
) -> list[tuple[PlannedTestbed, list[Sent]]]:
    """Where, and what is sent there."""
    given = [each for each in (testbed, lab_name, campaign) if each is not None]
    if len(given) > 1:
        raise InputError(
            "give one of: a testbed file, --lab NAME, --campaign FILE",
            "with none of them, the links that most labs have are measured",
        )
    if campaign is not None:
        asked = campaign_to_run(campaign)
        planned = planned_testbeds(asked)
        cells = expand(asked, *(each.testbed for each in planned))
        return [
            (
                each,
                _distinct(s for c in cells if _at(c.testbed, each) for s in sent_by(c)),
            )
            for each in planned
        ]
    grid = list(default_grid(versions))
    if testbed is not None:
        return [(PlannedTestbed(testbed=load_testbed(testbed)), grid)]
    (planned_lab,) = planned_testbeds(_campaign_of(lab_name or lab.WIRE.name))
    return [(planned_lab, grid)]


def _campaign_of(lab_name: str) -> Campaign:
    return campaign_for(
        spec_from({"procedure": "throughput"}, "selftest"),
        None,
        lab_name,
        None,
        DEFAULT_SEED,
    )


def _at(name: str | None, planned: PlannedTestbed) -> bool:
    return name == planned.testbed.name


def _distinct(sent: Iterator[Sent]) -> list[Sent]:
    return list({each.model_dump_json(): each for each in sent}.values())


def _show_passport(console: Console, passport: Passport) -> None:
    table = Table(
        title=f"The tester without a device: {passport.owner.link} "
        f"(passport {passport.owner.name})"
    )
    table.add_column("frames", overflow="fold")
    apart = passport.owner.receive_cpu is not None
    for name in (
        "safe fps\nper direction",
        "trials\npassed",
        "highest\nfps",
        "lag\np99",
        "lag\nmax",
        "delay floor\ntypical",
        "\n99.9 %",
        "held\nframes",
        "device CPU\nper frame",
        *(["if it\nreceives, too"] if apart else []),
    ):
        table.add_column(name, justify="right")
    for entry in passport.entries:
        figures = _entry_figures(entry)
        if apart:
            figures.append(entry_text(duration(entry.device_ns_if_shared, 3)))
        table.add_row(describe(entry.sent), *figures)
    console.print(table)
    for entry in passport.entries:
        if entry.safe_rate_fps is None:
            console.print(
                f"{describe(entry.sent)}: no rate is safe: {entry.why_not}",
                markup=False,
                soft_wrap=True,
            )


def _entry_figures(entry: PassportEntry) -> list[str]:
    lag, floor = entry.lag, entry.floor
    each_ns = entry.device_ns_per_frame
    found = [
        count(entry.safe_rate_fps),
        count(entry.trials),
        count(entry.highest_rate_fps),
        duration(lag.p99_ns if lag else None, 3),
        duration(lag.max_ns if lag else None, 3),
        duration(floor.typical_ns if floor else None, 3),
        duration(floor.worst_ns if floor else None, 3),
        count(entry.held_frames),
        duration(each_ns, 3),
    ]
    return list(map(entry_text, found))


# ``dutperf selftest --stateful``: the tester's limits with connections, as a table.


_ROWS = {
    "phase 1": "phase 1: each frame another four-tuple, learned",
    "both": "phase 2, both directions, per direction",
    "forward": "phase 2, initiator to responder",
    "reverse": "phase 2, responder to initiator",
}


def measure_stateful(
    settings: SelftestSettings, output: Path | None, *, as_json: bool
) -> None:
    """Measure and print.

    Raises:
        DutperfError: as ``run_selftest``.
        typer.Exit: with 1 if something other than the tester ended a search.
    """
    results = watched(
        lambda on_event: run_selftest(settings, output, on_event),
        show_json if as_json else _show_limits,
    )
    if results and any(map(fell_short, results.cells)):
        raise typer.Exit(INVALID)


def _show_limits(
    console: PatientConsole, results: ResultsFile, report: Path | None
) -> None:
    console.print(_table(results.cells))
    for cell in filter(fell_short, results.cells):
        for reason in cell.reasons:
            console.print(f"{cell.id}: {reason.message}", markup=False, soft_wrap=True)
    if report:
        console.print(str(report), markup=False, soft_wrap=True)


def _table(cells: Sequence[CellResult]) -> Table:
    table = Table(title="The tester's own limits, stateful (ports crossed)")
    table.add_column("frames", overflow="fold")
    for name in ("four-tuples", "table, MiB", "median fps", "1st", "99th", "spread, N"):
        table.add_column(name, justify="right")
    for row in _rows(cells):
        table.add_row(*row)
    return table


def _rows(cells: Sequence[CellResult]) -> Iterator[list[str]]:
    for key, words in _ROWS.items():
        for cell in cells:
            is_phase1 = isinstance(cell.cell.spec, ConnectionRateSpec)
            if key == ("phase 1" if is_phase1 else cell.cell.direction):
                yield [words, *_figures(cell)]


def _figures(cell: CellResult) -> list[str]:
    opened = cell.cell.stateful.connections if cell.cell.stateful else 0
    bytes_each = 12 if version_of(cell.cell.ip, "right") == 4 else 36
    memory = f"{opened * bytes_each / 2**20:,.1f}"
    # What ends at the tester's limit is no lower bound here, but what is looked for.
    spread = spread_of(valued(cell.repeats)[0])
    if cell.median is None or spread is None:
        return [f"{opened:,}", memory, "-", "-", "-", "-"]
    return [
        f"{opened:,}",
        memory,
        entry_text(count(cell.median)),
        entry_text(count(spread.percentile_1)),
        entry_text(count(spread.percentile_99)),
        f"{spread.dispersion_percent:.1f} %, {spread.count}",
    ]


Stateful = Annotated[
    bool,
    typer.Option("--stateful", help="connections and learned four-tuples (RFC 9693)"),
]
Connections = Annotated[
    list[int] | None,
    typer.Option(
        min=1,
        max=2**32,
        metavar="N",
        help="how many, each 12 bytes; IPv6: 36",
        show_default="4000000",
    ),
]
Ip = Annotated[
    int | None,
    typer.Option(
        min=4, max=6, help="IP version, 4 or 6; default: both, with --stateful 4"
    ),
]
Cpus = Annotated[
    str, typer.Option(metavar="CPU[,CPU]", help="CPUs that send and receive")
]
Phase1Rate = Annotated[
    int,
    typer.Option(
        "--phase1-rate", min=1, metavar="FPS", help="of phase 1 before phase 2"
    ),
]
TrialDuration = Annotated[
    float,
    typer.Option(
        "--trial-duration", min=0.05, max=3600, metavar="S", help="of phase 2"
    ),
]
Width = Annotated[
    str, typer.Option(metavar="WIDTH", help="of each search, like 1% or 1000")
]
Repeats = Annotated[
    int, typer.Option(min=1, max=1000, metavar="N", help="of each search")
]


Cabled = Annotated[
    bool,
    typer.Option(
        "--cabled", help="the testbed's two ports are connected to each other"
    ),
]
Of = Annotated[
    Path | None,
    typer.Option(
        "--campaign",
        metavar="FILE",
        help="measure what this campaign sends; default: each feature, smallest frames",
    ),
]


def selftest(
    testbed: TestbedFile = None,
    lab: LabNames = None,
    campaign: Of = None,
    cabled: Cabled = False,
    quick: Quick = False,
    stateful: Stateful = False,
    connections: Connections = None,
    ip: Ip = None,
    cpus: Cpus = "0",
    phase1_rate_fps: Phase1Rate = 2_000_000,
    trial_duration_s: TrialDuration = 1.0,
    resolution: Width = "2%",
    repeats: Repeats = 3,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """What the tester itself can do: its ports connected, no device between them.

    Stored as the passport of this machine, which later results are held against. Ends
    with 1 if no rate is safe with some of the frames.
    """
    version = _version(ip)
    if not stateful:
        measure_passports(
            testbed,
            one_lab(lab),
            campaign,
            [version] if version else [4, 6],
            cabled=cabled,
            quick=quick,
            as_json=as_json,
        )
        return
    if testbed or lab or campaign:
        raise InputError(
            "--stateful crosses the engine's own ports: it takes no testbed, lab or "
            "campaign",
            "leave it out, or else --stateful",
        )
    settings = SelftestSettings(
        connections=tuple(connections or [4_000_000]),
        ip=version or 4,
        cpus=_numbers(cpus),
        phase1_rate_fps=phase1_rate_fps,
        trial_duration_s=trial_duration_s,
        resolution=resolution,
        repeats=repeats,
    )
    measure_stateful(settings, output, as_json=as_json)


def _version(ip: int | None) -> IpVersion | None:
    match ip:
        case None:
            return None
        case 4:
            return 4
        case 6:
            return 6
    raise InputError(f"--ip: {ip} is no IP version", "give 4 or 6")


def _numbers(cpus: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in cpus.split(","))
    except ValueError:
        raise InputError(
            f"--cpus: {cpus[:40]!r} is no list of CPU numbers", "give one, or 0,1"
        ) from None
