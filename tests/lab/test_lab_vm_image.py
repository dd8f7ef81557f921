"""The virtual machine's image and how it is started, without one."""

from __future__ import annotations

import gzip
import lzma
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from dutperf.errors import SetupError
from dutperf.lab import vm_image
from dutperf.lab.devices import virtual_machine
from dutperf.lab.devices.virtual_machine import (
    FEATURES,
    GET_FEATURES,
    GET_PROTOCOL_FEATURES,
    GET_RING_BASE,
    LINUX_VM,
    Greeting,
)
from dutperf.lab.processes import plan_cpus

RELEASE = "6.1.0-1-cloud-amd64"
APT_CACHE = f"""#!/bin/sh
echo linux-image-cloud-amd64
echo '  Depends: linux-image-{RELEASE}'
echo '  Depends: libc6'
"""
APT_GET = """#!/bin/sh
for name; do last="$last $name"; done
case "$last" in
*busybox-static*linux-image-6.1*) ;;
*) echo "asked for$last" >&2; exit 1 ;;
esac
touch busybox-static.deb linux-image.deb
"""
DPKG_DEB = f"""#!/bin/sh
modules=$3/lib/modules/{RELEASE}
mkdir -p $3/bin $3/boot $modules/kernel/drivers
echo busybox >$3/bin/busybox
echo kernel >$3/boot/vmlinuz-{RELEASE}
echo kernel/drivers/virtio/virtio.ko >$modules/modules.builtin
cp $MODULES/* $modules/kernel/drivers
"""


def entries(archive: bytes) -> Iterator[tuple[str, int, bytes]]:
    """Name, mode and content of each entry of a cpio archive (newc), one by one."""
    at = 0
    while True:
        assert archive[at : at + 6] == b"070701"
        fields = [int(archive[at + n : at + n + 8], 16) for n in range(6, 110, 8)]
        mode, size, name_size = fields[1], fields[6], fields[11]
        begin = at + 110
        name = archive[begin : begin + name_size - 1].decode()
        begin = (begin + name_size + 3) // 4 * 4
        if name == "TRAILER!!!":
            return
        yield name, mode, archive[begin : begin + size]
        at = (begin + size + 3) // 4 * 4


def test_an_archive_has_directories_first_and_pads_what_is_behind_them() -> None:
    files = {"b/c/odd": b"12345", "a": b"", "b/even": b"1234"}
    assert list(entries(vm_image.archive(files))) == [
        ("b", 0o40755, b""),
        ("b/c", 0o40755, b""),
        ("a", 0o100755, b""),
        ("b/c/odd", 0o100755, b"12345"),
        ("b/even", 0o100755, b"1234"),
    ]


@pytest.fixture
def debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of programs like apt's; the modules are in ``modules`` beside it."""
    programs, modules = tmp_path / "bin", tmp_path / "modules"
    programs.mkdir()
    modules.mkdir()
    for name, text in (
        ("apt-cache", APT_CACHE),
        ("apt-get", APT_GET),
        ("dpkg-deb", DPKG_DEB),
    ):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    plain = ("failover", "net_failover", "virtio_ring", "virtio_pci", "virtio_net")
    for name in plain:
        (modules / f"{name}.ko").write_text(name)
    for name in ("virtio_pci_modern_dev", "virtio_pci_legacy_dev"):
        (modules / f"{name}.ko.xz").write_bytes(lzma.compress(name.encode()))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("MODULES", str(modules))
    return programs


PACKAGES = ["busybox-static", "linux-image-cloud-amd64"]


def test_an_image_has_a_kernel_and_its_modules_in_order(
    debian: Path, tmp_path: Path
) -> None:
    image = vm_image.make(PACKAGES, tmp_path / "vm")
    assert debian.is_dir()
    assert image == vm_image.find(tmp_path / "vm")
    assert image.release == RELEASE
    assert image.kernel.read_text() == "kernel\n"
    packed = image.initramfs.read_bytes()
    assert len(packed) % 4 == 0  # another archive may follow
    files = {name: content for name, _, content in entries(gzip.decompress(packed))}
    order = files["modules/order"].decode().split()
    assert order.index("virtio_ring") < order.index("virtio_pci") < len(order) - 1
    assert order[-1] == "virtio_net"
    assert "virtio" not in order  # that kernel has it inside
    for name in order:
        assert files[f"modules/{name}.ko"].decode() == name
    assert files["init"].startswith(b"#!/bin/busybox sh\n")
    left = {path.name for path in (tmp_path / "vm").iterdir()}
    assert left == {"kernel", "initramfs", "release"}


@pytest.mark.usefixtures("debian")
def test_the_same_packages_give_the_same_bytes(tmp_path: Path) -> None:
    first = vm_image.make(PACKAGES, tmp_path / "first").initramfs.read_bytes()
    assert vm_image.make(PACKAGES, tmp_path / "again").initramfs.read_bytes() == first


def test_a_package_without_a_module_is_told(debian: Path, tmp_path: Path) -> None:
    (debian.with_name("modules") / "virtio_net.ko").unlink()
    with pytest.raises(SetupError, match=r"0 files lib/modules.*virtio_net"):
        vm_image.make(PACKAGES, tmp_path / "vm")
    with pytest.raises(SetupError, match="not found") as refused:
        vm_image.find(tmp_path / "vm")
    assert "make vm-image" in refused.value.hint


def test_a_package_that_apt_does_not_know_is_told(debian: Path, tmp_path: Path) -> None:
    (debian / "apt-get").write_text("#!/bin/sh\necho 'no such package' >&2\nexit 100\n")
    with pytest.raises(SetupError, match="apt-get failed: no such package") as refused:
        vm_image.make(PACKAGES, tmp_path / "vm")
    assert "apt-get update" in refused.value.hint


def test_a_machine_without_apt_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match="apt-cache is missing"):
        vm_image.make(PACKAGES, tmp_path)


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(SetupError) as refused:
        LINUX_VM.check_programs(plan_cpus())
    assert "qemu-system-x86" in refused.value.hint


@pytest.mark.parametrize(
    ("flags", "kvm", "expected"),
    [
        ("fpu vmx sse2", True, "kvm"),
        ("fpu svm sse2", True, "kvm"),
        ("fpu svm sse2", False, "tcg"),
        ("fpu sse2", True, "tcg"),
    ],
)
def test_the_cpu_and_the_file_decide_on_kvm(
    flags: str, kvm: bool, expected: str, tmp_path: Path
) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
    if kvm:
        (tmp_path / "kvm").touch()
    assert virtual_machine.accelerator(tmp_path / "kvm", tmp_path) == expected


def test_the_guest_has_the_addresses_and_networks_of_the_lab() -> None:
    lines = virtual_machine.configuration(LINUX_VM).splitlines()
    for side in ("left", "right"):
        for own in LINUX_VM.addresses[side]:
            assert f"ip addr add {own} dev {side}" in lines
        assert lines.index(f"ip link set {side} up") > lines.index(
            f"ip addr add {LINUX_VM.addresses[side][0]} dev {side}"
        )
    assert "ip route add 198.18.0.0/16 via 198.18.0.2 dev left" in lines
    assert "ip route add 2001:2:0:8000::/49 via 2001:2:0:8000::2 dev right" in lines
    assert "echo 1 >/proc/sys/net/ipv4/ip_forward" in lines


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[tuple[Greeting, socket.socket]]:
    """A greeting, and the end of the connection to it that is QEMU's."""
    path = tmp_path / "left.sock"
    greeting = Greeting([path])
    greeting.answer()  # nobody is there yet
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        greeting.answer()
        connection, _ = listening.accept()
    with connection:
        connection.settimeout(5)
        yield greeting, connection
    greeting.close()


def message(request: int, content: bytes = b"") -> bytes:
    return struct.pack("<III", request, 1, len(content)) + content


def test_a_greeting_offers_features_and_takes_whatever_is_told(
    asking: tuple[Greeting, socket.socket],
) -> None:
    greeting, qemu = asking
    with Path(os.devnull).open("rb") as memory:
        told = message(5, b"\0" * 40)  # the guest's memory
        socket.send_fds(qemu, [message(GET_FEATURES) + told], [memory.fileno()])
    qemu.sendall(message(GET_RING_BASE, struct.pack("<II", 1, 7)))
    qemu.sendall(message(GET_PROTOCOL_FEATURES))
    greeting.answer()
    header = struct.Struct("<III")
    replied = qemu.recv(4096)
    assert replied == (
        header.pack(GET_FEATURES, 5, 8)
        + struct.pack("<Q", FEATURES)
        + header.pack(GET_RING_BASE, 5, 8)
        + struct.pack("<II", 1, 0)
        + header.pack(GET_PROTOCOL_FEATURES, 5, 8)
        + struct.pack("<Q", 0)
    )


def test_qemu_sees_that_a_greeting_is_over(
    asking: tuple[Greeting, socket.socket],
) -> None:
    greeting, qemu = asking
    greeting.answer()  # nothing was asked
    greeting.close()
    assert qemu.recv(1) == b""
