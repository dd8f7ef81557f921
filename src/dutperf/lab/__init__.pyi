from .device_cpu import left_to_the_device
from .devices import LABS, taking
from .devices.device import LabDevice
from .devices.linux import WIRE
from .lifecycle import (
    attached,
    check,
    down,
    dut_alive,
    plan,
    planned_cpus,
    renew_receiving,
    session,
    up,
    use,
)
from .orders import (
    cpu_of_device,
    known_answer_device,
    limit_connections,
    watch_device,
)
from .presence import LabStatus, check_cpus, running, runs
from .processes import core_numbers
from .refdut_socket import KnownAnswer, read_behaviour

__all__ = [
    "LABS",
    "WIRE",
    "KnownAnswer",
    "LabDevice",
    "LabStatus",
    "attached",
    "check",
    "check_cpus",
    "core_numbers",
    "cpu_of_device",
    "down",
    "dut_alive",
    "known_answer_device",
    "left_to_the_device",
    "limit_connections",
    "plan",
    "planned_cpus",
    "read_behaviour",
    "renew_receiving",
    "running",
    "runs",
    "session",
    "taking",
    "up",
    "use",
    "watch_device",
]
