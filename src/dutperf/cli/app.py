"""The commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dutperf.catalogue import PROCEDURES
from dutperf.cli.bench_alarms import bench_compare, bench_trend
from dutperf.cli.bench_command import bench
from dutperf.cli.bench_search import bench_search
from dutperf.cli.calibrate_command import calibrate_command
from dutperf.cli.compare_command import SidesCommand, compare
from dutperf.cli.convert_command import convert
from dutperf.cli.doctor_command import doctor
from dutperf.cli.dry_run import NOTHING_STORED, show_plan
from dutperf.cli.evidence_command import evidence
from dutperf.cli.examples import epilog
from dutperf.cli.export_command import export
from dutperf.cli.failures import PatientConsole, show_failure, show_notice
from dutperf.cli.frames import write_frames
from dutperf.cli.histograms import export_histograms_command
from dutperf.cli.lab_commands import lab_app
from dutperf.cli.measuring import measure
from dutperf.cli.options import (
    DEFAULT_SEED,
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
    Seed,
    Standard,
    TestbedFile,
    Verbose,
    preset_of,
    with_frame_options,
)
from dutperf.cli.procedure_commands import command_of
from dutperf.cli.query_command import query
from dutperf.cli.remote_options import SchedulerAddress, TlsCa, TlsCert, TlsKey
from dutperf.cli.remote_run import remote
from dutperf.cli.selftest_command import selftest
from dutperf.cli.serve_command import serve_command
from dutperf.cli.stream_command import stream
from dutperf.cli.testbeds import campaign_for
from dutperf.cli.trend_command import trend
from dutperf.cli.verify_command import verify
from dutperf.cli.worker_commands import scheduler as scheduler_command
from dutperf.cli.worker_commands import worker
from dutperf.config import ProcedureSpec, located, with_preset
from dutperf.defects import defect
from dutperf.errors import DutperfError, InputError
from dutperf.remote.security import Certificates
from dutperf.report import OVERVIEW, write_overview, write_report
from dutperf.results import stored_campaign
from dutperf.run.campaign_run import ExecutorMaker
from dutperf.run.consent import campaign_to_run
from dutperf.run.local_executor import LocalExecutor
from dutperf.versions import version_line

app = typer.Typer(
    name="dutperf",
    help="Benchmarks routers, translators and NAT gateways (RFC 2544, 5180, 8219).",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(lab_app, name="lab")
bench_app = typer.Typer(invoke_without_command=True, callback=bench)
bench_app.command("search")(bench_search)
bench_app.command("compare")(bench_compare)
bench_app.command("trend")(bench_trend)
app.add_typer(bench_app, name="bench")
app.command("export-histograms")(export_histograms_command)
app.command("selftest")(selftest)
app.command("doctor")(doctor)
app.command("calibrate")(calibrate_command)
app.command("evidence")(evidence)
app.command("verify")(verify)
app.command("convert")(convert)
app.command("compare", cls=SidesCommand)(compare)
app.command("query")(query)
app.command("trend")(trend)
app.command("export")(export)
app.command("serve")(serve_command)
app.command("stream")(stream)
app.command("worker")(worker)
app.command("scheduler")(scheduler_command)


for _procedure in PROCEDURES.values():
    app.command(_procedure.name)(command_of(_procedure))


@app.command("run")
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


@app.command("frames")
@with_frame_options
def frames(
    spec: ProcedureSpec,
    pcap: Annotated[
        Path, typer.Option("--pcap", metavar="FILE", help="the file to write")
    ],
    testbed: TestbedFile = None,
    lab: LabName = None,
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
    write_frames(
        campaign_for(spec, testbed, lab, rules, seed),
        rate_fps=rate,
        count=count,
        pcap=pcap,
    )


@app.command("report")
def report(
    directories: Annotated[
        list[Path], typer.Argument(metavar="DIRECTORY...", help="results directories")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"an overview of all; of several directories: {OVERVIEW}",
        ),
    ] = None,
) -> None:
    """Make report.html again from stored results; of several runs an overview, too."""
    reports = [write_report(directory) for directory in directories]
    if output is not None or len(directories) > 1:
        reports.append(write_overview(directories, output or Path(OVERVIEW)))
    PatientConsole().out(reports[-1], highlight=False)


def _show_version(value: bool) -> None:
    if value:
        PatientConsole().out(version_line(), highlight=False)
        raise typer.Exit


@app.callback()
def _every_command(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="show the versions of dutperf, its engine and DPDK, and the commit",
            callback=_show_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    pass


for _command in app.registered_commands:
    _command.epilog = epilog(_command.name or "")


def run(arguments: list[str]) -> int:
    """Run one command; returns the exit code, see ``cli.exit_codes``."""
    console = PatientConsole(stderr=True)
    try:
        app(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except DutperfError as error:
        show_failure(console, error)
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - the last resort, see failures.defect
        failure = defect(error, None)
        show_failure(console, failure)
        return failure.exit_code
    return 0
