"""Tagged frames, as the engine has them (``dataplane/tag_spread_test.cc``)."""

from __future__ import annotations

from itertools import pairwise

import pytest

from dutperf.protocol.trial_messages import TagPlan, tagged_frames

SECOND = 1_000_000_000


def tagged(count: int, *, frames: int = 1000, seed: int = 42) -> list[int]:
    """Of the second half."""
    plan = TagPlan(first_ns=SECOND // 2, count=count)
    return list(
        tagged_frames(plan, frames=frames, duration_ns=SECOND, seed=seed, stream=0)
    )


def test_they_are_those_of_the_engine() -> None:
    assert tagged(5) == [542, 647, 703, 853, 944]


@pytest.mark.parametrize("count", [2, 7, 333, 500])
def test_there_is_one_in_each_of_equal_parts(count: int) -> None:
    ends = [500 + part * 500 // count for part in range(count + 1)]
    for (begin, end), frame in zip(pairwise(ends), tagged(count), strict=True):
        assert begin <= frame < end


def test_a_single_one_keeps_its_time() -> None:
    assert {tagged(1, seed=seed)[0] for seed in range(20)} == {500}


def test_a_period_that_divides_their_distance_is_met_in_each_phase() -> None:
    phases = {frame % 10 for frame in tagged(1000, frames=2_000_000)}
    assert phases == set(range(10))
