"""What the documents tell their readers to do is done here, page by page.

Devices are simulated; what needs a real lab is done in ``tests/live`` again.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from document_steps import DOCS, ROOT, Command, mentioned, steps, understand
from ruamel.yaml import YAML

from dutperf import lab
from dutperf.api import places
from dutperf.api.places import planned_testbeds
from dutperf.catalogue import PROCEDURES
from dutperf.cli import app, run_command
from dutperf.config import Campaign, Testbed, expand
from dutperf.config.campaign import LabKeys
from dutperf.config.testbed import Hooks
from dutperf.lab import lifecycle
from dutperf.routing import no_speaker
from dutperf.run.engine_session import EngineStarter, Notify
from dutperf.run.local_executor import Surroundings
from dutperf.simulation.fake_engine import FakeEngine, SimulatedNat, step

PAGES = [
    *DOCS.rglob("*.md"),
    *(ROOT / "examples").rglob("*.md"),
    ROOT / "README.md",
]
DONE = [page for page in DOCS.rglob("*.md") if steps(page)]
OF_THE_MACHINE = {"bench", "doctor", "frames", "lab", "selftest", "serve"}
"""Commands that look at the machine, change it or go on: read by the parser only."""
BY_HAND = {".", "dpdk-devbind.py", "echo", "modprobe", "pip", "sleep", "ssh-keyscan"}
"""Programs of others, which need their hardware."""
STATEFUL = re.compile("nat44|nat64|nat66|464xlat|4in6")


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_command_in_the_documents_is_one_that_there_is(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What measures in a lab is planned, too: values that do not fit are refused."""
    monkeypatch.setattr(run_command, "measure", plan)
    for command in mentioned(page):
        try:
            understand(command.words)
        except Exception as error:  # noqa: BLE001 - of the parser's own kinds
            pytest.fail(f"{command}: {error!r}")
        if "--from-pcap" in command.words:
            continue  # the reader has a capture
        if command.words[1] in PROCEDURES and "--lab" in command.words:
            assert app.run(command.words[1:]) == 0, command


def plan(campaign: Campaign, **_how: object) -> None:
    assert expand(campaign, *(each.testbed for each in planned_testbeds(campaign)))


def test_the_tutorial_and_each_page_of_how_to_has_commands() -> None:
    menu = YAML(typ="safe").load(ROOT / "mkdocs.yml")["nav"]
    parts = {title: pages for part in menu for title, pages in part.items()}
    how_to = [page for each in parts["How to"] for page in each.values()]
    for page in (parts["Tutorial"], *how_to):
        path = ROOT / page if page.startswith("examples/") else DOCS / page
        others = any(way in path.read_text() for way in ("make papers", "```python"))
        assert mentioned(path) or others, page


def test_the_readme_is_one_page_and_its_links_lead_to_files() -> None:
    """It is no page of the site, whose links mkdocs follows."""
    text = (ROOT / "README.md").read_text()
    assert len(text.split()) <= 700
    for link in re.findall(r"\]\(([^)#]+)", text):
        assert (ROOT / link).exists(), link


def device_of(given: str | LabKeys) -> Testbed:
    return lab.plan(given).model_copy(update={"hooks": Hooks()})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a reader stands: the examples are there, and every device is simulated."""

    @contextlib.contextmanager
    def session(given: LabKeys) -> Iterator[Testbed]:
        yield device_of(given)

    def prepare(testbed: Testbed, _notify: Notify) -> EngineStarter:
        nat = SimulatedNat() if STATEFUL.search(testbed.name) else None
        engine = FakeEngine(step(100_000), nat=nat)
        return lambda _log_path: contextlib.nullcontext(engine)

    patient = partial(Surroundings, sleep=lambda _seconds: None)
    monkeypatch.setattr(lifecycle, "session", session)
    monkeypatch.setattr(lifecycle, "running", list)
    monkeypatch.setattr(lab, "dut_alive", lambda _name: True)
    monkeypatch.setattr(places, "prepare_engine", prepare)
    monkeypatch.setattr(places, "Surroundings", patient)
    monkeypatch.setattr(places, "openings_of", lambda _testbed: None)
    monkeypatch.setattr(places, "open_speaker", no_speaker)
    monkeypatch.setattr(places, "_write_report", lambda run: run / "report.html")
    programs = tmp_path / "programs"
    programs.mkdir()
    for program in ("conntrack", "ping", "ssh"):
        (programs / program).write_text("#!/bin/sh\n")
        (programs / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    reader = tmp_path / "dutperf"
    reader.mkdir()
    (reader / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(reader)
    return reader


@pytest.mark.parametrize("page", DONE, ids=name)
def test_every_step_of_a_page_can_be_taken_in_its_order(
    page: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with contextlib.ExitStack() as running:
        take_all(steps(page), place, capsys, running)


def take_all(
    commands: list[Command],
    place: Path,
    capsys: pytest.CaptureFixture[str],
    running: contextlib.ExitStack,
) -> None:
    for command in commands:
        program, *arguments = command.words
        if command.in_background:
            running.enter_context(going_on(command, arguments))
        elif program == "dutperf":
            take(command, arguments)
        elif program in ("cat", "cp", "mkdir"):
            subprocess.run(["sh", "-c", command.text], check=True, cwd=place)
        elif program == "make":
            targets = (ROOT / "Makefile").read_text()
            assert all(f"\n{target}:" in targets for target in arguments), command
        else:
            assert program in BY_HAND or program.startswith("siitperf-"), command
        assert "Traceback" not in capsys.readouterr().err


@contextlib.contextmanager
def going_on(command: Command, arguments: list[str]) -> Iterator[None]:
    """A program of its own, which has said that it is ready, until the page's end."""
    main = "from dutperf.cli.main import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", main, *arguments], stdout=subprocess.PIPE
    ) as program:
        assert program.stdout
        try:
            assert program.stdout.readline(), command
            yield
        finally:
            program.terminate()


def take(command: Command, arguments: list[str]) -> None:
    """Measures on the simulated device; may be invalid if connections are needed.

    What takes 20 repeats by the RFCs is done once.
    """
    if arguments[0] in OF_THE_MACHINE and "--help" not in arguments:
        understand(command.words)
        return
    allowed = {0, 1} if STATEFUL.search(command.text) else {0}
    short = ["--quick" if word == "--standard" else word for word in arguments]
    assert app.run(short) in allowed, command
    for named_after_the_second in Path("results").glob("*-20*Z"):
        shutil.rmtree(named_after_the_second)  # the next one may come in the same
