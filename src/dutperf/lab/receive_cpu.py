"""The tester's receive work in a lab: on a CPU of its own, where there is one.

    DUT's CPU:       forwards --> queue of its interface --> ring of the tester's
    receive CPU:                                             ring --> tester's socket

A veth device hands a frame to its peer's receive side on the CPU that sends it, so the
DUT pays for the tester's sockets. With GRO on, its peer has a ring and a NAPI context
instead, and that one may be a thread. Test frames are not merged by it: nothing that
is forwarded here is TCP, and no socket asks for merged UDP. The peer uses the ring only
where the sender cannot cut segments, so that is switched off at the DUT's end.

The ring is short (256 frames). Since Linux 6.16 a full one stops the sender's queue, if
it has one; before, the frame is dropped, and counted at the DUT's interface. Either way
what is lost there is lost by the tester, so ``sent`` counts what it should receive.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dutperf.errors import SetupError
from dutperf.lab import topology
from dutperf.lab.devices.device import LabDevice
from dutperf.lab.state import PROC, named
from dutperf.programs import in_namespace

NICE = -20
"""As the thread that serves the DUT's input queue: see ``input_queue``."""


def move(device: LabDevice, cpu: int) -> bool:
    """Has the tester's receive work done by ``cpu``; False: this kernel cannot.

    May be said again, and has to be once another driver had the interfaces: a program
    that leaves one takes its ring away.
    """
    _set_rings(device, on=False)
    ends = list(device.homes)
    # Those of other namespaces have the same names.
    others = threads(ends)
    moved = _set_rings(device, on=True) and _set_threaded(device.tester, ends, on=True)
    own = threads(ends) - others
    if not moved or len(own) != len(ends):
        _set_rings(device, on=False)
        return False
    for pid in own:
        os.sched_setaffinity(pid, {cpu})
        os.setpriority(os.PRIO_PROCESS, pid, NICE)
    return True


@contextmanager
def left_to_the_device(own_name: str | None = None) -> Iterator[None]:
    """In the block the DUT's CPU does it again: for comparison, of two wires.

    ``own_name``: of several labs, which one; None: the nameless one.
    """
    tester = named(topology.TESTER, own_name)
    _set_threaded(tester, topology.SIDES, on=False)
    try:
        yield
    finally:
        _set_threaded(tester, topology.SIDES, on=True)


def sent(device: LabDevice) -> dict[str, int]:
    """Frames that the DUT has sent to each of the tester's ports so far, by its name.

    By the queues before its wires: what left them, waits in them, or was dropped there.
    """
    queues = {
        (home, queue["dev"]): queue
        for home in device.namespaces
        for queue in _queues(home)
    }
    return {
        port.label: queues[end]["packets"] + queues[end]["drops"] + queues[end]["qlen"]
        for port, end in (
            (port, (device.homes[name], name))
            for name, port in device.tester_ports.items()
        )
        if end in queues
    }


def _queues(namespace: str) -> list[dict[str, Any]]:
    command = in_namespace(namespace, "tc", "-s", "-j", "qdisc", "show")
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    queues: list[dict[str, Any]] = json.loads(told.stdout or "[]")
    return queues


def _set_rings(device: LabDevice, *, on: bool) -> bool:
    """What the DUT sends goes to a ring; else up to the sockets at once."""
    return all(
        _set_feature(home, end, "tso", on=not on)
        and _set_feature(device.tester, end, "gro", on=on)
        for end, home in device.homes.items()
    )


def _set_feature(namespace: str, end: str, name: str, *, on: bool) -> bool:
    command = ["ethtool", "-K", end, name, "on" if on else "off"]
    done = subprocess.run(
        in_namespace(namespace, *command), capture_output=True, check=False
    )
    return done.returncode == 0


def _set_threaded(tester: str, ends: Sequence[str], *, on: bool) -> bool:
    settings = {f"/sys/class/net/{end}/threaded": str(int(on)) for end in ends}
    try:
        topology.write_settings(tester, settings)
    except SetupError:
        return False
    return True


def threads(ends: Sequence[str] = topology.SIDES) -> set[int]:
    """The kernel's threads that serve an interface of such a name anywhere."""
    found = set()
    for entry in PROC.iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                name = (entry / "comm").read_text("ascii", errors="replace")
                if name.startswith(tuple(f"napi/{end}-" for end in ends)):
                    found.add(int(entry.name))
    return found
