"""Every figure of the baseline beside that of each other run, and what may be claimed.

Many figures are many chances to be wrong, so all intervals of a comparison share the
5 % (Bonferroni): that of each of m figures misses the truth in at most 5 % / m. Then
all of them hold together with 95 %, and with them all that is claimed because of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Literal, NamedTuple

from dutperf import stats
from dutperf.catalogue import PROCEDURES
from dutperf.charts.cells import CellView
from dutperf.comparison.sides import Key, Reading, Run, Side, another_measure
from dutperf.results import CellResult
from dutperf.results.units import whole

Outcome = Literal["worse", "better", "none_shown", "too_few", "not_compared", "gone"]
"""gone: the baseline has a figure, and the other run has none."""
Judgement = Literal["worse", "not_worse", "cannot_tell"]
_TOGETHER = Fraction(5, 100)


class Change(NamedTuple):
    """How much higher a figure is, and between what this lies: percent of the baseline.

    Of a loss, which is a share already, percentage points. ``value``: null where bounds
    leave it open; ``bound``: which side of it is known. ``lower`` and ``upper``: null
    if there are too few repeats.
    """

    value: float | None
    bound: Literal["lower", "upper"] | None
    lower: float | None
    upper: float | None


@dataclass(frozen=True)
class Compared:
    """One figure of the baseline and of another side.

    Attributes:
        key: the cell.
        cells: of the runs of the baseline, and of those of the other side.
        run: letter of the other side.
        name: which figure of the cell; empty: its only one.
        before: of the baseline; null: it has none.
        after: of the other side.
        by_runs: each run is a sample, not each repeat of the only one.
        outcome: what is shown.
        why: why no more is, or what to know about it.
        change: null: not compared.
    """

    key: Key
    cells: tuple[tuple[CellView, ...], tuple[CellView, ...]]
    run: str
    name: str
    before: Reading | None
    after: Reading | None
    by_runs: bool
    outcome: Outcome
    why: str = ""
    change: Change | None = None

    @property
    def cell(self) -> CellView:
        """One of the baseline, or if it has none of the other side."""
        return next(iter(self.cells[0] or self.cells[1]))

    @property
    def unit(self) -> Literal["%", "percentage points"]:
        """Of its change."""
        return "percentage points" if self.cell.unit == "percent" else "%"

    @property
    def better(self) -> Literal["higher", "lower"]:
        """For which figure a device is the better."""
        name = self.cell.procedure
        return PROCEDURES[name].better if name else "higher"

    @property
    def samples(self) -> tuple[int, int]:
        """How many of both count: repeats, or runs."""
        sides = (self.before, self.after)
        before, after = (len(side.samples) if side else 0 for side in sides)
        return before, after

    @property
    def _passes_nothing(self) -> bool:
        """Whether the other side shows a device that forwards nothing any more."""
        results = [cell.result for cell in self.cells[1] if cell.result]
        return bool(results) and all(
            each.verdict == "fail" and not _passed(each) for each in results
        )

    def judged(self, limit: float) -> Judgement | None:
        """Whether it is worse by more than ``limit``, in the unit of its change.

        Null: the baseline has no such cell. Where no figure is left it is not known,
        but of a device that forwards nothing any more.
        """
        if self.before is None:
            return None
        if self.outcome == "gone" and self._passes_nothing:
            return "worse"
        if self.change is None or None in (self.change.lower, self.change.upper):
            return "cannot_tell"
        lower, upper = self.change.lower or 0.0, self.change.upper or 0.0
        if self.better == "higher":
            lower, upper = -upper, -lower
        if lower > limit:
            return "worse"
        return "not_worse" if upper <= limit else "cannot_tell"


@dataclass(frozen=True)
class Comparison:
    """``figures`` that ``sides`` have; ``family`` of them share the 5 %."""

    sides: Sequence[Side]
    figures: Sequence[Compared]
    family: int

    @property
    def runs(self) -> list[Run]:
        """Of all sides."""
        return [run for side in self.sides for run in side.runs]

    @property
    def by_runs(self) -> bool:
        """Whether runs are the samples: a side has several."""
        return _by_runs(self.sides)

    @property
    def interval_percent(self) -> float:
        """How often one of the intervals holds; all together 95 %."""
        return float(100 * (1 - _alpha(self.family)))


def compare(sides: Sequence[Side]) -> Comparison:
    """Compare each side with the first."""
    baseline, *others = sides
    by_runs = _by_runs(sides)
    keys = dict.fromkeys(key for side in sides for key in side.keys)
    paired = [
        each
        for key in keys
        for other in others
        if baseline.cells(key) or other.cells(key)
        for each in _paired(key, baseline, other, by_runs=by_runs)
    ]
    comparable = [each for each in paired if not each.why]
    family = sum(stats.rank(*each.samples, _TOGETHER) > 0 for each in comparable)
    figures = [_told(each, _alpha(family), _alpha(len(comparable))) for each in paired]
    return Comparison(sides, figures, family)


def _by_runs(sides: Sequence[Side]) -> bool:
    return any(len(side.runs) > 1 for side in sides)


def _alpha(family: int) -> Fraction:
    return _TOGETHER / max(family, 1)


def _paired(
    key: Key, baseline: Side, other: Side, *, by_runs: bool
) -> Iterator[Compared]:
    """Figures of one cell; not yet what they show, if they can be compared at all."""
    before = baseline.readings(key, by_runs=by_runs)
    after = other.readings(key, by_runs=by_runs)
    different = _different(key, baseline, other, by_runs=by_runs)
    for name in _names(before, after):
        pair = Compared(
            key,
            (baseline.cells(key), other.cells(key)),
            other.letter,
            name,
            before.get(name) or before.get(""),
            after.get(name) or after.get(""),
            by_runs,
            "not_compared",
        )
        yield _unless_comparable(pair, different, baseline, other)


def _different(key: Key, baseline: Side, other: Side, *, by_runs: bool) -> str:
    """Why the runs did not all measure the same; empty: they did."""
    results = [*baseline.results(key), *other.results(key)]
    for (one, before), (two, after) in combinations(results, 2):
        if why := another_measure(before, after):
            return f"{one} and {two}: {why}" if by_runs else why
    return ""


def _names(before: dict[str, Reading], after: dict[str, Reading]) -> list[str]:
    """A cell of several figures that has none at all has one without a name."""
    names = [*dict.fromkeys([*before, *after])]
    return [name for name in names if name] or names


def _unless_comparable(
    pair: Compared, different: str, baseline: Side, other: Side
) -> Compared:
    """With why nothing is compared, if so."""
    before, after = pair.before, pair.after
    if before is None:
        return replace(pair, why=baseline.why_without(pair.key))
    if before.why_not:
        return replace(pair, why=before.why_not)
    if after is None:
        return replace(pair, outcome="gone", why=other.why_without(pair.key))
    if after.why_not:
        return replace(pair, outcome="gone", why=after.why_not)
    if different:
        return replace(pair, why=different)
    return pair


def _told(pair: Compared, alpha: Fraction, alpha_of_all: Fraction) -> Compared:
    """What its samples show; ``alpha_of_all``: if all pairs had enough of them."""
    if pair.why or pair.before is None or pair.after is None:
        return pair
    change = _change(pair, pair.before, pair.after, alpha)
    if change.lower is None or change.upper is None:
        why = _too_few(pair, alpha_of_all)
        if pair.by_runs:
            why = "; ".join([why, *pair.before.notes, *pair.after.notes])
        return replace(pair, outcome="too_few", why=why, change=change)
    higher, lower = change.lower > 0, change.upper < 0
    outcome: Outcome = "none_shown"
    if higher or lower:
        outcome = "better" if higher == (pair.better == "higher") else "worse"
    why = "; ".join(_remarks(pair, change))
    return replace(pair, outcome=outcome, why=why, change=change)


def _too_few(pair: Compared, alpha: Fraction) -> str:
    """How many samples there are, and how many it takes."""
    before, after = pair.samples
    runs = " runs" if pair.by_runs else ""
    told = f"{before} and {after}{runs}, at least {stats.least_each(alpha)} each"
    if before > after:
        return f"{told}, or {stats.least_beside(after, alpha)} and {after}"
    if after > before:
        return f"{told}, or {before} and {stats.least_beside(before, alpha)}"
    return told


def _change(pair: Compared, before: Reading, after: Reading, alpha: Fraction) -> Change:
    """A loss may be 0, and is a share already: of it the difference is told."""
    old, new = before.samples, after.samples
    inflation = 1.0 if pair.by_runs else stats.inflation(old, new)
    if before.unit == "percent":
        return Change(*stats.shift(old, new, alpha, "difference", inflation))
    found = stats.shift(old, new, alpha, "ratio", inflation)
    ends = (found.estimate, found.lower, found.upper)
    value, lower, upper = (None if end is None else (end - 1) * 100 for end in ends)
    return Change(value, found.bound, lower, upper)


def _remarks(pair: Compared, change: Change) -> Iterator[str]:
    """What a reader should know beside the figures."""
    for side in (pair.before, pair.after):
        yield from side.notes if side else ()
    if change.value is None or math.inf in change:
        yield _why_open(pair)
    results = [c.result for cells in pair.cells for c in cells if c.result]
    rates = list(dict.fromkeys(r.load.rate_fps for r in results if r.load))
    if len(rates) == 2:
        yield f"at {' and '.join(map(whole, rates))} fps"
    elif rates[1:]:
        yield f"at {whole(min(rates))} to {whole(max(rates))} fps"
    if any(map(_is_near, results)):
        yield "near the tester's limit"


def _passed(result: CellResult) -> bool:
    return any(repeat.value for repeat in result.repeats)


def _why_open(pair: Compared) -> str:
    """Why the change, or an end of its interval, is no number."""
    before, after = (
        [sample.value for sample in side.samples] if side else []
        for side in (pair.before, pair.after)
    )
    if not any(before):
        return "0 in the baseline: no percentage"
    if math.inf in [*before, *after]:
        return "infinite where too many frames were lost"
    return "a bound tells one side only"


def _is_near(cell: CellResult) -> bool:
    return any(finding.kind == "near_limit" for finding in cell.findings)
