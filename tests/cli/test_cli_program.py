"""The program as a process, and its lab commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.main import get_command

from dutperf import lab
from dutperf.cli import app
from dutperf.cli.quick_answers import TABLE
from dutperf.programs import SOURCE_TREE, version_line

STATUS = lab.LabStatus(
    name="linux-router",
    since=datetime(2026, 1, 2, tzinfo=UTC),
    owner=None,
    alive=True,
    namespaces=("tester", "dut"),
    links=("tester/left",),
)


def test_python_m_dutperf_tells_its_version() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dutperf", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{version_line()}\n"
    assert not done.stderr


def test_the_version_is_told_without_loading_the_commands() -> None:
    script = (
        "import sys\n"
        "from dutperf.cli.main import main\n"
        "sys.argv = ['dutperf', '--version']\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "loaded = {'pydantic', 'typer', 'rich', 'pyroute2'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, text=True)
    assert done.returncode == 0


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_the_program_with_130_and_without_traceback(
    tmp_path: Path, signum: signal.Signals
) -> None:
    script = (
        "import os, sys\n"
        "from dutperf.cli import app, main\n"
        "sys.argv = ['dutperf', 'report']\n"
        f"app.run = lambda _arguments: os.kill(os.getpid(), {signum.value})\n"
        "main.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(SOURCE_TREE / "src")},
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_lab_list_says_when_no_lab_is_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lab, "running", list)
    monkeypatch.setattr(lab, "runs", dict)
    assert app.run(["lab", "list"]) == 0
    assert capsys.readouterr().out == "no lab is up\n"
    assert app.run(["lab", "list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"schema_version": 1, "labs": [], "runs": []}


def test_lab_list_shows_what_is_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lab, "running", lambda: [STATUS])
    monkeypatch.setattr(lab, "runs", dict)
    assert app.run(["lab", "list"]) == 0
    assert "linux-router  since 2026-01-02" in capsys.readouterr().out
    assert app.run(["lab", "list", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["labs"]
    assert (told["name"], told["owner"], told["alive"]) == ("linux-router", None, True)


def test_lab_list_tells_labs_apart_and_whose_the_cpus_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cpus = {"device": [7], "receive": [], "tester": [0]}
    named = replace(STATUS, own_name="a", cpus=cpus, shares_cpus=True)
    monkeypatch.setattr(lab, "running", lambda: [STATUS, named])
    monkeypatch.setattr(lab, "runs", lambda: {"process 9 (dutperf run x)": [2, 3]})
    assert app.run(["lab", "list"]) == 0
    nameless, shared, run = capsys.readouterr().out.splitlines()
    assert nameless.startswith("linux-router  ")
    assert "CPU" not in nameless
    assert shared.startswith("linux-router@a  ")
    assert "CPU 0 tester, 7 device (shared)" in shared
    assert run == "measuring: process 9 (dutperf run x)  CPU 2, 3"
    assert app.run(["lab", "list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [each["own_name"] for each in told["labs"]] == [None, "a"]
    assert told["runs"] == [{"who": "process 9 (dutperf run x)", "cpus": [2, 3]}]


def test_lab_orders_go_to_the_lab_that_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[object] = []

    def limit(*given: object) -> str:
        asked.append(given)
        return "done"

    def down(*_names: object, own_name: str | None, all_: bool) -> list[str]:
        asked.append((own_name, all_))
        return []

    monkeypatch.setattr(lab, "running", lambda: [replace(STATUS, own_name="b")])
    monkeypatch.setattr(lab, "limit_connections", limit)
    monkeypatch.setattr(lab, "down", down)
    assert app.run(["lab", "limit", "--connections", "9", "--name", "a"]) == 0
    assert app.run(["lab", "down", "--name", "a"]) == 0
    assert asked == [(9, None, "a"), ("a", False)]
    assert "no such lab was up; take down by --name: b" in capsys.readouterr().out


def test_lab_status_lists_the_devices(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lab, "running", list)
    assert app.run(["lab", "status"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in lab.LABS)


@pytest.mark.parametrize(
    ("gone", "told"),
    [([], "no lab was up\n"), (["linux-router"], "lab linux-router is down\n")],
)
def test_lab_down_says_what_it_took_down(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    gone: list[str],
    told: str,
) -> None:
    monkeypatch.setattr(lab, "running", list)
    monkeypatch.setattr(lab, "down", lambda _name, *, all_, **_: gone if all_ else [])
    assert app.run(["lab", "down", "--all"]) == 0
    assert capsys.readouterr().out == told


def test_an_unknown_lab_exits_with_2_and_the_nearest_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert app.run(["lab", "up", "linux-rooter"]) == 2
    assert "hint: did you mean 'linux-router'" in capsys.readouterr().err


def test_only_the_command_that_is_asked_for_is_loaded() -> None:
    script = (
        "import sys\n"
        "from dutperf.cli import app\n"
        "assert app.run(['report', '/nowhere']) == 2\n"
        "others = {'dutperf.comparison', 'dutperf.lab.state', 'dutperf.remote.security'"
        "} & set(sys.modules)\n"
        "assert not others, others\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_labs_are_listed_without_commands_and_models() -> None:
    script = (
        "import sys\n"
        "from dutperf.cli.quick_answers import listing\n"
        "assert listing(as_json=False)\n"
        "assert not {'pydantic', 'rich', 'typer'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_each_command_that_can_be_asked_for_is_known_before_it_is_loaded() -> None:
    known = json.loads(TABLE.read_text("utf-8"))["commands"]
    assert list(known) == list(get_command(app.whole()).commands)  # type: ignore[attr-defined]
