"""What is known of a device: ICMP messages it sent, what it altered, in words.

Types and codes are those of RFC 792, 1812 5.2.7, 4443, 4861 and 3810.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dutperf.protocol.base import DirectionName
from dutperf.protocol.result_messages import (
    IcmpMessages,
    Inspected,
    StreamResult,
    TrialResult,
)
from dutperf.protocol.stream_messages import StreamRequest
from dutperf.results.model import CellResult
from dutperf.results.rate_results import Finding
from dutperf.results.trial_record import RoutingSession, TrialRecord

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


# Frames that arrived whole, and not as they should be: TTL, DSCP, payload.
#
# The engine inspects every so many of the received ones (RFC 2544 10). What it finds is
# about the device, and no loss: the frames were forwarded, so verdicts stay as they are
# (RFC 2544 26.1 counts frames).


@dataclass
class Stream:
    """What was inspected of a stream's frames in all trials, and what was sent."""

    direction: DirectionName
    name: str
    sent: StreamRequest
    frames: int = 0
    ttl: int = 0
    dscp: int = 0
    payload: int = 0
    ttls: list[int] = field(default_factory=list)
    dscps: list[int] = field(default_factory=list)

    @property
    def altered(self) -> dict[str, int]:
        """Kind -> how many; a frame may be of several. Only those that there are."""
        kinds = {"ttl": self.ttl, "dscp": self.dscp, "payload": self.payload}
        return {kind: count for kind, count in kinds.items() if count}

    def add(self, found: Inspected) -> None:
        """What one trial found."""
        self.frames += found.frames
        self.ttl += found.ttl
        self.dscp += found.dscp
        self.payload += found.payload
        self.ttls += [t for t in (found.least_ttl, found.most_ttl) if t is not None]
        self.dscps += [d for d in (found.other_dscp,) if d is not None]


def inspected(records: Iterable[TrialRecord]) -> list[Stream]:
    """Of all trials, whatever their verdicts; in the order of their first frames."""
    streams: dict[tuple[DirectionName, str], Stream] = {}
    for record in records:
        for way, request, result in _streams(record):
            key = (way, result.name)
            stream = streams.setdefault(key, Stream(way, result.name, request))
            if result.inspected:
                stream.add(result.inspected)
    return list(streams.values())


def _streams(
    record: TrialRecord,
) -> Iterator[tuple[DirectionName, StreamRequest, StreamResult]]:
    asked = {
        (direction.name, stream.id): stream
        for direction in record.request.directions
        for stream in direction.streams
    }
    for direction in record.result.directions:
        for result in direction.streams:
            request = asked.get((direction.name, result.id))
            if request is not None:
                yield direction.name, request, result


def beside_altered(result: CellResult, records: Sequence[TrialRecord]) -> CellResult:
    """The result with a finding, if frames of its trials arrived altered."""
    own = [record for record in records if record.cell == result.id]
    altered = [stream for stream in inspected(own) if stream.altered]
    if not altered:
        return result
    finding = Finding(
        kind="altered",
        of="frames",
        message="; ".join(map(_told, altered)),
        unit="frames",
        numbers={
            "inspected": sum(stream.frames for stream in altered),
            "ttl": sum(stream.ttl for stream in altered),
            "dscp": sum(stream.dscp for stream in altered),
            "payload": sum(stream.payload for stream in altered),
        },
    )
    return result.model_copy(update={"findings": [*result.findings, finding]})


def _told(stream: Stream) -> str:
    name = "" if stream.name == "foreground" else f" {stream.name}"
    return (
        f"{stream.direction}{name}: of {stream.frames:,} frames that were inspected "
        f"{', '.join(_kinds(stream))}"
    )


def _kinds(stream: Stream) -> Iterator[str]:
    sent = stream.sent
    if stream.ttl:
        low, high = min(stream.ttls), max(stream.ttls)
        span = f"{low}" if low == high else f"{low} to {high}"
        expected = sent.received_ttl or sent.ttl
        yield (
            f"{stream.ttl:,} had not the TTL or hop limit of {expected} but {span} "
            f"({sent.ttl} was sent, less {sent.ttl - expected} by hops of the testbed)"
        )
    if stream.dscp:
        example = f", {stream.dscps[-1]} for example" if stream.dscps else ""
        yield f"{stream.dscp:,} had another DSCP than {sent.dscp}{example}"
    if stream.payload:
        yield f"{stream.payload:,} had another payload, though their checksums hold"


# Frames that the device sent to somebody else: another port, or another host there.
#
# Another one of several ports, or back where they were sent; another customer edge's
# address (RFC 7596, 7597), another tunnel than their host's. They are lost for whom
# they are for, and so in all figures; that they came, and where, is said.


def beside_misdirected(
    result: CellResult, records: Sequence[TrialRecord]
) -> CellResult:
    """The result with a finding, if frames of its trials came that are for others."""
    own = [record for record in records if record.cell == result.id]
    found = [by_port(record.result) for record in own]
    counts = sum(found, Counter[str]())
    if not counts:
        return result
    places = ", ".join(f"{count:,} by {port}" for port, count in counts.items())
    trials = sum(bool(each) for each in found)
    finding = Finding(
        kind="misdirected",
        of="frames",
        message=f"in {trials} of {len(own)} trials frames came that are for other "
        f"ports or hosts, and count as lost: {places}",
        unit="frames",
        numbers={"misdirected": counts.total(), "trials": trials},
    )
    return result.model_copy(update={"findings": [*result.findings, finding]})


# Connections that the device opened itself, before the tester's other end knew of them.


def beside_proxied(result: CellResult, records: Sequence[TrialRecord]) -> CellResult:
    """The result with a finding, if SYNs were answered by somebody else."""
    told = [r.result.tcp for r in records if r.cell == result.id and r.result.tcp]
    proxied = sum(each.initiator.proxied for each in told)
    if not proxied:
        return result
    opened = sum(each.segments[1].received for each in told)
    finding = Finding(
        kind="proxied",
        of="connections",
        message=f"{proxied:,} of {opened:,} SYN-ACKs are not the responder's, by "
        "sequence number and window: the device answers SYNs itself, and a connection "
        "that it opened need not have reached the other end",
        unit="connections",
        numbers={"proxied": proxied, "opened": opened},
    )
    return result.model_copy(update={"findings": [*result.findings, finding]})


def by_port(result: TrialResult) -> Counter[str]:
    """How many came in by which port."""
    return Counter({p.label: p.misdirected for p in result.ports if p.misdirected})


# Whether the device stayed a neighbour of the routing daemon beside the tester.
#
# One that is busy forwarding may find no time for its neighbours: they are lost, then
# its routes, then all frames. The loss is the device's; why it was is said.


def beside_routing(result: CellResult, records: Sequence[TrialRecord]) -> CellResult:
    """The result with a finding, if in trials of it the device was no neighbour."""
    own = [record for record in records if record.cell == result.id]
    fallen = [record for record in own if any(map(_fell, record.routing))]
    if not fallen:
        return result
    numbers = ", ".join(str(record.number) for record in fallen[:_MOST])
    more = ", ..." if len(fallen) > _MOST else ""
    least_fps = min(record.load_fps for record in fallen)
    finding = Finding(
        kind="routing_fell",
        of="trials",
        message=f"in {len(fallen)} of {len(own)} trials (number {numbers}{more}; from "
        f"{least_fps:,} fps on) the device gave up the routing daemon beside the "
        "tester as its neighbour, and with it the routes of the frames",
        unit="frames",
        numbers={"fell": len(fallen), "trials": len(own)},
    )
    return result.model_copy(update={"findings": [*result.findings, finding]})


_MOST = 5


def _fell(session: RoutingSession) -> bool:
    return session.falls > 0 or not session.open
