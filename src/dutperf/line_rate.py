"""What the medium can carry, and what frames take of it (RFC 5180 A.1, RFC 2544 B)."""

from __future__ import annotations

from fractions import Fraction

PREAMBLE_AND_GAP_BYTES = 20
"""Preamble and start of frame 8, interframe gap 12."""


def line_rate_fps(link_speed_mbps: int, frame_size: int | Fraction) -> int:
    """Frames per second and direction that Ethernet carries, rounded down.

    ``frame_size`` is in bytes and includes the FCS; the mean where sizes differ.
    """
    return int(link_speed_mbps * 1_000_000 / _bits(frame_size))


def wire_mbps(rate_fps: float, frame_size: int | Fraction) -> float:
    """What so many frames take of the medium, preambles and gaps included, 10^6/s."""
    return float(Fraction(rate_fps) * _bits(frame_size) / 1_000_000)


def _bits(frame_size: int | Fraction) -> Fraction:
    return 8 * (Fraction(frame_size) + PREAMBLE_AND_GAP_BYTES)
