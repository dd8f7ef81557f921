"""Help of the commands at 80 columns, and their examples."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from meters import METERED
from typer.main import get_command
from typer.testing import CliRunner

from dutperf.catalogue import PROCEDURES
from dutperf.cli import app
from dutperf.cli.app import EXAMPLES
from dutperf.cli.command_help import show_help
from dutperf.cli.options import brief

COMMANDS: dict[str, Any] = get_command(app.whole()).commands  # type: ignore[attr-defined]
MEASURING = sorted(PROCEDURES)


def lines_of(commands: dict[str, Any], *before: str) -> Iterator[tuple[str, ...]]:
    yield (*before, "--help")
    for name, command in commands.items():
        yield from lines_of(getattr(command, "commands", {}), *before, name)


def help_of(*command: str) -> list[str]:
    shown = CliRunner().invoke(
        app.whole(), [*command, "--help"], env={"TERMINAL_WIDTH": "80", "COLUMNS": "80"}
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
def test_examples_are_command_lines_that_are_understood(
    line: str, tmp_path: Path
) -> None:
    _program, command, *arguments = shlex.split(line)
    COMMANDS[command].make_context(command, [*arguments])  # which it takes to pieces
    if command in PROCEDURES:
        lab = "nft-nat44" if command == "nat-log" else "known-answer"  # it has a log
        given = ["--lab", lab] if "--lab" not in arguments else []
        if command == "power":  # no lab has a meter
            given = [str(tmp_path / "testbed.yaml")]
            Path(given[0]).write_text(METERED.model_dump_json(exclude_none=True))
        asked = [word for word in arguments if word != "testbed.yaml"]
        assert app.run([command, *given, *asked, "--dry-run"]) == 0


def test_a_description_is_told_as_far_as_it_has_room_and_its_default_always() -> None:
    assert brief("wait") == "wait"
    assert brief("wait", 5) == "wait; default: 5"
    assert brief("wait; for late frames", 5) == "wait; for late frames; default: 5"
    assert brief(f"wait; {'x' * 60}; why; default: 5") == "wait; default: 5"


@pytest.mark.parametrize("line", [(), *lines_of(COMMANDS)], ids=" ".join)
def test_help_shown_without_the_commands_is_that_of_the_commands(
    line: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code = app.run(list(line))
    told = capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        show_help(list(line))
    assert (capsys.readouterr(), ended.value.code) == (told, code)


@pytest.mark.parametrize(
    "line",
    [
        ("nonsense", "--help"),
        ("throughput", "--nonsense", "--help"),
        ("throughput", "testbed.yaml", "--help"),
        ("lab", "nonsense", "--help"),
    ],
)
def test_whatever_else_is_asked_for_is_read_by_the_commands(
    line: tuple[str, ...],
) -> None:
    show_help(list(line))  # it returns


@pytest.mark.parametrize("line", ["--help", "throughput --help", "lab up --help"])
def test_help_is_there_at_once(line: str) -> None:
    """What takes long to load is not loaded: time itself depends on the machine."""
    script = (
        "import sys\n"
        "from dutperf.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "slow = {'pydantic', 'numpy', 'duckdb', 'jinja2', 'pyroute2', 'ruamel',\n"
        "        'distributed', 'hdrh', 'starlette', 'dutperf.cli.app'}\n"
        "assert not slow & set(sys.modules), slow & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script, *line.split()], check=True)
