"""``dutperf lab`` and ``dutperf doctor``: devices on this machine, and itself."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from dutperf import lab
from dutperf.cli import INVALID
from dutperf.cli.console import PatientConsole, print_json, print_versioned, show_notice
from dutperf.cli.options import AsJson, Rules, TestbedFile
from dutperf.cli.quick_answers import listing
from dutperf.config import load_testbed
from dutperf.config.campaign import LabKeys
from dutperf.doctor import Check, Verdict
from dutperf.doctor.checks import examine
from dutperf.doctor.cpu_checks import ScalePlan, scale_plan
from dutperf.errors import InputError
from dutperf.model.fields import written_number
from dutperf.protocol.base import MAX_SHARES

# ``dutperf lab``: devices under test in network namespaces.


lab_app = typer.Typer(
    help="Real devices under test in network namespaces; no hardware needed.",
    no_args_is_help=True,
)
OwnName = Annotated[
    str | None,
    typer.Option(
        "--name",
        metavar="NAME",
        help="of several labs at once; measure with it: --lab DEVICE@NAME",
    ),
]
_DEVICES = ", ".join(lab.LABS)


@lab_app.command("up")
def up(
    name: Annotated[str, typer.Argument(help=f"one of: {_DEVICES}")],
    behaviour: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="JSON, for known-answer; see examples/known-answer"
        ),
    ] = None,
    rules: Rules = None,
    own_name: OwnName = None,
    share_cpus: Annotated[
        bool,
        typer.Option(
            "--share-cpus", help="also on CPUs of other labs or runs; results say so"
        ),
    ] = False,
) -> None:
    """Bring a lab up; it stays until 'lab down'."""
    told = lab.read_behaviour(behaviour) if behaviour else None
    called = name if own_name is None else f"{name}@{own_name}"
    keys = LabKeys(name=called, behaviour=told, rules=rules)
    testbed = lab.up(keys, share=share_cpus)
    named = "" if keys.own_name is None else f" --name {keys.own_name}"
    _say(f"lab {called} is up: {testbed.description}")
    _say(f"measure: dutperf throughput --lab {called}")
    _say(f"take it down: dutperf lab down{named}")


@lab_app.command("down")
def down(
    name: Annotated[
        str | None, typer.Argument(help="default: the one that is up")
    ] = None,
    own_name: OwnName = None,
    all_: Annotated[
        bool,
        typer.Option(
            "--all", help="also a lab that a process is using; without names: all labs"
        ),
    ] = False,
) -> None:
    """Take a lab down; nothing of it is left."""
    gone = lab.down(name, own_name=own_name, all_=all_)
    _say("\n".join(f"lab {one} is down" for one in gone) or _none_was_up())


@lab_app.command("set")
def set_(
    behaviour: Annotated[
        Path, typer.Argument(metavar="FILE", help="see examples/known-answer")
    ],
    own_name: OwnName = None,
) -> None:
    """Tell the known-answer device something else; it goes on running."""
    lab.known_answer_device(own_name).configure(lab.read_behaviour(behaviour))
    _say(f"the known-answer device does as {behaviour} says")


@lab_app.command("limit")
def limit(
    connections: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=2**31 - 1, help="size of the table"),
    ] = None,
    udp_timeout: Annotated[
        int | None,
        typer.Option(metavar="S", min=1, max=2**31 - 1, help="of UDP, in seconds"),
    ] = None,
    own_name: OwnName = None,
) -> None:
    """Give the kernel's table of the gateway that is up another size or timeout."""
    _say(lab.limit_connections(connections, udp_timeout, own_name))


@lab_app.command("account")
def account(
    trial: Annotated[
        int | None, typer.Option(min=1, max=65535, help="of this trial only")
    ] = None,
    own_name: OwnName = None,
) -> None:
    """Print what the known-answer device did in its last eight trials, as JSON."""
    report = lab.known_answer_device(own_name).report(trial)
    chosen = report if trial is None else report.trial(trial)
    print_json(PatientConsole(), chosen.model_dump_json(indent=2))


@lab_app.command("list")
def list_(
    as_json: AsJson = False,
) -> None:
    """List the labs that are up, and the runs that go on."""
    if os.geteuid() != 0:
        show_notice("labs and runs are seen by root alone: run this as root")
    _say(listing(as_json=as_json))


@lab_app.command("status")
def status() -> None:
    """Show the labs that are up, and the devices that there are."""
    list_()
    _say("\ndevices:")
    for name, device in lab.LABS.items():
        _say(f"  {name}  {device.description}")


def _none_was_up() -> str:
    named = [status.own_name for status in lab.running() if status.own_name]
    others = ", ".join(named)
    return (
        f"no such lab was up; take down by --name: {others}"
        if named
        else "no lab was up"
    )


def _say(text: str) -> None:
    PatientConsole().out(text, highlight=False)


# ``dutperf doctor``: what in this machine may spoil a measurement.


_VERSION = 1
_COLOURS: dict[Verdict, str] = {
    "good": "green",
    "doubtful": "yellow",
    "bad": "red",
    "unknown": "dim",
}
_WIDTH = 8

Seconds = Annotated[
    float,
    typer.Option(
        min=0,
        max=3600,
        metavar="S",
        help="how long to watch each CPU; 0: not",
    ),
]


LinkRate = Annotated[
    str | None,
    typer.Option(
        "--plan",
        metavar="RATE",
        help="look at nothing; tell what a link of so many bits a second takes: 100G",
    ),
]
PlannedSize = Annotated[
    int, typer.Option("--frame-size", min=64, max=9720, help="of --plan, with FCS")
]
PlannedDuration = Annotated[
    float, typer.Option("--trial-duration", min=0.01, max=86400, help="of --plan, in s")
]
CoreRate = Annotated[
    str,
    typer.Option(
        "--per-core",
        metavar="FPS",
        help="of --plan: what a core sends",
    ),
]


def doctor(
    testbed: TestbedFile = None,
    seconds: Seconds = 2.0,
    as_json: AsJson = False,
    plan: LinkRate = None,
    frame_size: PlannedSize = 64,
    trial_duration: PlannedDuration = 60.0,
    per_core: CoreRate = "10M",
) -> None:
    """What in this machine may spoil a measurement, and what to do. Changes nothing.

    With a testbed its CPUs, memory and ports, else those that a lab would take. Ends
    with 1 if something is bad.
    """
    if plan is not None:
        link_mbps = _whole(plan, "--plan", "100G", 10**6) // 10**6
        core_fps = _whole(per_core, "--per-core", "12M")
        found = scale_plan(link_mbps, frame_size, trial_duration, core_fps)
        if as_json:
            print_versioned(_VERSION, {"plan": asdict(found)})
        else:
            _show_plan(PatientConsole(), found, f"{plan}b/s", frame_size)
        return
    checks = examine(load_testbed(testbed) if testbed else None, seconds=seconds)
    if as_json:
        print_versioned(_VERSION, {"checks": [asdict(check) for check in checks]})
    else:
        show_checks(PatientConsole(), checks)
    if any(check.verdict == "bad" for check in checks):
        raise typer.Exit(INVALID)


def _whole(text: str, option: str, example: str, least: int = 1) -> int:
    number = written_number(text)
    if number is None or number.denominator != 1 or not least <= number <= 10**15:
        raise InputError(f"{option} {text}: is no rate", f"for example {example}")
    return int(number)


def _show_plan(
    console: PatientConsole, found: ScalePlan, link: str, frame_size: int
) -> None:
    lines = {
        "line rate": f"{found.line_fps:,} fps per direction: {link}, {frame_size} "
        "bytes",
        "shares": f"{found.shares}, each with a queue of every port both ways",
        "cores": f"{found.cores}: each sends or receives one share of one direction",
        "memory_mb": f"{found.memory_mb:,}, in {found.huge_pages:,} huge pages of 2 MB",
        "tracking_mb": f"{found.tracking_mb:,}: a bit a frame of a trial",
        "beside": f"{found.other_mb:,} MB of other memory",
    }
    for name, told in lines.items():
        console.print(f"{name:<11}  {told}", highlight=False, soft_wrap=True)
    if found.shares > MAX_SHARES:
        console.print(
            f"More than {MAX_SHARES} shares are not built: raise --per-core if "
            "'dutperf bench' says so, or send larger frames.",
            highlight=False,
        )


def show_checks(console: PatientConsole, checks: list[Check]) -> None:
    """A line each; below what is not good why it matters, and the cure."""
    longest = max(len(check.name) for check in checks)
    for check in checks:
        name = check.name.replace("_", " ")
        console.print(
            Text(f"{check.verdict:<{_WIDTH}}", _COLOURS[check.verdict]),
            f"{name:<{longest}}  {check.found}",
            sep="  ",
            highlight=False,
            soft_wrap=True,
        )
        for text in filter(
            None, (check.why, f"cure: {check.cure}" if check.cure else "")
        ):
            console.print(
                f"{' ' * (_WIDTH + longest + 4)}{text}",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
    console.print(_in_sum(checks), highlight=False)


def _in_sum(checks: list[Check]) -> str:
    counts = {
        verdict: sum(c.verdict == verdict for c in checks) for verdict in _COLOURS
    }
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    return f"{len(checks)} checks: {told}; nothing was changed"
