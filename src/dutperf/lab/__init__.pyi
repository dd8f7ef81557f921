from .devices import LABS, LabDevice
from .lifecycle import (
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
from .orders import (
    known_answer_device,
    limit_connections,
    renew_receiving,
    watch_device,
)
from .receive_cpu import left_to_the_device
from .refdut_socket import KnownAnswer, read_behaviour

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
