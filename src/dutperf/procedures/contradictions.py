"""What a run says in two places, held against each other (docs/contradictions.md).

A stage of its own over all results of a run: no procedure knows what the others found.
Only results of one device and the same traffic are held together, and each only as far
as it is known: a lower bound may be exceeded, a tolerated loss may be lost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations, groupby
from operator import attrgetter
from typing import NamedTuple

from dutperf.config.sizes import sizes_text
from dutperf.model.rate_specs import BackToBackSpec, RateSearchKeys
from dutperf.model.specs import ConnectionRateSpec
from dutperf.results.model import CellResult
from dutperf.results.rate_results import Finding, FindingKind
from dutperf.results.units import about
from dutperf.search import Resolution

_OPENED = {
    *("initiator", "connections", "order", "responder_order", "table_size"),
    *("source_ports", "destination_ports", "public_addresses", "transport"),
    *("source_addresses", "destination_addresses"),
}
"""What two results on connections must agree in."""
_ENDLESS_S = 2
"""A burst that is longer than what any buffer bridges."""
_APART_PERCENT = 5
"""Of the frames: losses that no repeat comes closer to are not the same device's."""

Found = tuple[CellResult, FindingKind, str]


def with_contradictions(cells: Sequence[CellResult]) -> list[CellResult]:
    """``cells``, each with what another one says against it."""
    told: dict[str, list[Finding]] = defaultdict(list)
    valid = [cell for cell in cells if cell.verdict != "invalid"]
    for cell, kind, message in _found(valid):
        about_it = Finding(
            kind=kind, of=cell.procedure, message=message, unit=cell.unit
        )
        told[cell.id].append(about_it)
    return [
        cell.model_copy(update={"findings": [*cell.findings, *told[cell.id]]})
        if cell.id in told
        else cell
        for cell in cells
    ]


def _found(cells: Sequence[CellResult]) -> Iterator[Found]:
    rates = [cell for cell in cells if _is_of_frames(cell)]
    alike: dict[object, list[CellResult]] = defaultdict(list)
    for cell in cells:
        alike[sizes_text(cell.cell), _traffic(cell)].append(cell)
    for same in alike.values():
        for rate in same:
            if _is_of_frames(rate):
                for other in same:
                    yield from _of_two(rate, other)
        yield from _at_one_load(same)
    yield from _by_size(rates)
    yield from _above_capacity(cells)


def _is_of_frames(cell: CellResult) -> bool:
    """A throughput; a rate of connections or queries has several frames of each."""
    is_rate = cell.family == "rate search" and cell.cell.spec.is_of_frames
    return is_rate and bool(cell.median)


def _of_two(rate: CellResult, other: CellResult) -> Iterator[Found]:
    """A throughput, and what else was measured with the same frames."""
    if other.family == "load sweep":
        found = _of_curve(rate, other)
    elif other.family == "fixed load":
        found = "contradiction", _lost_with_delays(rate, other)
    elif other.family == "burst search":
        found = "contradiction", _bursts_above(rate, other)
    else:
        return
    kind, message = found
    if message:
        yield rate, kind, message
        yield other, kind, message


def _passed(rate: CellResult) -> str:
    return f"{rate.id} says that {rate.median:,.0f} fps pass"


def _of_curve(rate: CellResult, curve: CellResult) -> tuple[FindingKind, str]:
    """RFC 2544 26.1 and 26.3: what loses frames is above the throughput.

    Where the median of a load lost nothing but some repeats did (of which the rate's
    goal tolerates none), or where more than the throughput lost nothing, that is told,
    and nothing is withdrawn.
    """
    tolerated = _tolerated_percent(rate)
    rising = sorted(curve.points, key=lambda point: point.load_fps)
    for point in rising:
        lost = point.loss_percent or 0
        if point.load_fps <= (rate.median or 0) and lost > tolerated:
            told = f"{about(lost, 3)} % lost at {point.load_fps:,} fps"
            return "contradiction", f"{curve.id}: {told}; {_passed(rate)}"
    exceeds = any(goal.exceed_ratio for goal in rate.goals[:1])
    for point in [] if exceeds else rising:
        values = [r.value for r in point.repeats if r.verdict != "invalid"]
        lossy = sum((value or 0) > tolerated for value in values)
        if point.load_fps <= (rate.median or 0) and lossy:
            which = f"{lossy} of {len(values)} repeats"
            told = f"frames lost in {which} at {point.load_fps:,} fps"
            return "unusual", f"{curve.id}: {told}; {_passed(rate)}"
    most_fps = (rate.median or 0) + _width_fps(rate)
    for point in reversed(rising):
        clean = point.loss_percent == 0 and not point.lossy_repeats
        if clean and point.load_fps > most_fps and not rate.bound:
            told = f"no frame lost at {point.load_fps:,} fps"
            passed = f"{rate.id} says that {rate.median:,.0f} fps pass and no more"
            return "unusual", f"{curve.id}: {told}; {passed}"
    return "unusual", ""


def _lost_with_delays(rate: CellResult, delays: CellResult) -> str:
    """RFC 2544 26.2, RFC 8219 7.2: at a rate that passes every frame has a delay."""
    load = delays.load
    if load is None or load.rate_fps > (rate.median or 0):
        return ""
    for count in delays.frames:
        if count.lost * 100 > _tolerated_percent(rate) * count.sent:
            lost = f"{count.lost:,} of {count.sent:,} frames lost {count.direction}"
            return f"{delays.id}: {lost} at {load.rate_fps:,} fps; {_passed(rate)}"
    return ""


def _bursts_above(rate: CellResult, bursts: CellResult) -> str:
    """RFC 9004 5: only bursts that come faster than the throughput fill a buffer.

    Where even the longest burst passes, its rate is one that the device forwards,
    unless it was so short that a buffer takes what is too much (RFC 2544 26.4: 2 s).
    """
    burst_fps = bursts.max_load_fps
    if bursts.cell.spec_of(BackToBackSpec).longest_burst_s < _ENDLESS_S:
        return ""
    if bursts.bound_cause != "set" or burst_fps is None or rate.bound:
        return ""
    if burst_fps <= (rate.median or 0) + _width_fps(rate):
        return ""
    endless = "bursts as long as they may be pass"
    return f"{bursts.id}: {endless} at {burst_fps:,} fps; {_passed(rate)}"


class _Lost(NamedTuple):
    """What a cell lost at one load: percent, of each repeat that counts."""

    cell: CellResult
    load_fps: int
    least: float
    most: float

    @property
    def words(self) -> str:
        ends = dict.fromkeys(about(end, 3) for end in (self.least, self.most))
        return f"{self.cell.id}: {' to '.join(ends)} % lost at {self.load_fps:,} fps"


def _at_one_load(cells: Sequence[CellResult]) -> Iterator[Found]:
    """What the same load loses in one test case, and what in another."""
    lost = [each for cell in cells for each in _lost(cell)]
    for one, other in combinations(sorted(lost, key=attrgetter("most")), 2):
        same = one.load_fps == other.load_fps and one.cell is not other.cell
        if same and other.least - one.most > _APART_PERCENT:
            message = f"{one.words}; {other.words}"
            yield one.cell, "contradiction", message
            yield other.cell, "contradiction", message


def _lost(cell: CellResult) -> Iterator[_Lost]:
    """Of delays in all repeats together: theirs are not stored one by one."""
    for point in cell.points:
        repeats = [r.value for r in point.repeats if r.verdict != "invalid"]
        known = [value for value in repeats if value is not None]
        if known:
            yield _Lost(cell, point.load_fps, min(known), max(known))
    sent = sum(count.sent for count in cell.frames)
    if cell.family == "fixed load" and cell.load and sent:
        percent = 100 * sum(count.lost for count in cell.frames) / sent
        yield _Lost(cell, cell.load.rate_fps, percent, percent)


def _above_capacity(cells: Sequence[CellResult]) -> Iterator[Found]:
    """RFC 9693 4.9: who passed with more connections than the table holds."""
    for full in cells:
        beyond = [search.beyond for search in full.capacity]
        known = [number for number in beyond if number is not None]
        if not known or None in beyond:
            continue
        for cell in cells:
            number = _used(cell)
            if number >= max(known) and _table(cell) == _table(full):
                told = f"{cell.id}: {number:,} connections are used without a loss"
                message = f"{told}; {full.id}: {max(known):,} are not held"
                yield full, "contradiction", message
                yield cell, "contradiction", message


def _used(cell: CellResult) -> int:
    """How many connections a result needs to be there at once, each in use."""
    opened = cell.cell.stateful
    if opened is None or not cell.median:
        return 0
    is_rate = cell.family == "rate search" and not _tolerated_percent(cell)
    is_opening = isinstance(cell.cell.spec, ConnectionRateSpec)
    validated = is_opening and opened.alpha
    return opened.connections if is_rate or validated else 0


def _table(result: CellResult) -> tuple[object, ...]:
    keys = ("initiator", "public_addresses", "table_size")
    opened = result.cell.stateful
    return result.place, result.cell.ip, *(getattr(opened, key, None) for key in keys)


def _by_size(rates: Sequence[CellResult]) -> Iterator[Found]:
    """More bytes a frame are no less work: a longer frame that is faster is unusual."""
    sized = [(size, rate) for rate in rates if isinstance(size := _size(rate), int)]
    for _, same in groupby(sorted(sized, key=_order), lambda each: _traffic(each[1])):
        shorter: tuple[int, CellResult] | None = None
        for size, rate in same:
            if shorter and not shorter[1].bound and _is_faster(rate, shorter[1]):
                found = f"{rate.median:,.0f} fps with {size} bytes"
                found += f", {shorter[1].median:,.0f} with {shorter[0]}"
                message = f"{found}: a longer frame is rarely faster"
                yield shorter[1], "unusual", message
                yield rate, "unusual", message
            shorter = size, rate


def _order(sized: tuple[int, CellResult]) -> tuple[str, int]:
    return repr(_traffic(sized[1])), sized[0]


def _is_faster(rate: CellResult, than: CellResult) -> bool:
    most = (than.median or 0) + _width_fps(than)
    return (rate.median or 0) > most


def _tolerated_percent(rate: CellResult) -> float:
    """What may be lost of a rate that passed, by its own criterion."""
    spec = rate.cell.spec_of(RateSearchKeys)
    verified = spec.max_verify_loss_percent if spec.verify_trials else None
    goals = [100 * goal.loss_ratio for goal in rate.goals[:1]]
    return max([spec.loss_tolerance_percent or 0.0, verified or 0.0, *goals])


def _width_fps(rate: CellResult) -> float:
    resolution = Resolution.parse(rate.cell.spec_of(RateSearchKeys).resolution)
    return float(resolution.width_fps(rate.median or 0))


def _traffic(result: CellResult) -> tuple[object, ...]:
    cell = result.cell
    opened = cell.stateful and cell.stateful.model_dump_json(include=_OPENED)
    opened_fps = cell.phase2 and cell.phase2.phase1_rate
    return (
        *(result.place, cell.traffic.model_dump_json(), cell.ip, cell.direction),
        *(cell.pairs, opened, opened_fps),
        getattr(cell.spec, "frame_timeout_ms", None),
    )


def _size(result: CellResult) -> object:
    """The one that was given; None: several at once."""
    return None if result.cell.imix else result.cell.frame_sizes[0]
