"""The search laboratory: searches compared on simulated devices.

``python -m tools compare-searches``; docs/adr/0009-search.md has the table. A campaign
is what a user runs: ``REPEATS`` repeats and the median of them. Each method runs many
campaigns on each kind of device, always with a fresh device and its own seed, so any
run gives the same table again. The classic procedure is the measure: binary search from
zero to the media rate with 60 s trials, none of them ended early.

What is promised, and checked, of every method that is called RFC 2544's search, on
every device that forgets (a trial knows nothing of those before it):

* the interval of a campaign holds the classic procedure's long-run median, in at least
  ``LEAST_HELD_PERCENT`` of the campaigns;
* the median of the campaigns' medians is no further from it than the resolution, or
  than that of classic campaigns with other seeds (99 of 100 of them);
* on a step the time is at most ``MOST_TIME_PERCENT`` of the classic one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, NamedTuple

import typer
from rich.table import Table

from dutperf import stats
from dutperf.cli.console import PatientConsole, print_versioned
from dutperf.cli.options import AsJson
from dutperf.search import Repeats, Resolution, Verification
from dutperf.search.mlr import Goal
from dutperf.search.strategies import Strategy, Task, classic, mlrsearch, narrowed
from dutperf.simulation.simulated_tester import (
    Bench,
    Device,
    SimulatedTester,
    SlopeDevice,
    StepDevice,
)
from tools.search_devices import (
    BurstDevice,
    DuplicatingDevice,
    DyingDevice,
    HysteresisDevice,
    RandomLossDevice,
    UnstableDevice,
    WarmupDevice,
)

MEDIA_RATE_FPS = 1_488_095  # 64 bytes on Gigabit Ethernet
CAPACITY_FPS = 400_000
RESOLUTION = Resolution.parse("0.1%")
REPEATS = 20
AUTO_WIDTH = Resolution.parse("0.5%")  # of the median: how narrow its interval must be
TASK = Task(MEDIA_RATE_FPS, duration_s=60.0, resolution=RESOLUTION)
_WITH_COPIES_FPS = CAPACITY_FPS * 1.01

DEVICES: dict[str, Callable[[], Device]] = {
    "step": lambda: StepDevice(CAPACITY_FPS),
    "slope-0.5%": lambda: SlopeDevice(CAPACITY_FPS, noise=0.005),
    "slope-2%": lambda: SlopeDevice(CAPACITY_FPS, noise=0.02),
    "loss-1e-8": lambda: RandomLossDevice(StepDevice(CAPACITY_FPS), 1e-8),
    "loss-3e-8": lambda: RandomLossDevice(StepDevice(CAPACITY_FPS), 3e-8),
    "loss-1e-7": lambda: RandomLossDevice(StepDevice(CAPACITY_FPS), 1e-7),
    "loss-1e-6": lambda: RandomLossDevice(StepDevice(CAPACITY_FPS), 1e-6),
    "bursts": lambda: BurstDevice(StepDevice(CAPACITY_FPS), every_s=600, burst_s=0.001),
    "duplicating": lambda: DuplicatingDevice(StepDevice(_WITH_COPIES_FPS), share=0.01),
    "hysteresis": lambda: HysteresisDevice(CAPACITY_FPS, share=0.9),
    "warm-up": lambda: WarmupDevice(CAPACITY_FPS, cold=0.2, warm_s=120),
    "dying": lambda: DyingDevice(StepDevice(CAPACITY_FPS), trials_left=30),
    "unstable": lambda: UnstableDevice(CAPACITY_FPS, noise=0.05, hold_s=600),
}
"""Fresh devices; the capacity of each is ``CAPACITY_FPS``."""
REMEMBER = frozenset({"hysteresis", "warm-up", "dying", "unstable"})
"""Devices of which a trial depends on those before: nothing is promised of them."""

Campaign = Callable[[Bench], list[int]]


def _repeated(strategy: Callable[[Task], Strategy], repeats: Repeats) -> Campaign:
    def campaign(bench: Bench) -> list[int]:
        search = strategy(TASK)
        found: list[int] = []
        while not repeats.enough(found):
            told = search(bench)
            found.append(told.result.rate_fps or 0)
            del found[len(found) - told.withdrawn :]
        return found

    return campaign


def _verified(task: Task) -> Strategy:
    return narrowed(task, verification=Verification(2, hopeless=0.005))


def _mlrsearch(task: Task) -> Strategy:
    return mlrsearch(task, [Goal(width=float(RESOLUTION.value))])


PATIENT = SimulatedTester()
HASTY = SimulatedTester(stops_at_loss=True)
BESIDE = SimulatedTester(stops_at_loss=True, taken_s=0.010)
_TWENTY = Repeats(REPEATS, None, RESOLUTION, MEDIA_RATE_FPS)
AUTO = Repeats(stats.LOOKS[-1], AUTO_WIDTH, RESOLUTION, MEDIA_RATE_FPS)
METHODS: dict[str, tuple[SimulatedTester, Campaign]] = {
    "classic": (PATIENT, _repeated(classic, _TWENTY)),
    "narrowed": (HASTY, _repeated(narrowed, _TWENTY)),
    "auto": (HASTY, _repeated(narrowed, AUTO)),
    "explained": (BESIDE, _repeated(narrowed, _TWENTY)),
    "verified": (PATIENT, _repeated(_verified, _TWENTY)),
    "MLRsearch": (PATIENT, _repeated(_mlrsearch, Repeats(1))),
}
"""The tester and what it does; MLRsearch is one search with RFC 2544's goal.

explained: narrowed, where others have the device's CPU for 10 ms of each trial, so that
small losses are repeated. verified: losses of up to 0.5 %, by two trials.
"""
NOT_RFC_2544 = frozenset({"explained", "verified", "MLRsearch"})
"""Searches of which each result says that it is another one's: nothing is promised."""
LEAST_HELD_PERCENT = 90
MOST_TIME_PERCENT = 50
_LONG_RUN = 3  # times the campaigns of a method
_OTHER_SEEDS = 200
_VERSION = 1


@dataclass(frozen=True)
class Row:
    """One method on one kind of device; means and shares over all campaigns.

    ``median_fps`` is the median of the campaigns' medians, ``bias_percent`` how far
    that is from the capacity, ``spread_percent`` how far the 1st and 99th percentile of
    them are apart, ``time_percent`` the time it took, the classic procedure being 100.

    ``apart_percent`` says how far ``median_fps`` is from the classic procedure's
    long-run median, ``allowed_percent`` how far it may be; ``held_percent`` how often
    the 95 % interval of a campaign's median held that one (None: a campaign is one
    search). ``holds``, ``agrees`` and ``is_fast`` are the promises (see above), None
    where nothing is promised.
    """

    device: str
    method: str
    median_fps: float
    bias_percent: float
    spread_percent: float
    trials: float
    hours: float
    time_percent: float
    apart_percent: float
    allowed_percent: float
    held_percent: float | None
    holds: bool | None
    agrees: bool | None
    is_fast: bool | None

    @property
    def kept(self) -> bool | None:
        """Whether all that is promised is true; None: nothing is."""
        promised = [p for p in (self.holds, self.agrees, self.is_fast) if p is not None]
        return all(promised) if promised else None


def compare(runs: int, devices: Iterable[str] = DEVICES) -> Iterator[Row]:
    """The rows of the table, each as soon as its ``runs`` campaigns are done."""
    for device in devices:
        long_run = _long_run(device, runs)
        classic_hours = 0.0
        for method in METHODS:
            row = _row(device, method, runs, long_run, classic_hours)
            classic_hours = classic_hours or row.hours
            yield row


def campaign_medians(device: str, method: str, runs: int) -> list[float]:
    """The result of each campaign."""
    return [stats.median(found) for found, _ in _campaigns(device, method, runs)]


def _campaigns(
    device: str, method: str, runs: int, seed: str = ""
) -> Iterator[tuple[list[int], Bench]]:
    tester, campaign = METHODS[method]
    for run in range(runs):
        bench = tester.bench(DEVICES[device](), f"{device} {method} {run}{seed}")
        yield campaign(bench), bench


class _LongRun(NamedTuple):
    """The classic procedure's median, and how far from it another one may be."""

    median_fps: float
    allowed_fps: float


def _long_run(device: str, runs: int) -> _LongRun:
    """By more campaigns than those compared with it, of other seeds.

    On a device that forgets, repeats know nothing of each other. Then campaigns with
    yet other seeds are drawn from these repeats, which is as good and takes no time.
    """
    campaigns = _campaigns(device, "classic", _LONG_RUN * runs, " long run")
    known = [value for found, _ in campaigns for value in found]
    median_fps = stats.median(known)
    rng = random.Random(device)  # noqa: S311 - repeatable
    apart = []
    for _ in range(_OTHER_SEEDS):
        medians = [stats.median(rng.choices(known, k=REPEATS)) for _ in range(runs)]
        apart.append(abs(stats.median(medians) - median_fps))
    width_fps = float(RESOLUTION.width_fps(median_fps))
    return _LongRun(median_fps, max(width_fps, stats.percentile(apart, 99)))


def _row(
    device: str, method: str, runs: int, long_run: _LongRun, classic_hours: float
) -> Row:
    done = list(_campaigns(device, method, runs))
    medians = [stats.median(found) for found, _ in done]
    middle = stats.median(medians)
    apart = stats.percentile(medians, 99) - stats.percentile(medians, 1)
    held = _held_percent([found for found, _ in done], method, long_run.median_fps)
    hours = stats.mean(bench.elapsed_s for _, bench in done) / 3600
    time_percent = 100 * hours / (classic_hours or hours)
    off_fps = middle - long_run.median_fps
    promised = method not in NOT_RFC_2544 and device not in REMEMBER
    faster = promised and device == "step" and method != "classic"
    return Row(
        device=device,
        method=method,
        median_fps=middle,
        bias_percent=_percent(middle - CAPACITY_FPS, CAPACITY_FPS),
        spread_percent=_percent(apart, CAPACITY_FPS),
        trials=stats.mean(bench.trials for _, bench in done),
        hours=hours,
        time_percent=time_percent,
        apart_percent=_percent(off_fps, long_run.median_fps),
        allowed_percent=_percent(long_run.allowed_fps, long_run.median_fps),
        held_percent=held,
        holds=(held or 0) >= LEAST_HELD_PERCENT if promised else None,
        agrees=abs(off_fps) <= long_run.allowed_fps if promised else None,
        is_fast=time_percent <= MOST_TIME_PERCENT if faster else None,
    )


def _held_percent(
    campaigns: list[list[int]], method: str, truth_fps: float
) -> float | None:
    repeats = AUTO if method == "auto" else _TWENTY
    intervals = [repeats.interval(found) for found in campaigns]
    held = [i.lower <= truth_fps <= i.upper for i in intervals if i is not None]
    return 100 * sum(held) / len(held) if held else None


def _percent(difference_fps: float, of_fps: float) -> float:
    return 100 * difference_fps / of_fps if of_fps else 0.0


def compare_searches(
    runs: Annotated[
        int,
        typer.Option(
            min=1,
            max=100_000,
            help="campaigns of each search on each device; 100: 2 minutes",
        ),
    ] = 100,
    as_json: AsJson = False,
) -> None:
    """How far off, how steady and how fast each search is; no device is needed.

    And whether what is promised of it holds: the interval of the median and the median
    itself, against the classic procedure's on the same device, and the time on a step.
    """
    rows = list(compare(runs))
    if as_json:
        told = [{**asdict(row), "kept": row.kept} for row in rows]
        result = {"runs": runs, "repeats": REPEATS, "rows": told}
        print_versioned(_VERSION, result)
        return
    console = PatientConsole()
    console.print(_table(rows, runs))
    for line in _closing(rows):
        console.print(line, highlight=False, soft_wrap=True)


def _table(rows: list[Row], runs: int) -> Table:
    table = Table(title=f"Searches on simulated devices, {runs:,} campaigns each")
    table.add_column("device", no_wrap=True)
    table.add_column("search", no_wrap=True)
    for name in ("median fps", "spread %", "hours", "time %"):
        table.add_column(name, justify="right")
    for name in ("apart %", "of", "held %"):
        table.add_column(name, justify="right")
    table.add_column("")
    last = ""
    for row in rows:
        table.add_row(
            "" if row.device == last else row.device,
            row.method,
            f"{row.median_fps:,.0f}",
            f"{row.spread_percent:.2f}",
            f"{row.hours:.2f}",
            f"{row.time_percent:.0f}",
            f"{row.apart_percent:+.2f}",
            f"{row.allowed_percent:.2f}",
            "-" if row.held_percent is None else f"{row.held_percent:.1f}",
            {None: "", True: "kept", False: "missed"}[row.kept],
        )
        last = row.device
    return table


def _missed(row: Row) -> list[str]:
    promises = {"interval": row.holds, "median": row.agrees, "time": row.is_fast}
    return [name for name, kept in promises.items() if kept is False]


def _closing(rows: list[Row]) -> Iterator[str]:
    yield (
        "apart: from the long-run median of the classic procedure, of what is allowed: "
        "the resolution, or what classic campaigns with other seeds are apart. held: "
        "campaigns of which the 95 % interval holds that median, promised: "
        f"{LEAST_HELD_PERCENT} %. time: in percent of the classic procedure's, "
        f"promised on a step: {MOST_TIME_PERCENT} %."
    )
    yield (
        f"Nothing is promised of {' and '.join(sorted(NOT_RFC_2544))}, whose results "
        "say that they are not RFC 2544's search, nor on devices that remember: "
        f"{', '.join(sorted(REMEMBER))}."
    )
    promised = [row for row in rows if row.kept is not None]
    missed = [row for row in promised if not row.kept]
    yield f"Kept: {len(promised) - len(missed)} of {len(promised)}."
    for row in missed:
        yield f"Missed: {row.method} on {row.device}: {', '.join(_missed(row))}."
