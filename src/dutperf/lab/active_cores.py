"""How many CPUs a lab's device has: ``python -m dutperf.lab.active_cores STATE N``.

The hook ``set_cores`` of the labs whose device is the kernel: what arrives is steered
to the first N of the CPUs that the tester does not need (RPS), by a hash of addresses
and ports. Where the machine has fewer, it fails, and says how many there are.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dutperf.errors import DutperfError, InputError, SetupError
from dutperf.lab import netns, presence
from dutperf.lab.cpus import CpuPlan, dut_cpus, rps_mask
from dutperf.lab.devices import device_of
from dutperf.lab.state import LabState, StateFile


def set_cores(number: int, file: StateFile = StateFile()) -> list[int]:  # noqa: B008 - it is frozen
    """Steers to ``number`` CPUs; which they are. ``file``: of the lab.

    Raises:
        InputError: the device cannot have so many.
        SetupError: no lab is up, or the kernel refuses.
    """
    with file.locked():
        state = file.read()
        if state is None:
            raise SetupError("no lab is up", "dutperf lab up NAME")
        cpus = _spare(file, state)
        if not 1 <= number <= len(cpus):
            raise InputError(
                f"the lab's device cannot have {number} CPUs of its own: "
                f"{len(cpus)} can be spared here",
                "take numbers up to that, or a machine with more CPUs",
            )
        own, more = cpus[:number], tuple(cpus[1:number])
        file.write(state.model_copy(update={"more_dut_cpus": more}))
    for namespace, wires in device_of(state).interfaces.items():
        settings = {netns.steering_path(wire): rps_mask(*own) for wire in wires}
        netns.write_settings(namespace, settings)
    return own


def _spare(file: StateFile, state: LabState) -> list[int]:
    """Those that neither the tester nor anybody else has, the device's own first."""
    (worker, *_), main = state.testbed.cores, state.testbed.main_core
    plan = CpuPlan(
        worker=worker,
        dut=state.dut_cpu,
        main=worker if main is None else main,
        receive=state.receive_cpu,
    )
    others = set() if state.shares_cpus else presence.holders(file).keys()
    usable = os.sched_getaffinity(0) - (others - state.device_cpus - state.tester_cpus)
    return dut_cpus(plan, usable)


def main() -> None:
    """Do what the module says."""
    try:
        file, number = sys.argv[1:]
        cpus = set_cores(int(number), StateFile.at(Path(file)))
    except (DutperfError, ValueError) as error:
        sys.exit(f"error: {error}")
    print(f"steered to CPU {', '.join(map(str, cpus))}")  # noqa: T201 - its work


if __name__ == "__main__":
    main()
