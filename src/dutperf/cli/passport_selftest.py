"""``dutperf selftest``: passports of the tester measured and printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table

from dutperf import lab
from dutperf.cli.exit_codes import INTERRUPTED, INVALID
from dutperf.cli.failures import PatientConsole, show_notice
from dutperf.cli.json_print import print_versioned
from dutperf.cli.procedure_options import DEFAULT_SEED
from dutperf.cli.table_print import entry_text
from dutperf.cli.testbeds import campaign_for, open_testbed, planned_testbeds
from dutperf.config import (
    Campaign,
    PlannedTestbed,
    expand,
    load_testbed,
    spec_from,
)
from dutperf.errors import InputError
from dutperf.passport.keeping import VARIABLE, check_loop, directory, loop_of
from dutperf.passport.making import Maker, default_grid, describe
from dutperf.passport.measuring import FULL, SHORT
from dutperf.procedures.passport_use import sent_by
from dutperf.protocol import IpVersion
from dutperf.results.passport import Passport, PassportEntry, Sent
from dutperf.run.consent import campaign_to_run
from dutperf.tables.table_model import count, duration

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
            _show(PatientConsole(), passport)
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


def _show(console: Console, passport: Passport) -> None:
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
