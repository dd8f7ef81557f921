"""Management queries in words (RFC 2544 11.2)."""

from __future__ import annotations

from collections.abc import Iterator

from dutperf.results.model import CellResult
from dutperf.results.rate_results import Finding, ManagementCount
from dutperf.results.units import duration

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
            "snmp.interface names, and are its checksums not left to a NIC that it has "
            "not (ethtool -K INTERFACE tx off)?"
        )
    yield Finding(
        kind="unanswered",
        of="queries",
        message=message,
        unit="frames",
        numbers={"asked": count.asked, "answered": count.answered},
    )
