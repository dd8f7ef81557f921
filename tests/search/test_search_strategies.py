"""The strategies as the laboratory sees them: how far they explore, when they end."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from dutperf import stats
from dutperf.search import Outcome, Resolution, Verification
from dutperf.search.laboratory import Bench, SimulatedTester, StepDevice
from dutperf.search.repeats import Repeats
from dutperf.search.strategies import Task, classic, narrowed

LIMIT_FPS = 400_000
RESOLUTION = Resolution.parse("1%")


@dataclass
class Watched:
    """A bench, and how long each trial was."""

    bench: Bench = field(
        default_factory=lambda: SimulatedTester().bench(StepDevice(LIMIT_FPS))
    )
    durations_s: list[float] = field(default_factory=list)

    def __call__(self, rate_fps: int, duration_s: float) -> Outcome:
        self.durations_s.append(duration_s)
        return self.bench(rate_fps, duration_s)


def task(duration_s: float = 60, waits_s: float = 9) -> Task:
    return Task(1_000_000, duration_s, RESOLUTION, waits_s)


@pytest.mark.parametrize(
    ("repeats", "duration_s", "waits_s", "searches"),
    [
        (1, 60, 9, 1),
        (5, 60, 9, 1),
        (6, 60, 9, 4),
        (20, 60, 9, 4),
        (1, 10, 9, 0),
        (1, 12, 9, 1),
        (1, 10, 0.5, 1),
        (1, 1, 0.5, 0),
        (20, 1, 0.5, 4),
    ],
)
def test_it_explores_as_far_as_that_pays(
    repeats: int, duration_s: float, waits_s: float, searches: int
) -> None:
    watched = Watched()
    search = narrowed(task(duration_s, waits_s), repeats=repeats)
    search(watched)
    first = len(watched.durations_s)
    alone = Watched()
    narrowed(task(), repeats=1)(alone)
    short = [s for s in watched.durations_s if s < duration_s]
    one = len([s for s in alone.durations_s if s < 60])
    assert (len(short) > 0, len(short) > one) == (searches > 0, searches > 1)
    search(watched)
    assert len(watched.durations_s) - first == 2


def test_trials_that_explore_are_shorter_than_those_that_count() -> None:
    watched = Watched()
    narrowed(task(0.2, 0), repeats=20)(watched)
    assert set(watched.durations_s) == {0.1, 0.2}


def test_the_classic_search_learns_nothing() -> None:
    watched = Watched()
    search = classic(task())
    search(watched)
    first = len(watched.durations_s)
    search(watched)
    assert len(watched.durations_s) == 2 * first
    assert set(watched.durations_s) == {60}


def test_all_strategies_find_the_same_of_a_steady_device() -> None:
    for search in (
        classic(task()),
        narrowed(task(), repeats=20),
        narrowed(task(), repeats=20, verification=Verification(2)),
    ):
        for _ in range(3):
            rate_fps = search(Watched()).result.rate_fps
            assert rate_fps is not None
            assert 0.99 * LIMIT_FPS <= rate_fps <= LIMIT_FPS


# --- how often


@pytest.mark.parametrize("values", [[1.0] * n for n in (1, 7, 20)])
def test_a_number_of_repeats_is_that_number(values: list[float]) -> None:
    repeats = Repeats(len(values))
    assert not repeats.enough(values[:-1])
    assert repeats.enough(values)
    assert not repeats.settled(values)
    assert repeats.interval(values) == stats.median_interval(values)


def test_equal_results_are_settled_at_the_first_look_and_not_before() -> None:
    repeats = Repeats(64, Resolution.parse("1%"))
    enough = [n for n in range(1, 65) if repeats.enough([5.0] * n)]
    assert enough == [8, 16, 32, 64]


@pytest.mark.parametrize(
    ("width", "settled"),
    [("7%", True), ("6.9%", False), ("7", True), ("6", False)],
)
def test_the_width_is_exact(width: str, settled: bool) -> None:
    values = [96.5, 97, 98, 99, 101, 102, 103, 103.5]
    repeats = Repeats(64, Resolution.parse(width))
    assert stats.median(values) == 100
    assert repeats.settled(values) == settled


def test_the_cap_ends_it_settled_or_not() -> None:
    repeats = Repeats(16, Resolution.parse("1%"))
    values = [float(2**n) for n in range(16)]
    assert not repeats.enough(values[:8])
    assert repeats.enough(values)
    assert not repeats.settled(values)


def test_zero_is_settled_by_zeros() -> None:
    assert Repeats(64, Resolution.parse("1%")).settled([0.0] * 8)
