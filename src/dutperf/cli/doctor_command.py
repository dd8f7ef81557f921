"""``dutperf doctor``: what in this machine may spoil a measurement."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from dutperf.cli.exit_codes import INVALID
from dutperf.cli.failures import PatientConsole
from dutperf.cli.json_print import print_versioned
from dutperf.cli.options import AsJson, TestbedFile
from dutperf.config import load_testbed
from dutperf.doctor import Check, Verdict, examine

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


def doctor(
    testbed: TestbedFile = None, seconds: Seconds = 2.0, as_json: AsJson = False
) -> None:
    """What in this machine may spoil a measurement, and what to do. Changes nothing.

    With a testbed its CPUs, memory and ports, else those that a lab would take. Ends
    with 1 if something is bad.
    """
    checks = examine(load_testbed(testbed) if testbed else None, seconds=seconds)
    if as_json:
        print_versioned(_VERSION, {"checks": [asdict(check) for check in checks]})
    else:
        show_checks(PatientConsole(), checks)
    if any(check.verdict == "bad" for check in checks):
        raise typer.Exit(INVALID)


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
