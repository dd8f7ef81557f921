"""What earlier runs left: programs that still spin, and labs that nobody uses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dutperf.doctor.check import Check, Machine

PROGRAMS = ("dutperf-engine", "dutperf-refdut")
NAMESPACES = Path("run/netns")


def leftover_checks(
    machine: Machine, lab_namespaces: tuple[str, ...]
) -> Iterator[Check]:
    """Of processes and of the lab's namespaces; those of a run that goes on count."""
    yield _processes(machine)
    yield _namespaces(machine, lab_namespaces)


def _processes(machine: Machine) -> Check:
    found = sorted(_running(machine))
    if not found:
        return Check("other_processes", "good", "no other engine or device runs")
    told = ", ".join(f"{name} (process {pid})" for pid, name in found)
    return Check(
        "other_processes",
        "doubtful",
        told,
        "they spin on CPUs that a measurement here would share",
        "wait for the run that they belong to; if there is none, end them: kill PID",
    )


def _running(machine: Machine) -> Iterator[tuple[int, str]]:
    for folder in (machine.root / "proc").glob("[0-9]*"):
        text = machine.text(f"proc/{folder.name}/cmdline") or ""
        name = Path(text.partition("\0")[0]).name
        if name in PROGRAMS:
            yield int(folder.name), name


def _namespaces(machine: Machine, lab_namespaces: tuple[str, ...]) -> Check:
    there = [n for n in lab_namespaces if (machine.root / NAMESPACES / n).exists()]
    if not there:
        return Check("labs", "good", "no lab is up")
    return Check(
        "labs",
        "doubtful",
        f"namespaces {', '.join(there)}",
        "a lab that is up is used as it is, with what was set in it",
        "dutperf lab status; dutperf lab down",
    )
