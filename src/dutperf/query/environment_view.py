"""The view ``environment``: a row for each testbed of each run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dutperf.protocol import Side
from dutperf.query.columns import Column, View, of_run
from dutperf.query.runs import Run, moment
from dutperf.results import Environment, PortRecord


@dataclass(frozen=True)
class Row:
    """What is stored of one testbed, and the run it is of."""

    run: Run
    device: str
    environment: Environment

    def port(self, side: Side, of: Callable[[PortRecord], object]) -> object:
        """Something of a side's first port; None: there is no such port."""
        found = [
            port
            for port in self.environment.ports
            if port.name == side and not port.number
        ]
        return of(found[0]) if found else None


def _rows(run: Run) -> Iterator[Row]:
    for testbed in run.source.testbeds:
        if testbed.environment:
            yield Row(run, testbed.name, testbed.environment)


def _stored(name: str, kind: str, meaning: str) -> Column[Row]:
    """A value that has the same name there."""
    return Column(name, kind, meaning, lambda row: getattr(row.environment, name))


def _port(side: Side) -> tuple[Column[Row], ...]:
    return (
        Column(
            f"{side}_driver",
            "VARCHAR",
            f"How the engine drives the {side} port: af_xdp, af_packet, pci, ...",
            lambda row: row.port(side, lambda port: port.driver),
        ),
        Column(
            f"{side}_link_mbps",
            "BIGINT",
            "Link speed that it names; null: it does not say.",
            lambda row: row.port(side, lambda port: port.link_speed_mbps),
        ),
    )


ENVIRONMENT = View(
    "environment",
    "A row for each testbed of each run: machine, versions, ports, seed.",
    (
        *of_run(lambda row: row.run),
        Column(
            "device",
            "VARCHAR",
            "Name of the lab or testbed.",
            lambda row: row.device or None,
        ),
        Column(
            "dut",
            "VARCHAR",
            "The device under test, as described.",
            lambda row: row.environment.dut or None,
        ),
        Column(
            "started_at",
            "TIMESTAMP",
            "UTC.",
            lambda row: moment(row.environment.started_at),
        ),
        _stored("dutperf_version", "VARCHAR", "Who measured."),
        _stored("engine_version", "VARCHAR", "Its engine."),
        _stored("dpdk_version", "VARCHAR", "DPDK of the engine."),
        _stored("os", "VARCHAR", "Operating system of the tester."),
        _stored("kernel", "VARCHAR", "Its kernel."),
        _stored("cpu_model", "VARCHAR", "Its processor."),
        _stored("cpus_total", "BIGINT", "CPUs of the machine."),
        _stored("cores_used", "BIGINT[]", "CPUs of the engine's workers."),
        _stored("turbo", "BOOLEAN", "Null: the machine does not say."),
        _stored("hypervisor", "BOOLEAN", "Whether it is a virtual machine."),
        _stored("memory_mb", "BIGINT", "Memory of the machine."),
        _stored("hugepages_used", "BOOLEAN", "Whether the engine used huge pages."),
        *_port("left"),
        *_port("right"),
        _stored("seed", "BIGINT", "Of the campaign's random values."),
    ),
    _rows,
)
