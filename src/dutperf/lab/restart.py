"""Restarts what forwards in a lab: ``python -m dutperf.lab.restart STATE``.

The hook ``during_trial`` of the labs whose device is not our own (RFC 6201 4.2, a reset
of software):

    TAYGA            each process is ended by force, and another one started
    nftables' NAT    rules and connections go, then the rules come back
    router, VXLAN    both ports go down and up, and its routes are set again
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from dutperf.errors import DutperfError, SetupError
from dutperf.lab import netns, processes, topology
from dutperf.lab.devices import LabDevice, device_of, translators
from dutperf.lab.processes import Process
from dutperf.lab.state import LabState, StateFile
from dutperf.programs import in_namespace


def restart(file: StateFile) -> str:
    """Does it; what was restarted of the lab that ``file`` is of.

    Raises:
        SetupError: it is not up, or its device does not come back.
    """
    state = file.read()
    if state is None:
        raise SetupError("no lab is up", "dutperf lab up NAME")
    device = device_of(state)
    if device.translators:
        _restart_processes(device, file, state)
        return "TAYGA was ended and started again"
    if device.tracking:
        _reload(device)
        return "nftables' rules and connections were deleted, and the rules loaded"
    topology.restart_links(device)
    return "both ports were set down and up, and the routes added"


def _restart_processes(device: LabDevice, file: StateFile, state: LabState) -> None:
    """The state names each new one before it runs: whatever dies, it is ended."""
    started: list[Process] = []

    def record(process: Process) -> None:
        started.append(process)
        file.write(state.model_copy(update={"processes": tuple(started)}))

    for process in state.processes:
        processes.end(process)
    for home, each in device.translators.items():
        translators.run(each, home, state.dut_cpu, file.dut_directory, record)


def _reload(device: LabDevice) -> None:
    gateway = device.namespaces[-1]
    refused = netns.replace_ruleset(gateway, [])
    if refused:
        raise SetupError(f"cannot delete the rules of {device.name}: {refused}")
    forget = in_namespace(gateway, "conntrack", "-F")
    subprocess.run(forget, capture_output=True, check=True)
    topology.load_rules(device)


def main() -> None:
    """Do what the module says."""
    try:
        print(restart(StateFile.at(Path(sys.argv[1]))))  # noqa: T201 - its work
    except (DutperfError, IndexError, subprocess.SubprocessError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
