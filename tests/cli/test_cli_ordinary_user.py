"""What needs no root refuses nothing to an ordinary user."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from planning import TESTBED, Run, spec

import dutperf
from dutperf.busy import owners_of_cpus
from dutperf.config import Campaign
from dutperf.lab.state import StateFile
from dutperf.report import write_report
from dutperf.simulation.fake_engine import FakeEngine, step

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="acts as two users")
USER = pwd.getpwnam("nobody")
AS_USER = [
    *("setpriv", f"--reuid={USER.pw_uid}", f"--regid={USER.pw_gid}", "--clear-groups"),
    # So that it finds dutperf, wherever the tests have it; it makes no file writable.
    *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"),
]
COMMANDS = [
    "report run",
    "verify run",
    "verify run.evidence.tar.gz",
    "compare run run",
    "query run",
    "trend run",
    "export run --format csv --output tables",
    "export-histograms run",
    "run c.yaml --dry-run",
    "throughput --lab linux-router --dry-run",
    "evidence run --output again.tar.gz",
    "frames --lab linux-router --ip 4 --pcap some.pcap",
    "lab status",
]
PROGRAM = f"""
import sys
from dutperf.cli.app import run
for command in {COMMANDS!r}:
    print("#", command, run(command.split()), flush=True)
"""


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A directory of the user's, with a run that was measured by root."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        what = Campaign(name="x", testbed=[TESTBED], procedures=[spec()])
        Run(home / "run", FakeEngine(step(300_000)))(what)
        write_report(home / "run")
        shutil.copy(home / "run/campaign.yaml", home / "c.yaml")
        subprocess.run(
            [sys.executable, "-m", "dutperf", "evidence", "run"], cwd=home, check=True
        )
        for path in (home, *home.rglob("*")):
            os.chown(path, USER.pw_uid, USER.pw_gid)
        yield home


def environment(home: Path) -> dict[str, str]:
    source = str(Path(dutperf.__file__).parents[1])
    told = {key: text for key, text in os.environ.items() if "XDG" not in key}
    return told | {"HOME": str(home), "PYTHONPATH": source}


def test_results_are_read_shown_and_checked(home: Path) -> None:
    told = subprocess.run(
        [*AS_USER, sys.executable, "-c", PROGRAM],
        cwd=home,
        env=environment(home),
        capture_output=True,
        text=True,
        check=False,
    )
    ended = [line for line in told.stdout.splitlines() if line.startswith("# ")]
    assert ended == [f"# {command} 0" for command in COMMANDS], told
    assert "Traceback" not in told.stderr


def test_results_are_served(home: Path) -> None:
    command = [*AS_USER, sys.executable, "-m", "dutperf", "serve", ".", "--port", "0"]
    with subprocess.Popen(
        command, cwd=home, env=environment(home), stdout=subprocess.PIPE, text=True
    ) as serving:
        assert serving.stdout
        address = next(
            word for word in serving.stdout.readline().split() if "://" in word
        )
        try:
            with urllib.request.urlopen(address) as page:  # noqa: S310 - our own
                assert page.status == 200
        finally:
            serving.terminate()


def test_what_root_alone_may_look_at_is_no_error() -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o700)
        (directory / "cpus").mkdir()
        (directory / "lab.json").write_text("{}")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.setgroups([])
                os.setresgid(USER.pw_gid, USER.pw_gid, USER.pw_gid)
                os.setresuid(USER.pw_uid, USER.pw_uid, USER.pw_uid)
                known = owners_of_cpus(directory / "cpus"), StateFile(directory).all()
                code = 0 if known == ({}, []) and not StateFile(directory).read() else 1
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
