"""The search laboratory: searches compared on simulated devices.

A campaign is what a user runs: ``REPEATS`` repeats and the median of them. Each method
runs many campaigns on each kind of device, always with a fresh device and its own seed,
so any run gives the same table again. The classic procedure is the measure: binary
search from zero to the media rate with 60 s trials, none of them ended early.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from dutperf import stats
from dutperf.search.laboratory import (
    Bench,
    BurstDevice,
    Device,
    DuplicatingDevice,
    DyingDevice,
    HysteresisDevice,
    RandomLossDevice,
    SimulatedTester,
    SlopeDevice,
    StepDevice,
    UnstableDevice,
    WarmupDevice,
)
from dutperf.search.mlr import Goal
from dutperf.search.model import Resolution, Verification
from dutperf.search.repeats import Repeats
from dutperf.search.strategies import Strategy, Task, classic, mlrsearch, narrowed

MEDIA_RATE_FPS = 1_488_095  # 64 bytes on Gigabit Ethernet
CAPACITY_FPS = 400_000
RESOLUTION = Resolution.parse("0.1%")
REPEATS = 20
AUTO_WIDTH = Resolution.parse("0.5%")  # of the median: how narrow its interval must be
TASK = Task(MEDIA_RATE_FPS, duration_s=60.0, resolution=RESOLUTION)
_WIDTH_FPS = float(RESOLUTION.value * CAPACITY_FPS)
_WITH_COPIES_FPS = CAPACITY_FPS * 1.01

DEVICES: dict[str, Callable[[], Device]] = {
    "step": lambda: StepDevice(CAPACITY_FPS),
    "slope": lambda: SlopeDevice(CAPACITY_FPS, noise=0.005),
    "rare-loss": lambda: RandomLossDevice(StepDevice(CAPACITY_FPS), 1e-8),
    "bursts": lambda: BurstDevice(StepDevice(CAPACITY_FPS), every_s=600, burst_s=0.001),
    "hysteresis": lambda: HysteresisDevice(CAPACITY_FPS, share=0.9),
    "warm-up": lambda: WarmupDevice(CAPACITY_FPS, cold=0.2, warm_s=120),
    "dying": lambda: DyingDevice(StepDevice(CAPACITY_FPS), trials_left=30),
    "unstable": lambda: UnstableDevice(CAPACITY_FPS, noise=0.05, hold_s=600),
    "duplicating": lambda: DuplicatingDevice(StepDevice(_WITH_COPIES_FPS), share=0.01),
}
"""Fresh devices; the capacity of each is ``CAPACITY_FPS``."""

Campaign = Callable[[Bench], list[int]]


def _repeated(strategy: Callable[[Task], Strategy], repeats: Repeats) -> Campaign:
    def campaign(bench: Bench) -> list[int]:
        search = strategy(replace(TASK, waits_s=bench.tester.waits_s))
        found: list[int] = []
        while not repeats.enough(found):
            found.append(search(bench).result.rate_fps or 0)
        return found

    return campaign


def _narrowed(task: Task) -> Strategy:
    return narrowed(task, repeats=REPEATS)


def _verified(task: Task) -> Strategy:
    return narrowed(task, repeats=REPEATS, verification=Verification(2))


def _mlrsearch(task: Task) -> Strategy:
    return mlrsearch(task, [Goal(width=float(RESOLUTION.value))])


PATIENT = SimulatedTester()
HASTY = SimulatedTester(stops_at_loss=True)
_TWENTY = Repeats(REPEATS)
AUTO = Repeats(stats.LOOKS[-1], AUTO_WIDTH)
METHODS: dict[str, tuple[SimulatedTester, Campaign]] = {
    "classic": (PATIENT, _repeated(classic, _TWENTY)),
    "narrowed": (HASTY, _repeated(_narrowed, _TWENTY)),
    "auto": (HASTY, _repeated(_narrowed, AUTO)),
    "verified": (HASTY, _repeated(_verified, _TWENTY)),
    "MLRsearch": (PATIENT, _repeated(_mlrsearch, Repeats(1))),
}
"""The tester and what it does; MLRsearch is one search with RFC 2544's goal."""


@dataclass(frozen=True)
class Row:
    """One method on one kind of device; means and shares over all campaigns.

    ``median_fps`` is the median of the campaigns' medians, ``bias_percent`` how far
    that is from the capacity, ``spread_percent`` how far the 1st and 99th percentile of
    them are apart, ``time_percent`` the time it took, the classic procedure being 100.

    ``coverage_percent`` says how often the 95 % interval of a campaign's median held
    the median of all campaigns' repeats to within the resolution, closer than which no
    search knows its result: less than 95 where repeats depend on each other, as on a
    device that remembers, and then the interval promises too much.
    ``strict_coverage_percent`` leaves the resolution out: repeats that start from each
    other's results land on the same few rates, and may miss by less than it. None: a
    campaign is one search.
    """

    device: str
    method: str
    median_fps: float
    bias_percent: float
    spread_percent: float
    trials: float
    hours: float
    time_percent: float
    coverage_percent: float | None
    strict_coverage_percent: float | None


def compare(runs: int) -> Iterator[Row]:
    """The rows of the table, each as soon as its ``runs`` campaigns are done."""
    for device in DEVICES:
        classic_hours = 0.0
        for method in METHODS:
            row = _row(device, method, runs, classic_hours)
            classic_hours = classic_hours or row.hours
            yield row


def campaign_medians(device: str, method: str, runs: int) -> list[float]:
    """The result of each campaign."""
    return [stats.median(found) for found, _ in _campaigns(device, method, runs)]


def _campaigns(
    device: str, method: str, runs: int
) -> Iterator[tuple[list[int], Bench]]:
    tester, campaign = METHODS[method]
    for run in range(runs):
        bench = tester.bench(DEVICES[device](), f"{device} {method} {run}")
        yield campaign(bench), bench


def _row(device: str, method: str, runs: int, classic_hours: float) -> Row:
    done = list(_campaigns(device, method, runs))
    medians = [stats.median(found) for found, _ in done]
    middle = stats.median(medians)
    apart = stats.percentile(medians, 99) - stats.percentile(medians, 1)
    found = [values for values, _ in done]
    hours = stats.mean(bench.elapsed_s for _, bench in done) / 3600
    return Row(
        device=device,
        method=method,
        median_fps=middle,
        bias_percent=_percent(middle - CAPACITY_FPS),
        spread_percent=_percent(apart),
        trials=stats.mean(bench.trials for _, bench in done),
        hours=hours,
        time_percent=100 * hours / (classic_hours or hours),
        coverage_percent=_coverage_percent(found, method, _WIDTH_FPS),
        strict_coverage_percent=_coverage_percent(found, method, 0),
    )


def _coverage_percent(
    campaigns: list[list[int]], method: str, beside_fps: float
) -> float | None:
    repeats = AUTO if method == "auto" else _TWENTY
    intervals = [repeats.interval(found) for found in campaigns]
    truth = stats.median(value for found in campaigns for value in found)
    held = [
        i.lower - beside_fps <= truth <= i.upper + beside_fps
        for i in intervals
        if i is not None
    ]
    return 100 * sum(held) / len(held) if held else None


def _percent(difference_fps: float) -> float:
    return float(100 * Fraction(difference_fps) / CAPACITY_FPS)
