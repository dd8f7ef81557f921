"""The tester's passport: what it can do itself, its ports connected to each other.

RFC 9971 4.9.1 and the papers on siitperf benchmark the tester first: a result is the
device's where the tester alone does clearly more. A passport belongs to one machine,
kernel, engine, set of CPUs and kind of link; on anything else it says nothing.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal

from pydantic import Field

from dutperf.protocol.base import IpVersion
from dutperf.protocol.trial_messages import Dns, Tcp
from dutperf.results.units import Stored

NEAR_PERCENT = 90.0
"""A result above it is marked: it is nearly the tester's own."""


class PassportOwner(Stored):
    """Whose passport it is: nothing of this may differ where it is used."""

    machine: str = Field(description="a digest of what tells this machine from others")
    cpu_model: str
    cpus_total: int
    kernel: str
    dutperf_version: str
    engine: str = Field(description="a digest of the engine's program")
    cores: list[int]
    shares: int = Field(default=1, description="of a direction's work, on these cores")
    main_core: int
    device_cpu: int | None = Field(description="of a lab; null: it has none")
    receive_cpu: int | None = Field(
        default=None,
        description="of a lab: takes in what the device sends; null: the device's does",
    )
    memory_mb: int
    hugepages: bool
    link: str = Field(description="what connects the ports, and how they are driven")

    @property
    def name(self) -> str:
        """Short, and another one for everything else."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:12]


class Sent(Stored):
    """What was sent: a passport has one entry for each.

    ``traffic`` is the profile without what costs the tester nothing.
    """

    ip: IpVersion
    frame_sizes: list[int] = Field(description="bytes with FCS; several: an IMIX")
    direction: Literal["both", "forward", "reverse"]
    traffic: dict[str, Any] = Field(description="keys of the profile, without defaults")
    features: str = Field(description="the same in words")
    connections: int | None = Field(
        default=None,
        description="frames of so many connections; null: of none. Those of phase 1 "
        "are sent by one side, enumerated, and learned by the other",
    )
    opens: bool = Field(
        default=False, description="phase 1 itself; false: connections that are open"
    )
    tcp: Tcp | None = Field(
        default=None, description="each frame opens a TCP connection; null: none does"
    )
    dns: Dns | None = Field(
        default=None,
        description="each frame is a query, which the tester answers itself (RFC 8219 "
        "9.2.1); null: none is",
    )


class PassportLag(Stored):
    """How late frames left at the safe rate, in nanoseconds behind their schedule."""

    p50_ns: int
    p99_ns: int
    max_ns: int


class PassportDelay(Stored):
    """Delays through no device; frames of both directions, in nanoseconds."""

    rate_fps: int
    frames: int
    minimum_ns: int
    typical_ns: int = Field(description="median")
    worst_ns: int = Field(description="99.9th percentile")


class PassportEntry(Stored):
    """What the tester can do with one kind of frames, per direction."""

    sent: Sent
    made_at: str = Field(description="ISO 8601, UTC")
    trial_duration_s: float
    trials: int = Field(description="so many in a row passed at the safe rate")
    safe_rate_fps: int | None = Field(description="null: none was safe")
    highest_rate_fps: int | None = Field(description="at which a trial passed")
    next_rate_fps: int | None = Field(
        description="the lowest at which one of them did not; null: none was found"
    )
    why_not: str = Field(default="", description="why the trial there did not pass")
    lag: PassportLag | None = None
    delays: list[PassportDelay] = Field(
        default=[], description="at parts of the safe rate; empty: none was safe"
    )
    held_frames: int | None = Field(
        default=None,
        description="the receive side held at least so many, without loss, while "
        "nobody looked at it; null: one core sends and receives, so nothing comes then",
    )
    device_ns_per_frame: float | None = Field(
        default=None,
        description="of a lab: what the device's CPU does for each frame without a "
        "device, in links and in the tester's sockets",
    )
    device_ns_if_shared: float | None = Field(
        default=None,
        description="the same if it took in the tester's frames, too, for which this "
        "lab has a CPU; null: it has none",
    )

    @property
    def floor(self) -> PassportDelay | None:
        """The least that the tester's own way takes."""
        return min(self.delays, key=lambda delay: delay.typical_ns, default=None)


class Passport(Stored):
    """All that is known of one tester."""

    schema_version: Literal[1] = 1
    owner: PassportOwner
    entries: list[PassportEntry] = Field(default=[])

    def entry(self, sent: Sent) -> PassportEntry | None:
        """What is known of such frames."""
        return next((e for e in self.entries if e.sent == sent), None)

    def with_entry(self, entry: PassportEntry) -> Passport:
        """The same, with what is known now of such frames."""
        others = [e for e in self.entries if e.sent != entry.sent]
        return self.model_copy(update={"entries": [*others, entry]})


class PassportUse(Stored):
    """How a result stands to the tester's passport."""

    passport: str = Field(description="its name")
    features: str = Field(description="of the entry")
    safe_rate_fps: int | None = Field(description="per direction; null: none was safe")
    trials: int = Field(description="so many in a row passed at it")
    why_not_more: str = Field(
        default="", description="why the tester's own trial at the next rate failed"
    )
    rate_fps: float | None = Field(description="of the result; null: it has none")
    share_percent: float | None = Field(
        description="the result's rate in percent of the safe rate"
    )
    floor: PassportDelay | None = Field(
        default=None, description="delays through no device"
    )
    device_share_percent: float | None = Field(
        default=None,
        description="of a lab: what part of its device's CPU carried the frames of the "
        "result to the tester and did not forward them",
    )

    @property
    def near(self) -> bool:
        """Whether the tester alone hardly does more."""
        return self.share_percent is not None and self.share_percent > NEAR_PERCENT
