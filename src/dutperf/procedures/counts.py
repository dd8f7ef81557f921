"""Management queries of a cell's trials, in its result: how many were answered."""

from __future__ import annotations

from collections.abc import Iterable

from dutperf import packets
from dutperf.model.cell import Cell
from dutperf.packets import read_udp
from dutperf.protocol.base import DirectionName
from dutperf.protocol.trial_messages import Announcement
from dutperf.results.model import CellResult
from dutperf.results.rate_results import BesideCount, ManagementCount
from dutperf.results.trial_record import TrialRecord
from dutperf.results.words import unanswered


def with_management(
    result: CellResult, cell: Cell, records: Iterable[TrialRecord]
) -> CellResult:
    """``result`` with what came of its queries, if ``cell`` has any.

    Counted in the trials that passed, as what an overloaded device drops is its load's
    to tell; if none passed, in all valid ones.

    Args:
        result: of the cell.
        cell: what was measured.
        records: trials, the cell's among them.
    """
    if not cell.traffic.management:
        return result
    own = [r for r in records if r.cell == result.id and r.role == "trial"]
    passed = [r for r in own if r.result.verdict.kind == "pass"]
    valid = [r for r in own if r.result.verdict.kind != "invalid"]
    counts = [count for record in passed or valid for count in _of_trial(record)]
    slowest = [c.slowest_ns for c in counts if c.slowest_ns is not None]
    count = ManagementCount(
        asked=sum(c.asked for c in counts),
        answered=sum(c.answered for c in counts),
        wrong=sum(c.wrong for c in counts),
        slowest_ns=max(slowest, default=None),
    )
    findings = [*result.findings, *unanswered(count)]
    words = "one SNMP query a second (RFC 2544 11.2)"
    return result.model_copy(
        update={
            "quantity": f"{result.quantity}, {words} in the load",
            "management": count,
            "findings": findings,
        }
    )


def _of_trial(record: TrialRecord) -> Iterable[ManagementCount]:
    """At the port that asked, the first one of its side."""
    for port in (port for port in record.result.ports if not port.number):
        told = [a for a in record.request.announcements if a.port == port.name]
        asked = [a for a in told if a.answered_from == packets.PORT]
        if not asked:
            continue
        answers: dict[int, tuple[int, bool]] = {}
        for answer in port.answers:
            packet = bytes.fromhex(answer.packet)
            datagram = read_udp(packet, sound=False)
            response = packets.read_response(datagram.payload) if datagram else None
            if response and 1 <= response.request_id <= len(asked):
                query = asked[response.request_id - 1]
                after_ns = answer.received_ns - (query.at_ns or 0)
                good = read_udp(packet) is not None and _is_full(response, query)
                answers.setdefault(response.request_id, (max(0, after_ns), good))
        delays = [after_ns for after_ns, good in answers.values() if good]
        yield ManagementCount(
            # Those that a full ring did not take were never asked.
            asked=max(0, len(asked) - max(0, len(told) - port.announced)),
            answered=len(delays),
            wrong=len(answers) - len(delays),
            slowest_ns=max(delays, default=None),
        )


def _is_full(response: packets.SnmpResponse, query: Announcement) -> bool:
    """Each variable has a value (RFC 2544 11.2: verified by the test equipment)."""
    datagram = read_udp(bytes.fromhex(query.packet))
    asked = packets.read_request(datagram.payload) if datagram else None
    names = list(response.values)
    return response.error == 0 and asked is not None and names == asked.variables


# Frames beside the stream, in a result: what it is called, and how many came.


def with_beside(
    result: CellResult, cell: Cell, records: Iterable[TrialRecord]
) -> CellResult:
    """``result`` with what it says of them, if ``cell`` has any.

    Counted in the trials that passed: the device was not overloaded there, so what did
    not come was not forwarded on purpose. If none passed, in all valid ones.

    Args:
        result: of the cell.
        cell: what was measured.
        records: trials, the cell's among them.
    """
    beside = cell.traffic.beside
    if beside is None:
        return result
    own = [r for r in records if r.cell == result.id and r.role == "trial"]
    passed = [r for r in own if r.result.verdict.kind == "pass"]
    valid = [r for r in own if r.result.verdict.kind != "invalid"]
    counts: dict[DirectionName, BesideCount] = {}
    for record in passed or valid:
        for each in record.result.directions:
            if each.beside:
                before = counts.get(each.name)
                counts[each.name] = BesideCount(
                    direction=each.name,
                    sent=each.beside.sent + (before.sent if before else 0),
                    received=each.beside.received + (before.received if before else 0),
                )
    return result.model_copy(
        update={
            "quantity": f"{result.quantity}, {beside.words} in the load ({beside.rfc})",
            "beside": list(counts.values()),
        }
    )
