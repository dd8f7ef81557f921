"""TCP connections through a device, each segment accounted for."""

from __future__ import annotations

from pathlib import Path

import pytest
from livetools import (
    BOTH,
    MIN_SIZE,
    Trial,
    codes,
    lab_engine,
    needs_engine,
    open_rings,
    running_engine,
)

from dutperf.protocol.base import IpVersion
from dutperf.protocol.result_messages import TcpResult, TrialResult
from dutperf.protocol.stream_messages import FieldName, FieldVariation
from dutperf.protocol.trial_messages import ConnectionEnd, Tcp, TrialRequest

pytestmark = needs_engine

SYN_SIZE: dict[IpVersion, int] = {4: 74, 6: 94}
STEPS: dict[ConnectionEnd, int] = {"opened": 3, "answered": 5, "closed": 8}


PORTS: tuple[tuple[FieldName, int, int], ...] = (
    ("src_port", 1024, 9023),
    ("dst_port", 80, 179),
)


def connections(
    ip: IpVersion = 4, fps: int = 10_000, ms: int = 50, **tcp: object
) -> TrialRequest:
    trial = Trial(ip=ip, size=SYN_SIZE[ip], fps=fps, ms=ms, directions=["forward"])
    request = trial.request()
    stream = request.directions[0].streams[0]
    ports = [
        FieldVariation(
            field=field, offset=0, width=16, min=low, max=high, mode="enumerate"
        )
        for field, low, high in PORTS
    ]
    varied = stream.model_copy(update={"vary": ports})
    direction = request.directions[0].model_copy(update={"streams": [varied]})
    return request.model_copy(
        update={"directions": [direction], "tcp": Tcp.model_validate(tcp)}
    )


def of(result: TrialResult) -> TcpResult:
    assert result.tcp is not None
    return result.tcp


def assert_whole(result: TrialResult, count: int, steps: int) -> None:
    told = [(s.sent, s.received, s.duplicate) for s in of(result).segments]
    assert told == [(count, count, 0)] * steps + [(0, 0, 0)] * (len(told) - steps)
    for end in (of(result).initiator, of(result).responder):
        assert set(end.model_dump().values()) == {0}
    assert of(result).opening_ns.count == count
    (direction,) = result.directions
    (stream,) = direction.streams
    assert (stream.sent, stream.received, stream.duplicate) == (count, count, 0)
    assert stream.delay_ns.count == count
    assert result.verdict.kind == "pass", result.verdict


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("end", STEPS)
@pytest.mark.parametrize("ip", [4, 6])
def test_each_connection_takes_each_step_once(
    tmp_path: Path, ip: IpVersion, end: ConnectionEnd, workers: int
) -> None:
    with running_engine(tmp_path, workers=workers) as engine:
        open_rings(engine)
        for _ in range(2):
            result = engine.measure(connections(ip, until=end))
            assert_whole(result, 500, STEPS[end])


def test_a_plain_trial_after_it_is_as_ever(tmp_path: Path) -> None:
    with running_engine(tmp_path) as engine:
        open_rings(engine)
        assert_whole(engine.measure(connections()), 500, STEPS["answered"])
        result = engine.measure(Trial(directions=BOTH).request(2))
    assert result.tcp is None
    assert codes(result) == set()
    assert MIN_SIZE[4] == 64


@pytest.mark.lab
@pytest.mark.parametrize("ip", [4, 6])
def test_through_a_router(tmp_path: Path, ip: IpVersion) -> None:
    with lab_engine(tmp_path, "af_packet") as engine:
        result = engine.measure(connections(ip, fps=2000, ms=250, until="closed"))
    assert_whole(result, 500, STEPS["closed"])
