"""The tutorial, and what pages measure in labs: real frames, in short trials.

All steps of all pages are done on simulated devices in ``tests/documents``.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from document_steps import DOCS, ROOT, Command, steps
from labtools import tolerant
from livetools import SHORT, dutperf, needs_engine
from ruamel.yaml import YAML

from dutperf import lab
from dutperf.catalogue import PROCEDURES

pytestmark = [*needs_engine, *tolerant]

COARSE = {"max_rate_fps": 20_000, "resolution": "25%"}
LATENCY = {"first_tag_s": 0.03, "tags": 100}
SEARCH = ["--max-rate", "20000", "--resolution", "25%"]
TIMES = {
    "trial_duration_s": 0.1,
    "settle_wait_s": 0.02,
    "residual_wait_s": 0.05,
    "restabilise_wait_s": 0.02,
    "repeats": 2,
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    lab.down(all_=True)


def done(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Noise on a busy machine may have made a result invalid."""
    ended = dutperf(*arguments)
    assert ended.returncode in {0, 1}, (arguments, ended.stderr)
    return ended


def shortened(path: Path) -> None:
    """A campaign with the same procedures and cells, in a few seconds."""
    campaign: dict[str, Any] = YAML(typ="safe").load(path)
    for procedure in campaign["procedures"]:
        is_latency = procedure["procedure"] == "latency"
        procedure.update(TIMES, **(LATENCY if is_latency else COARSE))
    YAML().dump(campaign, path)


def test_the_tutorial_leads_from_nothing_to_a_table_that_verifies(place: Path) -> None:
    presets = {"--quick", "--standard"}
    for command in steps(DOCS / "tutorial.md"):
        program, *arguments = command.words
        if program == "cat":
            subprocess.run(["sh", "-c", command.text], check=True)
            shortened(place / "router.yaml")
        elif program == "dutperf":
            asked = [word for word in arguments if word not in presets]
            done(*asked, *([*SHORT, *SEARCH] if asked[0] == "throughput" else []))
    assert (place / "results" / "router" / "report.html").exists()
    last = steps(DOCS / "tutorial.md")[-1]
    assert dutperf(*last.words[1:]).returncode == 0


def in_a_lab(page: str) -> list[Command]:
    """Those of a page that measure one procedure of a stateless device in a lab."""
    return [
        command
        for command in steps(DOCS / page)
        if "--lab" in command.words
        and command.words[1] in PROCEDURES
        and not {"--stateful", "--connections"} & set(command.words)
    ]


@pytest.mark.parametrize("page", ["delays.md", "nat64-lab.md", "traffic.md"])
def test_what_a_page_measures_in_a_lab_is_measured(page: str, place: Path) -> None:
    commands = in_a_lab(page)
    assert commands
    for number, command in enumerate(commands):
        arguments = [
            word for word in command.words[1:] if word not in {"--quick", "--dry-run"}
        ]
        where = ["--output", str(place / str(number))]
        done(*arguments, *SHORT, *more_of(command), *where)


def more_of(command: Command) -> list[str]:
    """What else keeps a trial short, by procedure."""
    if command.words[1] == "throughput":
        return SEARCH
    tagged = ["--first-tag", "0.03", "--tags", "100"]
    short = ["--repeats", "1", "--max-rate", "20000"]
    return [*short, *(tagged if command.words[1] == "latency" else [])]
