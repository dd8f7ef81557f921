"""What is asked of the device of the lab that is up, and what it is told.

As a program it is run by hooks of the labs whose device is the kernel:

    python -m dutperf.lab.orders STATE restart    restarts what forwards
    python -m dutperf.lab.orders STATE cores N    steers what arrives to N CPUs
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from dutperf.errors import DutperfError, InputError, SetupError
from dutperf.lab import device_cpu, machine, netns, presence
from dutperf.lab.devices import LABS, device_of, gateways
from dutperf.lab.devices.device import LabDevice
from dutperf.lab.devices.known_answer import KNOWN_ANSWER, log_of
from dutperf.lab.devices.nftables import SHOWN, Tracking, with_limit
from dutperf.lab.processes import CpuPlan, Process, Programs, dut_cpus, rps_mask
from dutperf.lab.refdut_socket import KnownAnswer, control_socket
from dutperf.lab.state import LabState, StateFile


def watch_device(own_name: str | None = None) -> device_cpu.DeviceCpuWatch | None:
    """Watches the CPU of the device of the lab that is up, where it has one.

    ``own_name``: of several labs, which one; None: the nameless one. So below.
    """
    file = StateFile(name=own_name)
    state = file.read()
    if state is None or state.dut_cpu is None:
        return None
    device = device_of(state)
    threads = device.kernel_threads(state.dut_cpu)
    apart = state.receive_cpu is not None
    return device_cpu.DeviceCpuWatch(
        state.dut_cpu,
        lambda: [*threads, *_processes(file)],
        device.queue_frames(),
        drops=partial(device.drops, sent=not apart),
        sent=partial(device_cpu.frames_sent, device) if apart else dict,
        own_frames=partial(device.own_frames, file.dut_directory),
    )


def _processes(file: StateFile) -> list[int]:
    """The device's own as it is now: one that was restarted has others."""
    state = file.read()
    return [process.pid for process in state.processes] if state else []


def cpu_of_device(own_name: str | None = None) -> int | None:
    """Where the device of the lab that is up works; None: on the tester's own CPU."""
    state = StateFile(name=own_name).read()
    return state.dut_cpu if state else None


def restart(file: StateFile) -> str:
    """Restarts what forwards in the lab of ``file``; what that was.

    The state names each new process before it runs: whatever dies, it is ended.

    Raises:
        SetupError: it is not up, or its device does not come back.
    """
    state, device = _up(file)
    started: list[Process] = []

    def record(process: Process) -> None:
        started.append(process)
        file.write(replace(state, processes=tuple(started)))

    programs = Programs(state.dut_cpu, file.dut_directory, record)
    return device.restarts(device, state.processes, programs)


def set_cores(number: int, file: StateFile = StateFile()) -> list[int]:  # noqa: B008 - it is frozen
    """Steers what arrives in the lab of ``file`` to so many CPUs; which they are.

    By a hash of addresses and ports (RPS), to the first of those that the tester does
    not need.

    Raises:
        InputError: the device cannot have so many.
        SetupError: no lab is up, or the kernel refuses.
    """
    with file.locked():
        state, device = _up(file)
        cpus = _spare(file, state)
        if not 1 <= number <= len(cpus):
            raise InputError(
                f"the lab's device cannot have {number} CPUs of its own: "
                f"{len(cpus)} can be spared here",
                "take numbers up to that, or a machine with more CPUs",
            )
        own, more = cpus[:number], tuple(cpus[1:number])
        file.write(replace(state, more_dut_cpus=more))
    for namespace, wires in device.interfaces.items():
        settings = {netns.steering_path(wire): rps_mask(*own) for wire in wires}
        netns.write_settings(namespace, settings)
    return own


def _up(file: StateFile) -> tuple[LabState, LabDevice]:
    state = file.read()
    if state is None:
        raise SetupError("no lab is up", "dutperf lab up NAME")
    return state, device_of(state)


def _spare(file: StateFile, state: LabState) -> list[int]:
    """Those that neither the tester nor anybody else has, the device's own first."""
    (worker, *_), main = state.tester_cores, state.testbed_keys["main_core"]
    plan = CpuPlan(
        worker=worker,
        dut=state.dut_cpu,
        main=worker if main is None else main,
        receive=state.receive_cpu,
    )
    others = set() if state.shares_cpus else presence.holders(file).keys()
    usable = os.sched_getaffinity(0) - (others - state.device_cpus - state.tester_cpus)
    return dut_cpus(plan, usable)


def limit_connections(
    connections: int | None, udp_timeout_s: int | None, own_name: str | None = None
) -> str:
    """Gives the gateway that is up another table or timeout; what it has then.

    The machine's own limit comes back when the lab goes.

    Raises:
        SetupError: no lab with the kernel's connection tracking is up; or another one
            is, too, which has the same table.
    """
    file = StateFile(name=own_name)
    with file.locked():
        state = file.read()
        tracking = LABS[state.device].tracking if state else None
        if state is None or tracking is None or not presence.is_whole(state):
            raise SetupError(
                "no lab is up whose kernel keeps connections",
                f"dutperf lab up NAME, with one of: {', '.join(gateways())}",
            )
        gateway = device_of(state).namespaces[-1]
        if connections is not None:
            check_limit(file, Tracking(connections))
            settings = with_limit(state.settings, connections)
            file.write(replace(state, settings=settings))
            machine.change_settings(settings)
        if udp_timeout_s is not None:
            replace(tracking, udp_timeout_s=udp_timeout_s).set_timeouts(gateway)
    shown = netns.read_settings(gateway, SHOWN)
    return "\n".join(f"{Path(path).name} {value}" for path, value in shown.items())


def check_limit(file: StateFile, tracking: Tracking | None) -> None:
    """The machine has one limit of connections, for the gateways of all labs.

    Raises:
        SetupError: another lab's gateway would get this one, too.
    """
    there = presence.others(file)
    keeping = [s.title for _, s in there if LABS[s.device].tracking]
    if tracking and keeping and tracking.needs():
        raise SetupError(
            f"the kernel has one limit of connections for all labs, and lab "
            f"{keeping[0]} would get {tracking.connections:,}, too",
            "take that one down first, see 'dutperf lab status'",
        )


def known_answer_device(own_name: str | None = None) -> KnownAnswer:
    """The device of the known-answer lab that is up: for orders and its account.

    Raises:
        SetupError: that lab is not up.
    """
    file = StateFile(name=own_name)
    state = file.read()
    if state is None:
        reason = "no lab is up" if file.name is None else f"no lab {file.name} is up"
    elif LABS[state.device].takes != KNOWN_ANSWER.takes:
        reason = f"the lab that is up is {state.device}"
    elif not presence.is_whole(state):
        reason = f"it has ended; its last words are in {log_of(file.dut_directory)}"
    else:
        return KnownAnswer(control_socket(file.dut_directory))
    raise SetupError(
        f"the known-answer device is not running: {reason}",
        f"dutperf lab down; dutperf lab up {KNOWN_ANSWER.name}",
    )


def main(state: str, order: str, number: str = "") -> None:
    """Do what the module says."""
    file = StateFile.at(Path(state))
    try:
        if order == "restart":
            told = restart(file)
        else:
            cpus = set_cores(int(number), file)
            told = f"steered to CPU {', '.join(map(str, cpus))}"
    except (DutperfError, ValueError, subprocess.SubprocessError) as error:
        sys.exit(f"error: {error}")
    print(told)  # noqa: T201 - its work


if __name__ == "__main__":
    main(*sys.argv[1:])
