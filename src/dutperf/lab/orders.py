"""What is asked of the device of the lab that is up, and what it is told."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from dutperf.errors import SetupError
from dutperf.lab import device_cpu, machine, netns, refdut_socket
from dutperf.lab.device_cpu import DeviceCpuWatch
from dutperf.lab.devices import (
    LABS,
    device_of,
    known_answer,
    nftables,
    open_vswitch,
    translators,
    virtual_machine,
)
from dutperf.lab.devices.known_answer import KNOWN_ANSWER
from dutperf.lab.presence import is_whole, others
from dutperf.lab.refdut_socket import KnownAnswer, control_socket
from dutperf.lab.state import LabState, StateFile


def watch_device(own_name: str | None = None) -> DeviceCpuWatch | None:
    """Watches the CPU of the device of the lab that is up, where it has one.

    ``own_name``: of several labs, which one; None: the nameless one. So below.
    """
    file = StateFile(name=own_name)
    state = file.read()
    if state is None or state.dut_cpu is None:
        return None
    device = device_of(state)
    own_processes = partial(_processes, file)
    apart = state.receive_cpu is not None
    sent = partial(device_cpu.frames_sent, device) if apart else dict
    if device.answers:
        control = control_socket(file.dut_directory)
        return DeviceCpuWatch(
            state.dut_cpu,
            own_processes,
            known_answer.ring_frames(device),
            sent=sent,
            own_frames=partial(refdut_socket.queue_told, control),
        )
    if device.rules:
        return DeviceCpuWatch(state.dut_cpu, own_processes, open_vswitch.RING_FRAMES)
    if device.guest:
        return DeviceCpuWatch(state.dut_cpu, own_processes, virtual_machine.RING_FRAMES)
    thread = machine.server_of(state.dut_cpu)
    frames = [machine.queue_length() or machine.QUEUE_FRAMES]
    for home, each in device.translators.items():
        frames.append(translators.queue_frames(each, home))
    threads = [] if thread is None else [thread.pid]
    return DeviceCpuWatch(
        state.dut_cpu,
        lambda: [*threads, *own_processes()],
        min(frames),
        drops=partial(device_cpu.drops, device, sent=not apart),
        sent=sent,
    )


def _processes(file: StateFile) -> list[int]:
    """The device's own as it is now: one that was restarted has others."""
    state = file.read()
    return [process.pid for process in state.processes] if state else []


def cpu_of_device(own_name: str | None = None) -> int | None:
    """Where the device of the lab that is up works; None: on the tester's own CPU."""
    state = StateFile(name=own_name).read()
    return state.dut_cpu if state else None


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
        if state is None or not LABS[state.device].tracking or not is_whole(state):
            gateways = [name for name, device in LABS.items() if device.tracking]
            raise SetupError(
                "no lab is up whose kernel keeps connections",
                f"dutperf lab up NAME, with one of: {', '.join(gateways)}",
            )
        gateway = device_of(state).namespaces[-1]
        if connections is not None:
            check_limit(file, connections)
            settings = nftables.with_limit(state.settings, connections)
            file.write(state.model_copy(update={"settings": settings}))
            machine.change_settings(settings)
        if udp_timeout_s is not None:
            netns.write_settings(gateway, nftables.timeouts(udp_timeout_s))
    shown = netns.read_settings(gateway, nftables.SHOWN)
    return "\n".join(f"{Path(path).name} {value}" for path, value in shown.items())


def check_limit(file: StateFile, connections: int) -> None:
    """The machine has one limit of connections, for the gateways of all labs.

    Raises:
        SetupError: another lab's gateway would get this one, too.
    """
    gateways = [s.title for _, s in others(file) if LABS[s.device].tracking]
    if gateways and nftables.settings_for(connections):
        raise SetupError(
            f"the kernel has one limit of connections for all labs, and lab "
            f"{gateways[0]} would get {connections:,}, too",
            "take that one down first, see 'dutperf lab status'",
        )


def known_answer_device(own_name: str | None = None) -> KnownAnswer:
    """The device of the known-answer lab that is up: for orders and its account.

    Raises:
        SetupError: that lab is not up.
    """
    file = StateFile(name=own_name)
    state = file.read()
    if state is None or not LABS[state.device].answers or not is_whole(state):
        raise SetupError(
            f"the known-answer device is not running: {_instead(file, state)}",
            f"dutperf lab down; dutperf lab up {KNOWN_ANSWER.name}",
        )
    return KnownAnswer(control_socket(file.dut_directory))


def _instead(file: StateFile, state: LabState | None) -> str:
    """Why no device answers."""
    if state is None:
        return "no lab is up" if file.name is None else f"no lab {file.name} is up"
    if not LABS[state.device].answers:
        return f"the lab that is up is {state.device}"
    log = known_answer.log_of(file.dut_directory)
    return f"it has ended; its last words are in {log}"
