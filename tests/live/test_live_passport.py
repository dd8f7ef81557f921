"""The tester's own passport on real ports: rings, shared memory, a lab's links."""

from __future__ import annotations

from pathlib import Path

import pytest
from livetools import needs_engine

from dutperf import lab
from dutperf.api.places import open_testbed
from dutperf.config import PlannedTestbed
from dutperf.config.campaign import LabKeys
from dutperf.config.side import RingPort
from dutperf.config.testbed import crossed
from dutperf.passport.keeping import (
    SOCKETS,
    check_loop,
    load_passport,
    loop_of,
    owner_of,
)
from dutperf.passport.making import Maker, default_grid
from dutperf.passport.measuring import Thoroughness
from dutperf.results.passport import Passport, Sent

pytestmark = needs_engine
_BRIEF = Thoroughness(0.05, 2, 1, "20%")


def _made(tmp_path: Path, planned: PlannedTestbed, sent: list[Sent]) -> Passport:
    loop = check_loop(loop_of(planned))
    maker = Maker(tmp_path, open_testbed, pace=_BRIEF)
    made = maker.made(loop, sent, lambda _text: None)
    assert load_passport(owner_of(loop), tmp_path) == made
    for entry in made.entries:
        assert entry.safe_rate_fps, entry
        assert entry.floor
        assert 0 < entry.floor.minimum_ns <= entry.floor.typical_ns
    return made


def test_rings_loop_and_learn_connections(tmp_path: Path) -> None:
    ring = RingPort(ring=True)
    testbed = crossed({"left": ring, "right": ring}, name="ring", cores=[0])
    grid = [s for s in default_grid([4]) if s.direction == "forward" or s.connections]
    made = _made(tmp_path, PlannedTestbed(testbed=testbed), grid)
    assert all(entry.device_ns_per_frame is None for entry in made.entries)
    assert {entry.sent.opens for entry in made.entries} == {True, False}


def test_one_tester_is_at_both_ends_of_a_memif(tmp_path: Path) -> None:
    name = "known-answer"
    planned = PlannedTestbed(lab=LabKeys(name=name), testbed=lab.plan(name))
    _made(tmp_path, planned, list(default_grid([6]))[:1])
    assert not list(SOCKETS.glob("passport-*"))


@pytest.mark.lab
def test_the_links_of_a_lab_are_measured_without_its_device(tmp_path: Path) -> None:
    name = "linux-router"
    planned = PlannedTestbed(lab=LabKeys(name=name), testbed=lab.plan(name))
    grid = [s for s in default_grid([4, 6]) if s.direction == "forward"]
    made = _made(tmp_path, planned, grid)
    assert {entry.sent.ip for entry in made.entries} == {4, 6}
    assert lab.running() == []
