"""Trials through the known-answer device: the engine must find what the device did.

Every count of the engine is compared with the device's own account, frame for frame,
over a grid of behaviours; where arithmetic knows the answer as well, with that.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from answers import (
    DAMAGED,
    FRAMES,
    GRID,
    PATIENT_20,
    TRIAL,
    Bench,
    assert_agree,
    forward,
)
from livetools import (
    BOTH,
    DEVICE,
    MS,
    Trial,
    codes,
    counting,
    crossed_neighbours,
    measured_once,
    ref_dut,
    running_engine,
)

from dutperf.lab.refdut_socket import Behaviour, Durations
from dutperf.protocol.result_messages import Damage, StreamResult, TrialResult
from dutperf.protocol.stream_messages import Mix
from dutperf.protocol.trial_messages import TagPlan, TrialRequest, tagged_frames
from tools.calibrate.truth import by_result as counts

pytestmark = counting(DEVICE)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with (
        tempfile.TemporaryDirectory(prefix="dutperf") as short,
        ref_dut(Path(short)) as device,
        running_engine(tmp_path_factory.mktemp("known-answer")) as engine,
    ):
        engine.open_ports(device.ports())
        engine.set_neighbours(crossed_neighbours())
        yield Bench(engine, device)


@pytest.mark.parametrize(
    ("size", "name"),
    [*((64, name) for name in GRID), *((1518, name) for name in DAMAGED)],
)
def test_the_engine_finds_what_the_device_did(
    bench: Bench, name: str, size: int
) -> None:
    trial = Trial(size=size, fps=TRIAL.fps, ms=TRIAL.ms, extra=TRIAL.extra)
    result, account = bench.measure(GRID[name], trial)
    assert {d: c.sent for d, c in counts(result).items()} == dict.fromkeys(BOTH, FRAMES)
    assert_agree(result, account)


KINDS = {
    "checksum_zero": 7,
    "checksum": 11,
    "length": 13,
    "truncation": 17,
    "number": 19,
}


def test_damaged_frames_are_lost_and_told_by_kind(bench: Bench) -> None:
    """Over IPv6, where a frame without a UDP checksum is damaged."""
    rules = [{"every": k, "do": {"corrupt": kind}} for kind, k in KINDS.items()]
    trial = Trial(ip=6, fps=TRIAL.fps, ms=TRIAL.ms, extra=TRIAL.extra)
    result, account = bench.measure(forward(*rules), trial)
    assert_agree(result, account)
    (stream,) = result.directions[0].streams
    damaged = stream.damaged
    assert damaged is not None
    assert min(damaged.by_kind.values()) > 0
    assert stream.lost == stream.corrupt == damaged.total
    (reason,) = result.verdict.reasons
    assert reason.code == "frames_lost"
    assert f"{damaged.total} of them damaged: {damaged.checksum_zero} without" in (
        reason.message
    )
    rare = forward({"every": 3000, "do": {"corrupt": "checksum_zero"}})
    tolerant = trial.request(9).model_copy(update={"loss_tolerance_ppb": 400_000})
    result, _ = bench.run(rare, tolerant)
    assert result.verdict.kind == "pass", "1 of 3001 may be lost, and is"
    assert result.ports[1].damaged == Damage(checksum_zero=1)
    ipv4, _ = bench.measure(rare)
    assert ipv4.verdict.kind == "pass", "IPv4 may do without"


def test_what_is_counted_is_what_was_told(bench: Bench) -> None:
    """Not only do both agree: arithmetic knows these."""
    result, account = bench.measure(forward({"every": 7, "do": "drop"}))
    assert account.forward.foreground.dropped_by_rule == FRAMES // 7
    assert counts(result)["forward"].lost == FRAMES // 7
    assert [(run.first, run.count) for run in account.forward.losses[:3]] == [
        (6, 1),
        (13, 1),
        (20, 1),
    ]
    _, account = bench.measure(forward({"every": 50, "do": {"reorder": PATIENT_20}}))
    counted = account.forward.foreground
    assert (counted.displaced, counted.displaced_less) == (59, 1), "the last but one"
    assert counted.out_of_order == FRAMES // 50


def mixed(request: TrialRequest) -> TrialRequest:
    """Every other frame of each direction becomes background."""
    return request.model_copy(
        update={
            "directions": [
                direction.model_copy(
                    update={
                        "streams": [
                            stream,
                            stream.model_copy(
                                update={"id": stream.id + 2, "name": "background"}
                            ),
                        ],
                        "mix": Mix(foreground=1, of=2),
                    }
                )
                for direction in request.directions
                for stream in direction.streams
            ]
        }
    )


def test_losses_of_one_class_are_found_in_its_stream(bench: Bench) -> None:
    behaviour = forward({"match": "background", "every": 5, "do": "drop"})
    result, account = bench.run(behaviour, mixed(TRIAL.request(1000)))
    by_stream = [s.lost for s in result.directions[0].streams]
    of_class = [c.dropped_by_rule for c in account.forward.classes]
    assert by_stream == of_class
    assert of_class[0] == 0
    assert of_class[1] > 0


def test_the_same_seed_loses_the_same_frames_again(bench: Bench) -> None:
    lost = []
    for seed in (1, 1, 2):
        behaviour = {"seed": seed, **forward({"probability": 0.01, "do": "drop"})}
        _, account = bench.run(behaviour, TRIAL.request(2000))
        lost.append([(r.first, r.count) for r in account.forward.losses])
    assert lost[0] == lost[1] != lost[2]


def test_a_service_rate_is_kept(bench: Bench) -> None:
    """A queue for all, twice the rate for 100 ms: the last one waits for its turn."""
    rate = FRAMES * 5
    result, account = bench.measure(
        forward(service={"rate_fps": rate, "queue_frames": FRAMES})
    )
    assert counts(result)["forward"].lost == 0
    turn_of_last_ns = FRAMES * 10**9 // rate
    waited_ns = account.forward.foreground.residence_ns.max
    assert waited_ns is not None
    assert waited_ns >= turn_of_last_ns - account.lasted_ns


def lowest(durations: Durations) -> int:
    assert durations.min is not None
    return durations.min


def test_residence_times_are_at_least_what_was_told(bench: Bench) -> None:
    _, account = bench.measure(forward({"every": 10, "do": {"delay_ns": 50 * MS}}))
    residence = account.forward.foreground.residence_ns
    late = sum(n for low, _, n in residence.buckets if low >= 49 * MS)
    assert account.forward.foreground.delayed == FRAMES // 10
    assert late >= FRAMES // 10
    assert lowest(residence) < 50 * MS
    _, account = bench.measure(forward({"do": {"delay_ns": 7 * MS}}))
    assert lowest(account.forward.foreground.residence_ns) >= 7 * MS


def test_the_kernels_clock_and_plain_readings_say_the_same(bench: Bench) -> None:
    """Tester and device share a clock, a checksum and a tag; these are another's."""
    _, account = bench.measure(forward({"do": {"delay_ns": 200 * MS}}))
    told = account.forward
    by = told.foreground.witnessed
    assert by.frames == told.foreground.left == FRAMES
    least_ns = lowest(told.foreground.residence_ns)
    assert least_ns * 0.999 <= by.least_ns <= least_ns * 1.001 + 5000
    assert by.sum_ns >= told.foreground.residence_ns.sum * 0.999
    readings = told.readings
    assert readings.read == math.ceil(FRAMES / 64)
    assert (readings.unreadable, readings.wrong_sums, readings.other_tags) == (0, 0, 0)


def test_a_second_of_delay_for_every_10th_frame_at_100_000_fps_fits(
    bench: Bench,
) -> None:
    """Two seconds' worth: 20,000 frames are held at a time, none is lost."""
    trial = Trial(
        fps=100_000,
        ms=2500,
        directions=["forward"],
        extra={"residual_wait_ns": 2500 * MS},
    )
    result, account = bench.measure(
        forward({"every": 10, "do": {"delay_ns": 2000 * MS}}), trial
    )
    assert_agree(result, account)
    assert account.forward.foreground.delayed == 25_000
    assert counts(result)["forward"].lost == 0


def test_what_does_not_fit_is_the_devices_own_failure(tmp_path: Path) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="dutperf") as short,
        ref_dut(
            Path(short), forward({"do": {"delay_ns": 200 * MS}}), "--frames-held=500"
        ) as device,
        running_engine(tmp_path) as engine,
    ):
        engine.open_ports(device.ports())
        engine.set_neighbours(crossed_neighbours())
        result = measured_once(engine, TRIAL.request())
        account = device.account()
    foreground = account.forward.foreground
    assert foreground.failed_no_buffer > 0
    assert counts(result)["forward"].lost == foreground.failed_no_buffer
    assert {run.cause for run in account.forward.losses} == {"no_buffer"}


# --- trials that end early ------------------------------------------------------------

PLANNED = 50_000
"""Frames per direction of five seconds."""


def may_stop(ms: int = 5000, **extra: object) -> Trial:
    """10,000 frames a second, ended when they are lost."""
    wait = {"stop_when_lost": True, "residual_wait_ns": 1000 * MS}
    return Trial(fps=10_000, ms=ms, extra=wait | extra)


def streams(result: TrialResult) -> list[StreamResult]:
    return [stream for direction in result.directions for stream in direction.streams]


HALF_THE_LOAD = {"rate_fps": 5000, "queue_frames": 50}


def test_a_lost_trial_ends_early_with_every_frame_accounted_for(bench: Bench) -> None:
    tags = TagPlan(first_ns=0, count=50)
    result, account = bench.measure(
        forward(service=HALF_THE_LOAD), may_stop(record={"tags": tags.model_dump()})
    )
    assert_agree(result, account)
    assert (result.ended_early, result.verdict.kind) == (True, "fail")
    assert codes(result) == {"frames_lost"}
    for stream in streams(result):
        assert stream.intended == PLANNED
        assert 5000 < stream.sent < PLANNED // 2
        assert sum(stream.series.sent) == stream.sent
        assert sum(stream.series.received) == stream.received
        assert stream.tags is not None
        tagged = tagged_frames(
            tags, frames=PLANNED, duration_ns=5_000 * MS, seed=1, stream=stream.id
        )
        assert len(stream.tags.delays_ns) == sum(n < stream.sent for n in tagged)
    lossy, lossless = streams(result)
    assert lossy.lost > lossy.sent // 3
    assert lossless.lost == 0, "and it ended, too"
    assert (lossless.tags and lossless.tags.lost) == 0


def test_a_trial_goes_on_while_the_loss_may_yet_be_tolerated(bench: Bench) -> None:
    """500 frames may be lost; of each 20 one is."""
    behaviour = forward({"every": 20, "do": "drop"})
    result, account = bench.measure(behaviour, may_stop(loss_tolerance_ppb=10**7))
    assert_agree(result, account)
    assert (result.ended_early, result.verdict.kind) == (True, "fail")
    lossy, _ = streams(result)
    assert lossy.lost > 500
    assert 15_000 <= lossy.sent < PLANNED, "those of 1.5 s at least"


def test_late_frames_end_a_trial_early(bench: Bench) -> None:
    behaviour = forward({"every": 10, "do": {"delay_ns": 400 * MS}})
    trial = may_stop(frame_timeout_ns=300 * MS)
    result, account = bench.measure(behaviour, trial)
    assert_agree(result, account)
    assert (result.ended_early, result.verdict.kind) == (True, "fail")
    assert codes(result) == {"frames_late"}
    assert [s.lost for s in streams(result)] == [0, 0]


HELD_BACK: dict[str, Behaviour] = {
    "a freeze": forward(freezes=[{"at_ns": 300 * MS, "for_ns": 1000 * MS}]),
    "a jump of the delay": forward(
        {"when": {"from_ns": 300 * MS}, "do": {"delay_ns": 800 * MS}}
    ),
}


@pytest.mark.parametrize("name", HELD_BACK)
def test_frames_that_are_held_back_fail_nobody(bench: Bench, name: str) -> None:
    result, account = bench.measure(HELD_BACK[name], may_stop())
    assert_agree(result, account)
    assert result.ended_early
    assert result.verdict.kind == "invalid"
    assert codes(result) == {"stopped_in_error"}
    assert [s.lost for s in streams(result)] == [0, 0]


@pytest.mark.parametrize(
    ("behaviour", "ms", "kind"),
    [
        (forward({"do": {"delay_ns": 200 * MS}}), 1500, "pass"),
        (forward({"do": "drop"}), 600, "fail"),
        (forward({"when": {"from_ns": 1000 * MS}, "do": "drop"}), 1500, "fail"),
    ],
    ids=["no loss", "too short", "lost at the end"],
)
def test_a_trial_that_is_not_lost_or_ends_anyway_is_complete(
    bench: Bench, behaviour: Behaviour, ms: int, kind: str
) -> None:
    result, account = bench.measure(behaviour, may_stop(ms))
    assert_agree(result, account)
    assert (result.ended_early, result.verdict.kind) == (False, kind)
    assert [s.sent for s in streams(result)] == [10 * ms] * 2
