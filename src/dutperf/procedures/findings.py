"""Repeats that have no common value, in words: what of it, and the evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dutperf import stats
from dutperf.catalogue import Unit
from dutperf.config.cell import Cell
from dutperf.config.specs import SearchedKeys
from dutperf.procedures.loss_criterion import judged_by
from dutperf.results.delay_results import DelayRecord, Measure
from dutperf.results.rate_results import Finding, LoadPoint, RepeatResult, ValueGroup
from dutperf.results.units import about, duration, in_unit
from dutperf.search import Resolution
from dutperf.stats import stability

LOSS_RESOLUTION_PERCENT = 0.01
"""Smaller differences of a loss say nothing of a device."""
DELAY_RESOLUTION = 0.01
"""Of the median; and a delay is not known better than the tester's share in it."""
LEAST_WIDTH = 1.0
"""Rates are whole, and no tester knows a delay to a nanosecond, be the median 0."""
LEAST_APART_NS = 100.0
"""A poll of a port takes as long. Of values around 0, as IPDV has, a share says
nothing: -30 ns and -10 ns are one value."""
DELAY_LIMITS = stability.Limits(middle=0.5, all_of_them=1.0)
"""Delays of software scatter by nature: the repeats of a worst case most of all."""

_LIMITS = stability.Limits()


def rate_findings(cell: Cell, repeats: Sequence[RepeatResult]) -> list[Finding]:
    """Of the rates that a search found, each known to within its resolution."""
    what = "rate" if judged_by(cell) else "throughput"
    resolution = Resolution.parse(cell.spec_of(SearchedKeys).resolution)
    return search_findings(repeats, resolution, what, "fps")


def search_findings(
    repeats: Sequence[RepeatResult],
    resolution: Resolution,
    what: str,
    unit: Unit,
    limits: stability.Limits = _LIMITS,
) -> list[Finding]:
    """Of whatever repeated searches found: ``what``, in ``unit``."""
    values = _valid(repeats)
    known = [value for value in values if value is not None]
    if not known:
        return []
    width = float(resolution.value)
    if resolution.relative:
        width = max(width * stats.median(known), LEAST_WIDTH)
    found = stability.examine(values, width, limits)
    return [_Words(what, unit, len(known), width).finding(f) for f in found]


def loss_findings(points: Iterable[LoadPoint]) -> list[Finding]:
    """Of the share of frames that arrived, load by load.

    Not of the loss: a loss of 0.02 instead of 0.01 % is twice as much of next to
    nothing.
    """
    findings = []
    for point in points:
        values = [None if v is None else 100 - v for v in _valid(point.repeats)]
        words = _Words(
            point.words,
            "percent",
            sum(value is not None for value in values),
            LOSS_RESOLUTION_PERCENT,
        )
        found = stability.examine(values, LOSS_RESOLUTION_PERCENT)
        findings += [words.finding(each) for each in found]
    return findings


def delay_findings(
    measures: Iterable[Measure], delays: DelayRecord | None
) -> list[Finding]:
    """Of every delay of every stream; repeats in which it is infinite have none.

    Groups and drifts must be wider than the tester's share. That the repeats have no
    common value is told whatever the share: the worse the tester, the more is said. But
    nanoseconds are nothing.
    """
    measures = list(measures)
    bound_ns = float(delays.usual_bound_ns or 0) if delays else 0.0
    findings = []
    for measure in measures:
        values = [figure.value for figure in measure.repeats]
        known = [value for value in values if value is not None]
        if not known:
            continue
        share_ns = DELAY_RESOLUTION * abs(stats.median(known))
        width_ns = max(bound_ns, share_ns, measure.rounding_ns or 0.0, LEAST_WIDTH)
        words = _Words(measure.words, "ns", len(known), width_ns)
        found = stability.examine(
            values,
            width_ns,
            DELAY_LIMITS,
            apart=max(share_ns, LEAST_APART_NS),
        )
        findings += [words.finding(each) for each in found]
    return [*findings, *_of_tester(measures, delays)]


def _of_tester(
    measures: Sequence[Measure], delays: DelayRecord | None
) -> Iterator[Finding]:
    """What is an upper bound, and what the tester's share is: in one sentence."""
    bounded = [m for m in measures if m.result.at_most]
    if not bounded or delays is None:
        return
    names = " and ".join(dict.fromkeys(m.name for m in bounded))
    share_ns = delays.usual_bound_ns or delays.bound_ns
    yield Finding(
        kind="tester",
        of=names,
        message=f"{names}: upper bounds, as no small part may be the tester's own: up "
        f"to {duration(share_ns)} of 998 in 1000 delays, {duration(delays.bound_ns)} "
        "of any",
        unit="ns",
        numbers={"usual_bound": float(share_ns), "bound": float(delays.bound_ns)},
    )


def _valid(repeats: Iterable[RepeatResult]) -> list[float | None]:
    """What was proven of an invalid repeat, or as a lower bound, is not its value."""
    return [None if r.verdict == "invalid" or r.bound else r.value for r in repeats]


class _Words:
    """How the findings of one quantity read."""

    def __init__(self, what: str, unit: Unit, count: int, resolution: float) -> None:
        self._what = what
        self._unit = unit
        self._count = count
        self._resolution = resolution

    def finding(self, found: stability.Finding) -> Finding:
        message = {
            "modes": self._modes,
            "shift": self._shift,
            "drift": self._drift,
            "unstable": self._unstable,
            "outliers": self._outliers,
        }[found.kind](found)
        return Finding(
            kind=found.kind,
            of=self._what,
            message=message,
            unit=self._unit,
            groups=[
                ValueGroup(repeats=list(g.repeats), lowest=g.lowest, highest=g.highest)
                for g in found.groups
            ],
            numbers=found.numbers | {"resolution": self._resolution},
        )

    def _modes(self, found: stability.Finding) -> str:
        first, *others = found.groups
        told = [
            f"{len(first.repeats)} of {self._count} repeats at {self._range(first)}"
        ]
        told += [f"{len(g.repeats)} at {self._range(g)}" for g in others]
        if elsewhere := self._elsewhere(found):
            told.append(f"{elsewhere} elsewhere")
        return f"no single {self._what}: {', '.join(told)}; {self._gap(found)}"

    def _shift(self, found: stability.Finding) -> str:
        told = [f"{self._range(g)} in {_repeats(g.repeats)}" for g in found.groups]
        elsewhere = self._elsewhere(found)
        return (
            f"no single {self._what}: it changed during the run: "
            f"{', then '.join(told)}{f', {elsewhere} elsewhere' if elsewhere else ''}; "
            f"{self._gap(found)}"
        )

    def _elsewhere(self, found: stability.Finding) -> int:
        """How many repeats are in no group that is told; they may lie between."""
        return self._count - sum(len(group.repeats) for group in found.groups)

    def _outliers(self, found: stability.Finding) -> str:
        main, *strays = found.groups
        numbers = sorted(n for stray in strays for n in stray.repeats)
        told = [f"{self._range(g)} in {_repeats(g.repeats)}" for g in strays]
        begin = numbers == list(range(1, len(numbers) + 1))
        warm = "; was the device warm?" if begin else ""
        return (
            f"{self._what}: {len(numbers)} of {self._count} repeats far from all "
            f"others: {', '.join(told)}; the others at {self._range(main)}{warm}"
        )

    def _drift(self, found: stability.Finding) -> str:
        numbers = found.numbers
        first, last = numbers["first"], numbers["last"]
        way = "rises" if last > first else "falls"
        over = "" if first == 0 else f", {_share(abs(last / first - 1))} over the run"
        return (
            f"no settled {self._what}: it {way} from {self._text(first)} (median of "
            f"the first third of repeats) to {self._text(last)} (of the last third)"
            f"{over}, {self._text(abs(numbers['each']))} a repeat; p = "
            f"{numbers['p']:.1g}"
        )

    def _unstable(self, found: stability.Finding) -> str:
        numbers = found.numbers
        left_out = int(numbers["left_out"])
        count = int(numbers["count"])
        which = f"{count} repeats"
        if left_out:
            which = f"the middle {count - left_out} of {which}"
        ends = f"{self._text(numbers['lowest'])} to {self._text(numbers['highest'])}"
        return (
            f"too unstable to have one {self._what}: {which} lie {ends}, "
            f"{_share(numbers['apart'])} of the median apart; more than "
            f"{_share(numbers['limit'])} is no common value"
        )

    def _gap(self, found: stability.Finding) -> str:
        gap, widest = found.numbers["gap"], found.numbers["widest"]
        if widest > self._resolution:
            than = f"{about(gap / widest)} times as wide as the widest group"
        else:
            than = f"{about(gap / self._resolution)} times the resolution"
        them = "any of them" if self._elsewhere(found) else "them"
        return f"nothing in the {self._text(gap)} between {them}, {than}"

    def _range(self, group: stability.Group) -> str:
        low, high = self._text(group.lowest), self._text(group.highest)
        return low if low == high else f"{low} to {high}"

    def _text(self, value: float) -> str:
        return in_unit(value, self._unit)


def _share(share: float) -> str:
    return f"{about(100 * share)} %"


def _repeats(numbers: Sequence[int]) -> str:
    """``repeat 3``, ``repeats 1-4``, ``repeats 2, 5, 9``."""
    if len(numbers) == 1:
        return f"repeat {numbers[0]}"
    if list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
        return f"repeats {numbers[0]}-{numbers[-1]}"
    return f"repeats {', '.join(map(str, numbers))}"
