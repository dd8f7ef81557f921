"""A scheduler and workers as programs of their own on the loopback, all simulated."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import simulated_host

from dutperf.results.directory import RESULTS
from dutperf.results.journal import JOURNAL

RATE_FPS = 300_000
HANGS_S = 240.0
"""Only what hangs takes so long."""
TESTBED = """\
name: {name}
left:
  port: {{interface: left}}
  ipv4: {{address: 198.18.0.2, gateway: 198.18.0.1}}
right:
  port: {{interface: right}}
  ipv4: {{address: 198.19.0.2, gateway: 198.19.0.1}}
{more}
"""
CAMPAIGN = """\
name: many
testbed: [{testbeds}]
procedures:
  - procedure: throughput
    frame_size: [64, 512]
    trial_duration_s: 1
    max_rate_fps: 1000000
    resolution: 1%
  - procedure: latency
    frame_size: 64
    rate_fps: throughput
    trial_duration_s: 1
    first_tag_s: 0.1
    tags: 10
    repeats: 2
    max_rate_fps: 1000000
"""


def campaign_of(folder: Path, *names: str) -> Path:
    """A campaign at testbeds of these names, whose files stand beside it."""
    for name in names:
        write_testbed(folder, name)
    path = folder / "campaign.yaml"
    path.write_text(CAMPAIGN.format(testbeds=", ".join(f"{n}.yaml" for n in names)))
    return path


def write_testbed(folder: Path, name: str, more: str = "") -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(TESTBED.format(name=name, more=more))
    return path


class Program:
    """One that runs; what it says goes to a file."""

    def __init__(self, said: Path, *words: object, **environment: str) -> None:
        self._said = said
        with said.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, simulated_host.__file__, *map(str, words)],
                stdout=out,
                stderr=subprocess.STDOUT,
                env=os.environ
                | {"DUTPERF_PASSPORTS": "none", "XDG_CONFIG_HOME": str(said.parent)}
                | environment,
            )

    @property
    def said(self) -> str:
        return self._said.read_text(errors="replace")

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something that its run makes true."""
        ends_s = time.monotonic() + HANGS_S
        while not holds():
            assert time.monotonic() < ends_s, self.said
            assert self.process.poll() is None or holds(), self.said
            time.sleep(0.02)

    def until_it_says(self, text: str) -> None:
        self.until(lambda: text in self.said)

    def end(self) -> int:
        """Wait for its end; the exit code."""
        code = self.process.wait(HANGS_S)
        assert "Traceback" not in self.said, self.said
        return code

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(HANGS_S)

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.end()


class Hosts:
    """All programs of a test, in ``folder``."""

    def __init__(self, folder: Path, *tls: object) -> None:
        self.folder = folder
        self._programs: list[Program] = []
        self.scheduler = self.start("scheduler", "--port", "0", *tls)
        self.scheduler.until(lambda: "://" in self.scheduler.said)
        self.address = self.scheduler.said.strip()

    def start(self, *words: object, **environment: str) -> Program:
        said = self.folder / f"said-{len(self._programs)}.txt"
        program = Program(said, *words, **environment)
        self._programs.append(program)
        return program

    def worker(self, *words: object, **environment: str) -> Program:
        """One that owns testbeds, connected."""
        program = self.unconnected(*words, **environment)
        program.until_it_says("connected")
        return program

    def unconnected(self, *words: object, **environment: str) -> Program:
        """Testbeds by their names, and other options."""
        given = [
            each
            for word in words
            for each in (
                ("--testbed", self.folder / f"{word}.yaml")
                if (self.folder / f"{word}.yaml").exists()
                else (word,)
            )
        ]
        how = ("--simulate", RATE_FPS)
        return self.start("worker", self.address, *given, *how, **environment)

    def run(self, *words: object) -> Program:
        return self.start("run", *words, "--scheduler", self.address)

    def end(self) -> None:
        """Workers first: they would wait for the scheduler."""
        for program in reversed(self._programs):
            if program.process.poll() is None:
                program.process.send_signal(signal.SIGTERM)
                try:
                    program.process.wait(60)
                except subprocess.TimeoutExpired:
                    program.kill()


@contextlib.contextmanager
def hosts(folder: Path, *tls: object) -> Iterator[Hosts]:
    all_of_them = Hosts(folder, *tls)
    try:
        yield all_of_them
    finally:
        all_of_them.end()


def trials(directory: Path) -> list[dict[str, Any]]:
    """Of a journal that may be growing: those that are whole."""
    path = directory / JOURNAL
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")[1:-1]
    return [json.loads(line) for line in lines]


def results(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / RESULTS).read_bytes())
    return found


def measured_at(directory: Path, testbed: str) -> list[dict[str, Any]]:
    """The trials there, without what no two runs have in common.

    These are numbers, times, and the counters of ports, which begin with an engine.
    """
    own = {"number", "started_at", "stored_at", "environment", "result"}
    return [
        {key: value for key, value in trial.items() if key not in own}
        | {key: value for key, value in trial["result"].items() if key != "ports"}
        for trial in trials(directory)
        if trial["place"] == testbed
    ]
