"""How many frames the tester can have on their way through a kernel port.

Over a kernel interface a sent frame keeps one of the tester's buffers until the device
has freed it. What the device queues must be less than that, or the queue never
overflows: the tester stands still instead, and the device never loses a frame
(``docs/adr/0003-kernel-sockets.md``).
"""

from __future__ import annotations

from dutperf.protocol import PortSpec

IN_FLIGHT_FRAMES: int = PortSpec.model_fields["in_flight_frames"].default
"""Of one port, with AF_XDP as with AF_PACKET: the plan leaves the engine's default."""
