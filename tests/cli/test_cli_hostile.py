"""Names and output from elsewhere stay words on the terminal of who measures."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import simulated_program
from hostile import MARKUP, NASTY, SHOWN, hook_run, hostile_results
from many_runs import stored_run
from rich.table import Table
from rich.text import Text
from simulated_program import PLACE

from dutperf.cli import app, console, lab_commands, summary
from dutperf.cli.console import PatientConsole, print_versioned, show_failure
from dutperf.cli.measuring import Show
from dutperf.cli.terminal import Terminal
from dutperf.doctor import Check
from dutperf.errors import InputError, defect
from dutperf.procedures.events import Notice, TestbedStarted, TrialFinished
from dutperf.results import ResultsFile
from dutperf.run.hook_runs import judged
from dutperf.visible import visible

PRINTED = r"\033[2J\302\233m\342\200\256boom\177"
CAMPAIGN = f"""\
name: demo
{PLACE}\
  hooks:
    after_trial:
      - command: [sh, -c, 'printf "$1"; false', sh, '{PRINTED}']
procedures:
  - procedure: frame-loss
    load_percent: [100]
    max_rate_fps: 1000
    restabilise_wait_s: 0
"""
FLAT = SHOWN.replace(" ", "")


class Screen(PatientConsole):
    """Of a terminal with colours; ``said`` is without what rich itself tells it."""

    def __init__(self, width: int = 400) -> None:
        super().__init__(file=io.StringIO(), width=width)

    @property
    def said(self) -> str:
        assert isinstance(self.file, io.StringIO)
        return self.file.getvalue()

    def told(self) -> str:
        """What it said, once it is certain that a terminal would obey none of it."""
        assert visible(self.said) == self.said
        return self.said


def test_of_texts_and_tables_nothing_is_obeyed_or_lost() -> None:
    table = Table(title=NASTY, caption=NASTY)
    table.add_column(NASTY, overflow="fold")
    table.add_row(NASTY)
    for renderable, times in ((NASTY, 1), (table, 4)):
        screen = Screen()
        screen.print(renderable, soft_wrap=True)
        assert screen.told().count(SHOWN) == times
    screen = Screen()
    screen.out(NASTY)
    assert screen.told() == f"{SHOWN}\n"
    screen.print(Text(NASTY))  # of which rich itself takes a few characters out
    assert MARKUP in screen.told()


def test_a_narrow_table_folds_a_hostile_name_and_loses_nothing() -> None:
    table = Table()
    table.add_column("cell", overflow="fold")
    table.add_row(NASTY)
    screen = Screen(width=40)
    screen.print(table)
    words = "".join(line.strip("│ ") for line in screen.told().splitlines()[3:-1])
    assert words.replace(" ", "") == FLAT


def test_a_console_still_has_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    screen = Screen()
    screen.print(Text(f"pass {NASTY}", "green"))
    assert screen.said.startswith("\x1b[32mpass \\x1b[2J")
    assert screen.said.count("\x1b") == 2


@pytest.mark.parametrize("show", [summary.show_summary, summary.show_all])
def test_the_results_at_the_end(show: Show) -> None:
    screen = Screen()
    show(screen, hostile_results(), Path(f"/tmp/{NASTY}/report.html"))
    told = screen.told()
    assert f"/tmp/{SHOWN}/report.html" in told
    assert MARKUP in told


def test_results_as_json_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    results = hostile_results()
    summary.show_json(screen, results)
    told = json.loads(screen.told())
    assert ResultsFile.model_validate(told) == results.model_copy(update={"trials": []})
    screen = Screen()
    monkeypatch.setattr("dutperf.cli.console.PatientConsole", lambda: screen)
    print_versioned(1, {NASTY: [NASTY]})
    assert json.loads(screen.told())[NASTY] == [NASTY]


def test_a_run_while_it_lasts() -> None:
    screen = Screen()
    terminal = Terminal(screen)
    record = hostile_results().trials[0]
    spoilt = judged(record.result, [hook_run(f"first\n{NASTY}\n")])
    for event in (
        Notice(NASTY),
        TestbedStarted(NASTY, 2),
        TrialFinished(record),
        TrialFinished(record.model_copy(update={"result": spoilt})),
    ):
        terminal.on_event(event)
    told = screen.told()
    assert f"notice: {SHOWN}\n{SHOWN}: 2 test cases\n" in told
    assert f"({SHOWN})" in told
    assert f"ended with exit code 2: first / {SHOWN}" in told


def test_failures_notices_and_defects(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = Screen()
    show_failure(screen, InputError(NASTY, NASTY))
    show_failure(screen, defect(ValueError(NASTY), tmp_path))
    assert screen.told().startswith(f"error: {SHOWN}\nhint: {SHOWN}\nerror: this is a")
    crash = (tmp_path / "crash.txt").read_text("utf-8")
    assert visible(crash) == crash
    assert SHOWN in crash
    console.show_notice(NASTY)
    assert capsys.readouterr().err == f"notice: {SHOWN}\n"


def test_a_traceback_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "crash.txt").symlink_to(tmp_path / "mine")
    told = defect(ValueError("odd"), tmp_path)
    assert "its traceback could not be stored" in told.hint
    assert (tmp_path / "mine").read_text() == "mine"


def test_what_the_machine_is_called() -> None:
    screen = Screen()
    check = Check("cpu_governor", "doubtful", found=NASTY, why=NASTY, cure=NASTY)
    lab_commands.show_checks(screen, [check])
    assert screen.told().count(SHOWN) == 3


@pytest.mark.parametrize(
    "arguments",
    [
        [NASTY],
        ["run", NASTY],
        ["run", "x.yaml", NASTY],
        ["run", f"--{NASTY}"],
        ["report", NASTY],
        ["frames", "--pcap", "x", "--ip", NASTY],
        ["selftest", "--stateful", "--cpus", NASTY],
    ],
)
def test_arguments_that_cannot_be_used(
    arguments: list[str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert app.run(arguments) == 2
    error = capsys.readouterr().err
    assert visible(error) == error
    assert r"\x1b" in error


def test_a_hook_that_prints_escapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the operator saw of it once: a screen that was cleared."""
    monkeypatch.chdir(tmp_path)
    Path("campaign.yaml").write_text(CAMPAIGN, "utf-8")
    monkeypatch.setattr(sys, "argv", ["dutperf", "run", "campaign.yaml"])
    simulated_program.main()
    told = capsys.readouterr()
    for text in (told.err, told.out):
        assert visible(text) == text
    assert r"\x1b[2J\x9bm\u202eboom\x7f" in told.err
    (results,) = Path("results").iterdir()
    for stored in results.iterdir():
        if stored.is_file():
            text = stored.read_text("utf-8")
            assert visible(text) == text, stored


@pytest.mark.parametrize(
    "command",
    [
        "run FIFO",
        "run --dry-run FIFO",
        "verify FIFO",
        "verify DIR",
        "report DIR",
        "evidence DIR",
        "export DIR --format csv",
        "compare DIR DIR",
        "trend DIR",
        "query DIR select*from(results)",
        "query FIFO select*from(results)",
        "evidence --sign FIFO --yes WHOLE",
        "verify --allowed-signers FIFO WHOLE",
        "report CAMPAIGN",
        "export CAMPAIGN --format csv",
        "report ENVIRONMENT",
        "lab up known-answer --behaviour FIFO",
        "convert FIFO",
        "worker --simulate 1 --tls-ca FIFO --tls-cert FIFO --tls-key FIFO",
    ],
)
def test_a_fifo_in_place_of_a_file_is_refused_and_not_waited_for(
    tmp_path: Path, command: str
) -> None:
    for name in ("WHOLE", "CAMPAIGN", "ENVIRONMENT"):
        stored_run(tmp_path / name, [])
    for name in ("CAMPAIGN/campaign.yaml", "ENVIRONMENT/environment.json"):
        (tmp_path / name).unlink(missing_ok=True)
        os.mkfifo(tmp_path / name)
    fifo, run = tmp_path / "fifo", tmp_path / "run"
    run.mkdir()
    for path in (fifo, *(run / f for f in ("results.json", "journal.jsonl"))):
        os.mkfifo(path)
    told = command.replace("FIFO", str(fifo)).replace("DIR", str(run)).split()
    done = subprocess.run(
        [sys.executable, "-c", "from dutperf.cli.main import main; main()", *told],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert "error: " in done.stderr
    assert "Traceback" not in done.stderr
