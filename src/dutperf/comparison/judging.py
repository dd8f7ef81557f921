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
from typing import Literal, NamedTuple

from dutperf import stats
from dutperf.catalogue import PROCEDURES
from dutperf.comparison.measures import another_measure
from dutperf.comparison.readings import Reading, readings
from dutperf.comparison.runs import Key, Run
from dutperf.report.cells import CellView
from dutperf.results import CellResult
from dutperf.results.units import whole

Outcome = Literal["worse", "better", "none_shown", "too_few", "not_compared", "gone"]
"""gone: the baseline has a figure, and the other run has none."""
Judgement = Literal["worse", "not_worse", "cannot_tell"]
_TOGETHER = Fraction(5, 100)
_BASELINE = "A"


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
    """One figure in the baseline and in another run.

    Attributes:
        key: the cell.
        cells: of the baseline and of the other run; null: it has none.
        run: letter of the other run.
        name: which figure of the cell; empty: its only one.
        before: of the baseline; null: it has none.
        after: of the other run.
        outcome: what is shown.
        why: why no more is, or what to know about it.
        change: null: not compared.
    """

    key: Key
    cells: tuple[CellView | None, CellView | None]
    run: str
    name: str
    before: Reading | None
    after: Reading | None
    outcome: Outcome
    why: str = ""
    change: Change | None = None

    @property
    def cell(self) -> CellView:
        """Of the baseline, or if it has none of the other run."""
        known = self.cells[0] or self.cells[1]
        assert known is not None, "one of them has it"  # noqa: S101
        return known

    @property
    def unit(self) -> Literal["%", "percentage points"]:
        """Of its change."""
        return "percentage points" if self.cell.procedure == "frame-loss" else "%"

    @property
    def better(self) -> Literal["higher", "lower"]:
        """For which figure a device is the better."""
        name = self.cell.procedure
        return PROCEDURES[name].better if name else "higher"

    @property
    def repeats(self) -> tuple[int, int]:
        """Of both that count."""
        sides = (self.before, self.after)
        before, after = (len(side.samples) if side else 0 for side in sides)
        return before, after

    @property
    def _passes_nothing(self) -> bool:
        """Whether the other run shows a device that forwards nothing any more."""
        result = self.cells[1].result if self.cells[1] else None
        return result is not None and result.verdict == "fail" and not _passed(result)

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
    """``figures`` that ``runs`` have; ``family`` of them share the 5 %."""

    runs: Sequence[Run]
    figures: Sequence[Compared]
    family: int

    @property
    def interval_percent(self) -> float:
        """How often one of the intervals holds; all together 95 %."""
        return float(100 * (1 - _alpha(self.family)))


def compare(runs: Sequence[Run]) -> Comparison:
    """Compare each run with the first."""
    baseline, *others = runs
    keys = dict.fromkeys(key for run in runs for key in run.cells)
    paired = [
        each
        for key in keys
        for other in others
        if key in baseline.cells or key in other.cells
        for each in _paired(key, baseline, other)
    ]
    comparable = [each for each in paired if not each.why]
    family = sum(stats.rank(*each.repeats, _TOGETHER) > 0 for each in comparable)
    needed = stats.least_each(_alpha(len(comparable)))
    figures = [_told(each, _alpha(family), needed) for each in paired]
    return Comparison(runs, figures, family)


def _alpha(family: int) -> Fraction:
    return _TOGETHER / max(family, 1)


def _paired(key: Key, baseline: Run, other: Run) -> Iterator[Compared]:
    """Figures of one cell; not yet what they show, if they can be compared at all."""
    one, two = baseline.cells.get(key), other.cells.get(key)
    before = {each.name: each for each in readings(one)} if one else {}
    after = {each.name: each for each in readings(two)} if two else {}
    different = ""
    if one and two and one.result and two.result:
        different = another_measure(one.result, two.result)
    for name in _names(before, after):
        pair = Compared(
            key,
            (one, two),
            other.letter,
            name,
            before.get(name) or before.get(""),
            after.get(name) or after.get(""),
            "not_compared",
        )
        yield _unless_comparable(pair, different, baseline, other)


def _names(before: dict[str, Reading], after: dict[str, Reading]) -> list[str]:
    """A cell of several figures that has none at all has one without a name."""
    names = [*dict.fromkeys([*before, *after])]
    return [name for name in names if name] or names


def _unless_comparable(
    pair: Compared, different: str, baseline: Run, other: Run
) -> Compared:
    """With why nothing is compared, if so."""
    before, after = pair.before, pair.after
    if before is None:
        return replace(pair, why=baseline.why_without(pair.key))
    if before.why_not:
        return replace(pair, why=f"{baseline.letter}: {before.why_not}")
    if after is None:
        return replace(pair, outcome="gone", why=other.why_without(pair.key))
    if after.why_not:
        return replace(pair, outcome="gone", why=f"{other.letter}: {after.why_not}")
    if different:
        return replace(pair, why=different)
    return pair


def _told(pair: Compared, alpha: Fraction, needed: int) -> Compared:
    """What its samples show; ``needed``: repeats that would be enough for all pairs."""
    if pair.why or pair.before is None or pair.after is None:
        return pair
    change = _change(pair.before, pair.after, alpha)
    if change.lower is None or change.upper is None:
        before, after = pair.repeats
        why = f"{before} and {after}, at least {needed} each"
        return replace(pair, outcome="too_few", why=why, change=change)
    higher, lower = change.lower > 0, change.upper < 0
    outcome: Outcome = "none_shown"
    if higher or lower:
        outcome = "better" if higher == (pair.better == "higher") else "worse"
    why = "; ".join(_remarks(pair, change))
    return replace(pair, outcome=outcome, why=why, change=change)


def _change(before: Reading, after: Reading, alpha: Fraction) -> Change:
    """A loss may be 0, and is a share already: of it the difference is told."""
    if before.unit == "percent":
        found = stats.shift(before.samples, after.samples, alpha, "difference")
        return Change(*found)
    found = stats.shift(before.samples, after.samples, alpha, "ratio")
    ends = (found.estimate, found.lower, found.upper)
    value, lower, upper = (None if end is None else (end - 1) * 100 for end in ends)
    return Change(value, found.bound, lower, upper)


def _remarks(pair: Compared, change: Change) -> Iterator[str]:
    """What a reader should know beside the figures."""
    yield from _by_ranks(pair)
    if change.value is None or math.inf in change:
        yield _why_open(pair)
    rates = [
        c.result.load.rate_fps for c in pair.cells if c and c.result and c.result.load
    ]
    if len(set(rates)) > 1:
        yield f"at {' and '.join(map(whole, rates))} fps"
    if any(c and c.result and _is_near(c.result) for c in pair.cells):
        yield "near the tester's limit"


def _by_ranks(pair: Compared) -> Iterator[str]:
    """Which of both has repeats without a common value."""
    for letter, side in ((_BASELINE, pair.before), (pair.run, pair.after)):
        if side and side.doubt:
            yield f"{letter}: {side.doubt}, compared by ranks"


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
