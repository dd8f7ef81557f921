"""What a run says in two places, held against each other (docs/contradictions.md).

A stage of its own over all results of a run: no procedure knows what the others found.
Only results of one device and the same traffic are held together, and each only as far
as it is known: a lower bound may be exceeded, a tolerated loss may be lost.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from dutperf.results.model import CellResult
from dutperf.results.rate_results import Finding, FindingKind
from dutperf.results.units import about
from dutperf.search import Resolution

_TRAFFIC = (
    "ip",
    "direction",
    "traffic",
    "profile",
    "ports",
    "ports_reverse",
    "addresses",
    "networks",
    "mix",
    "ignore_checksums",
    "ttl",
    "dscp",
    "df",
    "flow_label",
    "mac",
    "flows",
    "flows_by",
    "ipv4_options",
    "ipv6_headers",
    "load_shape",
    "fragmented",
    "routes",
    "route_changes",
    "management",
    "beside",
    "port_pairs",
    "port_pattern",
    "frame_timeout_ms",
    "connections",
    "initiator",
    "order",
    "responder_order",
    "source_ports",
    "destination_ports",
    "source_addresses",
    "destination_addresses",
    "public_addresses",
    "table_size",
    "phase1_rate",
)
"""Parameters in which two results must agree, beside the frame sizes."""
_ENDLESS_S = 2
"""A burst that is longer than what any buffer bridges."""
_DELAYS = ("latency", "pdv", "ipdv")

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
    rates = [cell for cell in cells if cell.procedure == "throughput" and cell.median]
    alike: dict[object, list[CellResult]] = defaultdict(list)
    for cell in cells:
        alike[_sizes(cell), _traffic(cell)].append(cell)
    for rate in rates:
        for other in alike[_sizes(rate), _traffic(rate)]:
            yield from _of_two(rate, other)
    yield from _by_size(rates)


def _of_two(rate: CellResult, other: CellResult) -> Iterator[Found]:
    """A throughput, and what else was measured with the same frames."""
    message = ""
    if other.procedure == "frame-loss":
        message = _lost_below(rate, other)
    elif other.procedure in _DELAYS:
        message = _lost_with_delays(rate, other)
    elif other.procedure == "back-to-back":
        message = _bursts_above(rate, other)
    if message:
        yield rate, "contradiction", message
        yield other, "contradiction", message


def _passed(rate: CellResult) -> str:
    return f"{rate.id} says that {rate.median:,.0f} fps pass"


def _lost_below(rate: CellResult, curve: CellResult) -> str:
    """RFC 2544 26.1 and 26.3: what loses frames is above the throughput."""
    most_fps, tolerated = rate.median or 0, _tolerated_percent(rate)
    lossy = [
        point
        for point in curve.points
        if point.load_fps <= most_fps and (point.loss_percent or 0) > tolerated
    ]
    if not lossy:
        return ""
    lowest = min(lossy, key=lambda point: point.load_fps)
    lost = about(lowest.loss_percent or 0, 3)
    return f"{curve.id}: {lost} % lost at {lowest.load_fps:,} fps; {_passed(rate)}"


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
    burst_fps = bursts.parameters.get("max_load_fps")
    burst_s = bursts.parameters.get("longest_burst_s")
    if not isinstance(burst_s, int | float) or burst_s < _ENDLESS_S:
        return ""
    if bursts.bound_cause != "set" or not isinstance(burst_fps, int) or rate.bound:
        return ""
    if burst_fps <= (rate.median or 0) + float(_width_fps(rate)):
        return ""
    endless = "bursts as long as they may be pass"
    return f"{bursts.id}: {endless} at {burst_fps:,} fps; {_passed(rate)}"


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
    most = (than.median or 0) + float(_width_fps(than))
    return (rate.median or 0) > most


def _tolerated_percent(rate: CellResult) -> float:
    """What may be lost of a rate that passed, by its own criterion."""
    keys = ["loss_tolerance_percent"]
    if rate.parameters.get("verify_trials"):
        keys.append("max_verify_loss_percent")
    values: Iterable[object] = map(rate.parameters.get, keys)
    goals = [100 * goal.loss_ratio for goal in rate.goals[:1]]
    return max([0.0, *goals, *(v for v in values if isinstance(v, int | float))])


def _width_fps(rate: CellResult) -> float:
    resolution = Resolution.parse(str(rate.parameters.get("resolution", "5%")))
    return float(resolution.width_fps(rate.median or 0))


def _traffic(cell: CellResult) -> tuple[object, ...]:
    return cell.place, *(cell.parameters.get(key) for key in _TRAFFIC)


def _sizes(cell: CellResult) -> object:
    return cell.parameters.get("frame_sizes")


def _size(cell: CellResult) -> object:
    """The one that was given; None: several at once."""
    return cell.parameters.get("frame_size")
