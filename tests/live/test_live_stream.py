"""``dutperf stream`` through a device that loses what it was told to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from livetools import dutperf, needs_engine

from dutperf import lab

pytestmark = [*needs_engine, pytest.mark.lab]

ROOT = Path(__file__).parents[2]
BEHAVIOUR = ROOT / "examples/known-answer/loss-every-1000th-forward.json"


def test_what_the_device_loses_is_counted_to_the_frame() -> None:
    up = dutperf("lab", "up", "known-answer", "--behaviour", str(BEHAVIOUR))
    assert up.returncode == 0, up.stderr
    options = ["--rate", "10k", "--trial-duration", "0.5", "--duration", "2", "--json"]
    try:
        done = dutperf("stream", "--lab", "known-answer", "--ip", "4", *options)
    finally:
        lab.down(all_=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    forward, reverse = told["directions"]
    assert told["pieces"] >= 2
    assert forward["sent"] == reverse["sent"] > 5_000
    # Of each piece the device counts anew.
    assert 0 <= forward["sent"] / 1000 - forward["lost"] <= told["pieces"]
    assert forward["lost"] > 0
    assert reverse["lost"] == reverse["damaged"] == reverse["foreign"] == 0
    assert forward["delay"]["min_ns"] > 0
