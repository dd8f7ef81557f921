"""Frames that a device alters without damaging them: what the receiver says of them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from livetools import (
    BOTH,
    DEVICE,
    GATEWAYS,
    NO_ODD_FRAMES,
    STALLS,
    Trial,
    codes,
    counting,
    inspected,
    lab_neighbours,
    odd_frames,
    open_rings,
    ref_dut,
    running_engine,
)

from dutperf.engine.client import Engine
from dutperf.protocol.base import IpVersion
from dutperf.protocol.result_messages import Inspected, TrialResult
from dutperf.protocol.trial_messages import TrialRequest
from tools.calibrate.truth import Counts
from tools.calibrate.truth import by_result as counts

pytestmark = counting(DEVICE)

FRAMES = 500
ROUTER = {
    "left": [GATEWAYS[4][0], GATEWAYS[6][0]],
    "right": [GATEWAYS[4][1], GATEWAYS[6][1]],
}
SENT = {"ttl": 12, "dscp": 10}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with running_engine(tmp_path_factory.mktemp("inspection")) as it:
        yield it


def request(
    ip: IpVersion,
    trial_id: int = 1,
    *,
    every: int = 1,
    received_ttl: int | None = 11,
    routed: bool = True,
    size: int = 200,
) -> TrialRequest:
    hops = GATEWAYS if routed else None
    data = Trial(ip, size, hops=hops).request(trial_id).model_dump()
    data["inspect_every"] = every
    for way in data["directions"]:
        way["streams"][0] |= SENT | {"received_ttl": received_ttl}
    return TrialRequest.model_validate(data)


def through(
    engine: Engine, rules: Sequence[Mapping[str, Any]], trials: list[TrialRequest]
) -> list[TrialResult]:
    """The known-answer device as a router with these rules in both directions."""
    behaviour = {
        "routing": ROUTER,
        "forward": {"rules": rules},
        "reverse": {"rules": rules},
    }
    with (
        tempfile.TemporaryDirectory(prefix="dutperf-") as short,
        ref_dut(Path(short), behaviour) as device,
    ):
        engine.open_ports(device.ports())
        engine.set_neighbours(lab_neighbours())
        return [engine.measure(trial) for trial in trials]


def none_lost(result: TrialResult) -> None:
    """Altered frames are forwarded ones: nothing else is to be seen of them."""
    assert codes(result) <= STALLS
    assert counts(result) == dict.fromkeys(BOTH, Counts(FRAMES, FRAMES))
    assert odd_frames(result) == NO_ODD_FRAMES


@pytest.mark.parametrize("ip", [4, 6])
@pytest.mark.parametrize("every", [1, 7, 61, 499, 1000])
def test_every_kth_frame_is_inspected_from_the_first_on(
    engine: Engine, ip: IpVersion, every: int
) -> None:
    open_rings(engine)
    trial = request(ip, every=every, received_ttl=12, routed=False)
    result = engine.measure(trial)
    none_lost(result)
    frames = -(-FRAMES // every)
    whole = Inspected(frames=frames, least_ttl=12, most_ttl=12)
    assert inspected(result) == [whole, whole]


def test_none_is_inspected_if_none_is_asked_for(engine: Engine) -> None:
    open_rings(engine)
    result = engine.measure(request(4, every=0, routed=False))
    none_lost(result)
    assert inspected(result) == [Inspected(frames=0)] * 2


@pytest.mark.parametrize("ip", [4, 6])
def test_a_router_that_does_nothing_else_is_told_as_that(
    engine: Engine, ip: IpVersion
) -> None:
    [result] = through(engine, [], [request(ip)])
    none_lost(result)
    whole = Inspected(frames=FRAMES, least_ttl=11, most_ttl=11)
    assert inspected(result) == [whole, whole]


@pytest.mark.parametrize("ip", [4, 6])
@pytest.mark.parametrize("hops", [0, 2])
def test_a_router_that_takes_another_number_of_hops_is_told(
    engine: Engine, ip: IpVersion, hops: int
) -> None:
    rules = [{"every": 5, "do": {"alter": {"hops": hops}}}]
    expected, any_ttl = through(
        engine, rules, [request(ip), request(ip, 2, received_ttl=None)]
    )
    low, high = sorted((11, 12 - hops))
    for result, wrong in ((expected, FRAMES // 5), (any_ttl, 0)):
        none_lost(result)
        found = Inspected(frames=FRAMES, ttl=wrong, least_ttl=low, most_ttl=high)
        assert inspected(result) == [found, found]


@pytest.mark.parametrize("ip", [4, 6])
def test_a_router_that_remarks_frames_is_told(engine: Engine, ip: IpVersion) -> None:
    rules = [{"every": 4, "do": {"alter": {"dscp": 46}}}]
    [result] = through(engine, rules, [request(ip)])
    none_lost(result)
    for found in inspected(result):
        assert (found.ttl, found.dscp, found.payload) == (0, FRAMES // 4, 0)
        assert found.other_dscp == 46


@pytest.mark.parametrize("ip", [4, 6])
@pytest.mark.parametrize("size", [200, 1518])
def test_a_payload_of_which_the_checksum_holds_is_told(
    engine: Engine, ip: IpVersion, size: int
) -> None:
    rules = [{"every": 10, "do": {"alter": "payload"}}]
    [result] = through(engine, rules, [request(ip, size=size)])
    none_lost(result)
    for found in inspected(result):
        assert (found.ttl, found.dscp, found.payload) == (0, 0, FRAMES // 10)
