"""Keys of procedures whose frames are segments of TCP connections (RFC 8219 8).

A connection is opened by a SYN, whose four-tuple a UDP frame of the same number would
have. What a procedure does with connections that are open is its ``use``: the next
segment of their initiator, in a trial of its own.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from dutperf.model.fields import KeyedError
from dutperf.model.procedure_keys import ProcedureKeys
from dutperf.protocol.trial_messages import (
    MAX_MSS,
    MIN_MSS,
    ConnectionBegin,
    ConnectionEnd,
    Tcp,
)

_SYN_SIZES = {74, 94}
"""Of IPv4 and of IPv6: ``config.sizes.syn_size``."""
_ENDS: dict[ConnectionBegin, ConnectionEnd] = {
    "ack": "opened",
    "request": "answered",
    "fin": "closed",
}


class TcpKeys(ProcedureKeys):
    """What procedures have that open TCP connections."""

    takes_beside = False
    without = (
        "frame_size",
        *(
            f"traffic.{name}"
            for name in (
                "mix",
                "background_ip",
                "broadcast_percent",
                "hop_by_hop_percent",
                "spoofed_percent",
                "syn_flood_percent",
                "imix",
                "fragmented",
                "ipv6_headers",
                "ipv4_options",
                "routes",
                "group",
            )
        ),
    )
    opens_until: ClassVar[ConnectionEnd] = "opened"
    """How far the trial goes that opens them."""
    use: ClassVar[ConnectionBegin | None] = None
    """What a later trial begins with on each of them; None: there is none."""

    object_bytes: Annotated[int, Field(ge=0, le=MAX_MSS)] = Field(
        default=64,
        description="of what the GET is for; header and object are one segment",
    )
    mss: Annotated[int, Field(ge=MIN_MSS, le=MAX_MSS)] = Field(
        default=1460, description="maximum segment size that both sides announce"
    )

    @property
    def tcp(self) -> Tcp | None:
        """What the engine is told of the trial that opens connections."""
        return Tcp(until=self.opens_until, object_bytes=self.object_bytes, mss=self.mss)

    def used(self, opened_by: int) -> Tcp:
        """The same of the trial that uses them; of one whose procedure does."""
        return self._used_by(self.use or "request", opened_by)

    def _used_by(self, begin: ConnectionBegin, opened_by: int) -> Tcp:
        return Tcp(
            begin=begin,
            until=_ENDS[begin],
            opened_by=opened_by,
            object_bytes=self.object_bytes,
            mss=self.mss,
        )

    @model_validator(mode="after")
    def _of_segments(self) -> Self:
        words = "must be left out: each frame is the SYN of a connection"
        if self.tcp and set(self.frame_size) - _SYN_SIZES:
            raise KeyedError(("frame_size",), words)
        for key in self.without:
            if key == "frame_size":
                continue
            block, _, name = key.rpartition(".")
            for owner in self.traffic if block else (self,):
                field = type(owner).model_fields[name]
                if getattr(owner, name) != field.get_default(call_default_factory=True):
                    raise KeyedError((*filter(None, (block,)), name), words)
        return self
