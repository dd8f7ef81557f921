"""The engine over two crossed rings: a perfect wire, so every count is known."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from livetools import (
    BOTH,
    ENDS,
    MS,
    NO_ODD_FRAMES,
    STALLS,
    Trial,
    codes,
    counting,
    engines_of,
    measured_once,
    odd_frames,
    open_rings,
    running_engine,
)

from dutperf.engine.client import Engine
from dutperf.errors import EngineError
from dutperf.protocol.base import DirectionName, IpVersion
from dutperf.protocol.methods import ERROR_ENVIRONMENT, ERROR_INVALID_PARAMS
from dutperf.protocol.trial_messages import TrialProgress
from tools.calibrate.truth import Counts
from tools.calibrate.truth import by_result as counts

pytestmark = counting(__name__)

JOINED = Path("/sys/kernel/mm/transparent_hugepage/enabled")
ALL_DIRECTIONS: list[Sequence[DirectionName]] = [BOTH, ("forward",), ("reverse",)]
SIZES: list[tuple[IpVersion, int]] = [
    *((4, size) for size in (64, 65, 79, 1001, 1518)),
    *((6, size) for size in (84, 85, 1280, 1517)),
]


@pytest.fixture(scope="module", params=[1, 2, 4], ids=lambda n: f"{n}-workers")
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    with running_engine(tmp_path_factory.mktemp("ring"), workers=request.param) as it:
        open_rings(it)
        yield it


one_worker = pytest.mark.parametrize("engine", [1], indirect=True, ids=["1-workers"])
"""What does not depend on how the work is shared; four take turns on two CPUs."""


@pytest.mark.parametrize("directions", ALL_DIRECTIONS, ids="+".join)
@pytest.mark.parametrize("ip", [4, 6])
def test_a_perfect_wire_passes_with_exact_counts(
    engine: Engine, ip: IpVersion, directions: Sequence[DirectionName]
) -> None:
    trial = Trial(ip=ip, directions=directions, fps=20_000)
    result = engine.measure(trial.request())
    assert codes(result) <= STALLS
    assert counts(result) == {d: Counts(1000, 1000) for d in directions}
    assert odd_frames(result) == NO_ODD_FRAMES


@one_worker
@pytest.mark.parametrize(("ip", "size"), SIZES)
def test_frames_of_every_size_arrive_whole(
    engine: Engine, ip: IpVersion, size: int
) -> None:
    result = engine.measure(Trial(ip=ip, size=size, ms=20).request())
    assert counts(result) == dict.fromkeys(BOTH, Counts(200, 200))
    assert odd_frames(result) == NO_ODD_FRAMES


@pytest.mark.parametrize(
    ("fps", "frames"), [(1, 1), (15, 2), (44, 4), (45, 5), (333, 33), (50_000, 5000)]
)
def test_the_number_of_frames_is_rate_times_duration(
    engine: Engine, fps: int, frames: int
) -> None:
    # A frame a second from each side: the second's is due half a second later, so this
    # trial always takes longer than it should.
    measure = engine.measure if fps > 1 else partial(measured_once, engine)
    result = measure(Trial(fps=fps, ms=100).request())
    assert counts(result) == dict.fromkeys(BOTH, Counts(frames, frames))


def test_port_counters_rise_by_exactly_what_was_sent(engine: Engine) -> None:
    result = engine.measure(Trial(directions=("forward",)).request())
    left, right = result.ports
    assert left.after.tx_frames - left.before.tx_frames == 500
    assert right.after.rx_frames - right.before.rx_frames == 500
    assert left.after.rx_frames == left.before.rx_frames
    assert right.after.tx_frames == right.before.tx_frames


def test_histograms_hold_every_frame_once(engine: Engine) -> None:
    result = engine.measure(Trial().request())
    for direction in result.directions:
        lags, bursts = direction.lag_ns, direction.burst_frames
        assert lags.count == sum(count for _, _, count in lags.buckets) == 500
        assert sum(low * count for low, _, count in bursts.buckets) == 500


def test_a_burst_is_never_longer_than_the_limit(engine: Engine) -> None:
    request = Trial(fps=50_000, extra={"burst_limit": 2}).request()
    for direction in engine.measure(request).directions:
        assert direction.burst_frames.max is not None
        assert direction.burst_frames.max <= 2


HASTY = {"settle_ns": 0, "residual_wait_ns": MS}


def test_many_trials_leave_no_trace_in_the_next(engine: Engine) -> None:
    requests = [
        Trial(ip=ip, size=size, ms=10, extra=HASTY)
        for ip, size in itertools.islice(itertools.cycle(SIZES), 30)
    ]
    before = engine.port_status().ports
    for number, trial in enumerate(requests, 1):
        result = measured_once(engine, trial.request(number))
        # So short a residual wait may miss a frame; the next trial must not get it.
        assert {c.sent for c in counts(result).values()} == {100}
        assert odd_frames(result) == NO_ODD_FRAMES
    for old, new in zip(before, engine.port_status().ports, strict=True):
        rises = new.counters.tx_frames - old.counters.tx_frames
        neighbour_frames = rises - 30 * 100
        assert 0 < neighbour_frames < 30 * 20
        assert (new.counters.pauses, new.counters.kernel) == ([], None)
        others = {"rx_frames", "tx_frames", "pauses", "kernel"}
        drops = new.counters.model_dump(exclude=others)
        assert set(drops.values()) == {0}


@one_worker
def test_a_trial_number_may_be_used_again(engine: Engine) -> None:
    results = [engine.measure(Trial().request(trial_id)) for trial_id in (9, 10, 9)]
    assert [r.trial_id for r in results] == [9, 10, 9]
    assert [counts(r) for r in results] == [dict.fromkeys(BOTH, Counts(500, 500))] * 3


@one_worker
def test_the_same_request_gives_the_same_counts(engine: Engine) -> None:
    request = Trial(ip=6, size=200).request()
    first, second = (counts(engine.measure(request)) for _ in range(2))
    assert first == second


@one_worker
def test_total_time_covers_waits_and_sending(engine: Engine) -> None:
    waits_ms = (100, 150)
    extra = dict(
        zip(("settle_ns", "residual_wait_ns"), (w * MS for w in waits_ms), strict=True)
    )
    result = engine.measure(Trial(ms=100, extra=extra).request())
    sending_ns = max(d.sending_ns for d in result.directions)
    assert result.total_ns >= sum(waits_ms) * MS + sending_ns
    assert 0 < result.overhead_ns < result.total_ns - sum(waits_ms) * MS


def test_progress_tells_rising_counts(engine: Engine) -> None:
    seen: list[TrialProgress] = []
    result = measured_once(engine, Trial(ms=1300).request(3), seen.append)
    assert {p.trial_id for p in seen} == {3}
    assert len(seen) >= 2
    assert [p.sent for p in seen] == sorted(p.sent for p in seen)
    assert seen[-1].sent <= sum(c.sent for c in counts(result).values())


def test_each_next_hop_is_asked_anew_in_every_trial(engine: Engine) -> None:
    result = engine.measure(Trial(ip=6).request())
    asked = {ip for pair in ENDS.values() for ip in pair}
    assert {n.ip for n in result.neighbours} == asked
    assert all(n.mac for n in result.neighbours)


@one_worker
def test_a_frame_that_exceeds_the_mtu_is_refused(engine: Engine) -> None:
    with pytest.raises(EngineError, match=r"frame size 1519 exceeds .* 1518") as caught:
        engine.measure(Trial(size=1519).request())
    assert caught.value.rpc_code == ERROR_INVALID_PARAMS


def test_jumbo_frames_arrive_whole_when_the_mtu_allows(tmp_path: Path) -> None:
    with running_engine(tmp_path, memory_mb=1024) as engine:
        open_rings(engine, mtu=9000)
        result = engine.measure(Trial(size=9018).request())
    assert counts(result) == dict.fromkeys(BOTH, Counts(500, 500))
    assert odd_frames(result) == NO_ODD_FRAMES


def test_too_little_memory_for_the_ports_says_so(tmp_path: Path) -> None:
    with (
        running_engine(tmp_path, memory_mb=128) as engine,
        pytest.raises(EngineError, match="no memory for") as caught,
    ):
        open_rings(engine)
    assert caught.value.rpc_code == ERROR_ENVIRONMENT
    assert "memory_mb" in caught.value.hint


def test_closed_ports_give_their_memory_back(tmp_path: Path) -> None:
    """Else the third time would find too little."""
    with running_engine(tmp_path, memory_mb=256) as engine:
        for _ in range(4):
            open_rings(engine)


@pytest.mark.skipif("[never]" in JOINED.read_text(), reason="the kernel joins no pages")
def test_frames_lie_in_joined_pages(engine: Engine) -> None:
    """Small pages would cost every start a few tenths of a second."""
    engine.measure(Trial().request())
    (pid,) = engines_of(os.getpid())
    held = Path(f"/proc/{pid}/smaps_rollup").read_text().split("AnonHugePages:")[1]
    assert int(held.split()[0]) > 10_000  # kB


def test_ports_that_were_opened_again_count_from_zero(engine: Engine) -> None:
    engine.measure(Trial().request())
    open_rings(engine)
    left, right = engine.port_status().ports
    assert max(left.counters.tx_frames, right.counters.tx_frames) < 100
    result = engine.measure(Trial().request())
    assert counts(result) == dict.fromkeys(BOTH, Counts(500, 500))
