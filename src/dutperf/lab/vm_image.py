"""The image of a virtual machine: ``python -m dutperf.lab.vm_image PACKAGES FOLDER``.

Made from Debian packages, which are unpacked and never installed: a kernel, and an
initramfs with busybox, the modules of virtio and an /init that does what the lab's own
archive says. The kernel takes several archives one behind the other; the lab's is the
last (``archive``). The same packages give the same bytes.
"""

from __future__ import annotations

import gzip
import lzma
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dutperf.errors import DutperfError, SetupError

FOLDER = Path(__file__).resolve().parents[3] / "build" / "vm"
"""Where ``make vm-image`` puts it."""
CONFIGURE = "configure"
"""The lab's own part, a shell script."""
READY = "dutperf: the guest is ready"
FAILED = "dutperf: the guest cannot be configured"
_KERNEL, _INITRAMFS, _RELEASE = "kernel", "initramfs", "release"
_MODULES = (
    "failover",
    "net_failover",
    "virtio_ring",
    "virtio",
    "virtio_pci_modern_dev",
    "virtio_pci_legacy_dev",
    "virtio_pci",
    "virtio_net",
)
"""In the order in which they need one another."""
_INIT = f"""\
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
trap 'echo "{FAILED}"; poweroff -f' EXIT
set -e
mkdir -p /proc /sys
mount -t proc proc /proc
mount -t sysfs sysfs /sys
for module in $(cat /modules/order); do insmod /modules/$module.ko; done
. /{CONFIGURE}
echo "{READY}"
while true; do sleep 86400; done
"""
_PADDING = 4
_PROGRAM = stat.S_IFREG | 0o755
_DIRECTORY = stat.S_IFDIR | 0o755
_TRAILER = "TRAILER!!!"


@dataclass(frozen=True)
class VmImage:
    """The files of an image.

    Attributes:
        release: of its kernel, as ``uname -r`` says it there.
    """

    kernel: Path
    initramfs: Path
    release: str


def find(folder: Path = FOLDER) -> VmImage:
    """The image that was made.

    Raises:
        SetupError: none was.
    """
    try:
        release = (folder / _RELEASE).read_text("ascii").strip()
    except FileNotFoundError as error:
        raise SetupError(
            f"the image of the virtual machine is not found in {folder}",
            "make it: run 'make vm-image' in dutperf's source tree",
        ) from error
    return VmImage(folder / _KERNEL, folder / _INITRAMFS, release)


def archive(files: Mapping[str, bytes]) -> bytes:
    """A cpio archive (newc) of programs and the directories they are in; no dates."""
    parents = {str(p) for name in files for p in Path(name).parents} - {"."}
    entries = [(name, _DIRECTORY, b"") for name in sorted(parents)]
    entries += [(name, _PROGRAM, files[name]) for name in sorted(files)]
    entries.append((_TRAILER, 0, b""))
    return b"".join(_entry(n, *each) for n, each in enumerate(entries, start=1))


def _entry(number: int, name: str, mode: int, content: bytes) -> bytes:
    path = name.encode("ascii") + b"\0"
    links = 2 if mode == _DIRECTORY else 1
    # inode, mode, owner, group, links, date, size, four numbers of devices
    fields = [number, mode, 0, 0, links, 0, len(content), 0, 0, 0, 0, len(path), 0]
    header = "070701" + "".join(f"{field:08x}" for field in fields)
    return padded(header.encode("ascii") + path) + padded(content)


def padded(content: bytes) -> bytes:
    """With as many zeros as an archive's parts, and archives, have behind them."""
    return content + b"\0" * (-len(content) % _PADDING)


def make(packages: list[str], folder: Path) -> VmImage:
    """Makes the image from these Debian packages, and those that they stand for.

    Raises:
        SetupError: apt cannot get them, or they have not what it takes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        root = Path(name)
        for package in _unpacked(packages, root):
            _run("dpkg-deb", "-x", str(package), str(root))
        [kernel] = _found(root, "boot/vmlinuz-*")
        [busybox] = _found(root, "bin/busybox")
        release = kernel.name.removeprefix("vmlinuz-")
        files = {"init": _INIT.encode("ascii"), "bin/busybox": busybox.read_bytes()}
        files |= _modules(root)
        content = gzip.compress(archive(files), mtime=0)
        (folder / _INITRAMFS).write_bytes(padded(content))
        kernel.replace(folder / _KERNEL)
    (folder / _RELEASE).write_text(f"{release}\n", "ascii")
    return find(folder)


def _unpacked(packages: list[str], root: Path) -> list[Path]:
    """Gets the packages' files; a kernel's package by release is behind another one."""
    listed = _run("apt-cache", "depends", "--important", *packages)
    meant = [
        line.split()[-1]
        for line in listed.splitlines()
        if line.split()[0] == "Depends:" and line.split()[-1].startswith("linux-image-")
    ]
    plain = [name for name in packages if not name.startswith("linux-image-")]
    # apt's own user cannot write here, and says so.
    as_root = ("-o", "APT::Sandbox::User=root")
    _run("apt-get", *as_root, "download", "-qq", *plain, *meant, directory=root)
    return sorted(root.glob("*.deb"))


def _modules(root: Path) -> dict[str, bytes]:
    """Those that are not in the kernel itself."""
    [builtin] = _found(root, "lib/modules/*/modules.builtin")
    inside = {Path(line).stem for line in builtin.read_text("ascii").split()}
    names = [name for name in _MODULES if name not in inside]
    files = {"modules/order": "\n".join(names).encode("ascii")}
    for name in names:
        [path] = _found(root, f"lib/modules/*/kernel/**/{name}.ko*")
        content = path.read_bytes()
        plain = lzma.decompress(content) if path.suffix == ".xz" else content
        files[f"modules/{name}.ko"] = plain
    return files


def _found(root: Path, pattern: str) -> list[Path]:
    found = sorted(root.glob(pattern)) or sorted(root.glob(f"usr/{pattern}"))
    if len(found) != 1:
        raise SetupError(f"the packages have {len(found)} files {pattern}, not one")
    return found


def _run(*command: str, directory: Path | None = None) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=directory
        )
    except FileNotFoundError as error:
        raise SetupError(
            f"the program {command[0]} is missing",
            "the image is made of Debian packages, on Debian or Ubuntu",
        ) from error
    if done.returncode != 0:
        raise SetupError(
            f"{command[0]} failed: {done.stderr.strip()}",
            "if it does not know a package: apt-get update",
        )
    return done.stdout


def main(arguments: list[str]) -> None:
    """Makes it; ``arguments``: the file that lists packages, and the folder."""
    listed, folder = map(Path, arguments)
    lines = listed.read_text("ascii").splitlines()
    try:
        make([line for line in lines if line and line[0] != "#"], folder)
    except DutperfError as error:
        sys.exit(f"error: {error}\nhint: {error.hint}")


if __name__ == "__main__":
    main(sys.argv[1:])
