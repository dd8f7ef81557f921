"""``python -m tools``: the tools as commands of one program."""

from __future__ import annotations

import sys

import typer

from dutperf.cli.app import run
from dutperf.cli.main import end_with
from tools.alarms import compare_alarms, soak_alarms, trend_alarms
from tools.calibrate.command import calibrate_command
from tools.mutants_cpp import mutants_cpp
from tools.nics.command import nics
from tools.pictures import pictures
from tools.searches import compare_searches

PROGRAM = typer.Typer(
    name="tools",
    help="Shows that dutperf is right, and how well its tests notice if it is not.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
PROGRAM.command("calibrate")(calibrate_command)
PROGRAM.command("compare-searches")(compare_searches)
PROGRAM.command("compare-alarms")(compare_alarms)
PROGRAM.command("trend-alarms")(trend_alarms)
PROGRAM.command("soak-alarms")(soak_alarms)
PROGRAM.command("mutants-cpp")(mutants_cpp)
PROGRAM.command("pictures")(pictures)
PROGRAM.command("nics")(nics)

if __name__ == "__main__":
    end_with(lambda: run(sys.argv[1:], PROGRAM))
