"""The traffic options of the command line on real devices, end to end.

Rates are low, so a device that forwards at all loses nothing; a busy machine may still
spoil a trial, and then its verdict says so.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from labtools import LAB_GROUP
from livetools import SHORT, dutperf, needs_engine
from ruamel.yaml import YAML

from dutperf import lab
from dutperf.config.testbed import Testbed
from dutperf.lab import orders
from dutperf.lab.state import StateFile
from dutperf.protocol.result_messages import StreamResult
from dutperf.results import load_journal

pytestmark = [*needs_engine, pytest.mark.lab]

LOW = ("--max-rate", "2000", "--load", "100", "--repeats", "1")
needs_tayga = pytest.mark.skipif(shutil.which("tayga") is None, reason="needs tayga")


@contextmanager
def lab_up(name: str) -> Iterator[Testbed]:
    assert lab.running() == [], "a lab is up: take it down before these tests"
    try:
        yield lab.up(name)
    finally:
        lab.down(all_=True)


def frame_loss(output: Path, *arguments: str) -> list[StreamResult]:
    """The streams of the first valid trial, both directions."""
    done = dutperf(
        "frame-loss", *arguments, *LOW, *SHORT, "--json", "--output", str(output)
    )
    assert done.returncode in (0, 1), done.stderr
    json.loads(done.stdout)
    records = list(load_journal(output).records)
    own = [r.result for r in records if r.role == "trial"]
    valid = [result for result in own if result.verdict.kind != "invalid"]
    assert valid, [r.result.verdict for r in records]
    return [s for d in valid[0].directions for s in d.streams]


def amiss(streams: list[StreamResult]) -> list[StreamResult]:
    """Those that did not arrive whole, once, and as they were sent.

    Of so few frames a handful is inspected, whichever stream's come at that place.
    """
    assert sum(s.inspected.frames for s in streams if s.inspected) > 0
    return [
        s
        for s in streams
        if not s.sent == s.received > 0 or s.duplicate or not as_sent(s)
    ]


def as_sent(stream: StreamResult) -> bool:
    found = stream.inspected
    return found is not None and found.ttl == found.dscp == found.payload == 0


def swapped(testbed: Testbed) -> dict[str, Any]:
    """The same testbed seen from behind: left is right."""
    document = testbed.model_dump(mode="json", exclude_none=True, by_alias=True)
    document["left"], document["right"] = document["right"], document["left"]
    return document


@needs_tayga
@pytest.mark.parametrize("mix", ["100/0", "90/10"])
def test_ipv6_to_ipv4_through_the_translator(tmp_path: Path, mix: str) -> None:
    with lab_up("tayga-siit"):
        options = ("--lab", "tayga-siit", "--ip", "6-4", "--mix", mix)
        streams = frame_loss(tmp_path / "r", *options, "--ignore-checksums")
    assert amiss(streams) == []
    assert len(streams) == (2 if mix == "100/0" else 4)


@needs_tayga
def test_ipv4_to_ipv6_through_the_translator(tmp_path: Path) -> None:
    """NAT46: the translator's IPv4 side is on the left of the tester."""
    file = tmp_path / "testbed.yaml"
    with lab_up("tayga-siit") as testbed:
        YAML(typ="safe").dump(swapped(testbed), file)
        options = (str(file), "--ip", "4-6", "--mix", "90/10", "--ignore-checksums")
        streams = frame_loss(tmp_path / "r", *options)
    assert amiss(streams) == []
    assert len(streams) == 4


@pytest.mark.tolerant
@pytest.mark.xdist_group(LAB_GROUP)
@needs_tayga
@pytest.mark.parametrize("name", ["464xlat", "4in6"])
def test_native_ipv6_goes_beside_connections_of_ipv4_as_a_service(
    tmp_path: Path, name: str
) -> None:
    """RFC 8219 5.3, both ways: the NAT of the IPv4 frames does not meet the others."""
    with lab_up(name):
        opened = ("--stateful", "--connections", "100", "--phase1-rate", "1000")
        options = ("--lab", name, "--mix", "50/50", "--background-ip", "6", *opened)
        streams = frame_loss(tmp_path / "r", *options, "--ignore-checksums")
    assert amiss(streams) == []
    assert all(s.inspected and s.inspected.frames for s in streams)
    kinds = [(s.name, s.sent) for s in streams]
    assert kinds == [("foreground", 100), ("background", 100)] * 2


@pytest.mark.parametrize("ip", ["4", "6"])
def test_256_networks_behind_the_router(tmp_path: Path, ip: str) -> None:
    with lab_up("linux-router"):
        options = ("--lab", "linux-router", "--ip", ip, "--networks", "256")
        assert amiss(frame_loss(tmp_path / "r", *options)) == []


@pytest.mark.parametrize("ip", ["4", "6"])
def test_a_thousand_hosts_on_each_side_are_resolved_as_they_come(
    tmp_path: Path, ip: str
) -> None:
    """Not all frames arrive: those that wait for their neighbour may be dropped."""
    with lab_up("linux-router-hosts"):
        options = ("--lab", "linux-router-hosts", "--ip", ip, "--addresses", "1000")
        streams = frame_loss(tmp_path / "r", *options)
    assert all(s.received > 0 for s in streams)


@pytest.mark.parametrize(
    ("name", "ip"),
    [("srv6-dx4", "4"), ("srv6-dt6", "6"), ("srv6-end", "4"), ("srv6-end", "6")],
)
def test_segments_come_as_they_should_also_after_a_restart(
    tmp_path: Path, name: str, ip: str
) -> None:
    with lab_up(name):
        options = ("--lab", name, "--ip", ip, "--frame-size", "128,1518")
        assert amiss(frame_loss(tmp_path / "before", *options)) == []
        orders.restart(StateFile())
        assert amiss(frame_loss(tmp_path / "after", *options)) == []
