"""Real devices under test in network namespaces, no hardware needed.

``up`` and ``down`` for a lab that is kept, ``session`` for one that lives as long as a
block. The engine runs in namespace ``tester``, the device in ``dut``.
"""

from __future__ import annotations

from dutperf.lab.devices import LABS, LabDevice
from dutperf.lab.lifecycle import (
    LabStatus,
    attached,
    down,
    dut_alive,
    plan,
    running,
    session,
    up,
    use,
)
from dutperf.lab.orders import (
    known_answer_device,
    limit_connections,
    renew_receiving,
    watch_device,
)
from dutperf.lab.receive_cpu import left_to_the_device
from dutperf.lab.refdut_socket import KnownAnswer, read_behaviour

__all__ = [
    "LABS",
    "KnownAnswer",
    "LabDevice",
    "LabStatus",
    "attached",
    "down",
    "dut_alive",
    "known_answer_device",
    "left_to_the_device",
    "limit_connections",
    "plan",
    "read_behaviour",
    "renew_receiving",
    "running",
    "session",
    "up",
    "use",
    "watch_device",
]
