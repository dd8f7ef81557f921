"""``dutperf run``, and a command for each procedure of the catalogue."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from dutperf.catalogue import PROCEDURES, ProcedureName
from dutperf.cli.console import show_notice
from dutperf.cli.dry_run import NOTHING_STORED, show_plan
from dutperf.cli.measuring import measure
from dutperf.cli.options import (
    AllowHooks,
    AsJson,
    Deviations,
    Display,
    DryRun,
    Exact,
    LabName,
    Output,
    Plain,
    Quick,
    Resume,
    Rules,
    SchedulerAddress,
    Standard,
    TestbedFile,
    TlsCa,
    TlsCert,
    TlsKey,
    Verbose,
    preset_of,
)
from dutperf.cli.procedure_options import DEFAULT_SEED, Seed, with_procedure_options
from dutperf.cli.testbeds import campaign_for
from dutperf.config import Preset, located, with_preset
from dutperf.errors import InputError
from dutperf.model.specs import ProcedureSpec
from dutperf.procedures.events import OnEvent
from dutperf.remote.hub import SchedulerHub
from dutperf.remote.remote_executor import RemoteExecutor
from dutperf.remote.security import RUN, Certificates, checked_address
from dutperf.results import ResultsDirectory, stored_campaign
from dutperf.run.campaign_run import ExecutorMaker
from dutperf.run.consent import campaign_to_run
from dutperf.run.jobs import Executor
from dutperf.run.local_executor import LocalExecutor, Surroundings

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
            show_plan(asked, as_json=as_json)
            return
        measure(
            asked,
            kind="campaign",
            output=output,
            display=Display(as_json, verbose, exact, plain, deviations),
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
        lab: LabName = None,
        output: Output = None,
        dry_run: DryRun = False,
        rules: Rules = None,
        seed: Seed = DEFAULT_SEED,
    ) -> None:
        if dry_run and output:
            raise NOTHING_STORED
        campaign = campaign_for(spec, testbed, lab, rules, seed, preset)
        if dry_run:
            show_plan(campaign, as_json=display.as_json)
            return
        measure(campaign, kind=procedure.name, output=output, display=display)

    command.__doc__ = procedure.finds
    return with_procedure_options(procedure.name)(command)
