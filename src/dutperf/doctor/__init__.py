"""What in this machine may spoil a measurement, what it costs, and what cures it.

Only looked at, nothing is changed; a check that cannot be made says so and is no
finding. ``examine`` makes all of them; here is where machines tell what is checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dutperf.results.environment import CheckVerdict as Verdict
from dutperf.results.environment import MachineCheck as Check

__all__ = ["SHARED_DRIVERS", "Check", "Machine", "Verdict", "cpus_in", "listed"]

SHARED_DRIVERS = frozenset({"mlx4_core", "mlx5_core", "mana"})
"""Of the kernel, with which DPDK shares a NIC: it is not bound to VFIO."""


@dataclass(frozen=True)
class Machine:
    """Where proc and sys are; other directories in tests."""

    root: Path = Path("/")

    def text(self, path: str) -> str | None:
        """What stands there, without white space around; None: nothing is there."""
        try:
            whole = (self.root / path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        return whole.strip()

    def number(self, path: str) -> int | None:
        """A whole number, if one stands there."""
        text = self.text(path)
        return int(text) if text is not None and text.lstrip("-").isdecimal() else None

    def driver_of(self, pci: str) -> str:
        """Of a PCI device; empty: none."""
        link = self.root / "sys/bus/pci/devices" / pci / "driver"
        return link.resolve().name if link.exists() else ""

    def table(self, path: str) -> dict[str, str]:
        """Lines of ``key : value``; of a key that comes again the first counts."""
        found: dict[str, str] = {}
        for line in (self.text(path) or "").splitlines():
            key, _, value = line.partition(":")
            found.setdefault(key.strip(), value.strip())
        return found


def cpus_in(text: str) -> set[int]:
    """``0-2,5`` as the kernel writes lists of CPUs."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def listed(cpus: set[int]) -> str:
    """CPUs in words: ``CPU 0``, ``CPUs 0, 3``."""
    numbers = ", ".join(map(str, sorted(cpus)))
    return f"CPU {numbers}" if len(cpus) == 1 else f"CPUs {numbers}"
