"""Labs as their file tells them, for tests without namespaces."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from dutperf.config.testbed import Testbed
from dutperf.lab import LABS, LabDevice, lifecycle, machine, netns, presence, topology
from dutperf.lab.processes import CpuPlan, Process
from dutperf.lab.state import LabState, StateFile


class FakeTopology:
    """Namespaces as a set of names."""

    def __init__(self) -> None:
        self.present: set[str] = set()
        self.broken: BaseException | None = None

    def build(self, device: LabDevice, _cpus: CpuPlan) -> None:
        self.present.add(device.tester)
        if self.broken:
            raise self.broken
        self.present |= set(device.namespaces)

    def clear(self, namespaces: Sequence[str]) -> None:
        self.present -= set(namespaces)

    def existing(self, namespaces: Sequence[str]) -> list[str]:
        return [name for name in namespaces if name in self.present]


def fake_topology(monkeypatch: pytest.MonkeyPatch, directory: Path) -> FakeTopology:
    """In place of the kernel's; the labs' files are in ``directory``."""
    fake = FakeTopology()
    monkeypatch.setattr(topology, "build", fake.build)
    for name in ("clear", "existing"):
        monkeypatch.setattr(netns, name, getattr(fake, name))
    monkeypatch.setattr(netns, "read_settings", lambda _namespace, _paths: {})
    monkeypatch.setattr(netns, "leftovers", fake.existing)
    monkeypatch.setattr(netns, "check_machine", lambda: None)
    monkeypatch.setattr(machine, "NEIGHBOUR_LIMITS", ())
    monkeypatch.setattr(machine, "BACKLOG", directory / "backlog")
    monkeypatch.setattr(machine, "find_kernel_thread", lambda _name: None)
    for module in (lifecycle, presence):
        monkeypatch.setattr(module, "StateFile", partial(StateFile, directory))
    monkeypatch.setattr(presence, "owners_of_cpus", dict)
    return fake


def make_state(owner: Process | None) -> LabState:
    device = LABS["linux-router"]
    testbed = Testbed(name=device.name, left=device.left, right=device.right)
    return LabState(
        device=device.name,
        since=datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC),
        owner=owner,
        namespaces=("tester", "dut"),
        links=("tester/left",),
        testbed_keys=testbed.model_dump(mode="json"),
    )
