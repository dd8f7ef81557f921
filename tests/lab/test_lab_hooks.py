"""The lab's devices have hooks as any other: they succeed, and tell of each trial."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from labtools import cross, leftovers, tolerant

from dutperf import lab
from dutperf.config import Testbed
from dutperf.results import HookRun
from dutperf.run.hook_runs import run_before_trial, run_hooks

pytestmark = tolerant

SHORT_BYTES = 4000


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    assert lab.running() == [], "a lab is up: take it down before testing the lab"
    yield
    lab.down()
    assert leftovers() == []


def around(testbed: Testbed, crossings: int) -> list[HookRun]:
    """What the hooks said before and after so many frames."""
    before = run_before_trial(testbed.hooks)
    for _ in range(crossings):
        cross(testbed, 6, "left")
    return [*before, *run_hooks(testbed.hooks.after_trial, "after_trial")]


@pytest.mark.parametrize("name", ["linux-router", "linux-router-hosts", "tayga-siit"])
def test_a_kernel_tells_what_it_forwarded_in_each_trial(name: str) -> None:
    with lab.session(name) as testbed:
        trials = [around(testbed, crossings) for crossings in (1, 3)]
    for runs, crossings in zip(trials, (1, 3), strict=True):
        assert all(run.succeeded for run in runs), runs
        told = "".join(run.output for run in runs)
        assert re.findall(r"^Ip6OutForwDatagrams +(\d+) ", told, re.M) == [
            str(crossings)
        ]
        assert {"left", "right"} <= set(re.findall(r"^\d+: (\w+)", told, re.M))
        assert len(told) < SHORT_BYTES


def test_a_translators_tunnel_is_among_its_links() -> None:
    with lab.session("tayga-siit") as testbed:
        told = "".join(run.output for run in around(testbed, 1))
    assert re.search(r"^\d+: siit:", told, re.M)


@pytest.mark.parametrize("name", lab.LABS)
def test_a_device_that_is_not_there_makes_the_hooks_fail(name: str) -> None:
    hooks_fail(lab.plan(name))


@pytest.mark.parametrize("name", ["linux-router", "known-answer-nat44"])
def test_a_device_that_no_longer_answers_makes_the_hooks_fail(name: str) -> None:
    testbed = lab.up(name)
    lab.down()
    assert testbed.hooks == lab.plan(name).hooks
    hooks_fail(testbed)


def hooks_fail(testbed: Testbed) -> None:
    hooks = testbed.hooks
    runs = [*run_before_trial(hooks), *run_hooks(hooks.after_trial, "after_trial")]
    assert not any(run.succeeded for run in runs)
