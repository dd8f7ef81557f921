"""What a shell is told, without the commands being loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dutperf.cli import quick_answers
from dutperf.reference import command_table


def completed(line: str, shell: str = "bash") -> list[str]:
    words = line.split(" ")
    environment = {quick_answers.VARIABLE: f"complete_{shell}"}
    if shell == "bash":
        environment |= {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    else:
        environment["_TYPER_COMPLETE_ARGS"] = line
    told = quick_answers.answer(environment)
    assert told is not None
    return told.splitlines()


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("results/demo-1", "results/demo-2", "results/other", "elsewhere"):
        Path(name).mkdir(parents=True)
    for number in (1, 2):
        Path(f"results/demo-{number}/journal.jsonl").touch()


def test_the_table_is_that_of_the_commands() -> None:
    assert quick_answers.TABLE.read_text("utf-8") == command_table(), (
        "run: python -m dutperf.reference"
    )


def test_commands_and_their_options_are_completed() -> None:
    assert completed("dutperf thr") == ["throughput"]
    assert {"up", "down", "list"} <= set(completed("dutperf lab "))
    assert completed("dutperf throughput --frame-s") == ["--frame-size"]
    assert completed("dutperf throughput --lab known-answer --frame-s") == [
        "--frame-size"
    ]
    assert completed("dutperf nonsense --fr") == []


def test_values_of_options_are_completed() -> None:
    assert "linux-router" in completed("dutperf throughput --lab ")
    assert completed("dutperf throughput --search cl") == ["classic"]
    assert "linux-router" in completed("dutperf lab up ")
    assert completed("dutperf throughput --repeats ") == []


def test_results_directories_are_completed() -> None:
    assert completed("dutperf run --resume results/d") == [
        "results/demo-1",
        "results/demo-2",
    ]
    assert completed("dutperf report results/demo-2") == ["results/demo-2"]
    begun = completed("dutperf report ")
    assert {"results/demo-1", "results/demo-2", "elsewhere/"} <= set(begun)
    assert completed("dutperf report /no/such/place") == []
    assert completed("dutperf report \x00") == []


def test_other_shells_get_what_typers_scripts_expect() -> None:
    told = "\n".join(completed("dutperf run --dry", "zsh"))
    assert told.startswith(
        '_arguments \'*: :(("--dry-run":"print test cases, trials and'
    )
    assert completed("dutperf no-such", "zsh") == ["_files"]
    (line,) = completed("dutperf run --dry", "fish")
    assert line.startswith("--dry-run\tprint test cases")


def test_a_directory_of_somebody_else_is_no_command_for_the_shell() -> None:
    name = "results/x'$(touch boom)`touch boom`\";:"
    Path(name).mkdir()
    Path(name, "journal.jsonl").touch()
    told = "\n".join(completed("dutperf report results/x", "zsh"))
    inside = told.removeprefix("_arguments '*: :((").removesuffix("))'")
    assert not set("'`$\\") & set(inside)


def test_it_is_quick_and_says_nothing_else() -> None:
    script = (
        "import sys\n"
        "from dutperf.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "loaded = {'pydantic', 'typer', 'rich', 'pyroute2'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    asked = {"COMP_WORDS": "dutperf th", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | asked | {quick_answers.VARIABLE: "complete_bash"},
        capture_output=True,
        check=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("throughput\n", "")
