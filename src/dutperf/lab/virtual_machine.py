"""A virtual machine as the DUT: QEMU, its guest's image and how that is configured."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from dutperf.config.testbed import DeviceFacts
from dutperf.errors import SetupError
from dutperf.lab import processes, topology, vm_image
from dutperf.lab.cpus import CpuPlan
from dutperf.lab.devices.device import LabDevice
from dutperf.lab.devices.linux_vm import RING_FRAMES, RUN, socket_name
from dutperf.lab.state import PROC, Process
from dutperf.lab.vhost_greeting import Greeting
from dutperf.protocol import Side

PROGRAM = "qemu-system-x86_64"
PACKAGE = "qemu-system-x86"
_MEMORY_MB = 128
_MACS: dict[Side, str] = {"left": "02:00:00:00:01:01", "right": "02:00:00:00:01:02"}
_KVM = Path("/dev/kvm")
_ADDRESS = "/sys/class/net/*/address"


def check() -> None:
    """Raise SetupError, which says what to do, if QEMU or the image is missing."""
    topology.check_program(PROGRAM, PACKAGE)
    vm_image.find()


def accelerator(kvm: Path = _KVM, proc: Path = PROC) -> str:
    """``kvm`` where the CPU and this process can, or ``tcg``: QEMU's own emulation."""
    lines = (proc / "cpuinfo").read_text("utf-8", errors="replace").splitlines()
    flags = next((line for line in lines if line.startswith("flags")), "").split()
    # A hypervisor may show /dev/kvm without what an unchanged guest needs.
    able = {"vmx", "svm"} & set(flags) and os.access(kvm, os.R_OK | os.W_OK)
    return "kvm" if able else "tcg"


def describe() -> str:
    """The guest's kernel and what it runs on, for reports."""
    return f"kernel {_release() or 'unknown: no image is made'}, {_way()}"


def facts(cpu_model: str, cpu: int | None) -> DeviceFacts:
    """Of the guest (RFC 9693 6); ``cpu_model`` and ``cpu`` are the computer's."""
    shared = "the tester's" if cpu is None else f"CPU {cpu} of the tester's computer"
    return DeviceFacts(
        computer=f"virtual machine of QEMU, {_way()}",
        cpu=cpu_model,
        cores=f"1, {shared}",
        memory=f"{_MEMORY_MB} MiB",
        nic="virtio-net, vhost-user",
        link="direct",
        os="Linux, an initramfs with busybox",
        kernel=_release(),
    )


def _way() -> str:
    return {"kvm": "KVM", "tcg": "software emulation"}[accelerator()]


def _release() -> str | None:
    try:
        return vm_image.find().release
    except SetupError:
        return None


def start(
    device: LabDevice,
    cpu: int | None,
    directory: Path,
    record: Callable[[Process], None],
) -> None:
    """Starts it on ``cpu`` and waits until its guest is ready, its links down.

    ``directory`` takes its files. ``record`` is called before it runs; it goes on after
    this process has ended.

    Raises:
        SetupError: it does not start; says what it said last.
    """
    run = directory / RUN
    run.mkdir()
    image = vm_image.find()
    own = vm_image.archive({vm_image.CONFIGURE: configuration(device).encode("ascii")})
    (run / "initramfs").write_bytes(image.initramfs.read_bytes() + own)
    log = run / "log"
    process = processes.start(
        list(_command(image.kernel, run)),
        namespace=device.namespaces[0],
        cpu=cpu,
        log=log,
        record=record,
    )
    greeting = Greeting([run / socket_name(side) for side in topology.SIDES])
    try:
        processes.await_start(
            process,
            lambda: _is_ready(greeting, log),
            "the virtual machine",
            log,
            f"it is QEMU, of the Debian package {PACKAGE}, and the image that "
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
    sides: Sequence[Side] = topology.SIDES
    lines = [*map(_named, sides)]
    settings = topology.kernel_settings(device, sides, alone)
    lines += [f"echo {shlex.quote(v)} >{path}" for path, v in settings.items()]
    for side in sides:
        lines += [f"ip addr add {own} dev {side}" for own in device.addresses[side]]
    lines += [f"ip link set {name} up" for name in ("lo", *sides)]
    for side in sides:
        lines += [f"ip {command}" for command in topology.told(device, side)]
    return "".join(f"{line}\n" for line in lines)


def _named(side: Side) -> str:
    """Calls the interface with the MAC address of that side by the side's name."""
    found = f"$(grep -l {_MACS[side]} {_ADDRESS} | cut -d/ -f5)"
    return f"ip link set {found} name {side}"


def _is_ready(greeting: Greeting, log: Path) -> bool:
    """Until then its sockets want somebody who answers."""
    if vm_image.READY in log.read_text("utf-8", errors="replace").splitlines():
        return True
    greeting.answer()
    return False
