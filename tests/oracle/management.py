"""Management queries of a cell once more (RFC 2544 11.2).

An SNMP message is a tree of elements; here it is taken apart as such, all at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dutperf.evidence import accounting
from oracle import records

Json = dict[str, Any]
Tree = list[tuple[int, Any]]
"""Elements: tag, and content: bytes, or the elements in it."""

_CONSTRUCTED = 0x20
_COUNTERS = {0x41, 0x43}
_ANSWER = 0xA2


def management(trials: Sequence[Json]) -> Json | None:
    """Sums over the trials that passed, or else all that are valid; None: not asked."""
    own = records.of_role(trials)
    passed = [trial for trial in own if accounting.verdict(trial) == "pass"]
    counted = passed or [t for t in own if accounting.verdict(t) == "fail"]
    asked = answered = wrong = 0
    delays: list[int] = []
    for trial in counted:
        for port in trial["result"]["ports"]:
            told = [a for a in _announced(trial) if a["port"] == port["name"]]
            queries = [a for a in told if a.get("answered_from")]
            if not queries:
                continue
            unsent = max(0, len(told) - port["announced"])
            asked += max(0, len(queries) - unsent)
            seen: set[int] = set()
            for answer in port.get("answers", []):
                place, full = _matched(answer, queries)
                if place is None or place in seen:
                    continue
                seen.add(place)
                answered, wrong = answered + full, wrong + (not full)
                if full:
                    delays.append(
                        max(0, answer["received_ns"] - queries[place]["at_ns"])
                    )
    if not any(a.get("answered_from") for t in own for a in _announced(t)):
        return None
    worst = max(delays, default=None)
    return {
        "asked": asked,
        "answered": answered,
        "wrong": wrong,
        "slowest_ns": worst,
    }


def _announced(trial: Json) -> list[Json]:
    """Older journals have none."""
    return list(trial["request"].get("announcements", []))


def _matched(answer: Json, queries: Sequence[Json]) -> tuple[int | None, bool]:
    """The place of the query that it is for, and whether it has all values."""
    told, sound = _message(answer["packet"])
    if not told or told[2][0] != _ANSWER:
        return None, False
    number, error, _index, listed = (content for _tag, content in told[2][1])
    for place, query in enumerate(queries):
        asked, _ = _message(query["packet"])
        if asked and asked[2][1][0][1] == number:
            names = [variable[0][1] for _tag, variable in asked[2][1][3][1]]
            values = [v[0][1] for _tag, v in listed if v[1][0] in _COUNTERS]
            return place, sound and not any(error) and names == values
    return None, False


def _message(packet: str) -> tuple[Tree | None, bool]:
    """Version, community and query of what an IP packet has behind UDP's header.

    And whether UDP's checksum holds.
    """
    data = bytes.fromhex(packet)
    is_ipv4 = data[0] >> 4 == 4
    begin = 20 if is_ipv4 else 40
    addresses = data[12:20] if is_ipv4 else data[8:40]
    length = int.from_bytes(data[begin + 4 : begin + 6], "big")
    datagram = data[begin : begin + length]
    pseudo = addresses + length.to_bytes(2, "big") + b"\0\x11"
    header = data[:20] if is_ipv4 else b""
    if not _holds(header):
        return None, False
    sound = _holds(pseudo + datagram) or (is_ipv4 and not any(datagram[6:8]))
    try:
        ((_tag, message),) = _tree(datagram[8:])
        whole = len(message) == 3 and len(message[2][1]) == 4
    except (IndexError, ValueError, TypeError):
        return None, False
    return (message if whole else None), sound


def _holds(data: bytes) -> bool:
    """All 16-bit words add up to ffff, end around; nothing holds, too."""
    padded = data + bytes(len(data) % 2)
    return int.from_bytes(padded, "big") % 0xFFFF == 0


def _tree(data: bytes) -> Tree:
    found: Tree = []
    while data:
        tag, length, begin = data[0], data[1], 2
        if length > 0x80:
            begin += length - 0x80
            length = int.from_bytes(data[2:begin], "big")
        content = data[begin : begin + length]
        if len(content) < length:
            raise ValueError
        found.append((tag, _tree(content) if tag & _CONSTRUCTED else content))
        data = data[begin + length :]
    return found
