"""``known-answer``: a device of our own that does exactly what it is told.

    tester                             dut
    198.18.0.2     left  == memif == left  198.18.0.1      2001:2::1
    198.19.0.2     right == memif == right 198.19.0.1      2001:2:0:8000::1

dutperf-refdut (docs/known-answer.md) is a router between two ports in shared memory:
no kernel, no wire and no driver is between the engine and the answer. It loses, delays
and reorders as its behaviour says, and keeps an account of every frame.
"""

from __future__ import annotations

import sys

from dutperf.config.hooks import Hook, Hooks
from dutperf.config.testbed import Ipv4Side, Ipv6Side, MemifPort, SideConfig
from dutperf.engine.protocol import Side
from dutperf.lab import asking
from dutperf.lab.devices.device import LabDevice
from dutperf.lab.known_answer import control_socket
from dutperf.lab.state import StateFile


def _side(side: Side, ipv4: Ipv4Side, ipv6: Ipv6Side) -> SideConfig:
    socket = StateFile().dut_directory / side
    return SideConfig(port=MemifPort(memif=str(socket)), ipv4=ipv4, ipv6=ipv6)


_ACCOUNT = Hook(
    command=[
        *(sys.executable, "-I", "-S", asking.__file__),
        str(control_socket(StateFile().dut_directory)),
    ]
)

KNOWN_ANSWER = LabDevice(
    name="known-answer",
    description="dutperf-refdut, a router that does exactly what it is told",
    addresses={
        "left": ("198.18.0.1/24", "2001:2::1/64"),
        "right": ("198.19.0.1/24", "2001:2:0:8000::1/64"),
    },
    left=_side(
        "left",
        Ipv4Side(address="198.18.0.2", gateway="198.18.0.1"),
        Ipv6Side(address="2001:2::2", gateway="2001:2::1"),
    ),
    right=_side(
        "right",
        Ipv4Side(address="198.19.0.2", gateway="198.19.0.1"),
        Ipv6Side(address="2001:2:0:8000::2", gateway="2001:2:0:8000::1"),
    ),
    answers=True,
    hooks=Hooks(after_trial=[_ACCOUNT]),
)
