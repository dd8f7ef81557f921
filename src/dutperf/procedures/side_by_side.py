"""Several devices beside each other: what the first of their figures says, in bars.

The baseline is the device that the campaign names first. A difference is told with the
range that it may lie in: a figure is known no closer than its repeats and its search
know it. Of a lower bound, or of a figure that others contradict, there is none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dutperf.catalogue import Family
from dutperf.model.procedure_keys import SearchedKeys
from dutperf.model.rate_specs import BackToBackSpec
from dutperf.model.specs import CapacitySearchKeys
from dutperf.results import CellResult
from dutperf.results.figures import Figure, cell_figure
from dutperf.search import Resolution
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import Entry, Style, Verdict, state_word

_MOST_GROUPS = 8
"""More are a table's."""
_FAMILIES: tuple[Family, ...] = (
    "rate search",
    "burst search",
    "connections",
    "load over time",
    "energy",
)
"""Whose cells have one figure each."""


def known_range(figure: Figure) -> tuple[float, float]:
    """Where the figure may be, as far as its repeats and its search know."""
    values = [*figure.repeats, figure.value or 0.0]
    low, high = min(values), max(values)
    interval_lower = figure.interval("interval_lower")
    if interval_lower is not None and not figure.doubts:
        upper = figure.interval("interval_upper")
        low, high = interval_lower, math.inf if upper is None else upper
    cell, spec = figure.result.cell, figure.result.cell.spec
    told = spec.step if isinstance(spec, BackToBackSpec) else None
    if isinstance(spec, CapacitySearchKeys):  # its resolution is of the rate
        high += cell.stateful.error if cell.stateful else 0
    elif isinstance(spec, SearchedKeys):
        told = spec.resolution
    if told is not None and high < math.inf:
        high += float(Resolution.parse(told).width_fps(high))
    if (power := figure.result.power) and power.full.total:  # and its meter
        bound = power.full.total.bit_bound_nj
        low, high = max(0.0, low - bound), high + bound
    if figure.limit in ("upper", "below"):
        low = 0.0
    is_open = figure.limit == "lower" or figure.repeats_at_least > 0
    return low, math.inf if is_open else high


@dataclass(frozen=True)
class Difference:
    """To the baseline, in percent of it: from the least to the most that it may be.

    ``is_single``: of one repeat on either side, whose scatter nobody knows.
    """

    percent: float
    least_percent: float
    most_percent: float
    is_single: bool

    @property
    def is_seen(self) -> bool:
        """Whether it has one sign, wherever in its range it is."""
        return self.least_percent > 0 or self.most_percent < 0

    def words(self, style: Style) -> str:
        """``-41 % (-44 to -38)``; where both signs are possible, that."""
        ends = (self.least_percent, self.most_percent)
        least, most = (_signed(end, style) for end in ends)
        if not self.is_seen:
            return f"no difference to be seen ({least} to {most}{style.space}%)"
        within = f" ({least} to {most})" if not self.is_single else ""
        return f"{_signed(self.percent, style)}{style.space}%{within}"


def _signed(percent: float, style: Style) -> str:
    rounded = round(percent)
    return f"{style.minus if rounded < 0 else '+' if rounded > 0 else ''}{abs(rounded)}"


@dataclass(frozen=True)
class Bar:
    """One device's figure of a cell.

    share: of the longest bar, up to 1; None: there is no figure to draw.
    difference: None of the baseline, and where none can be told: ``why_not`` says why.
    """

    device: str
    cell: Subject
    share: float | None
    difference: Difference | None = None
    why_not: str = ""

    @property
    def figure(self) -> Entry:
        """As tables tell it."""
        return self.cell.figure if self.cell.measured else Verdict(self.cell.state)

    def beside(self, style: Style) -> str:
        """What stands behind its figure: the difference, or why there is none."""
        return self.difference.words(style) if self.difference else self.why_not


@dataclass(frozen=True)
class Group:
    """The same cell on each device; ``label``: how it differs from other groups."""

    label: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class SideBySide:
    """The first quantity that several devices of a run have in common."""

    title: str
    devices: tuple[str, ...]
    groups: tuple[Group, ...]

    def sentences(self, style: Style) -> Iterator[str]:
        """For each device but the baseline: what it has more or less than that."""
        for place, device in enumerate(self.devices[1:], 1):
            told = [(group.label, group.bars[place]) for group in self.groups]
            words = [f"{label} {bar.beside(style)}".strip() for label, bar in told]
            single = any(b.difference and b.difference.is_single for _, b in told)
            look = "; one repeat each, so how far it scatters is not known"
            yield (
                f"{device} against {self.devices[0]}: {', '.join(words)}"
                f"{look if single else ''}"
            )


def side_by_side(cells: Sequence[Subject]) -> SideBySide | None:
    """What is first to be said of ``cells``; None: there are no devices to compare."""
    devices = tuple(dict.fromkeys(c.testbed for c in cells if c.testbed))
    own = [cell for cell in cells if cell.family in _FAMILIES and cell.result]
    measure = next((_measure(cell) for cell in own), None)
    found: dict[str, dict[str, Subject]] = {}
    for cell in own:
        if _measure(cell) == measure:
            key = cell.id.removesuffix(f"@{cell.testbed}")
            found.setdefault(key, {})[cell.testbed] = cell
    groups = [of for of in found.values() if of.keys() == set(devices)]
    if len(devices) < 2 or not 0 < len(groups) <= _MOST_GROUPS:
        return None
    firsts = [of[devices[0]] for of in groups]
    every = [cell for of in groups for cell in of.values()]
    most = max((_end(cell) or 0.0 for cell in every), default=0.0)
    return SideBySide(
        _title(max(every, key=_verified_by)),
        devices,
        tuple(
            Group(
                label, tuple(_bar(of[name], of[devices[0]], most) for name in devices)
            )
            for label, of in zip(_labels(firsts), groups, strict=True)
        ),
    )


def _measure(cell: Subject) -> tuple[str, str]:
    """What was asked for; how often losses were verified is what came of it."""
    return cell.procedure, cell.criterion


def _verified_by(cell: Subject) -> int:
    """By how many trials at most; the title says so of all."""
    return (cell.result and cell.result.verified_by) or 0


def _title(cell: Subject) -> str:
    unit = "fps per direction" if cell.unit == "fps" else cell.unit
    less = cell.known is not None and cell.known.better == "lower"
    told = (cell.name, "" if unit == "ns" else unit, "less is better" if less else "")
    return ", ".join(filter(None, told))


def _labels(firsts: Sequence[Subject]) -> list[str]:
    """What tells the groups apart, as short as it does; empty of an only one."""
    if len(firsts) == 1:
        return [""]
    for told in (
        [cell.versions for cell in firsts],
        [cell.sizes for cell in firsts],
        [f"{cell.versions}, {cell.sizes}" for cell in firsts],
        [cell.frames for cell in firsts],
    ):
        if len(set(told)) == len(firsts):
            return told
    return [f"{cell.frames}, {cell.setting}" for cell in firsts]


def _bar(cell: Subject, baseline: Subject, most: float) -> Bar:
    end = _end(cell)
    share = end / most if end is not None and most else None
    if cell is baseline:
        return Bar(cell.testbed, cell, share, why_not=cell.doubt)
    why_not = cell.doubt or baseline.doubt
    if not why_not and not (cell.measured and baseline.measured):
        why_not = state_word(baseline.state if cell.measured else cell.state)
    if not why_not and (cell.is_bound or baseline.is_bound):
        why_not = "a lower bound"
    found = None if why_not else _difference(cell.result, baseline.result)
    return Bar(cell.testbed, cell, share, found, why_not)


def _end(cell: Subject) -> float | None:
    """How far its bar goes: to its figure, of a doubtful one to the least."""
    if cell.doubt and cell.spread:
        return cell.spread.minimum
    return cell.median


def _difference(
    result: CellResult | None, baseline: CellResult | None
) -> Difference | None:
    if not result or not baseline or not baseline.median or result.median is None:
        return None
    low, high = known_range(cell_figure(result))
    least, most = known_range(cell_figure(baseline))
    if least <= 0 or not math.isfinite(high + most):
        return None
    return Difference(
        100 * (result.median / baseline.median - 1),
        100 * (low / most - 1),
        100 * (high / least - 1),
        is_single=min(len(result.repeats), len(baseline.repeats)) < 2,
    )
