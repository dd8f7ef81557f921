"""What two sides differ in beside their results: machine, ports, versions, settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dutperf.comparison.readings import Run
from dutperf.comparison.sides import Side
from dutperf.report.source import TestbedRecord
from dutperf.results import Environment, load_campaign
from dutperf.results.directory import CAMPAIGN
from dutperf.results.environment import Change, changes

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
_MOST_VALUES = 3


class Differences(NamedTuple):
    """Of another side from the baseline."""

    run: str
    environment: tuple[Change, ...]
    configuration: tuple[Change, ...]


def differences_of(baseline: Side, other: Side) -> Differences:
    """What is stored of both and is not the same."""
    runs = (*baseline.runs, *other.runs)
    number = len(baseline.runs)
    campaigns = [_campaign(run.directory) for run in runs]
    return Differences(
        other.letter,
        tuple(_apart(_environments(runs), number)),
        tuple(_apart(campaigns, number)),
    )


def _apart(told: Sequence[dict[str, Any]], number: int) -> Iterator[Change]:
    """Where not all values of the first ``number`` are those of the others."""
    found = [{c.where: c for c in changes(told[0], each)} for each in told]
    first = {where: change.old for each in found for where, change in each.items()}
    for where, old in first.items():
        values = [each[where].new if where in each else old for each in found]
        before, after = (
            dict.fromkeys(side) for side in (values[:number], values[number:])
        )
        if before.keys() != after.keys():
            yield Change(where, _joined(before), _joined(after))


def _joined(values: Iterable[str]) -> str:
    """All values of a side, but of many only some."""
    told = [*values]
    more = len(told) - _MOST_VALUES
    rest = [f"{more} more"] if more > 0 else []
    return " | ".join([*told[:_MOST_VALUES], *rest])


def _environments(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Of the only testbed of each, else of those that have one name in all."""
    records = [{each.name: _told(each) for each in r.source.testbeds} for r in runs]
    if all(len(each) == 1 for each in records):
        return [told for each in records for told in each.values()]
    common = set(records[0]).intersection(*records)
    return [{n: told for n, told in each.items() if n in common} for each in records]


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
