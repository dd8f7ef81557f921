"""Frames beside the stream in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from dutperf.protocol.result_messages import (
    Damage,
    DirectionResult,
    Histogram,
    VerdictKind,
)
from dutperf.results.details import SeriesDrift, Soak
from dutperf.results.model import CellResult
from dutperf.results.rate_results import (
    DamagedFrames,
    Finding,
    LoadPoint,
    ManagementCount,
    Withdrawal,
)
from dutperf.results.units import about, duration, in_unit
from dutperf.stats import histogram_median, histogram_percentile


def beside_sentence(*cells: CellResult) -> str:
    """How many were sent and came; empty: nothing was beside the stream.

    ``cells`` have the same ones.
    """
    counts = [each for cell in cells for each in cell.beside]
    if not counts:
        return ""
    sent, came = (sum(getattr(c, key) for c in counts) for key in ("sent", "received"))
    told = "all" if came == sent else f"{came:,}" if came else "none"
    beside = cells[0].cell.traffic.beside
    what = beside.words if beside else "frames"
    return f"{what} beside the stream: {sent:,} sent, {told} came"


# Management queries in words (RFC 2544 11.2).


_DIGITS = 3


def management_sentence(*cells: CellResult) -> str:
    """How many were asked and answered; empty: none were."""
    counts = [cell.management for cell in cells if cell.management]
    if not any(count.asked for count in counts):
        return ""
    asked, answered, wrong = (
        sum(getattr(count, key) for count in counts)
        for key in ("asked", "answered", "wrong")
    )
    told = "all answered" if answered == asked else f"{answered:,} answered"
    if wrong:
        told += f", {wrong:,} damaged or without all values"
    slowest = [c.slowest_ns for c in counts if c.slowest_ns is not None]
    if any(slowest):
        told += f", the slowest within {duration(max(slowest), _DIGITS)}"
    return f"SNMP queries beside the stream: {asked:,} asked, {told}"


def unanswered(count: ManagementCount) -> Iterator[Finding]:
    """A finding, if the load was not what was asked for."""
    if count.answered >= count.asked:
        return
    message = (
        f"of {count.asked:,} SNMP queries {count.answered:,} were answered with all "
        "values"
    )
    if count.answered == 0 and count.wrong == 0:
        message += ": is there an agent, and does it take the testbed's snmp.community?"
    elif count.answered == 0:
        message += (
            ", the others were damaged or lack some: has the device the interface that "
            "snmp.interface names, and is TX checksum offload disabled (ethtool -K "
            "INTERFACE tx off)?"
        )
    yield Finding(
        kind="unanswered",
        of="queries",
        message=message,
        unit="frames",
        numbers={"asked": count.asked, "answered": count.answered},
    )


# Damaged frames in words: their kinds, and the two figures of a throughput.


_KINDS = {
    "checksum_zero": "without a UDP checksum",
    "checksum_wrong": "with a wrong checksum",
    "length": "of wrong length",
    "truncated": "truncated",
    "never_sent": "with a number never sent",
}
_CAUSES = {
    "checksum_zero": "the device sends IPv6 with UDP checksum 0, where a sum of 0 must "
    "be sent as ffff (RFC 768); IPv6 hosts drop such frames (RFC 8200 8.1)",
    "checksum_wrong": "the device sends checksums that do not fit; hosts drop such "
    "frames",
    "length": "the device sends frames of which the IP or UDP length is wrong",
    "truncated": "the device sends frames that end before their IP packet does",
    "never_sent": "the device sends payload that it was not given",
}
RECEIVED = "damaged frames counted as received"


def kinds_words(damaged: Damage | None) -> str:
    """``3 without a UDP checksum, 1 truncated``; empty: none, or not known."""
    counts = damaged.by_kind if damaged else {}
    return ", ".join(f"{n:,} {_KINDS[kind]}" for kind, n in counts.items() if n)


def received_figure(cell: CellResult, at_least: str) -> str:
    """The second figure, with its unit; empty: there is none.

    ``at_least`` stands before one that may be more.
    """
    damage = cell.damage
    if damage is None:
        return ""
    if damage.value is None:
        return "not measured"
    sign = at_least if damage.bound else ""
    return f"{sign}{in_unit(damage.value, cell.unit)}"


def damage_sentence(cell: CellResult, at_least: str) -> str:
    """Both figures, the share of damaged frames and why; empty: no second figure."""
    if cell.damage is None:
        return ""
    sign = at_least if cell.bound else ""
    figure = "none" if cell.median is None else f"{sign}{in_unit(cell.median, 'fps')}"
    told = [
        f"0 damaged: {figure}; {RECEIVED}: {received_figure(cell, at_least)}",
        *(_share(frames) for frames in cell.damage.frames),
        *_causes(cell),
    ]
    return "; ".join(told)


def _share(frames: DamagedFrames) -> str:
    count = frames.damaged.total
    return (
        f"{frames.direction}, 1 in {about(frames.sent / count)}: {count:,} of "
        f"{frames.sent:,} frames damaged ({kinds_words(frames.damaged)})"
    )


def _causes(cell: CellResult) -> Iterator[str]:
    frames = cell.damage.frames if cell.damage else []
    damaged = sum((each.damaged for each in frames), Damage())
    yield from (_CAUSES[kind] for kind, n in damaged.by_kind.items() if n)


# How repeats ended, and which of them do not count, in words.


def settled_words(cell: CellResult) -> str:
    """Empty where the number of repeats was given."""
    settled, repeats = cell.settled, len(cell.repeats)
    if settled is None:
        return ""
    looks = f"{settled.looks} look{'' if settled.looks == 1 else 's'}"
    width = settled.width
    number = width.removesuffix("%")
    target = f"{int(number):,} fps" if number == width else f"{number} % of it"
    if settled.reached:
        return (
            f"settled after {repeats} repeats ({looks}): the interval of the median is "
            f"no wider than {target}"
        )
    if cell.bound:
        return (
            f"not settled after {repeats} repeats ({looks}): the median is a lower "
            "bound, and more repeats would not change that"
        )
    return (
        f"not settled after {repeats} repeats ({looks}): the interval of the median is "
        f"wider than {target}, or not known"
    )


def withdrawn_words(withdrawn: Withdrawal | None) -> str:
    """Which repeats do not count, and why; empty where all do."""
    if withdrawn is None:
        return ""
    first, last = withdrawn.repeats[0], withdrawn.repeats[-1]
    which = f"repeat {first} does" if first == last else f"repeats {first} to {last} do"
    return (
        f"{which} not count: measured only at the two rates where all before had "
        "ended, and the loss threshold is not a sharp step; all that count are "
        "classic"
    )


# Verdicts on results, in words; those on trials are pass, fail and invalid.


_WORDS: dict[VerdictKind, str] = {
    "pass": "measured",
    "fail": "failed",
    "invalid": "invalid",
}


def result_word(verdict: VerdictKind) -> str:
    """What the verdict on a cell is called, wherever it is shown."""
    return _WORDS[verdict]


# Cells by their ids or titles, several of them in short.


_FEW = 3


def named(ids: Sequence[str]) -> str:
    """``throughput-ip4-64-both and -ip6-84-both``; of many the first ones."""
    parts = shortened(ids)
    if len(parts) > _FEW:
        return f"{', '.join(parts[: _FEW - 1])} and {len(parts) - _FEW + 1} more"
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last


def shortened(ids: Sequence[str]) -> list[str]:
    """The first one, and of the others what is different from it.

    Titles have commas between their parts: ``Throughput, IPv4 and IPv6``.
    """
    between = _COMMA if all(_COMMA in each for each in ids) else "-"
    lead = "" if between is _COMMA else between
    first = ids[0].split(between)
    return [ids[0], *(_rest(first, each, between, lead) for each in ids[1:])]


_COMMA = ", "


def _rest(first: list[str], other: str, between: str, lead: str) -> str:
    """All of it if nothing is the same, or nothing would be left."""
    parts = other.split(between)
    pairs = zip(first, parts, strict=False)
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
    return lead + between.join(parts[same:]) if 0 < same < len(parts) else other


# Frame loss curves: up to which load nothing is lost.


def highest_clean(rising: Iterable[LoadPoint]) -> LoadPoint | None:
    """The highest point that is free of loss in each repeat, as are all below it."""
    clean = None
    for point in rising:
        if point.loss_percent != 0 or point.lossy_repeats:
            break
        clean = point
    return clean


# What drifts under a load that lasts for hours.


_MOST_SERIES = 4


def drift_words(soak: Soak) -> str:
    """Which series drift, and how fast; or in how many no drift was seen."""
    told = [words for series in soak.series if (words := _drift(series))]
    if len(told) > _MOST_SERIES:
        told = [*told[:_MOST_SERIES], f"{len(told) - _MOST_SERIES} more drift"]
    if told:
        return "; ".join(told)
    if any(series.per_hour is not None for series in soak.series):
        return f"no drift seen in {len(soak.series)} series"
    return "too few trials to tell a drift"


def _drift(series: SeriesDrift) -> str:
    name = f"{series.name}, {series.direction}" if series.direction else series.name
    if series.verdict == "steps":
        times = ", ".join(f"{each.at_s / 3600:.4g} h" for each in series.changes)
        return f"{name} steps at {times}"
    if series.verdict not in ("grows", "falls") or series.per_hour is None:
        return ""
    slope = abs(series.per_hour)
    plain = f"{about(slope, 4)}{' %' if series.unit else ''}"
    each = duration(slope, 4) if series.unit == "ns" else plain
    return f"{name} {series.verdict} by {each} an hour"


# What the tester itself has of the delays that it tells.


def usual_share_ns(direction: DirectionResult) -> float:
    """What it has of half of the direction's delays, at most."""
    return sum(histogram_median(part.buckets) for part in _parts(direction))


def rare_share_ns(direction: DirectionResult) -> float:
    """What it has of all but 2 in 1000 of them: one long stall must not tell all."""
    return sum(
        histogram_percentile(part.buckets, 999, 1000) for part in _parts(direction)
    )


def _parts(direction: DirectionResult) -> list[Histogram]:
    """A frame waits for its send call to end, and for the receiver to look."""
    both = (direction.send_call_ns, direction.receive_gap_ns)
    return [part for part in both if part.count]
