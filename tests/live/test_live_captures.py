"""Captures as traffic: the frames that are sent are those of the capture, in order."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from captures import Sent, datagrams, sent_in, written
from livetools import (
    LAB,
    SHORT,
    captured_in_lab,
    counting,
    dutperf,
    open_rings,
    running_engine,
)
from planning import TESTBED
from readers import tag_of
from scapy.utils import rdpcap

from dutperf import lab
from dutperf.config import Campaign, expand, spec_from
from dutperf.config.captures import with_captures
from dutperf.protocol.methods import PreviewParams
from dutperf.results import load_journal, load_results
from dutperf.run.trial_request import trial_request

COUNT = 150


def alike(found: list[Sent], captured: list[Sent], least: int = 64) -> None:
    """In turn the same sizes and ports, and each host by one of its own."""
    hosts: dict[str, str] = {}
    for one, other in zip(found, itertools.cycle(captured), strict=False):
        assert one[0] == max(other[0], least)
        assert one[3:] == other[3:]
        for mine, theirs in zip(one[1:3], other[1:3], strict=True):
            assert hosts.setdefault(theirs, mine) == mine
    assert len(set(hosts.values())) == len(hosts)


@pytest.mark.parametrize("ip", [4, 6])
class TestOnRings:
    pytestmark = counting(__name__)

    def test_what_the_engine_writes_is_the_capture(
        self, tmp_path: Path, ip: int
    ) -> None:
        capture = written(tmp_path / "a.pcap", datagrams(11, 40, ip))
        keys = {"procedure": "throughput", "ip": ip, "direction": "reverse"}
        traffic = {"pcap": str(capture), "addresses": 3}
        spec = spec_from({**keys, "traffic": traffic}, "test")
        procedures = with_captures([spec], Path())
        campaign = Campaign(name="c", testbed=[TESTBED], procedures=procedures)
        (cell,) = expand(campaign, TESTBED)
        request = trial_request(TESTBED, cell, COUNT, 7, 1.0)
        path = tmp_path / "sent.pcap"
        with running_engine(tmp_path) as engine:
            open_rings(engine)
            preview = PreviewParams(trial=request, count=COUNT, path=str(path))
            assert engine.preview(preview).frames == COUNT
        least = 64 if ip == 4 else 84
        found = sent_in(path)
        assert len(found) == COUNT
        alike(found, sent_in(capture), least)


@pytest.mark.lab
def test_what_comes_to_the_device_is_the_capture_and_all_of_it_counts(
    tmp_path: Path,
) -> None:
    capture = written(tmp_path / "a.pcap", datagrams(12, 40))
    results = tmp_path / "run"
    lab.up(LAB)
    try:
        with captured_in_lab(tmp_path, "udp") as files:
            done = dutperf(
                *("frame-loss", "--lab", LAB, "--ip", "4"),
                *("--direction", "forward", "--from-pcap", str(capture)),
                *("--addresses", "3", "--load", "100", "--max-rate", "1000"),
                *(*SHORT, "--plain", "--output", str(results)),
            )
    finally:
        lab.down(all_=True)
    assert done.returncode == 0, done.stderr
    (cell,) = load_results(results).cells
    assert "40 of 40 frames" in str(cell.parameters["capture"])
    trials = [r for r in load_journal(results).records if r.role != "probe"]
    for side in ("left", "right"):
        frames = rdpcap(str(files[side]))
        numbered: dict[int, dict[int, Sent]] = {}
        for frame, sent in zip(frames, sent_in(files[side]), strict=True):
            tag = tag_of(bytes(frame))
            numbered.setdefault(tag.trial, {})[tag.sequence] = sent
        for record in trials:
            found = numbered[record.request.trial_id]
            assert sorted(found) == list(
                range(record.result.directions[0].streams[0].sent)
            )
            alike([found[n] for n in sorted(found)], sent_in(capture))
