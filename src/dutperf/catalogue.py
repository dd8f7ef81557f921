"""Every procedure once: what it is called, what it finds, whose it is.

Facts only, for all who name a procedure: commands, tables, reports, conformance. What
it may be told is its model's (``config.specs``), how it is measured
``procedures.measurements``'. There is no other list of procedures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

ProcedureName = Literal[
    "throughput",
    "frame-loss",
    "back-to-back",
    "latency",
    "pdv",
    "ipdv",
    "connection-rate",
    "table-capacity",
    "teardown-rate",
    "system-recovery",
    "outage",
]
Family = Literal[
    "rate search",
    "load sweep",
    "burst search",
    "fixed load",
    "connections",
    "load over time",
]
Unit = Literal["fps", "percent", "frames", "ns", "connections/s", "connections"]


@dataclass(frozen=True)
class Procedure:
    """What is known of a procedure before anything is measured.

    title: a noun, as headings and cells have it.
    finds: a sentence with the sections, as the command's help has it.
    heading: of its results.
    unit: of its figure.
    better: whether a device is the better for a higher figure, or for a lower one.
    statistic: what its repeats are summed up by.
    sections: where each RFC defines it, the RFC that did first.
    """

    name: ProcedureName
    family: Family
    title: str
    finds: str
    heading: str
    unit: Unit
    better: Literal["higher", "lower"]
    sections: Mapping[str, str]
    statistic: Literal["median", "average"] = "median"


_ALL = (
    Procedure(
        name="throughput",
        family="rate search",
        title="Throughput",
        finds="Fastest rate at which no frame is lost (RFC 2544 26.1).",
        heading="Throughput, zero loss (RFC 2544 26.1)",
        unit="fps",
        better="higher",
        sections={"RFC 2544": "26.1", "RFC 5180": "7.1", "RFC 8219": "7.1"},
    ),
    Procedure(
        name="frame-loss",
        family="load sweep",
        title="Frame loss",
        finds="Frame loss over the whole range of loads (RFC 2544 26.3).",
        heading="Frame loss rate at the highest load (RFC 2544 26.3)",
        unit="percent",
        better="lower",
        sections={"RFC 2544": "26.3", "RFC 5180": "7.3", "RFC 8219": "7.4"},
    ),
    Procedure(
        name="back-to-back",
        family="burst search",
        title="Back-to-back frames",
        finds="Longest burst of which no frame is lost, and buffer time (RFC 9004).",
        heading="Back-to-back frames, longest burst without loss (RFC 9004 6)",
        unit="frames",
        better="higher",
        sections={"RFC 9004": "6", "RFC 2544": "26.4", "RFC 8219": "7.5"},
        statistic="average",
    ),
    Procedure(
        name="system-recovery",
        family="load over time",
        title="System recovery",
        finds="How long frames are lost after an overload has ended (RFC 2544 26.5).",
        heading="System recovery, from an overload's end to the last lost frame "
        "(RFC 2544 26.5)",
        unit="ns",
        better="lower",
        sections={"RFC 2544": "26.5", "RFC 5180": "7.5", "RFC 8219": "7.6"},
        statistic="average",
    ),
    Procedure(
        name="outage",
        family="load over time",
        title="Outage",
        finds="How long forwarding is interrupted, by a reset for example "
        "(RFC 6201 4).",
        heading="Outage, frames lost / offered rate (RFC 6201 1.3)",
        unit="ns",
        better="lower",
        sections={
            "RFC 6201": "4",
            "RFC 2544": "26.6",
            "RFC 5180": "7.6",
            "RFC 8219": "7.7",
        },
        statistic="average",
    ),
    Procedure(
        name="connection-rate",
        family="connections",
        title="Connection establishment rate",
        finds="How fast a stateful gateway opens connections (RFC 9693 4.5, 4.6).",
        heading="Maximum connection establishment rate (RFC 9693 4.5, 4.6)",
        unit="connections/s",
        better="higher",
        sections={"RFC 9693": "4.5"},
    ),
    Procedure(
        name="table-capacity",
        family="connections",
        title="Connection tracking table capacity",
        finds="How many connections a stateful gateway holds (RFC 9693 4.9).",
        heading="Capacity of the connection tracking table (RFC 9693 4.9)",
        unit="connections",
        better="higher",
        sections={"RFC 9693": "4.9"},
    ),
    Procedure(
        name="teardown-rate",
        family="connections",
        title="Connection tear-down rate",
        finds="How fast a stateful gateway deletes connections (RFC 9693 4.8).",
        heading="Connection tear-down rate (RFC 9693 4.8)",
        unit="connections/s",
        better="higher",
        sections={"RFC 9693": "4.8"},
    ),
    Procedure(
        name="latency",
        family="fixed load",
        title="Latency",
        finds="Typical and worst-case delay of tagged frames at a fixed load "
        "(RFC 8219 7.2).",
        heading="Latency of tagged frames (RFC 8219 7.2)",
        unit="ns",
        better="lower",
        sections={"RFC 2544": "26.2", "RFC 5180": "7.2", "RFC 8219": "7.2"},
    ),
    Procedure(
        name="pdv",
        family="fixed load",
        title="Packet delay variation",
        finds="How far all frames' delays spread at a fixed load (RFC 8219 7.3.1).",
        heading="Packet delay variation, D99.9 - Dmin (RFC 8219 7.3.1)",
        unit="ns",
        better="lower",
        sections={"RFC 8219": "7.3.1"},
    ),
    Procedure(
        name="ipdv",
        family="fixed load",
        title="Inter-packet delay variation",
        finds="How delays change from frame to frame at a fixed load (RFC 8219 7.3.2).",
        heading="Inter-packet delay variation (RFC 8219 7.3.2)",
        unit="ns",
        better="lower",
        sections={"RFC 8219": "7.3.2"},
    ),
)
PROCEDURES: Mapping[ProcedureName, Procedure] = {each.name: each for each in _ALL}
"""In the order in which results are told."""


def names_of(family: Family) -> tuple[ProcedureName, ...]:
    """Its procedures."""
    return tuple(each.name for each in _ALL if each.family == family)
