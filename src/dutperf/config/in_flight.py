"""How many frames the tester can have on their way through a kernel port.

Over a kernel interface a sent frame keeps one of the tester's buffers until the device
has freed it. What the device queues must be less than that, or the queue never
overflows: the tester stands still instead, and the device never loses a frame
(``docs/adr/0003-kernel-sockets.md``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

KernelDriver = Literal["af_xdp", "af_packet"]

IN_FLIGHT: Mapping[KernelDriver, int] = {"af_xdp": 2048, "af_packet": 2048}
"""Frames of one port that need not have come back before the next one is sent."""
LEAST_IN_FLIGHT = min(IN_FLIGHT.values())
"""Whichever driver the port has."""
