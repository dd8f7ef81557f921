"""A made-up run whose trials tell about time: a burst of loss, late frames, tags."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from delay_sample import NOTHING, histogram, series, tags, two_modes, variation
from report_sample import CREATED, stream_result, throughput_cell, trial
from told_cells import retyped

from dutperf import stats
from dutperf.protocol.result_messages import (
    DirectionResult,
    Histogram,
    SlowerThan,
    StreamResult,
    VerdictKind,
)
from dutperf.protocol.stream_messages import Mix
from dutperf.protocol.trial_messages import Record, TagPlan
from dutperf.results import (
    CellResult,
    DelayRecord,
    FrameCount,
    Measure,
    MeasuredValue,
    RepeatResult,
    ResultsFile,
    TimeoutLoss,
    TrialRecord,
)

CELL = "throughput-ip4-64-both"
SECONDS = 60
INTERVALS = 600
BURST = {284: 310, 285: 4_000, 286: 4_000, 287: 1_870}
"""Frames lost in the middle: by interval of 100 ms."""
BURST_RUNS = histogram([(1, 97), (2, 11), (3, 4), (9_000, 1), (1_049, 1)])
_TIMEOUTS_NS = (100_000, 1_000_000, 10_000_000)
Way = Literal["forward", "reverse"]
WAYS: tuple[Way, Way] = ("forward", "reverse")


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
    directions = [
        _direction(record.result.directions[i], way, rate_fps, dict(lost or {}), mixed)
        for i, way in enumerate(WAYS)
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
            "send_call_ns": histogram([(400, 90_000), (2_000, 9_995), (12_000, 5)]),
            "receive_gap_ns": histogram([(850, 90_000), (7_000, 9_995), (29_000, 5)]),
            "delay_bound_ns": 41_000 if way == "forward" else 38_500,
        }
    )


def _with_first_stream(
    direction: DirectionResult, update: dict[str, object]
) -> DirectionResult:
    first, *others = direction.streams
    streams = [first.model_copy(update=update), *others]
    return direction.model_copy(update={"streams": streams})


def measure(
    name: str,
    way: Way,
    values: Sequence[float | None],
    *,
    samples: int = 50_000,
    lost: int = 0,
    summary: Literal["median", "mean"] = "median",
) -> Measure:
    """Null stands for a repeat that was lost."""
    ranked = [math.inf if value is None else value for value in values]
    repeats = [figure(value) for value in ranked]
    summarised = stats.median(ranked) if summary == "median" else stats.mean(ranked)
    return Measure(
        name=name,
        quantity=f"{name} in words (RFC 8219 7)",
        direction=way,
        summary=summary,
        repeats=repeats,
        samples=[samples] * len(repeats),
        lost=[lost] * len(repeats),
        count=len(repeats),
        result=figure(summarised),
        percentile_1=figure(stats.percentile(ranked, 1)),
        percentile_99=figure(stats.percentile(ranked, 99)),
    )


def figure(value: float) -> MeasuredValue:
    if math.isinf(value):
        return MeasuredValue(value=None, absent="lost")
    return MeasuredValue(value=value)


def delay_cell(
    procedure: Literal["latency", "pdv", "ipdv"],
    measures: Sequence[Measure],
    **more: str | float | bool,
) -> CellResult:
    plain = throughput_cell(procedure, 4, 64, [1.0])
    first = [m for m in measures if m.name == measures[0].name]
    known = [m.result.value for m in first if m.result.value is not None]
    count = len(measures[0].repeats)
    return retyped(
        plain.model_copy(
            update={
                "id": f"{procedure}-ip4-64-both-40000fps",
                "procedure": procedure,
                "quantity": f"{procedure}, at 40,000 fps per direction",
                "parameters": {
                    **plain.parameters,
                    "rate_fps": 40_000,
                    "repeats": count,
                    **more,
                },
                "median": max(known) if len(known) == len(first) else None,
                "unit": "ns",
                "repeats": [RepeatResult(value=1.0, verdict="pass", trials=1)] * count,
                "measures": list(measures),
                "frames": [
                    FrameCount(
                        direction=way,
                        sent=2_400_000 * count,
                        received=2_400_000 * count - 3,
                        lost=3,
                        late=0,
                        negative_delays=0,
                    )
                    for way in WAYS
                ],
                "delays": DelayRecord(
                    definition="one-way delay of a frame, by one clock",
                    resolution="exact, in nanoseconds",
                    floor_ns=1_250,
                    bound_ns=41_000,
                    usual_bound_ns=9_400,
                ),
            }
        )
    )


def repeated(middle: float, spread: float, seed: int, count: int = 20) -> list[float]:
    draw = random.Random(seed)  # noqa: S311 - test data
    return [round(middle * math.exp(draw.gauss(0, spread))) for _ in range(count)]


def delay_results() -> ResultsFile:
    """Latency, PDV and IPDV of twenty repeats, and a throughput of another kind."""
    latency = delay_cell(
        "latency",
        [
            measure("TL", "forward", repeated(35_000, 0.03, 1), lost=3),
            measure("WCL", "forward", repeated(190_000, 0.25, 2), lost=3),
            measure("TL", "reverse", repeated(34_100, 0.03, 3)),
            measure("WCL", "reverse", repeated(170_000, 0.2, 4)),
        ],
    )
    pdv = delay_cell(
        "pdv",
        [
            measure(name, way, repeated(middle, 0.1, seed), samples=2_400_000)
            for way in WAYS
            for seed, (name, middle) in enumerate(
                (("PDV", 170_000), ("Dmin", 21_000), ("D99.9", 191_000))
            )
        ],
    )
    ipdv = delay_cell(
        "ipdv",
        [
            measure(name, way, values, samples=2_399_999)
            for way in WAYS
            for name, values in (
                ("IPDV max", repeated(5_000_000, 0.5, 5)),
                ("IPDV median", [float(n - 30) for n in range(20)]),
                ("IPDV min", [-value for value in repeated(800_000, 0.4, 6)]),
            )
        ],
    )
    within = throughput_cell("within", 4, 64, [41_000.0])
    within = retyped(
        within.model_copy(
            update={
                "quantity": "throughput per direction, frames within 10 ms, "
                "losing up to 0.01 %",
                "parameters": {
                    **within.parameters,
                    "frame_timeout_ms": 10.0,
                    "loss_tolerance_percent": 0.01,
                },
                "timeouts": [
                    TimeoutLoss(timeout_ns=t, loss_percent=loss, repeats=[loss])
                    for t, loss in zip(_TIMEOUTS_NS, (11.4, 0.02, 0.0), strict=True)
                ],
            }
        )
    )
    cells = [latency, pdv, ipdv, within]
    plan: dict[str, dict[str, Any]] = {
        latency.id: {"tagged": 2_000},
        pdv.id: {},
        ipdv.id: {"ipdv": True},
        within.id: {"timeout_ns": 10_000_000},
    }
    return ResultsFile(
        procedure="campaign",
        name="delays",
        created_at=CREATED,
        complete=True,
        cells=cells,
        trials=[
            timed_trial(number, 40_000, "pass", cell=name, **options)
            for number, (name, options) in enumerate(plan.items(), 1)
        ],
    )


def timed_results() -> ResultsFile:
    """A throughput whose faster trial lost a burst."""
    trials = [
        timed_trial(1, 48_000, "fail", BURST, mixed=True, timeout_ns=10_000_000),
        timed_trial(2, 40_000, "pass", mixed=True, timeout_ns=10_000_000),
        timed_trial(3, 40_000, "pass", cell="frame-loss", tagged=50_000, ipdv=True),
    ]
    return ResultsFile(
        procedure="throughput",
        name="burst-in-the-middle",
        created_at=CREATED,
        complete=True,
        cells=[throughput_cell(CELL, 4, 64, [40_000.0])],
        trials=trials,
    )
