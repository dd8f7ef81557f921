"""Help of the commands at 80 columns, and their examples."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from dutperf.catalogue import PROCEDURES
from dutperf.cli import app
from dutperf.cli.examples import EXAMPLES
from dutperf.cli.option_help import brief

COMMANDS: dict[str, Any] = get_command(app.app).commands  # type: ignore[attr-defined]
MEASURING = sorted(PROCEDURES)


def help_of(*command: str) -> list[str]:
    shown = CliRunner().invoke(
        app.app, [*command, "--help"], env={"TERMINAL_WIDTH": "80", "COLUMNS": "80"}
    )
    assert shown.exit_code == 0
    return shown.output.splitlines()


def rows(lines: list[str]) -> dict[str, int]:
    """Option -> lines that it takes."""
    found: dict[str, int] = {}
    option = ""
    for line in lines:
        begun = re.match(r"│ (?:\* {2}| {3})?(--[\w-]+)", line)
        if begun:
            option = begun[1]
            found[option] = 1
        elif line.startswith("│ ") and option:
            found[option] += 1
        else:
            option = ""
    return found


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_no_option_takes_more_than_two_lines_of_80_columns(command: str) -> None:
    lines = help_of(command)
    assert max(map(len, lines)) <= 80
    too_long = [name for name, count in rows(lines).items() if count > 2]
    assert not too_long


@pytest.mark.parametrize("command", MEASURING)
def test_the_first_ten_options_stand_first_and_the_rest_by_subject(
    command: str,
) -> None:
    lines = help_of(command)
    panels = [line for line in lines if line.startswith("╭")]
    assert [panel.split()[1] for panel in panels[:2]] == ["Arguments", "Options"]
    first = lines[lines.index(panels[1]) : lines.index(panels[2])]
    assert len(rows(first)) <= 11
    assert {"--lab", "--quick", "--dry-run", "--output"} <= set(rows(first))
    assert any("What is shown" in panel for panel in panels)


@pytest.mark.parametrize("command", [*MEASURING, "run"])
def test_help_ends_with_examples(command: str) -> None:
    lines = [line.strip() for line in help_of(command) if line.strip()]
    place = lines.index("Examples:")
    assert place >= len(lines) - 10
    assert lines[place + 1].startswith(f"dutperf {command} ")


@pytest.mark.parametrize(
    "line", [line for lines in EXAMPLES.values() for line in lines]
)
def test_examples_are_command_lines_that_are_understood(line: str) -> None:
    _program, command, *arguments = shlex.split(line)
    COMMANDS[command].make_context(command, arguments)
    if command in PROCEDURES and "--lab" in arguments:
        assert app.run([command, *arguments, "--dry-run"]) == 0


def test_a_description_is_told_as_far_as_it_has_room_and_its_default_always() -> None:
    assert brief("wait") == "wait"
    assert brief("wait", 5) == "wait; default: 5"
    assert brief("wait; for late frames", 5) == "wait; for late frames; default: 5"
    assert brief(f"wait; {'x' * 60}; why; default: 5") == "wait; default: 5"
