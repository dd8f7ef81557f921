"""What a lab's device dropped, as far as its kernel counts it at its interfaces.

Its CPU's input queue is one of the machine's, so the engine has counted that already.
"""

from __future__ import annotations

from dutperf.lab import topology
from dutperf.protocol import Side

COUNTERS = (
    "rx_dropped",
    "rx_errors",
    "rx_missed_errors",
    "tx_dropped",
    "tx_errors",
)


def read(*, sent: bool = True) -> dict[Side, dict[str, int]]:
    """The drops of each of the device's interfaces since they were made.

    ``sent``: also of what it sent; else those are the tester's: see ``receive_cpu``.
    """
    paths = {
        (side, counter): f"/sys/class/net/{side}/statistics/{counter}"
        for side in topology.SIDES
        for counter in COUNTERS
        if sent or counter != "tx_dropped"
    }
    shown = topology.read_settings(topology.DUT, list(paths.values()))
    found: dict[Side, dict[str, int]] = {side: {} for side in topology.SIDES}
    for (side, counter), path in paths.items():
        if path in shown:
            found[side][counter] = int(shown[path])
    return found
