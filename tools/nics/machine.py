"""The virtual machine: QEMU, in namespaces that are gone when it ends.

Its four NICs are of one model. The first two are cabled to each other; the others end
at taps, between which the kernel of QEMU's own network namespace routes. Whatever ends
this process ends QEMU, and nothing that it made has a name that could stay behind.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dutperf.errors import SetupError
from dutperf.lab.devices.virtual_machine import PROGRAM, accelerator
from tools.nics.image import DISK, INITRAMFS, KERNEL

FOLDER = Path("build/nic-lab")
"""Where ``make nic-lab`` puts it."""
LARGE_MTU: Final = 9000


@dataclass(frozen=True)
class Model:
    """A NIC as QEMU has it.

    Attributes:
        kernel_driver: of the guest's kernel.
        properties: beside those that all have.
        flow_control: it has Ethernet flow control that ethtool can set.
    """

    name: str
    kernel_driver: str
    properties: str = ""
    queues: int = 1
    flow_control: bool = False


MODELS: Final = {
    each.name: each
    for each in (
        Model("igb", "igb", flow_control=True),
        Model("e1000e", "e1000e", flow_control=True),
        Model("vmxnet3", "vmxnet3"),
        Model(
            "virtio-net-pci",
            "virtio-pci",
            # Else its DMA passes by the IOMMU.
            ",disable-legacy=on,iommu_platform=on,mq=on,vectors=10",
            queues=2,
        ),
    )
}
CABLE: Final = ("cable-left", "cable-right")
ROUTED: Final = ("left", "right")
"""What its netdevs are called."""
_MACS: Final = {
    name: f"02:00:00:00:01:0{n}" for n, name in enumerate((*CABLE, *ROUTED), start=1)
}
_INSIDE = "/mnt"
"""Where ``FOLDER`` is for QEMU."""
_SOCKETS = ("agent", "qmp")
_MEMORY_MB = 2560


def mac_of(netdev: str) -> str:
    """Of the guest's NIC there."""
    return _MACS[netdev]


def command(model: Model, fast: str) -> Iterator[str]:
    """QEMU's command line; ``fast``: kvm or tcg."""
    yield from (PROGRAM, "-nodefaults", "-no-user-config", "-display", "none")
    yield from ("-no-reboot", "-m", str(_MEMORY_MB), "-smp", "2")
    if fast == "kvm":
        yield from ("-accel", "kvm", "-cpu", "host,+invtsc")
        yield from ("-machine", "q35,kernel-irqchip=split")
    else:
        yield from ("-accel", "tcg,thread=multi", "-cpu", "max,la57=off")
        yield from ("-machine", "q35")
    # vfio-pci wants interrupts remapped, and changes of the guest's tables told.
    yield from ("-device", "intel-iommu,intremap=on,caching-mode=on")
    yield from ("-kernel", f"{_INSIDE}/{KERNEL}", "-initrd", f"{_INSIDE}/{INITRAMFS}")
    # By docs/real-nics.md: the tester's CPU is its own. The kernel's drivers pass by
    # the IOMMU (pt): once a mapping of virtio's was refused, and the NIC hung.
    words = (
        "console=ttyS0 quiet panic=-1 intel_iommu=on iommu=pt isolcpus=1 nohz_full=1"
    )
    yield from ("-append", words)
    disk = f"file={_INSIDE}/{DISK},format=raw,if=virtio,snapshot=on"
    yield from ("-drive", disk, "-serial", f"file:{_INSIDE}/console.log")
    for name in _SOCKETS:
        path = f"{_INSIDE}/{name}"
        yield from ("-chardev", f"socket,id={name},path={path},server=on,wait=off")
    yield from ("-serial", "chardev:agent", "-mon", "chardev=qmp,mode=control")
    several = f",queues={model.queues}" if model.queues > 1 else ""
    for name in CABLE:
        yield from ("-netdev", f"hubport,id={name},hubid=1")
    for name in ROUTED:
        tap = f"tap,id={name},ifname={name},script=no,downscript=no{several}"
        yield from ("-netdev", tap)
    # Each behind a port of its own, so it is alone in its IOMMU group.
    for number, (name, mac) in enumerate(_MACS.items(), start=1):
        port = f"pcie-root-port,id=port{number},chassis={number}"
        nic = f"{model.name},netdev={name},id=nic-{name},mac={mac},bus=port{number}"
        yield from ("-device", port, "-device", nic + model.properties)


def _router(model: Model) -> Iterator[str]:
    """The namespace's links and addresses, as commands of a shell."""
    several = " multi_queue" if model.queues > 1 else ""
    yield "ip link set lo up"
    yield "echo 1 >/proc/sys/net/ipv4/ip_forward"
    yield "echo 1 >/proc/sys/net/ipv6/conf/all/forwarding"
    for number, side in enumerate(ROUTED):
        yield f"ip tuntap add {side} mode tap vnet_hdr{several}"
        yield f"ip link set {side} mtu {LARGE_MTU} txqueuelen 10000"
        yield f"ip addr add 198.{18 + number}.1.1/24 dev {side}"
        yield f"ip addr add 2001:2:0:{number}::1/64 dev {side} nodad"
        yield f"ip link set {side} up"


def _script(model: Model, root: Path) -> str:
    """What runs in the new namespaces before QEMU takes its place."""
    inside = shlex.quote(str(root))
    lines = [
        "set -e",
        "mount --make-rprivate /",
        "mount -t sysfs sysfs /sys",
        *_router(model),
        f"mount --bind {inside} {inside}",
        f"mount -t proc proc {inside}/proc",
        f"mount --rbind /dev {inside}/dev",
        f"mount --bind {shlex.quote(str(FOLDER.resolve()))} {inside}{_INSIDE}",
        f'exec chroot {inside} "$@"',
    ]
    return "\n".join(lines)


class Line:
    """A socket on which each line is a JSON text."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(timeout_s)
        self._socket.connect(str(path))
        self._begun = b""

    def send(self, message: dict[str, Any]) -> None:
        """One line."""
        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, timeout_s: float) -> Any:  # noqa: ANN401 - what it says
        """The next line.

        Raises:
            SetupError: none comes.
        """
        self._socket.settimeout(timeout_s)
        while b"\n" not in self._begun:
            try:
                more = self._socket.recv(65536)
            except TimeoutError:
                more = b""
            if not more:
                raise SetupError(
                    f"the virtual machine said nothing for {timeout_s:.0f} s, "
                    "or has ended",
                    f"see {FOLDER}/console.log",
                )
            self._begun += more
        line, _, self._begun = self._begun.partition(b"\n")
        return json.loads(line)

    def close(self) -> None:
        """Leaves the other end alone."""
        self._socket.close()


@dataclass(frozen=True)
class Done:
    """What became of a command."""

    code: int
    out: str
    err: str


class Machine:
    """A running one; see ``running``."""

    def __init__(self, qemu: subprocess.Popen[str], boot_s: float) -> None:
        self._qemu = qemu
        self._agent = Line(_wait_for(FOLDER / "agent", qemu), boot_s)
        self._agent.receive(boot_s)
        self._asked = 0
        self._qmp = Line(FOLDER / "qmp", 10)
        self._qmp.receive(10)
        self.ask_qemu("qmp_capabilities")

    def run(self, command: str, timeout_s: float = 120) -> Done:
        """``command`` by the guest's shell."""
        self._asked += 1
        self._agent.send(
            {"number": self._asked, "command": command, "timeout_s": timeout_s}
        )
        while True:
            said = self._agent.receive(timeout_s + 60)
            if said.pop("number") == self._asked:  # not of one that was given up
                return Done(**said)

    def ask_qemu(self, command: str, /, **arguments: object) -> Any:  # noqa: ANN401
        """A command of its monitor.

        Raises:
            SetupError: refused.
        """
        self._qmp.send({"execute": command, "arguments": arguments})
        while True:
            said = self._qmp.receive(30)
            if "error" in said:
                raise SetupError(f"QEMU refuses {command}: {said['error']['desc']}")
            if "return" in said:
                return said["return"]

    def set_cable(self, *, up: bool) -> None:
        """Plugs or pulls the cable."""
        for name in CABLE:
            self.ask_qemu("set_link", name=name, up=up)

    @contextmanager
    def capturing(self, netdevs: tuple[str, str]) -> Iterator[list[Path]]:
        """What passes by, on both sides, in files of tcpdump."""
        paths = [FOLDER / f"{name}.pcap" for name in netdevs]
        for name in netdevs:
            file = f"{_INSIDE}/{name}.pcap"
            kind = {"qom-type": "filter-dump"}
            self.ask_qemu(
                "object-add", **kind, id=f"dump-{name}", netdev=name, file=file
            )
        try:
            yield paths
        finally:
            for name in netdevs:
                self.ask_qemu("object-del", id=f"dump-{name}")

    def in_router(self, command: str) -> str:
        """By a shell in QEMU's network namespace.

        Raises:
            SetupError: it fails.
        """
        children = Path(f"/proc/{self._qemu.pid}/task/{self._qemu.pid}/children")
        first = children.read_text("ascii").split()[0]
        words = ["nsenter", "-t", first, "-n", "sh", "-ec", command]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SetupError(f"the router refuses {command}: {done.stderr.strip()}")
        return done.stdout

    def close(self) -> None:
        """Before QEMU is ended."""
        self._agent.close()
        self._qmp.close()


def _wait_for(path: Path, qemu: subprocess.Popen[str]) -> Path:
    for _ in range(300):
        if path.exists():
            return path
        if qemu.poll() is not None:
            break
        time.sleep(0.1)
    said = (FOLDER / "qemu.log").read_text("utf-8", errors="replace").strip()
    raise SetupError(f"QEMU does not start: {said}")


@contextmanager
def running(model: Model, boot_s: float = 300) -> Iterator[Machine]:
    """The machine with NICs of ``model``, booted; ended at the end.

    Raises:
        SetupError: it was not made, another runs, or it does not boot.
    """
    if os.geteuid() != 0:
        raise SetupError("the lab of NICs makes namespaces", "run as root")
    if not (FOLDER / DISK).exists():
        raise SetupError(f"{FOLDER} has no virtual machine", "make it: make nic-lab")
    with ExitStack() as stack:
        lock = stack.enter_context((FOLDER / "lock").open("w"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SetupError(f"another process uses {FOLDER}") from error
        for name in _SOCKETS:
            (FOLDER / name).unlink(missing_ok=True)
        log = stack.enter_context((FOLDER / "qemu.log").open("w"))
        ending = ["setpriv", "--pdeathsig", "KILL", "--"]
        alone = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child"]
        script = _script(model, (FOLDER / "maker").resolve())
        qemu = subprocess.Popen(
            [*ending, *alone, "sh", "-c", script, "-", *command(model, accelerator())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            text=True,
        )
        stack.callback(qemu.wait)
        stack.callback(qemu.kill)
        machine = Machine(qemu, boot_s)
        stack.callback(machine.close)
        yield machine
