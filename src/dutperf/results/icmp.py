"""What a device answers instead of forwarding: ICMP messages, in words.

Types and codes are those of RFC 792, 1812 5.2.7, 4443, 4861 and 3810.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dutperf.protocol import IcmpMessages

Kind = tuple[int, int, int]
"""IP version, type, code."""

_PROHIBITED = "administratively prohibited"
_KINDS: Mapping[Kind, str] = {
    (4, 3, 0): "network unreachable",
    (4, 3, 1): "host unreachable",
    (4, 3, 2): "protocol unreachable",
    (4, 3, 3): "port unreachable",
    (4, 3, 4): "fragmentation needed",
    (4, 3, 5): "source route failed",
    (4, 3, 6): "network unknown",
    (4, 3, 7): "host unknown",
    (4, 3, 9): _PROHIBITED,
    (4, 3, 10): _PROHIBITED,
    (4, 3, 13): _PROHIBITED,
    (4, 11, 0): "TTL exceeded in transit",
    (4, 11, 1): "reassembly time exceeded",
    (6, 1, 0): "no route",
    (6, 1, 1): _PROHIBITED,
    (6, 1, 2): "beyond scope of source address",
    (6, 1, 3): "address unreachable",
    (6, 1, 4): "port unreachable",
    (6, 1, 5): "source address failed policy",
    (6, 1, 6): "reject route",
    (6, 3, 0): "hop limit exceeded in transit",
    (6, 3, 1): "reassembly time exceeded",
    (6, 4, 0): "erroneous header field",
    (6, 4, 1): "unrecognised next header",
    (6, 4, 2): "unrecognised option",
}
_TYPES: Mapping[tuple[int, int], str] = {
    (4, 0): "echo reply",
    (4, 3): "destination unreachable",
    (4, 4): "source quench",
    (4, 5): "redirect",
    (4, 8): "echo request",
    (4, 9): "router advertisement",
    (4, 10): "router solicitation",
    (4, 11): "time exceeded",
    (4, 12): "parameter problem",
    (6, 1): "destination unreachable",
    (6, 2): "packet too big",
    (6, 3): "time exceeded",
    (6, 4): "parameter problem",
    (6, 128): "echo request",
    (6, 129): "echo reply",
    (6, 130): "multicast listener query",
    (6, 131): "multicast listener report",
    (6, 132): "multicast listener done",
    (6, 133): "router solicitation",
    (6, 134): "router advertisement",
    (6, 135): "neighbour solicitation",
    (6, 136): "neighbour advertisement",
    (6, 137): "redirect",
    (6, 143): "multicast listener report",
}
_NOBODY = "the tester's addresses, as nobody answers the device there;"
_PLACES: Mapping[str, str] = {
    "network unreachable": "the device's routes to the tester's networks;",
    "no route": "the device's routes to the tester's networks;",
    "host unreachable": _NOBODY,
    "address unreachable": _NOBODY,
    "port unreachable": "the destination, as the device takes frames for its own;",
    "fragmentation needed": "the device's MTU;",
    "packet too big": "the device's MTU;",
    _PROHIBITED: "the device's filter, which forbids these frames;",
    "TTL exceeded in transit": "the TTL of the frames, and routes for a loop;",
    "hop limit exceeded in transit": "the frames' hop limit, and routes for a loop;",
}


def icmp_name(messages: IcmpMessages) -> str:
    """What they say; where no RFC has a word for it, by number."""
    version, kind, code = messages.ip_version, messages.type, messages.code
    found = _KINDS.get((version, kind, code)) or _TYPES.get((version, kind))
    protocol = "ICMP" if version == 4 else "ICMPv6"
    return f"{protocol} {found or f'type {kind}, code {code}'}"


def icmp_counts(messages: Iterable[IcmpMessages]) -> dict[str, int]:
    """What they say -> how many; the most first."""
    counts: dict[str, int] = {}
    for each in messages:
        name = icmp_name(each)
        counts[name] = counts.get(name, 0) + each.frames
    return dict(sorted(counts.items(), key=lambda pair: -pair[1]))


def icmp_words(messages: Iterable[IcmpMessages]) -> str:
    """All in one line; empty if there are none."""
    return ", ".join(f"{n:,} {name}" for name, n in icmp_counts(messages).items())


def places_to_look(messages: Iterable[IcmpMessages]) -> list[str]:
    """What may be wrong with a device that answers so instead of forwarding."""
    names = (icmp_name(each).partition(" ")[2] for each in messages)
    return list(dict.fromkeys(_PLACES[name] for name in names if name in _PLACES))
