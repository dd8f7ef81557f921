"""Manual pages: one for each command, with all that --help says, in proper roff."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer

from dutperf.cli import INTERRUPTED, INVALID, WORSE
from dutperf.cli.app import whole
from dutperf.reference import man_pages

PAGES = man_pages()
PROGRAM: Any = typer.main.get_command(whole())
COMMANDS = PROGRAM.commands


def plain(page: str) -> str:
    return re.sub(r"^\.\w+ ", "", page.replace("\\-", "-"), flags=re.MULTILINE)


def test_every_command_has_a_page_and_dutperf_names_them() -> None:
    assert {f"dutperf-{name}.1" for name in COMMANDS} < set(PAGES)
    assert {"dutperf.1", "dutperf-lab-up.1"} < set(PAGES)
    assert {"siitperf-tp.1", "siitperf-lat.1", "siitperf-pdv.1"} < set(PAGES)
    for name in COMMANDS:
        assert f"dutperf-{name} (1)" in plain(PAGES["dutperf.1"])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_told_once(name: str) -> None:
    page = plain(PAGES[f"dutperf-{name}.1"])
    told = [re.split(r"[ ,/]", title)[0] for title in re.findall(r"\.TP\n(.+)", page)]
    for param in COMMANDS[name].params:
        if param.param_type_name == "option" and not param.hidden:
            assert told.count(param.opts[0]) == 1, param.opts


def test_exit_codes_and_examples_are_told() -> None:
    page = plain(PAGES["dutperf.1"])
    for code in (0, INVALID, 2, 3, WORSE, INTERRUPTED):
        assert f"\n{code}\n" in page
    example = "dutperf throughput testbed.yaml --standard --frame-size all"
    assert example in plain(PAGES["dutperf-throughput.1"])


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
def test_roff_has_nothing_to_complain_about(tmp_path: Path) -> None:
    for name, page in PAGES.items():
        (tmp_path / name).write_text(page, "utf-8")
    command = ["groff", "-man", "-Kutf8", "-Tutf8", "-ww", "-z", *sorted(PAGES)]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
