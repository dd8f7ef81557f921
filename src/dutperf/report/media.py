"""What a frame rate means on the wire."""

from __future__ import annotations

from dutperf.results import Environment

OVERHEAD_BYTES = 20
"""Preamble and start delimiter (8) and inter-frame gap (12), RFC 5180 A.1."""


def wire_mbps(rate_fps: float, frame_size: int) -> float:
    """Bits on the wire in 10^6/s: frame with FCS, preamble and gap."""
    return rate_fps * (frame_size + OVERHEAD_BYTES) * 8 / 1e6


def maximum_rate_fps(link_speed_mbps: int, frame_size: int) -> int:
    """Theoretical maximum of the medium, per direction (RFC 5180 A.1)."""
    return link_speed_mbps * 1_000_000 // ((frame_size + OVERHEAD_BYTES) * 8)


def medium_speed_mbps(environment: Environment | None) -> int | None:
    """Speed of the slower link; None where no medium limits the rate.

    A veth pair or a memif reports some speed, but frames do not take time on it.
    """
    ports = environment.ports if environment else []
    if not ports or any(port.nominal for port in ports):
        return None
    speeds = [port.link_speed_mbps for port in ports]
    return min((s for s in speeds if s), default=None) if all(speeds) else None
