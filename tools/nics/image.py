"""The guest's disk and kernel: ``python -m tools.nics.image ROOT FOLDER``.

``ROOT`` is a Debian with a kernel's package; the disk is all of it. What finds the disk
is an initramfs as that of the lab linux-vm.
"""

from __future__ import annotations

import gzip
import lzma
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dutperf.lab.vm_image import archive, padded

KERNEL, INITRAMFS, DISK = "kernel", "initramfs", "disk"
AGENT = "agent.py"
_SIZE = "3G"
"""Of the disk; what is empty takes no room on the host."""
_NEEDED = ("virtio_pci", "virtio_blk", "crc32c_generic", "ext4")
_FIND_DISK = """\
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mkdir -p /proc /sys /dev /disk
mount -t proc proc /proc
mount -t devtmpfs dev /dev
for module in $(cat /modules/order); do insmod /modules/$module; done
while [ ! -e /dev/vda ]; do sleep 0.1; done
mount -t ext4 /dev/vda /disk
umount /proc
mount --move /dev /disk/dev
exec switch_root /disk /init
"""
_INIT = """\
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mkdir -p /dev/hugepages
mount -t hugetlbfs hugetlbfs /dev/hugepages
ip link set lo up
# Each NIC's driver, as udev would load it.
for alias in $(cat /sys/bus/[pv]*/devices/*/modalias); do
  modprobe -q "$alias"
done
cd /root
exec python3 /agent.py /dev/ttyS1
"""


def load_order(dependencies: str, names: Sequence[str]) -> list[str]:
    """Paths of modules, each after those that it needs.

    ``dependencies``: of modules.dep. What is part of the kernel is not in there.
    """
    needs: dict[str, list[str]] = {}
    for line in dependencies.splitlines():
        path, _, needed = line.partition(":")
        needs[path] = needed.split()
    order: list[str] = []

    def add(path: str) -> None:
        for each in needs[path]:
            if each not in order:
                add(each)
        if path not in order:
            order.append(path)

    for name in names:
        for path in needs:
            if Path(path).name.split(".")[0] == name:
                add(path)
    return order


def make(root: Path, folder: Path) -> None:
    """Makes the three files of ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    [modules] = root.glob("usr/lib/modules/*")
    [kernel] = root.glob("boot/vmlinuz-*")
    shutil.copyfile(kernel, folder / KERNEL)
    files = dict(_initramfs(modules))
    files["bin/busybox"] = (root / "usr/bin/busybox").read_bytes()
    content = gzip.compress(archive(files), mtime=0)
    (folder / INITRAMFS).write_bytes(padded(content))
    put(
        root,
        {"init": _INIT.encode(), AGENT: Path(__file__).with_name(AGENT).read_bytes()},
    )
    disk = folder / DISK
    disk.unlink(missing_ok=True)
    command = [
        "mke2fs",
        "-q",
        "-t",
        "ext4",
        "-O",
        "^has_journal",
        "-d",
        str(root),
        str(disk),
    ]
    subprocess.run([*command, _SIZE], check=True)


def _initramfs(modules: Path) -> Iterator[tuple[str, bytes]]:
    order = load_order((modules / "modules.dep").read_text("ascii"), _NEEDED)
    plain = [Path(path).name.removesuffix(".xz") for path in order]
    yield "init", _FIND_DISK.encode()
    yield "modules/order", "\n".join(plain).encode()
    for path, name in zip(order, plain, strict=True):
        content = (modules / path).read_bytes()
        packed = path.endswith(".xz")
        yield f"modules/{name}", lzma.decompress(content) if packed else content


def put(root: Path, programs: Mapping[str, bytes]) -> None:
    """Into a root that is not mounted."""
    for name, content in programs.items():
        (root / name).write_bytes(content)
        (root / name).chmod(0o755)


if __name__ == "__main__":
    make(*map(Path, sys.argv[1:]))
