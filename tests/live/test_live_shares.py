"""A direction's work in several shares: the same counts, whoever receives what.

Each share has a transmit queue and a receive queue of every port. Whose a frame is
follows from its tag, never from the queue that it comes by: where rings are crossed
each frame comes by another share's queue, and is handed over.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from answers import DAMAGED, GRID, TRIAL, Bench, assert_agree
from livetools import (
    BOTH,
    MS,
    NO_ODD_FRAMES,
    Trial,
    crossed_neighbours,
    needs_engine,
    odd_frames,
    ref_dut,
    ring_ports,
    running_engine,
    to_nobody,
    vhost,
    virtio_user,
)

from dutperf.doctor.cpu_checks import buffers_mb
from dutperf.engine.client import Engine
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.stream_messages import FieldVariation
from dutperf.protocol.trial_messages import TrialRequest

pytestmark = needs_engine

SHARES = (1, 2, 3, 4, 8)
FRAMES = 4000
SENT = Trial(fps=20_000, ms=200)


def open_rings(engine: Engine, shares: int, *, crossed: bool) -> None:
    keys = {
        "device": "crossed" if crossed else "",
        "rx_descriptors": 1024,
        "tx_descriptors": 1024,
    }
    ports = [port.model_copy(update=keys) for port in ring_ports()]
    engine.open_ports(ports, shares)
    engine.set_neighbours(crossed_neighbours())


def assert_all_arrived(result: TrialResult, frames: int = FRAMES) -> None:
    for direction in result.directions:
        (stream,) = direction.streams
        assert stream.sent == stream.received == frames
        assert (stream.duplicate, stream.reordered, stream.unplaced) == (0, 0, 0)
        assert stream.delay_ns.count == sum(stream.series.received) == frames
        assert stream.loss_runs.count == 0
    assert odd_frames(result) == NO_ODD_FRAMES


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize("shares", SHARES)
def test_each_frame_is_counted_once(
    tmp_path: Path, shares: int, workers: int, *, crossed: bool
) -> None:
    with running_engine(tmp_path, workers=workers) as engine:
        open_rings(engine, shares, crossed=crossed)
        result = engine.measure(SENT.request())
        again = engine.measure(SENT.request(2))
    for each in (result, again):
        assert_all_arrived(each)
        assert (each.shares, each.one_share_because) == (shares, None)
        handed_over = [port.handed_over for port in each.ports]
        assert handed_over == [FRAMES if crossed and shares > 1 else 0] * 2
        assert [port.not_taken_over for port in each.ports] == [0, 0]
        for direction in each.directions:
            parts = [FRAMES // shares + (n < FRAMES % shares) for n in range(shares)]
            told = [(s.intended, s.sent, s.received) for s in direction.by_share]
            assert told == [(part,) * 3 for part in parts if shares > 1]


@pytest.mark.parametrize("shares", [1, 2, 4, 8])
def test_ports_that_copy_no_frame_have_queues_for_shares(
    tmp_path: Path, shares: int
) -> None:
    """Queue k of virtio-user is queue k of vhost."""
    with running_engine(tmp_path, memory_mb=1024) as engine:
        ports = [vhost(tmp_path, shares), virtio_user(tmp_path, shares)]
        engine.open_ports(ports, shares)
        for number in (1, 2):
            result = engine.measure(to_nobody(spread(SENT.request(number))))
            assert_all_arrived(result)
            assert result.shares == shares
            assert [port.handed_over for port in result.ports] == [0, 0]


@pytest.mark.parametrize("shares", [1, 4])
def test_the_memory_that_doctor_plans_is_enough(tmp_path: Path, shares: int) -> None:
    with running_engine(tmp_path, memory_mb=buffers_mb(shares)) as engine:
        engine.open_ports(ring_ports(), shares)
        engine.set_neighbours(crossed_neighbours())
        assert_all_arrived(engine.measure(SENT.request()))


def test_fewer_frames_than_shares(tmp_path: Path) -> None:
    with running_engine(tmp_path) as engine:
        open_rings(engine, 8, crossed=True)
        for number, frames in enumerate((1, 3, 8, 9), start=1):
            trial = Trial(fps=1000, ms=frames)
            assert_all_arrived(engine.measure(trial.request(number)), frames)


def test_what_cannot_be_put_together_has_one_share_and_says_why(tmp_path: Path) -> None:
    record = {"record": {"ipdv": True}}
    with running_engine(tmp_path) as engine:
        open_rings(engine, 4, crossed=False)
        result = engine.measure(Trial(fps=20_000, ms=200, extra=record).request())
    assert_all_arrived(result)
    assert result.shares == 1
    assert result.one_share_because == "IPDV is of frames sent in a row"
    for direction in result.directions:
        (stream,) = direction.streams
        assert stream.ipdv_ns is not None
        assert stream.ipdv_ns.count == FRAMES - 1


def test_several_frame_sizes_go_their_round_as_in_one_share(tmp_path: Path) -> None:
    trial = Trial(fps=20_000, ms=200)
    request = trial.request()
    sizes = [64, 64, 570, 1518, 64]
    keys = {"frame_sizes": sizes, "received_frame_sizes": sizes}
    directions = [
        each.model_copy(update={"streams": [each.streams[0].model_copy(update=keys)]})
        for each in request.directions
    ]
    request = request.model_copy(update={"directions": directions})
    with running_engine(tmp_path) as engine:
        open_rings(engine, 3, crossed=True)
        assert_all_arrived(engine.measure(request))


def test_a_stopped_trial_accounts_for_what_has_left(tmp_path: Path) -> None:
    with running_engine(tmp_path) as engine:
        open_rings(engine, 4, crossed=False)
        trial = Trial(fps=20_000, ms=20_000, directions=BOTH)
        result = engine.measure(trial.request(), lambda _progress: engine.stop())
    for direction in result.directions:
        (stream,) = direction.streams
        assert 0 < stream.sent == stream.received < stream.intended
        assert stream.longest_loss is None
        assert stream.loss_runs.count == 0


def test_tags_delays_and_steps_of_a_load_are_the_wholes(tmp_path: Path) -> None:
    extra = {"record": {"tags": {"first_ns": 50 * MS, "count": 100}}}
    with running_engine(tmp_path) as engine:
        open_rings(engine, 8, crossed=True)
        result = engine.measure(Trial(fps=20_000, ms=200, extra=extra).request())
    assert_all_arrived(result)
    for direction in result.directions:
        (stream,) = direction.streams
        assert stream.tags is not None
        assert len(stream.tags.delays_ns) == 100
        assert None not in stream.tags.delays_ns
        assert direction.lag_ns.count == FRAMES


def spread(request: TrialRequest) -> TrialRequest:
    """Source ports at random: by RSS frames come by all queues, whosever they are."""
    ports = [FieldVariation(field="src_port", width=16, min=1024, max=65535)]
    directions = [
        each.model_copy(
            update={"streams": [each.streams[0].model_copy(update={"vary": ports})]}
        )
        for each in request.directions
    ]
    return request.model_copy(update={"directions": directions})


@pytest.fixture(scope="module", params=SHARES[1:])
def bench(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Bench]:
    """The device has as many queues as there are shares."""
    keys = {"rx_descriptors": 1024, "tx_descriptors": 1024}
    with (
        tempfile.TemporaryDirectory(prefix="dutperf") as short,
        ref_dut(Path(short), None, f"--queues={request.param}") as device,
        running_engine(tmp_path_factory.mktemp("shares"), memory_mb=1024) as engine,
    ):
        ports = [port.model_copy(update=keys) for port in device.ports()]
        engine.open_ports(ports, request.param)
        engine.set_neighbours(crossed_neighbours())
        yield Bench(engine, device)


@pytest.mark.parametrize("name", GRID)
@pytest.mark.parametrize("spread_by", ["nothing", "ports"])
def test_what_a_device_did_is_found_whatever_queues_it_chose(
    bench: Bench, name: str, spread_by: str
) -> None:
    size = 1518 if name in DAMAGED else 64
    trial = Trial(size=size, fps=TRIAL.fps, ms=TRIAL.ms, extra=TRIAL.extra)
    bench.trials += 1
    request = trial.request(bench.trials)
    asked = request if spread_by == "nothing" else spread(request)
    result, account = bench.run(GRID[name], asked)
    assert_agree(result, account, ordered=False)
    assert result.one_share_because is None
    handed_over = sum(port.handed_over for port in result.ports)
    assert handed_over > 0
    assert sum(port.not_taken_over for port in result.ports) == 0
