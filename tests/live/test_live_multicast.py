"""Frames for a multicast group through the known-answer device: all come, as sent."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from livetools import (
    DEVICE,
    NO_ODD_FRAMES,
    STALLS,
    Trial,
    codes,
    counting,
    odd_frames,
    ref_dut,
    running_engine,
)

from dutperf.engine.client import Engine
from dutperf.model.traffic import group_mac
from dutperf.protocol.base import IpVersion
from dutperf.protocol.trial_messages import TrialRequest

pytestmark = counting(DEVICE)

FRAMES = 1000
ROUTING = {
    "left": ["198.18.0.1", "2001:2::1"],
    "right": ["198.19.0.1", "2001:2:0:8000::1"],
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with running_engine(tmp_path_factory.mktemp("multicast")) as it:
        yield it


@pytest.mark.parametrize(("ip", "group"), [(4, "239.255.0.1"), (6, "ff15::1")])
def test_a_router_forwards_a_group_that_nobody_was_asked_for(
    engine: Engine, ip: IpVersion, group: str
) -> None:
    size = 64 if ip == 4 else 84
    data = Trial(ip, size=size, fps=FRAMES * 10, ms=100).request(1).model_dump()
    way = data["directions"][0]
    way["streams"][0] |= {"dst_ip": group, "dst_mac": group_mac(group)}
    data["directions"] = [way]
    with (
        tempfile.TemporaryDirectory(prefix="dutperf") as short,
        ref_dut(Path(short), {"routing": ROUTING}) as device,
    ):
        engine.open_ports(device.ports())
        result = engine.measure(TrialRequest.model_validate(data))
    assert codes(result) <= STALLS
    (direction,) = result.directions
    (stream,) = direction.streams
    assert (stream.sent, stream.received, stream.lost) == (FRAMES, FRAMES, 0)
    assert odd_frames(result) == NO_ODD_FRAMES
