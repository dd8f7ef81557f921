"""What a tester takes for a link's speed: shares, cores, memory, before it is bought.

Frames a second follow from the wire (RFC 2544 appendix B); what a core does is
measured by ``dutperf bench`` or a passport, and else assumed. Memory is that of the
engine's buffers (engine/src/dataplane/trial_run.cc, engine/src/dpdk/port.cc) and of
its bits, one a frame (measure/sequence_tracker.h), kept once by share and once as a
whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dutperf.config.testbed import ROLES
from dutperf.protocol.base import line_rate_fps
from dutperf.protocol.port_messages import PortSpec

CORE_FPS = 10_000_000
"""What one core sends, or receives with checksums; more on most of today's CPUs."""
_ROOM_BYTES = 2048
_BUFFER_BYTES = _ROOM_BYTES + 128 + 128 + 64
"""With DPDK's headers and headroom, and what its pools put beside."""
_HISTOGRAMS_MB = 8
"""Of a share's recorder, with what a worker has of its own."""
_HUGE_PAGE_MB = 2
_EAL_MB = 32
"""DPDK's own: rings, tables, what is lost between buffers."""
_DESCRIPTORS = PortSpec(name="left", driver="pci")


@dataclass(frozen=True)
class ScalePlan:
    """Of both directions at the rate of a link.

    Attributes:
        line_fps: of each direction.
        cores: each sends or receives one share of one direction.
        memory_mb: the testbed's key: buffers, in huge pages.
        tracking_mb: the campaign's key: a bit a frame.
        other_mb: of other memory, with these bits.
    """

    line_fps: int
    shares: int
    cores: int
    memory_mb: int
    huge_pages: int
    tracking_mb: int
    other_mb: int


def scale_plan(
    link_mbps: int, frame_size: int, duration_s: float, core_fps: int = CORE_FPS
) -> ScalePlan:
    """For trials of ``duration_s`` with frames of one size, as long as a link has room.

    Args:
        link_mbps: of each direction.
        frame_size: bytes with FCS.
        duration_s: of a trial.
        core_fps: what a core sends, or receives.
    """
    line_fps = line_rate_fps(link_mbps, frame_size)
    shares = max(1, math.ceil(line_fps / core_fps))
    tracking_mb = _mb(math.ceil(line_fps * duration_s / 8))
    memory_mb = buffers_mb(shares)
    copies = 2 if shares > 1 else 1
    return ScalePlan(
        line_fps=line_fps,
        shares=shares,
        cores=ROLES * shares,
        memory_mb=memory_mb,
        huge_pages=math.ceil(memory_mb / _HUGE_PAGE_MB),
        tracking_mb=tracking_mb,
        other_mb=2 * (copies * tracking_mb + shares * _HISTOGRAMS_MB),
    )


def buffers_mb(shares: int, lanes: int = 1) -> int:
    """Of two ports; ``lanes``: frame sizes, paths and streams of a direction."""
    rx, tx = _DESCRIPTORS.rx_descriptors, _DESCRIPTORS.tx_descriptors
    received = 2 * rx * shares + tx * shares + 512
    sent = shares * (min(lanes, 2) * 2 * tx + max(lanes - 2, 0) * tx // 2)
    return _mb(2 * (received + sent) * _BUFFER_BYTES) + _EAL_MB


def _mb(amount: int) -> int:
    return math.ceil(amount / 2**20)
