"""What the doctor says of other labs, and of other runs, on the CPUs of a testbed."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from labstates import FakeTopology, fake_topology

from dutperf import busy, lab
from dutperf.doctor import checks
from dutperf.doctor.checks import sharing_check
from dutperf.lab.state import StateFile


@pytest.fixture(autouse=True)
def two(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeTopology:
    monkeypatch.delenv(busy.VARIABLE)
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1})
    monkeypatch.setattr(checks, "StateFile", partial(StateFile, tmp_path))
    return fake_topology(monkeypatch, tmp_path)


def test_a_lab_alone_is_good() -> None:
    testbed = lab.up("linux-router@a")
    assert sharing_check(testbed, {0}).verdict == "good"


def test_a_lab_that_shares_its_devices_cpu_is_bad() -> None:
    lab.up("linux-router@a")
    testbed = lab.up("linux-router@b", share=True)
    check = sharing_check(testbed, {0})
    assert (check.name, check.verdict) == ("shared_cpus", "bad")
    assert "CPU 1: lab linux-router@a" in check.found
    assert "lab status" in check.cure


def test_a_testbed_that_is_no_lab_may_have_other_cpus_than_a_labs_device() -> None:
    lab.up("linux-router@a")
    assert sharing_check(None, {0}).verdict == "good"
    assert sharing_check(None, {0, 1}).verdict == "bad"


def test_runs_that_may_share_are_doubtful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(busy.VARIABLE, "share")
    check = sharing_check(None, {0})
    assert (check.verdict, check.is_finding) == ("doubtful", True)
    assert "DUTPERF_BUSY=share" in check.found
