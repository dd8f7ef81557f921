"""Every procedure once: what it is called, what it finds, whose it is.

Facts only, for all who name a procedure: commands, tables, reports, conformance. What
it may be told is its model's (``config.specs``), how it is measured
``procedures.measurements``'. There is no other list of procedures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

ProcedureName = Literal[
    "throughput",
    "multicast-throughput",
    "frame-loss",
    "back-to-back",
    "latency",
    "pdv",
    "ipdv",
    "dns64",
    "dns",
    "tcp-connection-rate",
    "tcp-capacity",
    "tcp-request-rate",
    "tcp-teardown-rate",
    "tcp-half-open",
    "idle-timeout",
    "nat-behaviour",
    "port-limit",
    "nat-log",
    "connection-rate",
    "table-capacity",
    "teardown-rate",
    "system-recovery",
    "outage",
    "power",
    "soak",
]
Family = Literal[
    "rate search",
    "load sweep",
    "burst search",
    "fixed load",
    "connections",
    "load over time",
    "energy",
]
Unit = Literal[
    "fps",
    "percent",
    "frames",
    "ns",
    "queries/s",
    "connections/s",
    "connections",
    "ports",
    "nJ/bit",
]


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
    metric: name of its figure in OpenMetrics.
    examples: whole command lines, as the end of the command's help has them.
    limit: where an RFC asks for more than a lower bound of it, and for what.
    varied: what the trials of its search differ in; None: it searches nothing.
    value: name of its one value over numbers of flows (RFC 8219 10.2); empty: it has
        none, or several with names of their own.
    also: what operators call its figure, or what it finds.
    figures: names of the figures of each cell, where it has several, and what people
        call them.
    """

    name: ProcedureName
    family: Family
    title: str
    finds: str
    heading: str
    unit: Unit
    better: Literal["higher", "lower"]
    sections: Mapping[str, str]
    metric: str
    examples: tuple[str, ...]
    limit: tuple[str, str] = (
        "RFC 2544 26.1",
        "the fastest rate at which the device loses no frame",
    )
    varied: Literal["rate", "burst"] | None = None
    value: str = ""
    also: tuple[str, ...] = ()
    figures: Mapping[str, str] = field(default_factory=dict)
    statistic: Literal["median", "average"] = "median"

    @property
    def noun(self) -> str:
        """Its title within a sentence: TCP stays TCP."""
        return self.title if self.title[:2].isupper() else self.title.lower()


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
        metric="throughput",
        examples=(
            "dutperf throughput --lab known-answer --quick",
            "dutperf throughput testbed.yaml --standard --frame-size all",
            "dutperf throughput testbed.yaml --repeats auto --interval-width 0.5%",
        ),
        varied="rate",
        value="throughput",
        also=("NDR", "no-drop rate"),
    ),
    Procedure(
        name="multicast-throughput",
        family="rate search",
        title="Multicast throughput",
        finds="Fastest rate at which no frame to a group is lost (RFC 3918 4.3).",
        heading="Multicast throughput, zero loss (RFC 3918 4.3)",
        unit="fps",
        better="higher",
        sections={"RFC 3918": "4.3"},
        metric="multicast_throughput",
        examples=(
            "dutperf multicast-throughput --lab known-answer --quick",
            "dutperf multicast-throughput testbed.yaml --ip 4 --group 239.192.0.1",
        ),
        limit=("RFC 3918 4.3", "the fastest rate at which no frame is lost"),
        varied="rate",
        value="multicast throughput",
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
        metric="frame_loss",
        examples=(
            "dutperf frame-loss --lab known-answer --quick",
            "dutperf frame-loss testbed.yaml --rate throughput --load 110 --load 100",
        ),
        value="loss at the highest load",
        also=("loss", "packet loss"),
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
        metric="longest_burst",
        examples=(
            "dutperf back-to-back --lab known-answer --quick",
            "dutperf back-to-back testbed.yaml --longest-burst 2 --repeats 50",
        ),
        limit=("RFC 9004 6.2", "a longest burst below the longest tried"),
        varied="burst",
        value="longest burst",
        statistic="average",
        also=("burst capacity",),
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
        metric="system_recovery",
        examples=(
            "dutperf system-recovery --lab known-answer --quick",
            "dutperf system-recovery testbed.yaml --throughput 100000 --repeats 20",
        ),
        value="recovery time",
        statistic="average",
        also=("recovery",),
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
        metric="outage",
        examples=(
            "dutperf outage --lab known-answer --quick --rate 10000",
            "dutperf outage testbed.yaml --rate 100000 --trial-duration 300",
        ),
        value="outage",
        statistic="average",
        also=("failover time", "convergence time", "reset time"),
    ),
    Procedure(
        name="power",
        family="energy",
        title="Energy per bit",
        finds="Watts idle and by load, energy per packet and bit.",
        heading="Energy per bit forwarded at full load, and watts by load",
        unit="nJ/bit",
        better="lower",
        sections={"draft-ietf-bmwg-powerbench": "Abstract"},
        metric="energy_per_bit",
        examples=(
            "dutperf power testbed.yaml",
            "dutperf power testbed.yaml --rate 100000 --load 50,100",
        ),
        value="energy per bit",
        statistic="average",
        also=("energy",),
    ),
    Procedure(
        name="soak",
        family="load over time",
        title="Soak",
        finds="What changes under a load that lasts for hours: losses, delays, and "
        "what the device tells of itself.",
        heading="Soak, frames lost under a load that lasts for hours",
        unit="percent",
        better="lower",
        sections={"RFC 2544": "26.3", "RFC 5180": "7.3", "RFC 8219": "7.4"},
        metric="soak_loss",
        examples=(
            "dutperf soak --lab known-answer --rate 10k --quick",
            "dutperf soak testbed.yaml --rate '90% of throughput' --hours 24",
        ),
        value="loss",
        also=("endurance", "long-run stability"),
    ),
    Procedure(
        name="dns64",
        family="rate search",
        title="DNS64 queries",
        finds="Fastest rate at which a DNS64 server answers each query (RFC 8219 9.2).",
        heading="DNS64 resolution performance (RFC 8219 9.2)",
        unit="queries/s",
        better="higher",
        sections={"RFC 8219": "9.2"},
        metric="dns64_queries",
        examples=(
            "dutperf dns64 --lab unbound-dns64 --quick",
            "dutperf dns64 testbed.yaml --aaaa 20 --repeats 20",
        ),
        limit=("RFC 8219 9.2", "the fastest rate at which each query is answered"),
        varied="rate",
        value="queries answered",
        also=("QPS",),
    ),
    Procedure(
        name="dns",
        family="rate search",
        title="DNS queries",
        finds="Fastest rate at which a DNS resolver answers each query.",
        heading="DNS resolution performance (by the method of RFC 8219 9.2)",
        unit="queries/s",
        better="higher",
        sections={"RFC 8219": "9.2"},
        metric="dns_queries",
        examples=(
            "dutperf dns --lab unbound --quick",
            "dutperf dns testbed.yaml --record AAAA --cached 80",
        ),
        limit=("RFC 8219 9.2", "the fastest rate at which each query is answered"),
        varied="rate",
        value="queries answered",
    ),
    Procedure(
        name="tcp-connection-rate",
        family="rate search",
        title="TCP connection rate",
        finds="Fastest rate at which all TCP connections open (RFC 8219 8).",
        heading="TCP connection rate (RFC 8219 8, RFC 3511 5.3)",
        unit="connections/s",
        better="higher",
        sections={"RFC 3511": "5.3", "RFC 8219": "8"},
        metric="tcp_connection_rate",
        examples=(
            "dutperf tcp-connection-rate --lab nft-nat44 --quick",
            "dutperf tcp-connection-rate testbed.yaml --until answered",
        ),
        limit=(
            "RFC 3511 5.3",
            "the fastest rate at which all connections open and are answered",
        ),
        varied="rate",
        value="TCP connection rate",
        also=("TCP CPS",),
    ),
    Procedure(
        name="tcp-capacity",
        family="connections",
        title="TCP connection capacity",
        finds="How many TCP connections stay open, a GET answered on each (RFC 8219 "
        "8).",
        heading="TCP connection capacity (RFC 8219 8, RFC 3511 5.2)",
        unit="connections",
        better="higher",
        sections={"RFC 3511": "5.2", "RFC 8219": "8"},
        metric="tcp_capacity",
        examples=(
            "dutperf tcp-capacity --lab nft-nat44 --connections 100000 --first 1000",
        ),
        limit=("RFC 3511 5.2", "the device's capacity"),
        also=("concurrent TCP connections", "TCP CC"),
    ),
    Procedure(
        name="tcp-request-rate",
        family="connections",
        title="TCP request rate",
        finds="Fastest rate of GETs on open TCP connections (RFC 8219 8).",
        heading="TCP request rate, GETs on open connections (RFC 8219 8, RFC 3511 5.6)",
        unit="connections/s",
        better="higher",
        sections={"RFC 3511": "5.6", "RFC 8219": "8"},
        metric="tcp_request_rate",
        examples=(
            "dutperf tcp-request-rate testbed.yaml --connections 9k --phase1-rate 5k",
        ),
        limit=("RFC 3511 5.6", "the fastest rate at which all GETs are answered"),
        varied="rate",
        also=("HTTP requests per second", "HTTP RPS"),
    ),
    Procedure(
        name="tcp-teardown-rate",
        family="connections",
        title="TCP tear-down rate",
        finds="Fastest rate at which open TCP connections close (RFC 8219 8).",
        heading="TCP tear-down rate (RFC 8219 8, RFC 3511 5.4)",
        unit="connections/s",
        better="higher",
        sections={"RFC 3511": "5.4", "RFC 8219": "8"},
        metric="tcp_teardown_rate",
        examples=(
            "dutperf tcp-teardown-rate testbed.yaml --connections 9k --phase1-rate 5k",
        ),
        limit=("RFC 3511 5.4", "the fastest rate at which all connections close"),
        varied="rate",
        also=("TCP closing rate",),
    ),
    Procedure(
        name="tcp-half-open",
        family="connections",
        title="Half-open TCP connections",
        finds="How many TCP connections wait for their ACK (RFC 8219 8).",
        heading="Half-open TCP connections (RFC 8219 8, RFC 3511 5.5)",
        unit="connections",
        better="higher",
        sections={"RFC 3511": "5.5", "RFC 8219": "8"},
        metric="tcp_half_open",
        examples=(
            "dutperf tcp-half-open --lab nft-nat44 --connections 100000 --first 1000",
        ),
        limit=("RFC 3511 5.5", "how many the device holds"),
        also=("SYN flood capacity", "embryonic connections"),
    ),
    Procedure(
        name="idle-timeout",
        family="connections",
        title="Idle timeout",
        finds="How long a gateway keeps a connection that nobody uses (RFC 4787).",
        heading="Idle timeout of connections (RFC 4787 REQ-5, RFC 5382 REQ-5)",
        unit="ns",
        better="higher",
        sections={"RFC 4787": "4.3", "RFC 5382": "5"},
        metric="idle_timeout",
        examples=(
            "dutperf idle-timeout --lab nft-nat44 --hold 300",
            "dutperf idle-timeout testbed.yaml --state established --hold 60",
        ),
        limit=("RFC 4787 4.3", "how long the device waits"),
        also=("session timeout", "NAT mapping timeout", "UDP timeout"),
    ),
    Procedure(
        name="nat-behaviour",
        family="connections",
        title="NAT behaviour",
        finds="What a NAT does with addresses and ports, held against RFC 4787.",
        heading="NAT behaviour, requirements met (RFC 4787)",
        unit="percent",
        better="higher",
        sections={"RFC 4787": "4"},
        metric="nat_behaviour",
        examples=(
            "dutperf nat-behaviour --lab nft-nat44",
            "dutperf nat-behaviour testbed.yaml --initiator-ports 2000-2255",
        ),
        limit=("RFC 4787 4", "what the device does"),
        also=("NAT type", "cone or symmetric NAT", "full cone"),
    ),
    Procedure(
        name="port-limit",
        family="connections",
        title="Port limit",
        finds="How many ports and sessions a NAT lets a host have (RFC 6888 REQ-4).",
        heading="Ports that a host may have (RFC 6888 REQ-4, REQ-5)",
        unit="ports",
        better="higher",
        sections={"RFC 6888": "3"},
        metric="port_limit",
        examples=(
            "dutperf port-limit --lab nft-nat44",
            "dutperf port-limit testbed.yaml --initiator-ports 2000-4047",
        ),
        limit=("RFC 6888 3", "how many the device gives to a host"),
        also=("ports per subscriber", "session limit"),
    ),
    Procedure(
        name="nat-log",
        family="connections",
        title="NAT log",
        finds="Whether a NAT logs each of its mappings, and as what it is.",
        heading="NAT log, mappings named (RFC 6888)",
        unit="percent",
        better="higher",
        sections={"RFC 6888": "4"},
        metric="nat_log",
        examples=(
            "dutperf nat-log --lab nft-nat44",
            "dutperf nat-log testbed.yaml --phase1-rate 50k --tests 8",
        ),
        limit=("RFC 6888 4", "what the device logs"),
        also=("CGN logging", "legal logs", "NAT event logging"),
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
        metric="connection_establishment",
        examples=("dutperf connection-rate --lab nft-nat44 --connections 10000",),
        limit=("RFC 9693 4.5", "the device's maximum rate"),
        varied="rate",
        also=("CPS", "new sessions per second", "connection setup rate"),
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
        metric="table_capacity",
        examples=(
            "dutperf table-capacity --lab nft-nat44 --connections 100000 --first 1000",
        ),
        limit=("RFC 9693 4.9", "the device's capacity"),
        also=("concurrent sessions", "concurrent connections", "NAT table size"),
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
        metric="connection_teardown",
        examples=(
            "dutperf teardown-rate --lab nft-nat44 --connections 10000 --rate 5000",
        ),
        also=("session tear-down rate",),
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
        metric="latency",
        examples=(
            "dutperf latency --lab known-answer --quick --rate throughput",
            "dutperf latency testbed.yaml --rate 100000 --tags 500",
        ),
        also=("delay",),
        figures={"TL": "typical latency", "WCL": "worst case latency"},
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
        metric="pdv",
        examples=(
            "dutperf pdv --lab known-answer --quick --rate throughput",
            "dutperf pdv testbed.yaml --rate throughput",
        ),
        also=("jitter",),
        figures={
            "PDV": "packet delay variation",
            "Dmin": "smallest delay",
            "D99.9": "largest delay",
        },
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
        metric="ipdv",
        examples=(
            "dutperf ipdv --lab known-answer --quick --rate throughput",
            "dutperf ipdv testbed.yaml --rate 100000",
        ),
        figures={
            "IPDV max": "largest inter packet delay variation",
            "IPDV median": "median inter packet delay variation",
            "IPDV min": "smallest inter packet delay variation",
        },
    ),
)
PROCEDURES: Mapping[ProcedureName, Procedure] = {each.name: each for each in _ALL}
"""In the order in which results are told."""
