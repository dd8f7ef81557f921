"""How often a change is told where there is none, or missed.

``python -m tools compare-alarms``, ``trend-alarms`` and ``soak-alarms``;
docs/compare.md, docs/query.md and docs/soak.md have the tables. Samples are drawn with
a fixed seed. A run's effect is what all its repeats share.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Annotated, Literal, NamedTuple

import numpy as np
import typer
from numpy.random import Generator
from numpy.typing import NDArray
from rich.table import Table

from dutperf import stats
from dutperf.charts.run_charts import Line
from dutperf.cli.console import PatientConsole, print_versioned
from dutperf.cli.options import AsJson
from dutperf.procedures.soak import drift_of
from dutperf.results.details import SeriesDrift
from dutperf.stats.levels import change_points

_VERSION = 1
_SEED = 1
_SPREAD = 0.01
_REPEATS = 20
_ALPHA = Fraction(5, 100)
_NOISE = 0.02
_RUNS = 24
_LAST = 4
_BROKEN = 0.01

Draws = Annotated[
    int, typer.Option(min=1, max=100_000, help="simulated comparisons or series a case")
]


class Row(NamedTuple):
    """In how many percent of draws a change is told; ``changed``: there is one."""

    case: str
    changed: bool
    told_percent: float


class _Case(NamedTuple):
    """Simulated runs.

    runs: of the baseline, and of what is compared with it.
    effect: what all repeats of a run share, of their spread.
    within: lag-1 correlation of the repeats of a run.
    between: how what runs share scatters, in the order in which they are measured.
    in_turn: the sides are measured run by run, not one after the other.
    """

    words: str
    runs: tuple[int, int]
    effect: float = 0
    within: float = 0
    between: str = "normal"
    in_turn: bool = False


def _cases() -> Iterator[_Case]:
    sides = {"1 run a side": (1, 1), "5 runs a side": (5, 5), "39 runs and 1": (39, 1)}
    for name, runs in sides.items():
        for effect in (0, 0.25, 0.5, 1):
            yield _Case(f"{name}, effect {effect:g} of the spread", runs, effect)
        for within in (0.2, 0.4, 0.6):
            yield _Case(f"{name}, repeats correlated {within:g}", runs, 0, within)
        if runs != (1, 1):
            for kind in ("heavy-tailed", "correlated 0.3"):
                yield _Case(f"{name}, effect 1, {kind}", runs, 1, 0, kind)
    name = "5 runs a side in turn, effect 1, correlated 0.3"
    yield _Case(name, (5, 5), 1, 0, "correlated 0.3", in_turn=True)


def of_compare(draws: int, lower: Sequence[float] = (0, 2)) -> Iterator[Row]:
    """Runs of 20 repeats that scatter by 1 %; those of a side are ``lower`` percent."""
    for case in _cases():
        for lower_percent in lower:
            random = np.random.default_rng(_SEED)
            told = sum(_differ(random, case, lower_percent) for _ in range(draws))
            name = f"{case.words}, {-lower_percent:g} %"
            yield Row(name, lower_percent > 0, 100 * told / draws)


def _differ(random: Generator, case: _Case, lower_percent: float) -> bool:
    """As ``comparison`` judges one figure, but that it compares no run that drifts."""
    number = case.runs[0]
    effects = case.effect * noise(random, case.between, sum(case.runs))
    one, two = effects[:number], effects[number:]
    if case.in_turn:
        one, two = effects[::2], effects[1::2]
    level = 1 - lower_percent / 100
    before = [_run(random, case.within, effect, 1) for effect in one]
    after = [_run(random, case.within, effect, level) for effect in two]
    if case.runs == (1, 1):
        old, new = before[0], after[0]
        inflation = stats.inflation(old, new)
    else:
        old = [stats.Sample.of(run, stats.median) for run in before]
        new = [stats.Sample.of(run, stats.median) for run in after]
        inflation = 1.0
    found = stats.shift(old, new, _ALPHA, "ratio", inflation)
    return (found.lower or 0) > 1 or (found.upper or 0) < 1


def _run(
    random: Generator, within: float, effect: float, level: float
) -> list[stats.Sample]:
    noises = effect + _correlated(random, _REPEATS, within)
    values = level * (1 + _SPREAD * noises)
    return [stats.Sample(v, v, v) for v in values.tolist()]


_CHANGES: dict[str, tuple[tuple[int, int, float], ...]] = {
    "none": (),
    "-20 %, last 4 nights": ((_RUNS - _LAST, _RUNS, 0.8),),
    "-20 % after x2": ((10, _RUNS, 2.0), (_RUNS - _LAST, _RUNS, 0.8)),
    "-20 % after a broken night": ((5, 6, _BROKEN), (_RUNS - _LAST, _RUNS, 0.8)),
    "-10 %, last 3 nights": ((_RUNS - 3, _RUNS, 0.9),),
    "-10 %, 3 nights between": ((10, 13, 0.9),),
}
"""First and last night but one, and what their figures are multiplied by."""


def of_trend(draws: int) -> Iterator[Row]:
    """24 nights with a noise of 2 %; told: the last change at its place, to a night."""
    for kind in ("normal", "heavy-tailed", "correlated 0.3"):
        for name, factors in _CHANGES.items():
            random = np.random.default_rng(_SEED)
            told = 0
            for _ in range(draws):
                logs = _NOISE * noise(random, kind, _RUNS)
                for begin, end, factor in factors:
                    logs[begin:end] += math.log(factor)
                found = change_points(np.exp(logs).tolist())
                at = factors[-1][0] if factors else None
                told += any(at is None or abs(each - at) <= 1 for each in found)
            yield Row(f"{kind}: {name}", bool(factors), 100 * told / draws)


_TRIALS = 1440
_SERIES = 10
_RARE = "losses in 1 of 50 trials"
_OFTEN = 0.02
_DAYS: dict[str, tuple[float, float]] = {
    "none": (0, 0),
    "+0.2 sd in the day": (0.2, 0),
    "+1 sd in the day": (1, 0),
    "+0.5 sd from hour 14 on": (0, 0.5),
    "+1 sd from hour 14 on": (0, 1),
}
"""What one of the series gains from begin to end, and by a step."""


def of_soak(draws: int) -> Iterator[Row]:
    """Ten series of a day of trials; told: any drift, or that of the one that has it.

    A slope is told by its sign, a step as one that is there to an hour.
    """
    for kind in ("normal", "heavy-tailed", "correlated 0.5", "correlated 0.9", _RARE):
        for name, (slope, step) in _DAYS.items():
            if kind == _RARE and (slope or step):
                continue
            random = np.random.default_rng(_SEED)
            told = 0
            hours = np.arange(_TRIALS) / 60
            at = hours[_TRIALS * 14 // 24]
            for _ in range(draws):
                changed = slope * hours / 24 + step * (hours >= at)
                number = 1 if slope or step else _SERIES
                found = [
                    _of_day(kind, hours, changed + noise(random, kind, _TRIALS))
                    for _ in range(number)
                ]
                if step:
                    told += any(
                        abs(change.at_s / 3600 - at) <= 1 for change in found[0].changes
                    )
                else:
                    drifts = {"grows"} if slope else {"grows", "falls", "steps"}
                    told += any(each.verdict in drifts for each in found)
            yield Row(f"{kind}: {name}", bool(slope or step), 100 * told / draws)


def _of_day(
    kind: str, hours: NDArray[np.float64], values: NDArray[np.float64]
) -> SeriesDrift:
    points = [(at, of, 0.0) for at, of in zip(hours, values, strict=True)]
    unit: Literal["percent", ""] = "percent" if kind == _RARE else ""
    return drift_of(Line("series", None, unit, points), 1 - 0.05 / _SERIES)


def noise(random: Generator, kind: str, runs: int) -> NDArray[np.float64]:
    """Of 1; heavy-tailed: Student's t of 3 degrees; or correlated from run to run."""
    if kind == _RARE:
        return (random.random(runs) < _OFTEN) * random.exponential(size=runs)
    if kind == "heavy-tailed":
        return random.standard_t(3, runs)
    correlation = float(kind.partition("correlated ")[2] or 0)
    return _correlated(random, runs, correlation)


def _correlated(random: Generator, number: int, lag_1: float) -> NDArray[np.float64]:
    """Normal values of deviation 1, each of which depends on the one before."""
    found = random.normal(size=number)
    if lag_1:
        fresh = math.sqrt(1 - lag_1**2)
        for at in range(1, number):
            found[at] = lag_1 * found[at - 1] + fresh * found[at]
    return found


def compare_alarms(draws: Draws = 400, as_json: AsJson = False) -> None:
    """How often compare tells a difference of simulated runs with and without one."""
    _print("compare", of_compare(draws), draws, as_json=as_json)


def trend_alarms(draws: Draws = 200, as_json: AsJson = False) -> None:
    """How often trend tells a change in simulated series with and without one."""
    _print("trend", of_trend(draws), draws, as_json=as_json)


def soak_alarms(draws: Draws = 200, as_json: AsJson = False) -> None:
    """How often a soak tells a drift in simulated series with and without one."""
    _print("soak", of_soak(draws), draws, as_json=as_json)


def _print(of: str, rows: Iterable[Row], draws: int, *, as_json: bool) -> None:
    if as_json:
        told = [row._asdict() for row in rows]
        print_versioned(_VERSION, {"draws": draws, "rows": told})
        return
    table = Table(title=f"What {of} tells of {draws:,} simulated draws a case")
    table.add_column("case")
    table.add_column("false alarms %", justify="right")
    table.add_column("found %", justify="right")
    for row in rows:
        figure = f"{row.told_percent:.1f}"
        alarms, found = ("-", figure) if row.changed else (figure, "-")
        table.add_row(row.case, alarms, found)
    PatientConsole().print(table)
