"""Memory: huge pages, what is free, and whether devices may reach it."""

from __future__ import annotations

from collections.abc import Iterator

from dutperf.doctor.check import Check, Machine

_LEAST_FREE_MB = 1024


def memory_checks(
    machine: Machine, needed_mb: int, *, pci: bool, vfio: bool
) -> Iterator[Check]:
    """For an engine that takes ``needed_mb``.

    ``pci``: on NICs of its own; ``vfio``: not only such as the kernel shares.
    """
    memory = machine.table("proc/meminfo")
    yield _huge_pages(memory, needed_mb, pci=pci)
    yield _free(memory, needed_mb)
    if vfio:
        yield _iommu(machine)


def _huge_pages(memory: dict[str, str], needed_mb: int, *, pci: bool) -> Check:
    if "HugePages_Free" not in memory:
        return Check("huge_pages", "unknown", "the kernel has none")
    size_kb = _kb(memory, "Hugepagesize")
    free_mb = int(memory["HugePages_Free"].split()[0]) * size_kb // 1024
    found = f"{free_mb} MiB free, {needed_mb} MiB needed"
    if free_mb >= needed_mb:
        return Check("huge_pages", "good", found)
    pages = -(-needed_mb * 1024 // max(size_kb, 1))
    return Check(
        "huge_pages",
        "bad" if pci else "doubtful",
        found,
        "NICs cannot be driven without them"
        if pci
        else "the engine runs without, and is slower",
        f"echo {pages} > /proc/sys/vm/nr_hugepages",
    )


def _free(memory: dict[str, str], needed_mb: int) -> Check:
    if "MemAvailable" not in memory:
        return Check("free_memory", "unknown", "the kernel does not say")
    free_mb = _kb(memory, "MemAvailable") // 1024
    if free_mb >= needed_mb + _LEAST_FREE_MB:
        return Check("free_memory", "good", f"{free_mb:,} MiB available")
    return Check(
        "free_memory",
        "bad" if free_mb < needed_mb else "doubtful",
        f"{free_mb:,} MiB available",
        f"the engine takes {needed_mb} MiB; a machine that swaps stops the tester",
        "end what else runs, or lower memory_mb of the testbed",
    )


def _iommu(machine: Machine) -> Check:
    groups = machine.root / "sys/kernel/iommu_groups"
    count = len(list(groups.glob("*"))) if groups.is_dir() else 0
    if count:
        return Check("iommu", "good", f"{count} groups")
    unsafe = machine.text("sys/module/vfio/parameters/enable_unsafe_noiommu_mode")
    return Check(
        "iommu",
        "doubtful" if unsafe == "Y" else "bad",
        "none; VFIO works without" if unsafe == "Y" else "none",
        "VFIO hands a NIC to a program by it",
        "boot with intel_iommu=on iommu=pt (or amd_iommu=on), or load vfio with "
        "enable_unsafe_noiommu_mode=1",
    )


def _kb(memory: dict[str, str], key: str) -> int:
    return int(memory.get(key, "0").split()[0])
