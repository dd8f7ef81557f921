"""What every cell's result has: what follows from the cell, and from its repeats.

    CellResult(**of_cell(cell, limit), **of_repeats(repeats), quantity=..., ...)

What is particular to a procedure it gives itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict

from dutperf import packets
from dutperf.catalogue import PROCEDURES, ProcedureName, Unit
from dutperf.config import conformance_of
from dutperf.config.deviations import deviations
from dutperf.config.phase2 import timing_of
from dutperf.config.sizes import captured_words, sizes_text
from dutperf.model.cell import Cell
from dutperf.model.fields import AUTO, GoalSpec
from dutperf.model.frames import version_of
from dutperf.model.ports import Ports
from dutperf.model.rate_specs import RateSearchKeys
from dutperf.model.specs import LatencySpec, LoadKeys
from dutperf.model.stateful_keys import Stateful
from dutperf.model.traffic import LOWEST_IPV6_MTU
from dutperf.packets import read_udp
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.searching import least_rate_of
from dutperf.procedures.trials import distinct
from dutperf.protocol.base import DirectionName
from dutperf.protocol.result_messages import Reason, VerdictKind
from dutperf.protocol.stream_messages import GENERATOR
from dutperf.protocol.trial_messages import Announcement
from dutperf.results.bounds import Overall, overall
from dutperf.results.model import CellResult
from dutperf.results.rate_results import (
    BesideCount,
    Bound,
    BoundCause,
    GoalResult,
    ManagementCount,
    RepeatResult,
    Spread,
)
from dutperf.results.trial_record import TrialRecord
from dutperf.results.words import unanswered
from dutperf.standards import Deviation

# What a cell's result says about how it was made.


Parameters = dict[str, str | int | float | bool | None]

_TOLD_OTHERWISE = {
    "procedure",
    "testbeds",
    "ip",
    "frame_size",
    "direction",
    "repeats",
    "load_percent",
    "load_step_percent",
    "max_rate_fps",
    "traffic",
    "flows",
    "sweep",
    "stateful",
    "timeout_sweep_ms",
    "percentiles",
    "goals",
    "interval_width",
    "max_repeats",
}
_UNSAID = ("rfc2544_latency", "loss_tolerance_percent")
"""Keys that are told only if they are set."""


def cell_parameters(cell: Cell, limit: MaxRate) -> Parameters:
    """The cell's settings, and of a search or curve the rate that 100 % stands for."""
    spec = cell.spec
    unset = {key for key in _UNSAID if not getattr(spec, key, None)}
    given = spec.model_dump(exclude=_TOLD_OTHERWISE | unset, exclude_none=True)
    settings: Parameters = {
        key: value[0] if isinstance(value, list) else value  # a cell has one of each
        for key, value in given.items()
    }
    settings |= {
        "ip": cell.ip,
        "direction": cell.direction,
        "repeats": cell.repeats,
        "seed": cell.seed,
    }
    limits: Parameters = {"max_load_fps": limit.rate_fps, "max_load_is": limit.kind}
    if isinstance(spec, LoadKeys):
        limits = _of_load(spec, limit)
    if spec.timeout_sweep_ns:
        each = ", ".join(f"{ns / 1e6:.12g}" for ns in spec.timeout_sweep_ns)
        limits["timeout_sweep_ms"] = each
    if isinstance(spec, LatencySpec) and spec.percentiles:
        limits["percentiles"] = ", ".join(f"{each:.12g}" for each in spec.percentiles)
    if cell.stateful:
        limits |= _connections(cell.stateful) | _phases(cell)
    if isinstance(spec, RateSearchKeys):
        limits |= _of_search(cell, spec)
    return settings | limits | _frames(cell) | _traffic(cell) | _paths(cell)


def _paths(cell: Cell) -> Parameters:
    """Of several ports on a side (RFC 2544 16)."""
    if cell.pairs == 1:
        return {}
    pattern = cell.traffic.port_pattern or "mesh"
    return {"port_pairs": cell.pairs, "port_pattern": pattern}


def _of_load(spec: LoadKeys, limit: MaxRate) -> Parameters:
    """Where the load is not the number that was given, what it is."""
    per_flow_fps = spec.rate_per_flow_fps
    if per_flow_fps is not None:
        return {"rate_fps": limit.rate_fps, "rate_per_flow_fps": per_flow_fps}
    return {"rate_fps": limit.rate_fps} if limit.kind == "found" else {}


def _of_search(cell: Cell, spec: RateSearchKeys) -> Parameters:
    found: Parameters = {}
    if cell.auto:
        found["repeats"] = f"{AUTO}, at most {cell.repeats}"
        found |= {"interval_width": spec.interval_width, "max_repeats": cell.repeats}
    if spec.goals:
        found |= {"goals": _goals(spec.goals), "min_load_fps": least_rate_of(cell)}
    return found


def _connections(stateful: Stateful) -> Parameters:
    """What RFC 9693 6 wants to be reported; it replaces times and ports."""
    least, most = stateful.destinations
    found: Parameters = {
        "initiator": stateful.initiator,
        "connections": stateful.connections,
        "combinations": stateful.combinations,
        "source_ports": stateful.source_ports,
        "destination_ports": f"{least}-{most}",
        "source_addresses": stateful.source_addresses,
        "destination_addresses": stateful.destination_addresses,
        "order": stateful.order,
        "timeout_ms": stateful.timeout_ms,
    }
    if stateful.alpha is not None:
        found["alpha"] = stateful.alpha
    if stateful.dut_timeout_s is not None:
        found["dut_timeout_s"] = stateful.dut_timeout_s
    if stateful.table_size is not None:
        found["table_size"] = stateful.table_size
    if stateful.first is not None:
        found |= {
            "first": stateful.first,
            "error": stateful.error,
            "beta": stateful.beta,
            "gamma": stateful.gamma,
        }
    if stateful.public_addresses is not None:
        found["public_addresses"] = stateful.public_addresses
    return found


def _phases(cell: Cell) -> Parameters:
    """Of a trial on open connections: when it starts, and what the device must keep."""
    stateful, timing = cell.phase2, timing_of(cell)
    if stateful is None or timing is None:
        return {}
    found: Parameters = {
        "phase1_rate": timing.rate_fps,
        "phase2_after_ms": timing.start_ms,
        "needed_dut_timeout_s": round(timing.dut_timeout_s, 3),
        "responder_order": stateful.responder_order,
    }
    if stateful.transport != "udp":
        found["transport"] = stateful.transport
    if cell.connection_cell:
        found["phase1_rate_of"] = cell.connection_cell
    return found


def _goals(goals: Sequence[GoalSpec]) -> str:
    """As they are given; results have each goal with all its attributes."""
    return ", ".join(
        f"{g.loss_percent:.12g}%:{g.exceed_percent:.12g}%:{g.duration_sum_s:.12g}s"
        for g in goals
    )


def _frames(cell: Cell) -> Parameters:
    """``frame_size`` is the size that was given, where there is one."""
    one = None if cell.imix else cell.frame_sizes[0]
    return {
        "frame_size": one,
        "frame_sizes": sizes_text(cell),
        "ip_left": version_of(cell.ip, "left"),
        "ip_right": version_of(cell.ip, "right"),
    }


def _traffic(cell: Cell) -> Parameters:
    """The traffic profile in words; the trials' requests hold every number."""
    traffic = cell.traffic
    networks, hosts, ports = traffic.networks, traffic.addresses, traffic.ports
    background = f", background IPv{traffic.background_ip}"
    found: Parameters = {
        "traffic": traffic.label,
        "ports": _ports(ports, "forward"),
        "addresses": f"left {hosts.left or 'fixed'}; right {hosts.right or 'fixed'}",
        "networks": f"left {networks.left}, right {networks.right}",
        "mix": traffic.mix + (background if traffic.has_background else ""),
        "ttl": traffic.ttl,
        "dscp": traffic.dscp,
        "df": traffic.df,
        "ignore_checksums": traffic.ignore_checksums,
        "flow_label": traffic.flow_label,
        "mac": traffic.mac,
        "generator": GENERATOR,
    }
    if traffic.pcap:
        left, right = hosts.count("left"), hosts.count("right")
        found |= {
            "ports": "those of the capture",
            "addresses": f"left {left}, right {right}; in the capture's order",
            "capture": captured_words(cell),
        }
    if traffic.flows is not None:
        found |= {
            "profile": traffic.own_label,
            "flows": traffic.flows,
            "flows_by": traffic.flows_by,
        }
    for key in ("ipv6_headers", "ipv4_options"):
        if listed := getattr(traffic, key):
            found[key] = ", ".join(listed)
    if traffic.load_shape:
        found["load_shape"] = traffic.load_shape.model_dump_json(exclude_defaults=True)
    if traffic.fragmented:
        found["fragmented"] = True
    if traffic.lowest_ipv6_mtu != LOWEST_IPV6_MTU:
        found["lowest_ipv6_mtu"] = traffic.lowest_ipv6_mtu
    if traffic.routes != "static":
        found["routes"] = traffic.routes
    if traffic.route_changes:
        found["route_changes"] = True
    if traffic.management:
        found["management"] = True
    if traffic.beside:
        found["beside"] = traffic.beside.words
    if ports.reverse:
        found["ports_reverse"] = _ports(ports, "reverse")
    return found


def _ports(ports: Ports, direction: DirectionName) -> str:
    source, destination = ports.of(direction)
    return f"source {source}, destination {destination}"


def with_conformance(cell: Cell, result: CellResult) -> CellResult:
    """``result`` with what may be said of it in the words of the RFCs."""
    valid, bound = result.verdict != "invalid", result.bound is not None
    said = conformance_of(cell, result.deviations, valid=valid, bound=bound)
    return result.model_copy(update={"conformance": said})


class OfCell(TypedDict):
    """Fields of a ``CellResult``, by its cell."""

    id: str
    cell: Cell
    procedure: ProcedureName
    unit: Unit
    parameters: Parameters
    deviations: list[Deviation]


def of_cell(cell: Cell, limit: MaxRate, beside: Iterable[Deviation] = ()) -> OfCell:
    """What a cell's result has by its settings; ``beside``: what else falls short."""
    return {
        "id": cell.id,
        "cell": cell,
        "procedure": cell.procedure,
        "unit": PROCEDURES[cell.procedure].unit,
        "parameters": cell_parameters(cell, limit),
        "deviations": [*deviations(cell), *beside],
    }


class OfRepeats(TypedDict):
    """Fields of a ``CellResult``, by its repeats."""

    repeats: list[RepeatResult]
    median: float | None
    bound: Bound
    bound_cause: BoundCause
    spread: Spread | None
    verdict: VerdictKind
    reasons: list[Reason]


def of_repeats(
    repeats: list[RepeatResult],
    found: Overall | None = None,
    judged: Sequence[RepeatResult] | Sequence[GoalResult] = (),
    beside: Iterable[Reason] = (),
) -> OfRepeats:
    """What a cell's result has by its repeats: the median is the result.

    Args:
        repeats: those that count.
        found: what they say together, where that is known already.
        judged: what verdict and reasons are of, if not of the repeats.
        beside: further reasons.
    """
    found = found or overall(repeats)
    judged = judged or repeats
    verdicts = {each.verdict for each in judged}
    valid: VerdictKind = "pass" if "pass" in verdicts else "fail"
    reasons = [reason for each in judged for reason in each.reasons]
    return {
        "repeats": repeats,
        "median": found.median,
        "bound": found.bound,
        "bound_cause": found.bound_cause,
        "spread": found.spread,
        "verdict": "invalid" if "invalid" in verdicts else valid,
        "reasons": [*distinct(reasons), *beside],
    }


# Management queries and frames beside the stream, of all trials of a cell.


def with_management(
    result: CellResult, cell: Cell, records: Iterable[TrialRecord]
) -> CellResult:
    """``result`` with what came of its queries, if ``cell`` has any.

    Counted in the trials that passed, as what an overloaded device drops is its load's
    to tell; if none passed, in all valid ones.

    Args:
        result: of the cell.
        cell: what was measured.
        records: trials, the cell's among them.
    """
    if not cell.traffic.management:
        return result
    own = [r for r in records if r.cell == result.id and r.role == "trial"]
    passed = [r for r in own if r.result.verdict.kind == "pass"]
    valid = [r for r in own if r.result.verdict.kind != "invalid"]
    counts = [count for record in passed or valid for count in _of_trial(record)]
    slowest = [c.slowest_ns for c in counts if c.slowest_ns is not None]
    count = ManagementCount(
        asked=sum(c.asked for c in counts),
        answered=sum(c.answered for c in counts),
        wrong=sum(c.wrong for c in counts),
        slowest_ns=max(slowest, default=None),
    )
    findings = [*result.findings, *unanswered(count)]
    words = "one SNMP query a second (RFC 2544 11.2)"
    return result.model_copy(
        update={
            "quantity": f"{result.quantity}, {words} in the load",
            "management": count,
            "findings": findings,
        }
    )


def _of_trial(record: TrialRecord) -> Iterable[ManagementCount]:
    """At the port that asked, the first one of its side."""
    for port in (port for port in record.result.ports if not port.number):
        told = [a for a in record.request.announcements if a.port == port.name]
        asked = [a for a in told if a.answered_from == packets.PORT]
        if not asked:
            continue
        answers: dict[int, tuple[int, bool]] = {}
        for answer in port.answers:
            packet = bytes.fromhex(answer.packet)
            datagram = read_udp(packet, sound=False)
            response = packets.read_response(datagram.payload) if datagram else None
            if response and 1 <= response.request_id <= len(asked):
                query = asked[response.request_id - 1]
                after_ns = answer.received_ns - (query.at_ns or 0)
                good = read_udp(packet) is not None and _is_full(response, query)
                answers.setdefault(response.request_id, (max(0, after_ns), good))
        delays = [after_ns for after_ns, good in answers.values() if good]
        yield ManagementCount(
            # Those that a full ring did not take were never asked.
            asked=max(0, len(asked) - max(0, len(told) - port.announced)),
            answered=len(delays),
            wrong=len(answers) - len(delays),
            slowest_ns=max(delays, default=None),
        )


def _is_full(response: packets.SnmpResponse, query: Announcement) -> bool:
    """Each variable has a value (RFC 2544 11.2: verified by the test equipment)."""
    datagram = read_udp(bytes.fromhex(query.packet))
    asked = packets.read_request(datagram.payload) if datagram else None
    names = list(response.values)
    return response.error == 0 and asked is not None and names == asked.variables


# Frames beside the stream, in a result: what it is called, and how many came.


def with_beside(
    result: CellResult, cell: Cell, records: Iterable[TrialRecord]
) -> CellResult:
    """``result`` with what it says of them, if ``cell`` has any.

    Counted in the trials that passed: the device was not overloaded there, so what did
    not come was not forwarded on purpose. If none passed, in all valid ones.

    Args:
        result: of the cell.
        cell: what was measured.
        records: trials, the cell's among them.
    """
    beside = cell.traffic.beside
    if beside is None:
        return result
    own = [r for r in records if r.cell == result.id and r.role == "trial"]
    passed = [r for r in own if r.result.verdict.kind == "pass"]
    valid = [r for r in own if r.result.verdict.kind != "invalid"]
    counts: dict[DirectionName, BesideCount] = {}
    for record in passed or valid:
        for each in record.result.directions:
            if each.beside:
                before = counts.get(each.name)
                counts[each.name] = BesideCount(
                    direction=each.name,
                    sent=each.beside.sent + (before.sent if before else 0),
                    received=each.beside.received + (before.received if before else 0),
                )
    return result.model_copy(
        update={
            "quantity": f"{result.quantity}, {beside.words} in the load ({beside.rfc})",
            "beside": list(counts.values()),
        }
    )
