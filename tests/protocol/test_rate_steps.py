"""A load over time has the frames that the engine sends (``timing/load_test.cc``)."""

from __future__ import annotations

import random
from typing import Any

import pytest
from protocol_files import body, golden
from pydantic import ValidationError

from dutperf.protocol.stream_messages import MAX_STEPS, DirectionRequest, RateStep
from dutperf.protocol.trial_messages import TrialRequest

MS = 1_000_000


def direction(*steps: tuple[int, int], rate_fps: int | None = None) -> DirectionRequest:
    data: dict[str, Any] = body(golden("trial.run-steps.params"))["directions"][0]
    listed = [{"rate_fps": fps, "duration_ns": ns} for fps, ns in steps]
    highest = max((fps for fps, _ in steps), default=1)
    return DirectionRequest.model_validate(
        {**data, "rate_fps": rate_fps or highest, "steps": listed}
    )


def test_they_are_those_of_the_engine() -> None:
    load = direction((1000, 7_400_000), (0, 3 * MS), (3, 500 * MS))
    times_ns = [0, 5_499_999, 10_400_000, 510_400_000, 1_234_567_890]
    assert [load.frames_in(ns) for ns in times_ns] == [0, 5, 7, 9, 26]


def test_a_constant_rate_is_one_step_without_an_end() -> None:
    assert direction(rate_fps=3).frames_in(500 * MS) == 2
    assert direction(rate_fps=3).frames_in(499_999_999) == 1


def test_steps_begin_again_and_the_last_one_is_cut() -> None:
    draw = random.Random(18)  # noqa: S311 - a fixed seed
    for _ in range(200):
        fps = [draw.choice([0, draw.randrange(2_000_000)]) for _ in range(4)]
        steps = [(rate, draw.randrange(1, 3 * MS)) for rate in [*fps, 2_000_000]]
        left_ns = duration_ns = draw.randrange(50 * MS)
        frames, at = 0, 0
        while left_ns:
            rate, step_ns = steps[at % len(steps)]
            cut = min(step_ns, left_ns)
            frames += RateStep(rate_fps=rate, duration_ns=cut).frames
            left_ns -= cut
            at += 1
        assert direction(*steps).frames_in(duration_ns) == frames


def test_a_trial_has_one_frame_at_least() -> None:
    assert direction((0, 50 * MS), (1000, 50 * MS)).frames(50 * MS) == 1
    assert direction((3, 50 * MS)).frames(1000 * MS) == 1


def test_the_rate_is_the_highest_step_and_steps_are_not_endless() -> None:
    with pytest.raises(ValidationError, match="must be the highest of steps, 7"):
        direction((7, MS), (3, MS), rate_fps=3)
    direction(*[(7, MS)] * MAX_STEPS)
    with pytest.raises(ValidationError, match=f"at most {MAX_STEPS} items"):
        direction(*[(7, MS)] * (MAX_STEPS + 1))


def test_tags_begin_with_the_frames_after_their_time() -> None:
    asked = body(golden("trial.run-steps.params"))
    # 110,000 and 55,000 frames in the first two seconds, half of a second in all after.
    asked["record"]["tags"] = {"first_ns": 2_200 * MS, "count": 55_000}
    TrialRequest.model_validate(asked)
    asked["record"]["tags"]["count"] += 1
    with pytest.raises(ValidationError, match="55000 foreground frames"):
        TrialRequest.model_validate(asked)
