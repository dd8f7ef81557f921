"""What a lab's device dropped, as far as its kernel counts it at its interfaces.

Its CPU's input queue is one of the machine's, so the engine has counted that already.
"""

from __future__ import annotations

from collections.abc import Sequence

from dutperf.lab import topology

COUNTERS = (
    "rx_dropped",
    "rx_errors",
    "rx_missed_errors",
    "tx_dropped",
    "tx_errors",
)


def read(ends: Sequence[str], *, sent: bool = True) -> dict[str, dict[str, int]]:
    """The drops of each of the device's interfaces since they were made.

    ``ends``: of its lab's wires. ``sent``: also of what it sent; else those are the
    tester's: see ``receive_cpu``.
    """
    paths = {
        (end, counter): f"/sys/class/net/{end}/statistics/{counter}"
        for end in ends
        for counter in COUNTERS
        if sent or counter != "tx_dropped"
    }
    shown = topology.read_settings(topology.DUT, list(paths.values()))
    found: dict[str, dict[str, int]] = {end: {} for end in ends}
    for (end, counter), path in paths.items():
        if path in shown:
            found[end][counter] = int(shown[path])
    return found
