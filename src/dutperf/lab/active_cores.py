"""How many CPUs the lab's device has: ``python -m dutperf.lab.active_cores N``.

The hook ``set_cores`` of the labs whose device is the kernel: what arrives is steered
to the first N of the CPUs that the tester does not need (RPS), by a hash of addresses
and ports. Where the machine has fewer, it fails, and says how many there are.
"""

from __future__ import annotations

import sys

from dutperf.errors import DutperfError, InputError, SetupError
from dutperf.lab import topology
from dutperf.lab.cpus import dut_cpus, plan_cpus, rps_mask
from dutperf.lab.devices import LABS
from dutperf.lab.state import StateFile


def set_cores(number: int) -> list[int]:
    """Steers to ``number`` CPUs; which they are.

    Raises:
        InputError: the device cannot have so many.
        SetupError: no lab is up, or the kernel refuses.
    """
    state = StateFile().read()
    if state is None:
        raise SetupError("no lab is up", "dutperf lab up NAME")
    cpus = dut_cpus(plan_cpus())
    if not 1 <= number <= len(cpus):
        raise InputError(
            f"the lab's device cannot have {number} CPUs of its own: "
            f"{len(cpus)} can be spared here",
            "take numbers up to that, or a machine with more CPUs",
        )
    mask = rps_mask(*cpus[:number])
    for namespace, wires in LABS[state.device].interfaces.items():
        settings = {topology.steering_path(wire): mask for wire in wires}
        topology.write_settings(namespace, settings)
    return cpus[:number]


def main() -> None:
    """Do what the module says."""
    try:
        cpus = set_cores(int(sys.argv[1]))
    except (DutperfError, IndexError, ValueError) as error:
        sys.exit(f"error: {error}")
    print(f"steered to CPU {', '.join(map(str, cpus))}")  # noqa: T201 - its work


if __name__ == "__main__":
    main()
