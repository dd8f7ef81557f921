"""A scheduler, workers and runs as programs on the loopback, at simulated testbeds."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from remote_hosts import (
    RATE_FPS,
    Hosts,
    campaign_of,
    hosts,
    measured_at,
    results,
    trials,
    write_testbed,
)

from dutperf import __version__
from dutperf.cli.measuring import surroundings
from dutperf.cli.testbeds import planned_testbeds
from dutperf.config import load_campaign
from dutperf.remote.simulated import simulating
from dutperf.results import load_environment
from dutperf.run.campaign_run import run_campaign

SLOW = {"DUTPERF_TRIAL_S": "0.15"}
HALF = 8
"""Trials into the first cell, and before its end."""


def measured_here(campaign: Path, directory: Path, resume: Path | None = None) -> Path:
    """The same by the local executor."""
    asked = load_campaign(campaign)
    run_campaign(
        asked,
        planned_testbeds(asked),
        simulating(surroundings(), RATE_FPS),
        on_event=lambda _event: None,
        results_dir=None if resume else directory,
        resume=resume,
    )
    return directory


def check_same(directory: Path, local: Path, *testbeds: str) -> None:
    assert results(directory)["complete"]
    assert results(directory)["cells"] == results(local)["cells"]
    for testbed in testbeds:
        assert measured_at(directory, testbed) == measured_at(local, testbed) != []
    numbers = [trial["number"] for trial in trials(directory)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert results(directory)["trials"] == trials(directory)


def verify(there: Hosts, directory: Path) -> None:
    program = there.start("verify", directory)
    assert program.process.wait(240) == 0, program.said


def halfway(directory: Path, testbed: str) -> Callable[[], bool]:
    return lambda: len(measured_at(directory, testbed)) >= HALF


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Hosts]:
    with hosts(tmp_path) as found:
        yield found


def test_a_worker_that_is_killed_in_mid_cell_costs_nothing_but_that(
    there: Hosts, tmp_path: Path
) -> None:
    campaign, out = campaign_of(tmp_path, "a", "b", "c"), tmp_path / "out"
    there.worker("a")
    there.worker("b")
    killed = there.worker("c", **SLOW)
    run = there.run(campaign, "--output", out)
    run.until(halfway(out, "c"))
    killed.kill()
    run.until_it_says("c: its worker has gone; waiting for it")
    there.worker("c")
    assert run.end() == 0, run.said
    check_same(out, measured_here(campaign, tmp_path / "local"), "a", "b", "c")
    verify(there, out)
    assert load_environment(out / "environment-c.json").parts[0].first_trial > HALF
    assert "no frame was sent" in load_environment(out / "environment-a.json").dut


def test_an_equal_testbed_measures_the_whole_cell_anew(
    there: Hosts, tmp_path: Path
) -> None:
    campaign, out = campaign_of(tmp_path, "a", "b"), tmp_path / "out"
    write_testbed(tmp_path, "spare", "equal_to: b\ncores: [1]")
    there.worker("a")
    there.worker("spare", **SLOW)
    killed = there.worker("b", **SLOW)
    run = there.run(campaign, "--output", out)
    run.until(halfway(out, "b"))
    killed.kill()
    run.until_it_says("b: measured at spare, which is equal to it")
    assert run.end() == 0, run.said
    local = measured_here(campaign, tmp_path / "local")
    assert results(out)["cells"] == results(local)["cells"]
    left = [t for t in trials(out) if t["place"] == "b" and t["stands_in"] is None]
    moved = [t for t in trials(out) if t["stands_in"] == "spare"]
    assert HALF <= len(left) < len(moved) == len(measured_at(local, "b"))
    verify(there, out)


def test_a_run_goes_on_where_it_ended(there: Hosts, tmp_path: Path) -> None:
    """By the same scheduler or on one machine, which is the same."""
    campaign, out = campaign_of(tmp_path, "a", "b"), tmp_path / "out"
    there.worker("a", "b", **SLOW)
    run = there.run(campaign, "--output", out)
    run.until(halfway(out, "a"))
    assert run.interrupt() == 130
    assert not results(out)["complete"]
    before = len(trials(out))
    here = shutil.copytree(out, tmp_path / "here")
    again = there.run("--resume", out)
    assert again.end() == 0, again.said
    assert len(trials(out)) > before >= HALF
    local = measured_here(campaign, tmp_path / "local")
    check_same(out, local, "a", "b")
    verify(there, out)
    check_same(measured_here(campaign, here, resume=here), local, "a", "b")


def test_a_scheduler_that_goes_costs_nothing_that_is_stored(
    there: Hosts, tmp_path: Path
) -> None:
    campaign, out = campaign_of(tmp_path, "a"), tmp_path / "out"
    worker = there.worker("a", **SLOW)
    run = there.run(campaign, "--output", out)
    run.until(lambda: len(trials(out)) >= HALF)
    there.scheduler.kill()
    assert run.end() == 3
    assert f"error: the scheduler at {there.address} has gone" in run.said
    assert f"dutperf run --resume {out}" in run.said
    worker.until_it_says("has gone; waiting for it")
    stored = trials(out)
    port = there.address.rpartition(":")[2]
    there.start("scheduler", "--port", port).until_it_says("tcp://")
    worker.until(lambda: worker.said.count("connected") == 2)
    again = there.run("--resume", out)
    assert again.end() == 0, again.said
    assert trials(out)[: len(stored)] == stored
    local = measured_here(campaign, tmp_path / "local")
    assert results(out)["cells"] == results(local)["cells"]


def test_a_testbed_has_one_owner(there: Hosts, tmp_path: Path) -> None:
    campaign_of(tmp_path, "a", "b")
    there.worker("a")
    second = there.unconnected("b", "a")
    assert second.end() == 2
    assert "error: testbed a is owned by the worker" in second.said


def test_a_host_of_another_version_is_refused_with_both(
    there: Hosts, tmp_path: Path
) -> None:
    campaign, out = campaign_of(tmp_path, "a", "b"), tmp_path / "out"
    there.worker("a")
    there.worker("b", DUTPERF_VERSION="9.9")
    run = there.run(campaign, "--output", out)
    assert run.end() == 2
    assert f"has dutperf 9.9, this is {__version__}" in run.said
    assert "install the same dutperf on all hosts" in run.said
    assert not out.exists()


def test_where_clocks_differ_both_times_are_stored(
    there: Hosts, tmp_path: Path
) -> None:
    campaign, out = campaign_of(tmp_path, "a"), tmp_path / "out"
    there.worker("a", DUTPERF_AHEAD_S="300")
    run = there.run(campaign, "--output", out)
    assert run.end() == 0, run.said
    assert "min ahead of this machine's" in run.said
    environment = load_environment(out)
    assert environment.clock_ahead_s is not None
    assert environment.clock_ahead_s > 200
    assert all(trial["started_at"] and trial["stored_at"] for trial in trials(out))


def made_by_a_ca(folder: Path) -> list[object]:
    """The options for certificates of its own."""
    ca, key, cert = (folder / name for name in ("ca.pem", "key.pem", "cert.pem"))
    ca_key, request = folder / "ca-key.pem", folder / "request.pem"
    new = ["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj"]
    sign = ["openssl", "x509", "-req", "-CAcreateserial", "-CA", ca, "-CAkey", ca_key]
    for command in (
        [*new, "/CN=ca", "-x509", "-keyout", ca_key, "-out", ca],
        [*new, "/CN=host", "-keyout", key, "-out", request],
        [*sign, "-in", request, "-out", cert],
    ):
        subprocess.run(list(map(str, command)), check=True, capture_output=True)
    return ["--tls-ca", ca, "--tls-cert", cert, "--tls-key", key]


def test_with_certificates_all_of_it_goes_by_tls(tmp_path: Path) -> None:
    campaign, out = campaign_of(tmp_path, "a"), tmp_path / "out"
    with hosts(tmp_path, *made_by_a_ca(tmp_path)) as there:
        assert there.address.startswith("tls://")
        there.worker("a")
        run = there.run(campaign, "--output", out)
        assert run.end() == 0, run.said
        plain = there.start(
            "run", campaign, "--scheduler", there.address.replace("tls", "tcp")
        )
        assert plain.end() == 3
        assert "no scheduler answers" in plain.said
    assert results(out)["complete"]
