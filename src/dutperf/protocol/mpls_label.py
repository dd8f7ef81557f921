"""MPLS labels: what may stand between a frame's VLAN tags and its IP packet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import Field

from dutperf.protocol.base import Message

MIN_LABEL: Final = 16
"""Those below are reserved (RFC 3032 2.1)."""
MAX_LABEL: Final = 2**20 - 1
MAX_LABELS = 3
_BYTES = 4


class MplsLabel(Message):
    """One entry of a label stack (RFC 3032 2.1); the last one has the S bit."""

    label: Annotated[int, Field(ge=MIN_LABEL, le=MAX_LABEL)] = Field(
        description="the label itself; those below 16 have meanings of their own"
    )
    tc: Annotated[int, Field(ge=0, le=7)] = Field(
        default=0, description="traffic class; not compared on receive"
    )
    ttl: Annotated[int, Field(ge=1, le=255)] = Field(
        default=64, description="time to live; not compared on receive"
    )


MplsLabels = Annotated[list[MplsLabel], Field(max_length=MAX_LABELS)]
"""Outermost first."""


def mpls_bytes(labels: Sequence[MplsLabel]) -> int:
    """How much longer they make a frame, and what they take of the MTU."""
    return _BYTES * len(labels)
