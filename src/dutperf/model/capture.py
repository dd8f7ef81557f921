"""Frames of a capture as test frames: their sizes, their order, their flows.

What was read of the file stands beside its name, so that a stored campaign is run
again without the file, and a file that has changed is another campaign. Neither
payloads nor addresses are kept: of an address only its number, by appearance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, model_validator

from dutperf.model.fields import Short, Strict
from dutperf.protocol.base import IpVersion
from dutperf.protocol.stream_messages import MAX_FRAME_SIZE, minimum_frame_size

MOST_FRAMES = 1024
"""That are sent in turn; a stored campaign has them in each of its test cases."""
_FLOW = "[46] [0-9]{1,4} [0-9]{1,4} [0-9]{1,5} [0-9]{1,5}"
_FRAMES = "[0-9]{1,4}:[0-9]{2,4}(?: [0-9]{1,4}:[0-9]{2,4})*"
_TIMES = "(?:0(?: [0-9]{1,20})*)?"


class CapturedFlow(NamedTuple):
    """Source and destination are numbers: of the capture's hosts, by appearance."""

    version: IpVersion
    source: int
    destination: int
    src_port: int
    dst_port: int


class CapturedFrame(NamedTuple):
    """``size`` in bytes with FCS, without VLAN tags; ``at_ns`` after the first one.

    0 for all where times are not kept.
    """

    flow: CapturedFlow
    size: int
    at_ns: int


def _check_flow(text: str) -> str:
    if not re.fullmatch(_FLOW, text) or max(map(int, text.split()[3:])) > 65535:
        raise ValueError(
            "must be IP version, source, destination and both ports, like "
            f"4 0 0 5000 53, not {text[:40]!r}"
        )
    return text


def _check_frames(text: str) -> str:
    if not re.fullmatch(_FRAMES, text) or text.count(" ") >= MOST_FRAMES:
        raise ValueError(
            f"must be FLOW:SIZE of 1 to {MOST_FRAMES} frames, not {text[:40]!r}"
        )
    return text


def _check_times(text: str) -> str:
    times_ns = list(map(int, text.split())) if re.fullmatch(_TIMES, text) else [1]
    if times_ns and (times_ns[0] or times_ns != sorted(times_ns)):
        raise ValueError(f"must be times in ns from 0 on, rising, not {text[:40]!r}")
    return text


Count = Annotated[int, Field(ge=0, le=2**53)]


class Reading(Strict):
    """What was found in the file; written by dutperf."""

    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] = Field(
        description="of the file"
    )
    seen_frames: Count = Field(description="in the file")
    seen_bytes: Count = Field(description="of these, with FCS and VLAN tags")
    left_out: dict[str, Count] = Field(
        default={}, description="frames that are not sent, by what they are"
    )
    cut_short: Count = Field(
        default=0, description="frames sent whose payload the capture has not all of"
    )
    tagged: Count = Field(default=0, description="frames sent that had VLAN tags")
    flows: Annotated[
        list[Annotated[str, AfterValidator(_check_flow)]],
        Field(min_length=1, max_length=MOST_FRAMES),
    ] = Field(
        description="IP version, numbers of source and destination, both ports of each"
    )
    frames: Annotated[str, AfterValidator(_check_frames)] = Field(
        description="number of the flow and size of each, in order: FLOW:SIZE"
    )
    times_ns: Annotated[str, AfterValidator(_check_times)] = Field(
        default="",
        description="when each was captured, after the first one; empty: not kept",
    )

    @model_validator(mode="after")
    def _of_these_flows(self) -> Self:
        if self.times_ns and self.times_ns.count(" ") != self.frames.count(" "):
            raise ValueError("times_ns must have a time for each of frames")
        for number, size in self._pairs():
            if number >= len(self.flows) or not 64 <= size <= MAX_FRAME_SIZE:
                raise ValueError(f"frames has {number}:{size}, which cannot be")
        return self

    def _pairs(self) -> Iterator[tuple[int, int]]:
        for each in self.frames.split():
            number, _, size = each.partition(":")
            yield int(number), int(size)

    def of(self, version: IpVersion) -> list[CapturedFrame]:
        """The frames of one IP version, in order."""
        flows = [_as_flow(each) for each in self.flows]
        pairs = list(self._pairs())
        times_ns = (
            map(int, self.times_ns.split()) if self.times_ns else [0] * len(pairs)
        )
        return [
            CapturedFrame(flows[number], size, at_ns)
            for (number, size), at_ns in zip(pairs, times_ns, strict=True)
            if flows[number].version == version
        ]


def _as_flow(text: str) -> CapturedFlow:
    version, source, destination, src_port, dst_port = map(int, text.split())
    ip: IpVersion = 6 if version == 6 else 4
    return CapturedFlow(ip, source, destination, src_port, dst_port)


class Capture(Strict):
    """A capture file, and which of its frames are sent."""

    file: Annotated[str, Field(min_length=1, max_length=4096)] = Field(
        description="pcap or pcapng file; its UDP frames are sent in turn, by their "
        "sizes, ports and hosts"
    )
    others: Literal["refuse", "skip"] = Field(
        default="refuse",
        description="frames that are no plain UDP: refuse or skip; skip leaves them "
        "out, and results say how many",
    )
    times: Literal["even", "original"] = Field(
        default="even",
        description="when they are sent: evenly, or at the capture's own times; these "
        "are stretched until their mean is the load",
    )
    read: Reading | None = Field(
        default=None, description="what was found in it; dutperf writes that"
    )

    @property
    def name(self) -> str:
        """Of the file, without folders."""
        return self.file.rpartition("/")[2]

    @property
    def label(self) -> str:
        """Part of a cell's name."""
        stem = re.sub(r"\.(pcap|pcapng|cap)$", "", self.name)
        name = re.sub("[^A-Za-z0-9_]+", "-", stem)[:32].strip("-") or "file"
        return f"pcap-{name}" + ("-original-times" if self.times == "original" else "")

    def of(self, version: IpVersion) -> list[CapturedFrame]:
        """Its frames of one IP version; none of a file that was not read."""
        return self.read.of(version) if self.read else []

    def sizes(self, version: IpVersion) -> list[int]:
        """As they are sent: the tag must have room, 84 bytes of IPv6."""
        least = minimum_frame_size(version)
        return [max(frame.size, least) for frame in self.of(version)]

    def own_fps(self, version: IpVersion) -> Fraction | None:
        """Mean rate of these frames in the capture; None: it has no such times."""
        times_ns = [frame.at_ns for frame in self.of(version)]
        took_ns = times_ns[-1] - times_ns[0] if times_ns else 0
        return Fraction((len(times_ns) - 1) * 10**9, took_ns) if took_ns else None

    def words(self, version: IpVersion, hosts: tuple[int, int]) -> str:
        """How much of it is sent, and what is not.

        Args:
            version: of the test case.
            hosts: of the sides from and to which the frames go, numbers of addresses.
        """
        read = self.read
        if read is None:
            return self.name
        frames, sizes = self.of(version), self.sizes(version)
        other = sum(1 for _ in read.frames.split()) - len(frames)
        left_out = read.left_out | ({f"IPv{10 - version}": other} if other else {})
        longer = sum(1 for f, s in zip(frames, sizes, strict=True) if s > f.size)
        flows = {frame.flow for frame in frames}
        kept = {on_hosts(flow, hosts) for flow in flows}
        told = [
            f"{self.name}: {len(frames):,} of {read.seen_frames:,} frames",
            f"{sum(f.size for f in frames):,} of {read.seen_bytes:,} bytes",
            f"{len(kept):,} of {len(flows):,} flows kept apart",
        ]
        if own_fps := self.own_fps(version):
            told.append(f"at its own times, {float(own_fps):,.6g} fps on average")
        if left_out:
            listed = ", ".join(f"{n:,} {kind}" for kind, n in left_out.items())
            told.append(f"left out: {listed}")
        for number, what in (
            (longer, "made longer for the tag"),
            (read.tagged, "without their VLAN tags"),
            (read.cut_short, "cut short in the capture, and sent whole"),
        ):
            told += [f"{number:,} {what}"] if number else []
        return "; ".join(told)


def on_hosts(flow: CapturedFlow, hosts: tuple[int, int]) -> tuple[int, int, int, int]:
    """Numbers of the hosts that stand for a flow's ends, and its ports.

    Args:
        flow: of a capture, which may have more hosts than there are.
        hosts: how many there are where it comes from, and where it goes.
    """
    return (
        flow.source % hosts[0],
        flow.destination % hosts[1],
        flow.src_port,
        flow.dst_port,
    )


def _expand(file: str) -> dict[str, Any]:
    return {"file": file}


CaptureFile = Annotated[Capture, Short(str, _expand, {"type": "string"})]
