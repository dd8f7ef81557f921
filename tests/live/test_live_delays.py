"""Delays, timeouts, tags and time series against the known-answer device.

The device says how long it kept each frame. A delay that the engine measures is
shorter or longer at most by what both admit: the engine's error bound, how long a frame
may have waited at the device's port before the device looked, and how much later than
told it may have left.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from livetools import (
    MS,
    RefDut,
    Trial,
    codes,
    crossed_neighbours,
    needs_engine,
    open_rings,
    ref_dut,
    running_engine,
)

from dutperf import stats
from dutperf.engine.client import Engine
from dutperf.lab.refdut_socket import Behaviour, DirectionAccount
from dutperf.protocol.result_messages import DirectionResult, StreamResult, TrialResult
from dutperf.protocol.trial_messages import TagPlan, tagged_frames

pytestmark = needs_engine

FRAMES = 4001
"""Per direction: no k below divides it."""
FPS = 20_005
RECORD: Mapping[str, Any] = {
    "fine_delays": True,
    "ipdv": True,
    "series_interval_ns": 10 * MS,
}
PER_MILLE = (1, 250, 500, 750, 900, 990, 999)
BUCKET = 1.001
"""Values of one bucket differ by this factor at most."""


def trial(
    *,
    timeout_ns: int | None = None,
    wait_ns: int = 500 * MS,
    **record: Any,  # noqa: ANN401
) -> Trial:
    return Trial(
        fps=FPS,
        ms=200,
        extra={
            "record": {**RECORD, **record},
            "frame_timeout_ns": timeout_ns,
            "residual_wait_ns": wait_ns,
        },
    )


class Bench:
    """The engine, its ports open, and the device between them."""

    def __init__(self, engine: Engine, device: RefDut) -> None:
        self._engine = engine
        self._device = device
        self._trials = 0

    def measure(
        self, behaviour: Behaviour, asked: Trial
    ) -> tuple[TrialResult, DirectionAccount]:
        """The result of a trial, and the device's account of the forward direction."""
        self._trials += 1
        self._device.client.configure(behaviour)
        result = self._engine.measure(asked.request(self._trials))
        return result, self._device.account(self._trials).forward


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    # A short path for the device: a socket's has at most 107 characters.
    with (
        tempfile.TemporaryDirectory(prefix="dutperf") as place,
        ref_dut(Path(place)) as device,
        running_engine(tmp_path_factory.mktemp("delays")) as engine,
    ):
        engine.open_ports(device.ports())
        found = engine.set_neighbours(crossed_neighbours()).neighbours
        assert all(n.mac for n in found)
        yield Bench(engine, device)


@pytest.fixture(scope="module")
def rings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An engine whose ports are connected to each other."""
    with running_engine(tmp_path_factory.mktemp("rings")) as engine:
        open_rings(engine)
        yield engine


def forward(*rules: Mapping[str, Any]) -> Behaviour:
    return {"forward": {"rules": list(rules)}}


def direction_of(result: TrialResult) -> DirectionResult:
    return result.directions[0]


def stream_of(result: TrialResult) -> StreamResult:
    return result.directions[0].streams[0]


def delays_agree(result: TrialResult, account: DirectionAccount) -> None:
    """Each quantile lies within the stated errors of what the device says it did."""
    kept = account.foreground.residence_ns
    delay = stream_of(result).delay_ns
    assert delay.count == kept.count
    assert None not in (delay.min, delay.max, kept.min, kept.max)
    error_ns = account.own_error_ns.max or 0
    slack = (account.poll_gap_ns.max or 0) + direction_of(result).delay_bound_ns
    for per_mille in PER_MILLE:
        measured = stats.histogram_percentile(delay.buckets, per_mille, 1000)
        truth = stats.histogram_percentile(kept.buckets, per_mille, 1000)
        assert measured * BUCKET >= truth - error_ns
        assert measured <= (truth + slack) * BUCKET
    assert (kept.min or 0) - error_ns <= (delay.min or 0) <= (kept.min or 0) + slack
    assert (kept.max or 0) - error_ns <= (delay.max or 0) <= (kept.max or 0) + slack


BEHAVIOURS: dict[str, Behaviour] = {
    "nothing": forward(),
    "3 ms": forward({"do": {"delay_ns": 3 * MS}}),
    "uniform": forward({"do": {"delay_ns": {"from": 1 * MS, "to": 3 * MS}}}),
    "every 10th": forward({"every": 10, "do": {"delay_ns": 300 * MS}}),
    "every 10th a second": forward({"every": 10, "do": {"delay_ns": 1_000 * MS}}),
    "random share": forward({"probability": 0.05, "do": {"delay_ns": 20 * MS}}),
    "jump": forward({"when": {"from_ns": 100 * MS}, "do": {"delay_ns": 40 * MS}}),
    "freeze": {"forward": {"freezes": [{"at_ns": 50 * MS, "for_ns": 30 * MS}]}},
}


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_delays_are_those_of_the_device(bench: Bench, name: str) -> None:
    late = {"every 10th a second": trial(wait_ns=1_200 * MS)}
    result, account = bench.measure(BEHAVIOURS[name], late.get(name, trial()))
    assert stream_of(result).received == stream_of(result).sent == FRAMES
    assert stream_of(result).negative_delays == 0
    delays_agree(result, account)


def test_each_timeout_counts_the_frames_that_were_slower(bench: Bench) -> None:
    result, account = bench.measure(
        BEHAVIOURS["every 10th"],
        trial(timeout_ns=290 * MS, frame_timeouts_ns=[100 * MS, 299 * MS, 1_400 * MS]),
    )
    delayed = account.foreground.delayed
    assert delayed == FRAMES // 10
    found = stream_of(result)
    assert [(s.timeout_ns, s.frames) for s in found.slower] == [
        (100 * MS, delayed),
        (299 * MS, delayed),
        (1_400 * MS, 0),
    ]
    assert (found.late, found.lost) == (delayed, 0)
    assert (result.verdict.kind, codes(result)) == ("fail", {"frames_late"})


def test_without_a_timeout_late_frames_do_not_matter(bench: Bench) -> None:
    result, _ = bench.measure(BEHAVIOURS["every 10th"], trial())
    assert result.verdict.kind == "pass"


def test_a_disclosed_tolerance_covers_lost_and_late_frames_together(
    bench: Bench,
) -> None:
    behaviour = forward(
        {"every": 100, "do": "drop"}, {"every": 400, "do": {"delay_ns": 300 * MS}}
    )
    missing = FRAMES // 100 + (FRAMES - FRAMES // 100) // 400
    for tolerated, kind in ((missing, "pass"), (missing - 1, "fail")):
        asked = trial(timeout_ns=100 * MS)
        asked.extra["loss_tolerance_ppb"] = -(-tolerated * 10**9 // FRAMES)
        result, _ = bench.measure(behaviour, asked)
        assert stream_of(result).lost + stream_of(result).late == missing
        assert result.verdict.kind == kind


def test_a_spread_on_a_long_way_is_told_by_a_thousandth_of_itself(bench: Bench) -> None:
    """Of more frames than are kept as they are."""
    asked = dataclasses.replace(trial(), ms=1_000)
    result, _ = bench.measure(forward({"do": {"delay_ns": 100 * MS}}), asked)
    delay = stream_of(result).delay_ns
    assert delay.count > 16_384
    assert delay.min is not None
    assert delay.min >= 100 * MS
    low, high = stats.percentile_bounds(delay.buckets, 999, 1000)
    assert high - low <= (high - delay.min) / 1000


def test_tags_show_a_jump_of_the_delay_where_it_was(bench: Bench) -> None:
    asked = trial(tags={"first_ns": 0, "count": 100})
    result, _ = bench.measure(BEHAVIOURS["jump"], asked)
    tags = stream_of(result).tags
    assert tags is not None
    assert (tags.lost, len(tags.delays_ns)) == (0, 100)
    late = [delay is not None and delay >= 40 * MS for delay in tags.delays_ns]
    assert all(late[55:])
    assert late == sorted(late) or sum(late[:45]) < 45


def test_lost_tags_are_kept_as_lost(bench: Bench) -> None:
    asked = trial(tags={"first_ns": 100 * MS, "count": 20})
    result, account = bench.measure(forward({"every": 3, "do": "drop"}), asked)
    tags = stream_of(result).tags
    assert tags is not None
    plan = TagPlan(first_ns=100 * MS, count=20)
    numbers = tagged_frames(plan, frames=FRAMES, duration_ns=200 * MS, seed=1, stream=0)
    lost = {
        n for run in account.losses for n in range(run.first, run.first + run.count)
    }
    assert [d is None for d in tags.delays_ns] == [n in lost for n in numbers]
    assert tags.lost == sum(n in lost for n in numbers) > 0


def test_variation_is_that_of_neighbours_in_the_order_of_sending(bench: Bench) -> None:
    result, _ = bench.measure(BEHAVIOURS["every 10th"], trial())
    found = stream_of(result)
    ipdv, slack = found.ipdv_ns, direction_of(result).delay_bound_ns
    assert ipdv is not None
    assert found.reordered > 0
    assert ipdv.count == FRAMES - 1
    rises = sum(n for low, _, n in ipdv.buckets if low >= 200 * MS)
    falls = sum(n for _, high, n in ipdv.buckets if high <= -200 * MS)
    assert (rises, falls) == (FRAMES // 10, FRAMES // 10)
    assert ipdv.max is not None
    assert ipdv.max >= 300 * MS - slack - stats.histogram_percentile(
        found.delay_ns.buckets, 899, 1000
    )


def test_pairs_with_a_lost_frame_have_no_variation(bench: Bench) -> None:
    result, _ = bench.measure(forward({"every": 2, "do": "drop"}), trial())
    ipdv = stream_of(result).ipdv_ns
    assert ipdv is not None
    assert ipdv.count == 0


def test_the_series_shows_when_frames_were_lost(bench: Bench) -> None:
    behaviour = forward({"when": {"from_ns": 60 * MS, "to_ns": 100 * MS}, "do": "drop"})
    result, account = bench.measure(behaviour, trial())
    found = stream_of(result)
    assert sum(found.series.sent) == found.sent
    assert sum(found.series.received) == found.received
    lost = found.series.lost
    # A frame may be on its way for a while, so the edges are not sharp.
    assert sum(lost[4:12]) == found.lost == account.foreground.dropped_by_rule > 0
    assert len(lost) == 20


def test_loss_runs_are_those_of_the_device(bench: Bench) -> None:
    behaviour = forward(
        {"probability": 0.02, "do": "drop"},
        {"when": {"from_ns": 60 * MS, "to_ns": 70 * MS}, "do": "drop"},
    )
    result, account = bench.measure(behaviour, trial())
    lost = sorted(
        n for run in account.losses for n in range(run.first, run.first + run.count)
    )
    runs: list[int] = []
    for before, number in zip([-2, *lost], lost, strict=False):
        if number == before + 1:
            runs[-1] += 1
        else:
            runs.append(1)
    found = stream_of(result).loss_runs
    assert (found.count, found.max) == (len(runs), max(runs))
    assert sum(n for _, _, n in found.buckets) == len(runs)
    assert stream_of(result).lost == sum(runs)


def test_a_stream_beyond_the_memory_bound_gets_a_window(rings: Engine) -> None:
    """A MiB is a bit for 8,388,608 frames; the tester soon gives up to send so many."""
    window = {"record": {"tracking_mb": 1}, "lag_limit_ns": MS}
    asked = Trial(fps=10**12, ms=50, extra=window)
    result = rings.measure(asked.request())
    assert stream_of(result).window_frames == 2**23
    assert stream_of(result).unplaced == 0


def test_a_trial_without_a_device_has_a_floor_and_a_bound(rings: Engine) -> None:
    direction = direction_of(rings.measure(trial().request()))
    found = direction.streams[0]
    assert found.delay_ns.count == FRAMES
    assert found.delay_ns.min is not None
    assert found.delay_ns.max is not None
    assert 0 < direction.delay_floor_ns <= direction.delay_bound_ns
    assert found.delay_ns.max <= direction.delay_bound_ns
    assert direction.send_call_ns.count == direction.receive_gap_ns.count == FRAMES
