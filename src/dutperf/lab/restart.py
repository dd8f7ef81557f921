"""Restarts what forwards in the lab that is up: ``python -m dutperf.lab.restart``.

The hook ``during_trial`` of the labs whose device is not our own (RFC 6201 4.2, a reset
of software):

    TAYGA            its process is ended by force, and another one started
    nftables' NAT    rules and connections go, then the rules come back
    router           both interfaces go down and up, and its routes are set again
"""

from __future__ import annotations

import subprocess
import sys

from dutperf.commands import in_namespace
from dutperf.errors import DutperfError, SetupError
from dutperf.lab import nftables, processes, topology, translator
from dutperf.lab.devices import LABS, LabDevice
from dutperf.lab.devices.device import Translator
from dutperf.lab.state import LabState, Process, StateFile


def restart() -> str:
    """Does it; what was restarted.

    Raises:
        SetupError: no lab is up, or its device does not come back.
    """
    state = StateFile().read()
    if state is None:
        raise SetupError("no lab is up", "dutperf lab up NAME")
    device = LABS[state.device]
    if device.translator:
        _restart_process(device.translator, state)
        return "TAYGA was ended and started again"
    if device.tracking:
        _reload(device)
        return "nftables' rules and connections were deleted, and the rules loaded"
    topology.restart_links(device)
    return "both interfaces were set down and up, and the routes added"


def _restart_process(of: Translator, state: LabState) -> None:
    """The state names the new process before it runs: whatever dies, it is ended."""

    def record(process: Process) -> None:
        StateFile().write(state.model_copy(update={"processes": (process,)}))

    for process in state.processes:
        processes.end(process)
    translator.run(of, state.dut_cpu, StateFile().dut_directory, record)


def _reload(device: LabDevice) -> None:
    refused = nftables.replace(topology.DUT, [])
    if refused:
        raise SetupError(f"cannot delete the rules of {device.name}: {refused}")
    forget = in_namespace(topology.DUT, "conntrack", "-F")
    subprocess.run(forget, capture_output=True, check=True)
    topology.load_rules(device)


def main() -> None:
    """Do what the module says."""
    try:
        print(restart())  # noqa: T201 - its work
    except (DutperfError, subprocess.SubprocessError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
