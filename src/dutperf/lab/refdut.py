"""dutperf-refdut as the DUT: its process, its first orders."""

from __future__ import annotations

import ipaddress
import json
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dutperf.config.labs import IN_FLIGHT_FRAMES
from dutperf.config.side import InterfacePort, MemifPort, Port
from dutperf.errors import InputError, SetupError
from dutperf.lab import own_queue, processes
from dutperf.lab.cpus import CpuPlan
from dutperf.lab.devices.device import LabDevice
from dutperf.lab.refdut_socket import Behaviour, KnownAnswer, control_socket
from dutperf.lab.state import Process
from dutperf.programs import find_engine

PROGRAM = "dutperf-refdut"
RING_FRAMES = 4096
"""Of a port in shared memory, on the device's side as on ours: engine/src/dpdk."""


def ring_frames(device: LabDevice) -> int:
    """How many frames wait in front of the device without being lost."""
    return IN_FLIGHT_FRAMES if device.wired else RING_FRAMES


def log_of(directory: Path) -> Path:
    """Its log; not among its files, as it outlives the lab, until the next one."""
    return directory.parent / "known-answer.log"


def check_program() -> Path:
    """The program of the engine's own build.

    Raises:
        SetupError: it has not been built.
    """
    program = find_engine().with_name(PROGRAM)
    if not program.is_file():
        raise SetupError(
            f"the program {PROGRAM} is not found beside the engine, in "
            f"{program.parent}",
            "build it: run 'make setup' in dutperf's source tree",
        )
    return program


def start(
    device: LabDevice,
    cpus: CpuPlan,
    directory: Path,
    record: Callable[[Process], None],
) -> None:
    """Starts it as a router with the device's addresses and waits until it answers.

    ``directory`` takes its sockets. ``record`` is called before it runs; it goes on
    after this process has ended.

    Raises:
        SetupError: it did not start; says what it said.
    """
    config = directory / "behaviour.json"
    config.write_text(
        json.dumps({"routing": _routing(device), **device.behaviour}), "utf-8"
    )
    log = log_of(directory)
    log.unlink(missing_ok=True)
    control = control_socket(directory)
    own_queue.note(control, device.behaviour)
    process = processes.start(
        [
            str(check_program()),
            *(
                f"--{port.side}={_port(port.config.port)}"
                for port in device.tester_ports.values()
            ),
            f"--config={config}",
            f"--control={control}",
            f"--mtu={max(device.left.port.mtu, device.right.port.mtu)}",
            f"--cpu={cpus.worker if cpus.dut is None else cpus.dut}",
        ],
        namespace=device.namespaces[0],
        cpu=cpus.dut,
        log=log,
        record=record,
    )
    processes.await_start(
        process,
        lambda: _listens(control),
        "the known-answer device",
        log,
        "it needs the memory that dutperf-engine needs, and root",
    )


def check(behaviour: Behaviour) -> None:
    """Has the program read ``behaviour``, and do nothing; needs no root.

    Raises:
        InputError: it is no behaviour; says what the program said.
        SetupError: it has not been built.
    """
    told = json.dumps(behaviour)
    done = subprocess.run(
        [str(check_program()), "--check"],
        input=told,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return
    message, _, hint = done.stderr.strip().partition("\nhint: ")
    raise InputError(
        f"behaviour: {message.removeprefix('error: ')}",
        hint or "docs/known-answer.md describes every key",
    )


def tell(directory: Path, behaviour: Behaviour) -> None:
    """Configures the device; its routing stays unless ``behaviour`` says otherwise.

    Raises:
        InputError: it is no behaviour.
        SetupError: the device does not answer.
    """
    KnownAnswer(control_socket(directory)).configure(behaviour)


def _routing(device: LabDevice) -> dict[str, Any]:
    """Its own addresses by port; of a side's further ports in lists of their own."""
    own = {
        end: [str(ipaddress.ip_interface(text).ip) for text in device.addresses[end]]
        for end in device.tester_ports
    }
    found: dict[str, Any] = {}
    for end, port in device.tester_ports.items():
        if port.number:
            found.setdefault(f"more_{port.side}", []).append(own[end])
        else:
            found[port.side] = own[end]
    return found


def _port(port: Port) -> str:
    """Its own end; interfaces have the same name at both ends of a wire."""
    if isinstance(port, MemifPort):
        return f"memif:{port.memif}"
    assert isinstance(port, InterfacePort), "the lab's own devices have no others"  # noqa: S101
    return f"af_packet:{port.interface}"


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(str(path)) == 0
