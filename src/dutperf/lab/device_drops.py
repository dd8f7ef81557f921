"""What a lab's device dropped, as far as its kernel counts it at its interfaces.

Its CPU's input queue is one of the machine's, so the engine has counted that already.
"""

from __future__ import annotations

from dutperf.lab import topology
from dutperf.lab.devices.device import INNER, LabDevice

COUNTERS = (
    "rx_dropped",
    "rx_errors",
    "rx_missed_errors",
    "tx_dropped",
    "tx_errors",
)


def read(device: LabDevice, *, sent: bool = True) -> dict[str, dict[str, int]]:
    """The drops of each of the device's interfaces since they were made.

    Those of the wire between two boxes are told with the port of the box. ``sent``:
    also of what it sent to the tester; else those are the tester's: see
    ``receive_cpu``.
    """
    found: dict[str, dict[str, int]] = {}
    for end, home in device.homes.items():
        names = {
            counter: f"/sys/class/net/{end}/statistics/{counter}"
            for counter in COUNTERS
            if sent or counter != "tx_dropped"
        }
        if INNER in device.interfaces[home]:
            for counter in COUNTERS:
                path = f"/sys/class/net/{INNER}/statistics/{counter}"
                names[f"{INNER} {counter}"] = path
        shown = topology.read_settings(home, list(names.values()))
        found[end] = {
            name: int(shown[path]) for name, path in names.items() if path in shown
        }
    return found
