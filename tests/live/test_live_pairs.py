"""Several pairs of ports (RFC 2544 16) over crossed rings, each pair a perfect wire."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from livetools import (
    BOTH,
    MS,
    STALLS,
    Trial,
    codes,
    counting,
    ring_ports,
    running_engine,
)

from dutperf.engine.client import Engine
from dutperf.errors import EngineError
from dutperf.protocol.base import DirectionName, Side
from dutperf.protocol.port_messages import (
    AddressRange,
    NeighboursParams,
    PortNeighbours,
    PortSpec,
)
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.stream_messages import DirectionRequest
from dutperf.protocol.trial_messages import TrialRequest

pytestmark = counting(__name__)

PAIRS = 2
NETWORK: dict[Side, int] = {"left": 18, "right": 19}
SIDES: tuple[Side, ...] = ("left", "right")
FRAMES = 500


def address(side: Side, number: int) -> str:
    return f"198.{NETWORK[side]}.{number}.2"


def ports(pairs: int) -> list[PortSpec]:
    return [
        port.model_copy(update={"number": number, "mac": f"{port.mac[:-1]}{number}"})
        for port in ring_ports()
        if port.mac
        for number in range(pairs)
    ]


def neighbours(pairs: int) -> NeighboursParams:
    """Each port is at one end of a wire: its neighbour is at the other."""
    return NeighboursParams(
        ports=[
            PortNeighbours(
                port=side,
                number=number,
                own=[AddressRange(first=address(side, number))],
                resolve=[address("right" if side == "left" else "left", number)],
            )
            for side in SIDES
            for number in range(pairs)
        ]
    )


def request(
    paths: Sequence[tuple[int, int]],
    directions: Sequence[DirectionName] = BOTH,
    sizes: Sequence[int] = (64,),
) -> TrialRequest:
    """A trial whose frames take ``paths``, the first of which is (0, 0)."""
    plain = Trial(directions=directions).request()
    return TrialRequest.model_validate(
        plain.model_dump()
        | {"directions": [_direction(each, paths, sizes) for each in plain.directions]}
    )


def _direction(
    plain: DirectionRequest, paths: Sequence[tuple[int, int]], sizes: Sequence[int]
) -> dict[str, Any]:
    (stream,) = plain.streams
    sender, receiver = SIDES if plain.name == "forward" else SIDES[::-1]
    first, *others = [
        {
            "src_ip": address(sender, sent_by),
            "dst_ip": address(receiver, received_by),
            "next_hop": address(receiver, sent_by),
        }
        for sent_by, received_by in paths
    ]
    numbers = [{"sent_by": by, "received_by": to} for by, to in paths[1:]]
    changed = {
        "frame_sizes": [*sizes],
        "received_frame_sizes": [*sizes],
        "more_paths": [one | two for one, two in zip(numbers, others, strict=True)],
    }
    return plain.model_dump() | {"streams": [stream.model_dump() | first | changed]}


@pytest.fixture(scope="module", params=[1, 2, 4], ids=lambda n: f"{n}-workers")
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    with running_engine(tmp_path_factory.mktemp("pairs"), workers=request.param) as it:
        it.open_ports(ports(PAIRS))
        it.set_neighbours(neighbours(PAIRS))
        yield it


@pytest.fixture(scope="module")
def one_worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    directory = tmp_path_factory.mktemp("one")
    with running_engine(directory, memory_mb=1024) as it:
        yield it


def received(result: TrialResult) -> list[int]:
    return [sum(s.received for s in each.streams) for each in result.directions]


def by_port(result: TrialResult, counter: str) -> list[int]:
    """How much a port's own counter rose, in the order of the ports."""
    return [
        getattr(port.after, counter) - getattr(port.before, counter)
        for port in result.ports
    ]


def test_each_pair_carries_its_share(engine: Engine) -> None:
    result = engine.measure(request([(0, 0), (1, 1)]))
    assert codes(result) <= STALLS
    assert received(result) == [FRAMES, FRAMES]
    # Ports are looked at one after the other: that is no other order of the frames.
    assert [s.reordered for d in result.directions for s in d.streams] == [0, 0]
    half = FRAMES // PAIRS
    assert by_port(result, "tx_frames") == [half] * 4
    assert by_port(result, "rx_frames") == [half] * 4
    names = [(port.name, port.number) for port in result.ports]
    assert names == [("left", 0), ("left", 1), ("right", 0), ("right", 1)]


def test_what_comes_by_another_port_than_it_should_is_lost_and_told(
    engine: Engine,
) -> None:
    # A mesh needs a device: over wires every other path ends at the wrong port.
    mesh = [(0, 0), (1, 0), (0, 1), (1, 1)]
    result = engine.measure(request(mesh, ["forward"]))
    assert "frames_lost" in codes(result)
    assert received(result) == [FRAMES // 2]
    assert [p.misdirected for p in result.ports] == [0, 0, FRAMES // 4, FRAMES // 4]


@pytest.mark.parametrize("pairs", [1, 2, 3, 4])
def test_as_many_pairs_as_a_side_may_have(one_worker: Engine, pairs: int) -> None:
    one_worker.open_ports(ports(pairs))
    one_worker.set_neighbours(neighbours(pairs))
    paths = [(number, number) for number in range(pairs)]
    result = one_worker.measure(request(paths, sizes=[64, 1518, 594]))
    assert codes(result) <= STALLS
    assert received(result) == [FRAMES, FRAMES]
    share = [len(range(number, FRAMES, pairs)) for number in range(pairs)]
    assert by_port(result, "tx_frames") == share * 2


def test_a_path_to_a_port_that_is_not_open_is_refused(one_worker: Engine) -> None:
    one_worker.open_ports(ports(2))
    one_worker.set_neighbours(neighbours(2))
    with pytest.raises(EngineError, match="right 3"):
        one_worker.measure(request([(0, 0), (1, 2)], ["forward"]))


def test_a_next_hop_of_a_further_port_that_does_not_answer_is_named(
    one_worker: Engine,
) -> None:
    one_worker.open_ports(ports(2))
    asked = neighbours(2).model_dump() | {"timeout_ns": 200 * MS}
    asked["ports"][1]["resolve"] = ["198.18.1.77"]
    one_worker.set_neighbours(NeighboursParams.model_validate(asked))
    result = one_worker.measure(request([(0, 0), (1, 1)]))
    assert "neighbour_missing" in codes(result)
    (reason,) = result.verdict.reasons
    assert "198.18.1.77 on port left 2" in reason.message
