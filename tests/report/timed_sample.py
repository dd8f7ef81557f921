"""A made-up run whose trials tell about time: a burst of loss, late frames, tags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from delay_sample import NOTHING, histogram, series, tags, two_modes, variation
from report_sample import CREATED, stream_result, throughput_cell, trial

from dutperf.engine.protocol import (
    DirectionResult,
    Histogram,
    Mix,
    Record,
    SlowerThan,
    StreamResult,
    TagPlan,
    VerdictKind,
)
from dutperf.results import ResultsFile, TrialRecord

CELL = "throughput-ip4-64-both"
SECONDS = 60
INTERVALS = 600
BURST = {284: 310, 285: 4_000, 286: 4_000, 287: 1_870}
"""Frames lost in the middle: by interval of 100 ms."""
BURST_RUNS = histogram([(1, 97), (2, 11), (3, 4), (9_000, 1), (1_049, 1)])
_TIMEOUTS_NS = (100_000, 1_000_000, 10_000_000)
Way = Literal["forward", "reverse"]


def slower_than(delays: Histogram, timeout_ns: int) -> int:
    """By buckets; the timeouts of the sample are above a bucket's end or below it."""
    return sum(count for low, _, count in delays.buckets if low > timeout_ns)


def stream(
    frames: int,
    lost: Mapping[int, int],
    seed: int,
    *,
    number: int,
    name: Literal["foreground", "background"] = "foreground",
    runs: Histogram = NOTHING,
    fast_us: float = 34.0,
) -> StreamResult:
    gone = sum(lost.values())
    delays = two_modes(frames - gone, seed, fast_us=fast_us)
    found = stream_result(
        frames,
        delays,
        series(frames, dict(lost), INTERVALS, 100_000_000),
        runs,
        number=number,
        name=name,
    )
    slower = [
        SlowerThan(timeout_ns=t, frames=slower_than(delays, t)) for t in _TIMEOUTS_NS
    ]
    return found.model_copy(update={"slower": slower})


def timed_trial(
    number: int,
    rate_fps: int,
    verdict: VerdictKind,
    lost: Mapping[int, int] | None = None,
    *,
    cell: str = CELL,
    mixed: bool = False,
    tagged: int = 0,
    ipdv: bool = False,
    timeout_ns: int | None = None,
) -> TrialRecord:
    """A minute of traffic; what is lost is lost forward, in the foreground."""
    record = trial(number, cell, rate_fps, verdict)
    ways: tuple[Way, Way] = ("forward", "reverse")
    directions = [
        _direction(record.result.directions[i], way, rate_fps, dict(lost or {}), mixed)
        for i, way in enumerate(ways)
    ]
    plan = TagPlan(first_ns=30_000_000_000, count=tagged) if tagged else None
    if tagged:
        found = [
            tags(tagged, seed, range(tagged // 2, tagged // 2 + 3) if seed == 1 else ())
            for seed in (1, 2)
        ]
        directions = [
            _with_first_stream(d, {"tags": t})
            for d, t in zip(directions, found, strict=True)
        ]
    if ipdv:
        directions = [
            _with_first_stream(d, {"ipdv_ns": variation(100_000, seed)})
            for seed, d in enumerate(directions)
        ]
    requested = record.request.directions
    if mixed:
        mix = Mix(foreground=9, of=10)
        requested = [
            d.model_copy(
                update={
                    "mix": mix,
                    "streams": [
                        d.streams[0],
                        d.streams[0].model_copy(
                            update={"id": d.streams[0].id + 2, "name": "background"}
                        ),
                    ],
                }
            )
            for d in requested
        ]
    request = record.request.model_copy(
        update={
            "duration_ns": SECONDS * 1_000_000_000,
            "directions": requested,
            "frame_timeout_ns": timeout_ns,
            "record": Record(
                tags=plan,
                ipdv=ipdv,
                fine_delays=True,
                frame_timeouts_ns=list(_TIMEOUTS_NS),
            ),
        }
    )
    result = record.result.model_copy(update={"directions": directions})
    return record.model_copy(update={"request": request, "result": result})


def _direction(
    made: DirectionResult, way: Way, rate_fps: int, lost: dict[int, int], mixed: bool
) -> DirectionResult:
    frames = rate_fps * SECONDS
    number = 1 if way == "forward" else 2
    gone = lost if way == "forward" else {}
    share = frames * 9 // 10 if mixed else frames
    streams = [
        stream(share, gone, number, number=number, runs=BURST_RUNS if gone else NOTHING)
    ]
    if mixed:
        streams.append(
            stream(
                frames - share,
                {index: count // 10 for index, count in gone.items()},
                number + 2,
                number=number + 2,
                name="background",
                runs=histogram([(2, 9), (900, 1), (82, 1)]) if gone else NOTHING,
                fast_us=51.0,
            )
        )
    return made.model_copy(
        update={
            "streams": streams,
            "sending_ns": SECONDS * 1_000_000_000,
            "delay_floor_ns": 1_250 if way == "forward" else 1_310,
            "delay_bound_ns": 41_000 if way == "forward" else 38_500,
        }
    )


def _with_first_stream(
    direction: DirectionResult, update: dict[str, object]
) -> DirectionResult:
    first, *others = direction.streams
    streams = [first.model_copy(update=update), *others]
    return direction.model_copy(update={"streams": streams})


def timed_results() -> ResultsFile:
    """A throughput whose faster trial lost a burst."""
    trials = [
        timed_trial(1, 48_000, "fail", BURST, mixed=True, timeout_ns=10_000_000),
        timed_trial(2, 40_000, "pass", mixed=True, timeout_ns=10_000_000),
        timed_trial(3, 40_000, "pass", cell="latency", tagged=50_000, ipdv=True),
    ]
    return ResultsFile(
        procedure="throughput",
        name="burst-in-the-middle",
        created_at=CREATED,
        complete=True,
        cells=[throughput_cell(CELL, 4, 64, [40_000.0])],
        trials=trials,
    )
