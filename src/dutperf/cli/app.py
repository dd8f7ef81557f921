"""The commands, of which only the one that is asked for is loaded."""

from __future__ import annotations

import inspect
import json
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer

from dutperf.catalogue import PROCEDURES
from dutperf.cli import command_help  # noqa: F401 - flags have no type there
from dutperf.cli.console import PatientConsole, show_failure
from dutperf.cli.quick_answers import TABLE
from dutperf.errors import DutperfError, InputError, defect

# Examples at the end of a command's help; each is a whole command line.


EXAMPLES: dict[str, tuple[str, ...]] = {
    "run": (
        "dutperf run examples/demo.yaml --quick",
        "dutperf run examples/demo.yaml --dry-run",
        "dutperf run --resume results/demo-20260304T050607",
    ),
    "stream": (
        "dutperf stream --lab tayga-siit --rate 10k",
        "dutperf stream testbed.yaml --rate 100000 --frame-size 1518",
        "dutperf stream testbed.yaml --rate 1.5M --plain --duration 60 --json",
    ),
    "frames": (
        "dutperf frames --lab linux-router --pcap frames.pcap --count 10",
        "dutperf frames testbed.yaml --pcap frames.pcap --imix aaafg",
    ),
    "selftest": ("dutperf selftest --lab linux-router --quick",),
    "report": ("dutperf report results/demo-20260304T050607",),
    "verify": ("dutperf verify results/demo-20260304T050607",),
} | {name: known.examples for name, known in PROCEDURES.items()}


def epilog(command: str) -> str | None:
    """The examples of ``command``, a line each; None: it has none."""
    lines = EXAMPLES.get(command)
    return "\n\n".join(("Examples:", *lines)) if lines else None


MEASURE, LOOK, TRUST, HOSTS = "Measure", "Look", "Trust", "Many hosts"
_WHERE = {
    "run": "run_command:run_command",
    "stream": "stream_command:stream",
    "frames": "run_command:frames",
    "lab": "lab_commands:lab_app",
    "convert": "convert_command:convert",
    "report": "export_command:report",
    "compare": "compare_command:compare",
    "trend": "query_command:trend",
    "query": "query_command:query",
    "serve": "export_command:serve_command",
    "export": "export_command:export",
    "export-histograms": "export_command:export_histograms_command",
    "doctor": "lab_commands:doctor",
    "selftest": "selftest_command:selftest",
    "bench": "bench_command:bench",
    "evidence": "verify_command:evidence",
    "verify": "verify_command:verify",
    "scheduler": "worker_commands:scheduler",
    "worker": "worker_commands:worker",
}
"""Module and name of each command that is no procedure's."""
_LAST = {
    MEASURE: "convert",
    LOOK: "export-histograms",
    TRUST: "verify",
    HOSTS: "worker",
}
"""The last command of each part of the help, in the order of ``_WHERE``."""


def panel_of(command: str) -> str:
    """Under which heading the help has it; procedures are what measures."""
    names = list(_WHERE)
    if command not in names:
        return MEASURE
    place = names.index(command)
    return next(part for part, last in _LAST.items() if place <= names.index(last))


@cache
def whole() -> typer.Typer:
    """The program with all of its commands."""
    made = _program()
    first, *others = _WHERE
    for name in (first, *PROCEDURES, *others):
        _add(made, name)
    return made


def _asked_for(arguments: list[str]) -> typer.Typer:
    """The program with one command; of the others it knows that they are there."""
    first = next((each for each in arguments if not each.startswith("-")), None)
    if first is None:
        return whole()
    plain = first.lower().replace("-", " ")
    for each in PROCEDURES.values():
        if plain in (other.lower().replace("-", " ") for other in each.also):
            raise InputError(f"{first} is called {each.name}", f"dutperf {each.name}")
    made = _program()
    for name in json.loads(TABLE.read_text("utf-8"))["commands"]:
        if name == first:
            _add(made, name)
        else:
            made.command(name)(_not_loaded)
    return made


def _program() -> typer.Typer:
    made = typer.Typer(
        name="dutperf",
        help="Benchmarks routers, translators and NAT gateways (RFC 2544, 5180, 8219).",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    made.callback()(_every_command)
    return made


def _add(program: typer.Typer, name: str) -> None:
    command: Any
    if name in _WHERE:
        file, _, attribute = _WHERE[name].partition(":")
        module = import_module(f"dutperf.cli.{file}")
        command = getattr(module, attribute)
    else:
        module = import_module("dutperf.cli.run_command")
        command = module.command_of(name)
    if isinstance(command, typer.Typer):
        program.add_typer(command, name=name, rich_help_panel=panel_of(name))
    else:
        program.command(
            name,
            cls=getattr(module, "PARSER", None),
            help=_flowing(command.__doc__ or ""),
            epilog=epilog(name),
            rich_help_panel=panel_of(name),
        )(command)


def _flowing(text: str) -> str:
    """Paragraphs of one line each: a terminal breaks them where it ends."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(each.replace("\n", " ") for each in paragraphs)


def _not_loaded() -> None:
    pass


def _show_version(value: bool) -> None:
    if value:
        from dutperf.programs import version_line  # noqa: PLC0415 - only for that

        PatientConsole().out(version_line(), highlight=False)
        raise typer.Exit


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


def run(arguments: list[str], program: typer.Typer | None = None) -> int:
    """Run one command; returns the exit code, see ``cli.EXIT_CODES``.

    ``program``: whose command it is, if not dutperf's.
    """
    console = PatientConsole(stderr=True)
    try:
        (program or _asked_for(arguments))(arguments)
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
