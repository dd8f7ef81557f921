"""What speaks for the figures and what against them, a line each: the first screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dutperf.report.cells import CellView
from dutperf.report.environment_rows import findings_beside
from dutperf.report.source import Source
from dutperf.report.text import MISSING, duration_ns, plural, sentence, whole
from dutperf.results import CellResult, Words
from dutperf.results.closing_words import deviations_words
from dutperf.results.passport import NEAR_PERCENT

Level = Literal["good", "note", "bad"]
_FEW = 3


@dataclass(frozen=True)
class TrustRow:
    """``target``: the section that says more."""

    name: str
    words: str
    level: Level
    target: str = ""


def trust_rows(source: Source, cells: Sequence[CellView]) -> list[TrustRow]:
    """In the order of their weight."""
    return [
        _trials(cells),
        _share(cells),
        _stalls(cells),
        _drops(cells),
        *_inspected(cells),
        _machine(source, cells),
        _standards(source.cells),
    ]


def _trials(cells: Sequence[CellView]) -> TrustRow:
    """Invalid ones are run again: many of them say that the machine was not quiet."""
    counted = sum(cell.tester.trials for cell in cells)
    invalid = sum(cell.tester.invalid for cell in cells)
    if counted + invalid == 0:
        return TrustRow("Trials", "none is stored", "bad")
    if not invalid:
        return TrustRow("Invalid trials", f"none of {whole(counted)}", "good", "tester")
    why: Counter[str] = Counter()
    for cell in cells:
        why.update(cell.tester.invalid_reasons)
    codes = ", ".join(code.replace("_", " ") for code, _ in why.most_common(_FEW))
    said = f"{whole(invalid)} of {whole(counted + invalid)}, not counted"
    return TrustRow("Invalid trials", f"{said} ({codes})", "note", "tester")


def _share(cells: Sequence[CellView]) -> TrustRow:
    name = "Tester's own limit"
    bounds = sum(bool(cell.at_least) for cell in cells)
    shares = [
        cell.result.passport.share_percent
        for cell in cells
        if cell.result and cell.measured and cell.result.passport
    ]
    known = [share for share in shares if share is not None]
    limited = f"; {plural(bounds, 'result')} a lower bound" if bounds else ""
    if not known:
        said = "not known: there is no passport of this tester"
        return TrustRow(name, said + limited, "note", "tester")
    said = f"at most {max(known):.0f} % of it was used"
    near = max(known) > NEAR_PERCENT or bounds > 0
    return TrustRow(name, said + limited, "note" if near else "good", "tester")


def _stalls(cells: Sequence[CellView]) -> TrustRow:
    """Of the trials that count; no loss in their shadow is the device's."""
    stalls = sum(cell.tester.stalls for cell in cells)
    if not stalls:
        return TrustRow("Stalls of the tester", "none", "good", "tester")
    longest = max(cell.tester.longest_stall_ns or 0 for cell in cells)
    lost = sum(cell.tester.lost_in_shadow for cell in cells)
    said = f"{whole(stalls)}, the longest {duration_ns(longest)}; "
    said += (
        f"{plural(lost, 'frame')} lost in their shadow, none held against the device"
        if lost
        else "nothing was lost in their shadow"
    )
    return TrustRow("Stalls of the tester", said, "note", "tester")


def _drops(cells: Sequence[CellView]) -> TrustRow:
    dropped = sum(cell.tester.dropped for cell in cells)
    if dropped:
        said = f"{plural(dropped, 'frame')}: these losses may be the tester's"
        return TrustRow("Dropped by the tester", said, "bad", "tester")
    return TrustRow("Dropped by the tester", "no frame", "good", "tester")


def _inspected(cells: Sequence[CellView]) -> list[TrustRow]:
    """What the device did to frames beside forwarding them."""
    name = "Frames inspected"
    frames = sum(cell.tester.inspected for cell in cells)
    if not frames:
        return []
    if not any(cell.tester.altered for cell in cells):
        said = f"{whole(frames)}: TTL, DSCP and payload as they should be"
        return [TrustRow(name, said, "good", "tester")]
    said = f"{whole(frames)}: TTL, DSCP or payload of some altered by the device"
    return [TrustRow(name, said, "note", "tester")]


def _machine(source: Source, cells: Sequence[CellView]) -> TrustRow:
    """What the doctor found that may touch one of these cells, once for all."""
    name = "This machine"
    if not any(each.environment for each in source.testbeds):
        return TrustRow(name, MISSING, "note")
    found = dict.fromkeys(f for cell in cells for f in findings_beside(cell, source))
    if not found:
        return TrustRow(name, "dutperf doctor found nothing", "good", "environment")
    more = ", \N{HORIZONTAL ELLIPSIS}" if len(found) > _FEW else ""
    said = f"{plural(len(found), 'finding')}: {', '.join(list(found)[:_FEW])}{more}"
    return TrustRow(name, said, "note", "environment")


def _standards(cells: Sequence[CellResult]) -> TrustRow:
    """All deviations in one line; the list is further down."""
    words = Words(where="below", figures=False)
    said = next(iter(deviations_words(cells, words)), "")
    if said:
        return TrustRow("By the RFCs", sentence(said), "note", "deviations")
    return TrustRow("By the RFCs", "no deviation" if cells else MISSING, "good")
