"""``dutperf run``, and a command for each procedure of the catalogue."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from dutperf.api.places import campaign_for, open_testbed, planned_testbeds
from dutperf.catalogue import PROCEDURES, ProcedureName
from dutperf.cli.console import PatientConsole, print_versioned, show_notice
from dutperf.cli.live_view import span
from dutperf.cli.measuring import measure
from dutperf.cli.options import (
    AllowHooks,
    AsJson,
    Deviations,
    Display,
    DryRun,
    Exact,
    LabNames,
    Output,
    Plain,
    Quick,
    Require,
    RequireJunit,
    Resume,
    Rules,
    SchedulerAddress,
    Standard,
    TestbedFile,
    TlsCa,
    TlsCert,
    TlsKey,
    Verbose,
    one_lab,
    preset_of,
)
from dutperf.cli.procedure_options import (
    DEFAULT_SEED,
    Seed,
    with_frame_options,
    with_procedure_options,
)
from dutperf.config import (
    Campaign,
    PlannedTestbed,
    Preset,
    Testbed,
    expand,
    located,
    with_preset,
)
from dutperf.config.campaign import requiring
from dutperf.config.phase2 import timing_of
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.model.specs import ProcedureSpec
from dutperf.procedures.events import OnEvent
from dutperf.remote.hub import SchedulerHub
from dutperf.remote.remote_executor import RemoteExecutor
from dutperf.remote.security import RUN, Certificates, checked_address
from dutperf.results import ResultsDirectory, stored_campaign
from dutperf.results.journal import JOURNAL
from dutperf.run import Executor
from dutperf.run.campaign_run import (
    ExecutorMaker,
    all_notices,
    campaign_to_run,
    virtual_testbeds,
)
from dutperf.run.engine_session import prepare_engine
from dutperf.run.local_executor import LocalExecutor, Surroundings
from dutperf.run.preview import (
    ASSUMPTION,
    CellEstimate,
    estimate,
    preview_frames,
    unopened,
)

# ``dutperf run --scheduler``: what measures is on other hosts.


def remote(scheduler: str, certificates: Certificates) -> ExecutorMaker:
    """Makes what has the workers of ``scheduler`` measure.

    Raises:
        InputError: it is no address that may be asked.
    """
    address = checked_address(scheduler, certificates)
    return partial(_remote_executor, address, certificates.or_own(RUN))


def _remote_executor(
    address: str,
    certificates: Certificates,
    around: Surroundings,
    directory: ResultsDirectory,
    on_event: OnEvent,
) -> Executor:
    run = secrets.token_hex(6)
    hub = SchedulerHub(address, certificates, run)
    return RemoteExecutor(hub, around, directory, on_event, run)


# ``dutperf run``: all procedures of a campaign file.


def run_command(
    campaign: Annotated[
        Path | None,
        typer.Argument(
            help="a campaign.yaml file; with --resume it may be left out",
            metavar="FILE",
        ),
    ] = None,
    output: Output = None,
    resume: Resume = None,
    allow_hooks: AllowHooks = False,
    scheduler: SchedulerAddress = None,
    dry_run: DryRun = False,
    standard: Standard = False,
    quick: Quick = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
    exact: Exact = False,
    plain: Plain = False,
    deviations: Deviations = False,
    require: Require = None,
    junit: RequireJunit = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
) -> None:
    """Run all procedures of a campaign file."""
    if dry_run and (output or resume):
        raise NOTHING_STORED
    if output and resume:
        raise InputError(
            "--resume continues in its own directory", "leave --output or --resume out"
        )
    if campaign is None and resume is None:
        raise InputError(
            "no campaign was given",
            "dutperf run FILE, for one of those in examples/; or --resume DIRECTORY",
        )
    if campaign and (campaign / JOURNAL).exists():
        raise InputError(
            f"{campaign}: is a results directory",
            f"to continue its run: dutperf run --resume {campaign}",
        )
    preset = preset_of(standard, quick)
    received = None if campaign else resume
    campaign = campaign or stored_campaign(resume or Path())
    asked = campaign_to_run(campaign, allowed=allow_hooks or dry_run, called=received)
    if preset:
        asked = with_preset(asked, preset)
        show_notice(
            f"--{preset}: times, repeats, tags and resolution are not those of "
            f"{campaign}"
        )
    with located(campaign):
        if dry_run:
            show_plan(requiring(asked, require or ()), as_json=as_json)
            return
        measure(
            asked,
            kind="campaign",
            output=output,
            display=Display(as_json, verbose, exact, plain, deviations, require, junit),
            resume=resume,
            make_executor=_executor(scheduler, Certificates(tls_ca, tls_cert, tls_key)),
        )


def _executor(scheduler: str | None, certificates: Certificates) -> ExecutorMaker:
    if scheduler is not None:
        return remote(scheduler, certificates)
    if certificates.given:
        raise InputError(
            "--tls-ca, --tls-cert and --tls-key are for --scheduler, which is missing",
            "add --scheduler tls://HOST:PORT, or leave them out",
        )
    return LocalExecutor


# A command for each procedure of the catalogue.


def command_of(name: ProcedureName) -> Callable[..., None]:
    """The command that measures a procedure at one testbed, or at a lab."""
    procedure = PROCEDURES[name]

    def command(
        spec: ProcedureSpec,
        preset: Preset | None,
        display: Display,
        testbed: TestbedFile = None,
        lab: LabNames = None,
        output: Output = None,
        dry_run: DryRun = False,
        rules: Rules = None,
        seed: Seed = DEFAULT_SEED,
    ) -> None:
        if dry_run and output:
            raise NOTHING_STORED
        campaign = campaign_for(spec, testbed, lab, rules, seed, preset)
        if dry_run:
            asked = requiring(campaign, display.require or ())
            show_plan(asked, as_json=display.as_json)
            return
        measure(campaign, kind=procedure.name, output=output, display=display)

    also = f"\n\nAlso called: {', '.join(procedure.also)}." if procedure.also else ""
    command.__doc__ = f"{procedure.finds}{also}"
    return with_procedure_options(procedure.name)(command)


# What a campaign would do, without doing it: no root, no lab, no frame.


NOTHING_STORED = InputError(
    "--dry-run measures and stores nothing",
    "leave it out, or else --output and --resume",
)
_PLAN_VERSION = 1
_MANY_CELLS = 1000
"""More of them take seconds, in which something is told."""
_AT_ONCE = 100


def show_plan(campaign: Campaign, *, as_json: bool) -> None:
    """Print the cells with the trials and the time that they are expected to take.

    Raises:
        InputError: what a run would refuse before its first frame.
    """
    planned = planned_testbeds(campaign)
    cells = expand(campaign, *(each.testbed for each in planned))
    found = _estimated(cells, virtual_testbeds(planned))
    for text in all_notices(campaign, planned, cells):
        show_notice(text)
    console = PatientConsole()
    if as_json:
        print_versioned(_PLAN_VERSION, _as_data(campaign, found))
        return
    for at in planned:
        here = [each for each in found if each.cell.testbed == at.testbed.name]
        if len(planned) > 1:
            kind = "lab" if at.lab else "testbed"
            console.out(f"{kind} {at.name}: {_effort(here)}", highlight=False)
        console.print(_table(here))
    console.out(f"{_effort(found)}; {ASSUMPTION}", highlight=False)
    if more := _most_added(cells):
        told = _counted(more, "more test case")
        console.out(f"sweeps may add up to {told}", highlight=False)


def _most_added(cells: Sequence[Cell]) -> int:
    """How many test cases sweeps may add to ``cells``."""
    sweeps = {
        (
            cell.testbed,
            cell.series,
            sweep.key == "frame_size" or str(cell.frame_sizes),
        ): (sweep.refine)
        for cell in cells
        if (sweep := cell.spec.sweep)
    }
    return sum(sweeps.values())


def _estimated(cells: Sequence[Cell], virtual: Collection[str]) -> list[CellEstimate]:
    if len(cells) <= _MANY_CELLS:
        return estimate(cells, virtual)
    found: list[CellEstimate] = []
    with PatientConsole(stderr=True).status("") as status:
        for first in range(0, len(cells), _AT_ONCE):
            status.update(f"{first:,} of {len(cells):,} test cases")
            found += estimate(cells[first : first + _AT_ONCE], virtual)
    return found


def _table(found: list[CellEstimate]) -> Table:
    table = Table()
    table.add_column("cell", overflow="fold")
    for name in ("repeats", "trials", "time"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in found:
        most = each.most or each
        table.add_row(
            each.cell.id,
            _range(f"{each.repeats}", f"{most.repeats}"),
            _range(f"{each.trials:,}", f"{most.trials:,}"),
            _range(span(each.duration_s), span(most.duration_s)),
        )
    return table


def _effort(found: list[CellEstimate]) -> str:
    trials, duration_s = _totals(found)
    most_trials, most_s = _totals([each.most or each for each in found])
    return (
        f"{_counted(len(found), 'test case')}, "
        f"{_range(f'{trials:,}', f'{most_trials:,}')} trials, about "
        f"{_range(span(duration_s), span(most_s))}"
    )


def _range(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"


def _as_data(campaign: Campaign, found: list[CellEstimate]) -> dict[str, object]:
    return {
        "name": campaign.name,
        "cells": [
            {
                "id": each.cell.id,
                "place": each.cell.testbed,
                **_numbers([each]),
                **_phases(each.cell),
            }
            for each in found
        ],
        **_numbers(found),
        "assumption": ASSUMPTION,
    }


def _numbers(found: list[CellEstimate]) -> dict[str, float]:
    """``most_...`` only where repeats depend on the device."""
    trials, duration_s = _totals(found)
    numbers = {"trials": trials, "duration_s": round(duration_s, 3)}
    if any(each.most for each in found):
        trials, duration_s = _totals([each.most or each for each in found])
        numbers |= {"most_trials": trials, "most_duration_s": round(duration_s, 3)}
    return numbers


def _phases(cell: Cell) -> dict[str, dict[str, float]]:
    """Times of a cell on open connections, where R is a number."""
    timing, stateful = timing_of(cell), cell.phase2
    if timing is None or stateful is None:
        return {}
    return {
        "stateful": {
            "connections": stateful.connections,
            "phase1_rate_fps": timing.rate_fps,
            "wait_ms": timing.wait_ms,
            "phase2_after_ms": timing.start_ms,
            "needed_dut_timeout_s": round(timing.dut_timeout_s, 3),
        }
    }


def _totals(found: list[CellEstimate]) -> tuple[int, float]:
    return sum(e.trials for e in found), sum(e.duration_s for e in found)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# ``dutperf frames``: what would be sent, as a pcap file.


@with_frame_options
def frames(
    spec: ProcedureSpec,
    pcap: Annotated[
        Path, typer.Option("--pcap", metavar="FILE", help="the file to write")
    ],
    testbed: TestbedFile = None,
    lab: LabNames = None,
    rules: Rules = None,
    count: Annotated[
        int,
        typer.Option(
            "--count", metavar="K", min=1, max=1_000_000, help="frames per direction"
        ),
    ] = 100,
    rate: Annotated[
        int,
        typer.Option(
            "--rate", metavar="FPS", min=1, max=10**12, help="of each direction"
        ),
    ] = 1000,
    seed: Seed = DEFAULT_SEED,
) -> None:
    """Write the first frames of a trial to a pcap file; send none of them.

    As root it opens the ports and asks the next hops for their MAC addresses, as a
    trial does; else MAC addresses that are not given are made up, and said to be.
    """
    _write_frames(
        campaign_for(spec, testbed, one_lab(lab), rules, seed),
        rate_fps=rate,
        count=count,
        pcap=pcap,
    )


def _write_frames(campaign: Campaign, *, rate_fps: int, count: int, pcap: Path) -> None:
    """Write the first ``count`` frames of each direction and say how many there are.

    Raises:
        DutperfError: as ``preview_frames``.
    """
    told = PatientConsole(stderr=True)

    def notify(text: str) -> None:
        told.print(f"notice: {text}", markup=False, highlight=False, soft_wrap=True)

    (planned,) = planned_testbeds(campaign)
    with _opened(planned, notify) as testbed:
        preview = preview_frames(
            campaign,
            testbed,
            prepare_engine,
            rate_fps=rate_fps,
            count=count,
            path=pcap,
            notify=notify,
        )
    PatientConsole().out(
        f"{preview.frames} frames of {preview.cell.id} are in {preview.path}",
        highlight=False,
    )


@contextmanager
def _opened(
    planned: PlannedTestbed, notify: Callable[[str], None]
) -> Iterator[Testbed]:
    """Where the frames would be sent; without root as much of it as can be."""
    if os.geteuid() == 0:
        with open_testbed(planned) as testbed:
            yield testbed
        return
    testbed, made_up = unopened(planned.testbed)
    notify(
        "without root no port is opened and no neighbour asked; made up are "
        f"{', '.join(made_up)}"
    )
    yield testbed
