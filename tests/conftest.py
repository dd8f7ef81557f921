"""What all tests have in common."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from dutperf import busy
from dutperf.passport.keeping import NONE, VARIABLE

APART = re.compile(r"/(lab|live)/|_browser\.py$|/test_(cli_bench|config_papers)\.py$")
"""Files with tests that are marked ``lab``, ``engine`` or ``browser``: no others."""
MEASURING = {"automation", "lab", "live", "remote", "routing", "run"}
"""Folders of tests that store runs, and forge few."""

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Measuring the tester itself first is a test of its own; programs that tests start
# inherit it.
os.environ[VARIABLE] = NONE
# What tests run is remembered nowhere (dutperf.run.campaign_run).
os.environ["XDG_STATE_HOME"] = "/dev/null"
# Many tests have an engine at once; whose CPUs are whose is a test of its own.
os.environ[busy.VARIABLE] = "share"
# Stored runs are many small objects and few circles: looking for these as often as
# Python does is a fifth of the time that the tests of reports take.
gc.set_threshold(100_000, 50, 100)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--apart", action="store_true", help="read no file but these")


def pytest_ignore_collect(
    collection_path: Path, config: pytest.Config
) -> Literal[True] | None:
    """Not to read all files for the tests of some is a minute of a run."""
    wanted = collection_path.is_dir() or APART.search(str(collection_path))
    return True if config.getoption("apart") and not wanted else None


def _names(nodeid: str) -> Iterator[str]:
    """Of a test, and of what it stands in: its case, itself, its class, its file."""
    yield nodeid
    name = nodeid.partition("[")[0]
    while name:
        yield name
        name = name.rpartition("::")[0]


@pytest.hookimpl(tryfirst=True)  # xdist adds its groups to the names
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what `make test` leaves to `make test-long`: the list says which."""
    lines = (Path(__file__).parent / "long.txt").read_text().splitlines()
    is_long = {
        line.removeprefix("+ "): not line.startswith("+ ")
        for line in lines
        if line and not line.startswith("#")
    }
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if marks & {"lab", "engine", "browser"} and not APART.search(str(item.path)):
            raise pytest.UsageError(f"{item.path} is none of the files {APART.pattern}")
        if next((is_long[n] for n in _names(item.nodeid) if n in is_long), False):
            item.add_marker("long")


@pytest.fixture(autouse=True)
def _held_against_the_oracle(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every run that a test of these folders stores, whatever it is about."""
    folder = request.path.relative_to(Path(__file__).parent).parts[0]
    forged = request.node.get_closest_marker("forged")
    if forged or folder not in MEASURING or "tmp_path" not in request.fixturenames:
        yield
        return
    path: Path = request.getfixturevalue("tmp_path")
    yield
    for results in path.rglob("results.json"):
        if results.with_name("journal.jsonl").is_file():
            from oracle import compared_run

            assert not compared_run(results.parent).differ, results


@pytest.fixture(scope="module")
def _chromium() -> Iterator[Browser]:
    from browsing import chromium

    with chromium() as browser:
        yield browser


@pytest.fixture
def browser(_chromium: Browser) -> Iterator[Browser]:
    """Every window of a test is closed after it: one that is left goes on loading."""
    yield _chromium
    for context in _chromium.contexts:
        context.close()
