"""``dutperf run``: all procedures of a campaign file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dutperf.cli.dry_run import NOTHING_STORED, show_plan
from dutperf.cli.failures import show_notice
from dutperf.cli.measuring import measure
from dutperf.cli.options import (
    AllowHooks,
    AsJson,
    Deviations,
    Display,
    DryRun,
    Exact,
    Output,
    Plain,
    Quick,
    Resume,
    Standard,
    Verbose,
    preset_of,
)
from dutperf.cli.remote_options import SchedulerAddress, TlsCa, TlsCert, TlsKey
from dutperf.cli.remote_run import remote
from dutperf.config import located, with_preset
from dutperf.errors import InputError
from dutperf.remote.security import Certificates
from dutperf.results import stored_campaign
from dutperf.run.campaign_run import ExecutorMaker
from dutperf.run.consent import campaign_to_run
from dutperf.run.local_executor import LocalExecutor


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
