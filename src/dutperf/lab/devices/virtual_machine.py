"""``linux-vm``: a virtual machine as the device, the kernel's own forwarding in it.

    tester                                    guest of QEMU
    198.18.0.2     left  == vhost-user == left  198.18.0.1/24    2001:2::1/64
    198.19.0.2     right == vhost-user == right 198.19.0.1/24    2001:2:0:8000::1/64

Behind the tester's address on each side are all networks of RFC 2544 C.2.2 and RFC 5180
8, by one route. QEMU has the sockets and the tester connects to them, so either may go
and come again: without the tester the guest's links are down.

The guest has the memory that the rings are in; what finds no room in them is its loss.
"""

from __future__ import annotations

import os
import shlex
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from dutperf.config.side import Ipv4Side, Ipv6Side, SideConfig, VdevPort
from dutperf.config.testbed import DeviceFacts
from dutperf.errors import SetupError
from dutperf.lab import netns, topology, vm_image
from dutperf.lab.devices.device import (
    LEFT_IPV4,
    LEFT_IPV6,
    RIGHT_IPV4,
    RIGHT_IPV6,
    LabDevice,
    ProgramDevice,
)
from dutperf.lab.devices.linux import LINUX_ROUTER, ROUTER_SYSCTLS
from dutperf.lab.processes import PROC, CpuPlan, Programs
from dutperf.lab.state import StateFile
from dutperf.protocol.base import Side

RUN = "vm"
"""Where the virtual machine has its files, below the DUT's directory."""
RING_FRAMES = 1024
"""Of each port, as many as QEMU has for vhost-user."""


def socket_name(side: Side) -> str:
    """Of the file of that port's socket."""
    return f"{side}.sock"


def _side(side: Side, ipv4: Ipv4Side, ipv6: Ipv6Side) -> SideConfig:
    socket = StateFile().dut_directory / RUN / socket_name(side)
    port = VdevPort(vdev=f"net_vhost,iface={socket},queues=1,client=1")
    return SideConfig(port=port, ipv4=ipv4, ipv6=ipv6)


# The first answer to a virtual machine: a vhost-user back end that moves no frame.
#
# QEMU does not start its guest before somebody has answered at each of its vhost-user
# sockets, and the guest gets those features that were offered there. The tester, which
# moves the frames, comes later, and anew for each run. So what is offered here is no
# more than DPDK's back end has, and no offload: a frame is to leave the guest as it is
# sent.
#
# QEMU's documentation (interop/vhost-user) describes the messages: a header of three
# 32-bit numbers (request, flags, size), then as many bytes.


_HEADER = struct.Struct("<III")
_NUMBER = struct.Struct("<Q")
_RING_STATE = struct.Struct("<II")
_VERSION = 1
_REPLY = 1 << 2
_MOST_FILES = 16
_MOST_BYTES = 4096
_ANSWER_S = 1.0

GET_FEATURES = 1
GET_RING_BASE = 11
GET_PROTOCOL_FEATURES = 15

_MERGED_BUFFERS = 1 << 15  # VIRTIO_NET_F_MRG_RXBUF
_INDIRECT = 1 << 28  # VIRTIO_F_INDIRECT_DESC
_EVENT_INDEX = 1 << 29  # VIRTIO_F_EVENT_IDX
_PROTOCOL_FEATURES = 1 << 30  # VHOST_USER_F_PROTOCOL_FEATURES
_VERSION_1 = 1 << 32  # VIRTIO_F_VERSION_1
FEATURES = _MERGED_BUFFERS | _INDIRECT | _EVENT_INDEX | _PROTOCOL_FEATURES | _VERSION_1


class Greeting:
    """A connection to each of QEMU's sockets, until ``close``."""

    def __init__(self, paths: Sequence[Path]) -> None:
        """``paths``: of the sockets, which need not be there yet."""
        self._missing = list(paths)
        self._connections: list[socket.socket] = []

    def answer(self) -> None:
        """Answers all that was asked since the last time; does not wait for more.

        Raises:
            OSError: QEMU broke off.
        """
        while self._missing and (connection := _connected(self._missing[0])):
            self._connections.append(connection)
            self._missing.pop(0)
        for connection in self._connections:
            with suppress(BlockingIOError):
                while answer_one(connection):
                    pass

    def close(self) -> None:
        """Goes; QEMU waits for the next one, and the guest's links are down."""
        for connection in self._connections:
            connection.close()


def answer_one(connection: socket.socket) -> bool:
    """Answers one message, if it wants an answer; False: there is no further one.

    Raises:
        BlockingIOError: there is none yet.
    """
    # The guest's memory and its events come as files; nobody here wants them.
    connection.setblocking(False)
    header, files, _, _ = socket.recv_fds(connection, _HEADER.size, _MOST_FILES)
    for file in files:
        os.close(file)
    if len(header) < _HEADER.size:
        return False
    connection.settimeout(_ANSWER_S)
    request, _, size = _HEADER.unpack(header)
    content = connection.recv(min(size, _MOST_BYTES)) if size else b""
    reply = _reply(request, content)
    if reply is not None:
        flags = _VERSION | _REPLY
        connection.sendall(_HEADER.pack(request, flags, len(reply)) + reply)
    return True


def _reply(request: int, content: bytes) -> bytes | None:
    if request == GET_FEATURES:
        return _NUMBER.pack(FEATURES)
    if request == GET_PROTOCOL_FEATURES:
        return _NUMBER.pack(0)
    if request == GET_RING_BASE:
        ring, _ = _RING_STATE.unpack(content)
        return _RING_STATE.pack(ring, 0)
    return None


def _connected(path: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        return None
    return connection


PROGRAM = "qemu-system-x86_64"
PACKAGE = "qemu-system-x86"
_MEMORY_MB = 128
_MACS: dict[Side, str] = {"left": "02:00:00:00:01:01", "right": "02:00:00:00:01:02"}
_KVM = Path("/dev/kvm")
_ADDRESS = "/sys/class/net/*/address"


def accelerator(kvm: Path = _KVM, proc: Path = PROC) -> str:
    """``kvm`` where the CPU and this process can, or ``tcg``: QEMU's own emulation."""
    lines = (proc / "cpuinfo").read_text("utf-8", errors="replace").splitlines()
    flags = next((line for line in lines if line.startswith("flags")), "").split()
    # A hypervisor may show /dev/kvm without what an unchanged guest needs.
    able = {"vmx", "svm"} & set(flags) and os.access(kvm, os.R_OK | os.W_OK)
    return "kvm" if able else "tcg"


def _way() -> str:
    return {"kvm": "KVM", "tcg": "software emulation"}[accelerator()]


def _release() -> str | None:
    try:
        return vm_image.find().release
    except SetupError:
        return None


class VirtualMachine(ProgramDevice):
    """QEMU, whose guest's kernel has the addresses and networks."""

    ring_frames: ClassVar[int] = RING_FRAMES

    def check_programs(self, _cpus: CpuPlan) -> None:
        """QEMU, and the guest's image."""
        netns.check_program(PROGRAM, PACKAGE)
        vm_image.find()

    def software(self, *, now: bool = False) -> list[str]:  # noqa: ARG002
        """With the guest's kernel, and what it runs on."""
        release = _release() or "unknown: no image is made"
        return [self.description, f"kernel {release}, {_way()}"]

    def facts(self, cpus: CpuPlan) -> DeviceFacts:
        """Of the guest."""
        computer = super().facts(cpus)
        shared = (
            "the tester's"
            if cpus.dut is None
            else f"CPU {cpus.dut} of the tester's computer"
        )
        return DeviceFacts(
            computer=f"virtual machine of QEMU, {_way()}",
            cpu=computer.cpu,
            cores=f"1, {shared}",
            memory=f"{_MEMORY_MB} MiB",
            nic="virtio-net, vhost-user",
            link="direct",
            os="Linux, an initramfs with busybox",
            kernel=_release(),
        )

    def start(self, cpus: CpuPlan, programs: Programs) -> None:  # noqa: ARG002
        """Starts it and waits until its guest is ready, its links down.

        Raises:
            SetupError: it does not start; says what it said last.
        """
        run = programs.directory / RUN
        run.mkdir()
        image = vm_image.find()
        own = {vm_image.CONFIGURE: configuration(self).encode("ascii")}
        initramfs = image.initramfs.read_bytes() + vm_image.archive(own)
        (run / "initramfs").write_bytes(initramfs)
        log = run / "log"
        greeting = Greeting([run / socket_name(side) for side in netns.SIDES])
        try:
            programs.start(
                list(_command(image.kernel, run)),
                lambda: _is_ready(greeting, log),
                namespace=self.namespaces[0],
                name="the virtual machine",
                log=log,
                hint=f"it is QEMU, of the Debian package {PACKAGE}, and the image that "
                "'make vm-image' makes",
            )
        finally:
            greeting.close()


def _command(kernel: Path, run: Path) -> Iterator[str]:
    """All of QEMU's command line."""
    fast = accelerator()
    yield from (PROGRAM, "-name", "dutperf", "-accel", fast)
    if fast == "kvm":
        yield from ("-cpu", "host")
    yield from ("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot")
    # The tester reads and writes the rings in the guest's memory.
    memory = f"memory-backend-memfd,id=memory,size={_MEMORY_MB}M,share=on"
    yield from ("-object", memory, "-machine", "q35,memory-backend=memory")
    yield from ("-m", str(_MEMORY_MB), "-serial", "stdio")
    yield from ("-kernel", str(kernel), "-initrd", str(run / "initramfs"))
    yield from ("-append", "console=ttyS0 quiet panic=-1")
    for side, mac in _MACS.items():
        path = run / socket_name(side)
        yield from ("-chardev", f"socket,id={side},path={path},server=on,wait=off")
        yield from ("-netdev", f"vhost-user,id={side},chardev={side},queues=1")
        queues = f"rx_queue_size={RING_FRAMES},tx_queue_size={RING_FRAMES}"
        # QEMU 7.2 without KVM crashes when vhost-user is to raise MSI-X interrupts.
        vectors = [] if fast == "kvm" else ["vectors=0"]
        nic = ["virtio-net-pci", f"netdev={side}", f"mac={mac}", queues, *vectors]
        yield from ("-device", ",".join(nic))


def configuration(device: LabDevice) -> str:
    """What the guest does when it starts, as a shell script of busybox."""
    alone = CpuPlan(worker=0, dut=None, main=0)
    sides: Sequence[Side] = netns.SIDES
    lines = [*map(_naming_command, sides)]
    settings = topology.kernel_settings(device, sides, alone)
    lines += [f"echo {shlex.quote(v)} >{path}" for path, v in settings.items()]
    for side in sides:
        lines += [f"ip addr add {own} dev {side}" for own in device.addresses[side]]
    lines += [f"ip link set {name} up" for name in ("lo", *sides)]
    for side in sides:
        lines += [f"ip {command}" for command in topology.told(device, side)]
    return "".join(f"{line}\n" for line in lines)


def _naming_command(side: Side) -> str:
    """Calls the interface with the MAC address of that side by the side's name."""
    found = f"$(grep -l {_MACS[side]} {_ADDRESS} | cut -d/ -f5)"
    return f"ip link set {found} name {side}"


def _is_ready(greeting: Greeting, log: Path) -> bool:
    """Until then its sockets want somebody who answers."""
    if vm_image.READY in log.read_text("utf-8", errors="replace").splitlines():
        return True
    greeting.answer()
    return False


LINUX_VM = VirtualMachine(
    name="linux-vm",
    description="Linux as a router in a virtual machine of QEMU, vhost-user",
    addresses=LINUX_ROUTER.addresses,
    left=_side(
        "left",
        LEFT_IPV4,
        LEFT_IPV6,
    ),
    right=_side(
        "right",
        RIGHT_IPV4,
        RIGHT_IPV6,
    ),
    sysctls=ROUTER_SYSCTLS,
    networks={
        "left": ("198.18.0.0/16", "2001:2::/49"),
        "right": ("198.19.0.0/16", "2001:2:0:8000::/49"),
    },
)
