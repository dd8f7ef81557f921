"""Frames that arrived whole, and not as they should be: TTL, DSCP, payload.

The engine inspects every so many of the received ones (RFC 2544 10). What it finds is
about the device, and no loss: the frames were forwarded, so verdicts stay as they are
(RFC 2544 26.1 counts frames).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from dutperf.protocol import DirectionName, Inspected, StreamRequest, StreamResult
from dutperf.results.model import CellResult
from dutperf.results.rate_results import Finding
from dutperf.results.trial_record import TrialRecord


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
