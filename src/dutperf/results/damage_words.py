"""Damaged frames in words: their kinds, and the two figures of a throughput."""

from __future__ import annotations

from collections.abc import Iterator

from dutperf.protocol import Damage
from dutperf.results.model import CellResult
from dutperf.results.rate_results import DamagedFrames
from dutperf.results.units import about, in_unit

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
