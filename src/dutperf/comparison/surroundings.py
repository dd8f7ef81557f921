"""What two runs differ in beside their results: machine, ports, versions, settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from dutperf.comparison.runs import Run
from dutperf.report.source import TestbedRecord
from dutperf.results import Environment, load_campaign
from dutperf.results.changes import Change, changes
from dutperf.results.directory import CAMPAIGN

_MACHINE = {
    "os",
    "kernel",
    "cpu_model",
    "cpus_total",
    "cores_used",
    "main_core",
    "governor",
    "turbo",
    "numa_nodes",
    "memory_mb",
    "hugepages_used",
    "hypervisor",
    "dutperf_version",
    "engine_version",
    "dpdk_version",
    "protocol_version",
    "python_version",
    "dut",
    "device",
}
_PORT = {
    "driver",
    "device",
    "link_speed_mbps",
    "numa_node",
    "mtu",
    "flow_control",
    "kernel_driver",
    "kernel_driver_version",
}
"""A lab's ports have other addresses each time."""


class Differences(NamedTuple):
    """Of another run from the baseline."""

    run: str
    environment: tuple[Change, ...]
    configuration: tuple[Change, ...]


def differences_of(baseline: Run, other: Run) -> Differences:
    """What is stored of both and is not the same."""
    return Differences(
        other.letter,
        tuple(_of_environments(baseline, other)),
        tuple(changes(_campaign(baseline.directory), _campaign(other.directory))),
    )


def _of_environments(baseline: Run, other: Run) -> Iterator[Change]:
    """Of the only testbed of each, else of those that have one name."""
    before, after = baseline.source.testbeds, other.source.testbeds
    if len(before) == len(after) == 1:
        yield from changes(_told(before[0]), _told(after[0]))
        return
    by_name = {each.name: each for each in after}
    for each in before:
        if each.name in by_name:
            told = changes(
                {each.name: _told(each)}, {each.name: _told(by_name[each.name])}
            )
            yield from told


def _told(testbed: TestbedRecord) -> dict[str, Any]:
    """All that is worth a comparison; the doctor's findings by what they are of."""
    known: Environment | None = testbed.environment
    if known is None:
        return {"environment": "not recorded"}
    findings = {c.name: c.found for c in known.checks if c.is_finding}
    return {
        "environment": "recorded",
        **known.model_dump(mode="json", include=_MACHINE),
        "ports": {p.label: p.model_dump(include=_PORT) for p in known.ports},
        "findings": findings,
    }


def _campaign(directory: Path) -> dict[str, Any]:
    """As resolved; what it is called is no setting."""
    if not (directory / CAMPAIGN).exists():
        return {"campaign": "not stored"}
    stored = load_campaign(directory)
    return {key: value for key, value in stored.items() if key != "name"}
