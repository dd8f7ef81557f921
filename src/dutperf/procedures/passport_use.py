"""What a cell needs of the tester's passport, and how its result stands to it.

A passport is made without a device, so a translator's cell has an entry for the frames
of each side: the tester is as fast as with the slower of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dutperf.catalogue import PROCEDURES
from dutperf.config.flows import directions, ends
from dutperf.config.sizes import frame_versions
from dutperf.model.cell import Cell
from dutperf.model.frames import version_of
from dutperf.model.ports import Ports
from dutperf.model.traffic import Traffic
from dutperf.protocol.trial_messages import Dns
from dutperf.results.details import Measure, MeasuredValue
from dutperf.results.model import CellResult
from dutperf.results.passport import (
    Passport,
    PassportDelay,
    PassportEntry,
    PassportUse,
    Sent,
)
from dutperf.results.rate_results import Finding
from dutperf.results.trial_record import TrialRecord
from dutperf.results.units import in_unit

_IPV6_LONGER = 20
"""Whose figure is a rate of frames; of others it is their load."""
MOST_CONNECTIONS = 100_000
_SELF_TEST = 2.2
"""How much faster than the device a tester answers itself (RFC 8219 9.2.1): 2 * 1.1."""
_FREE = {
    "name",
    "ttl",
    "dscp",
    "df",
    "burst_frames",
    "load_shape",
    "routes",
    "route_changes",
    "port_pattern",
    "management",
}
"""Keys of a profile that cost the tester nothing; bursts are judged by their rate.

A packet or two a second to the device, which a passport is made without, is nothing.
"""


def sent_by(cell: Cell) -> list[Sent]:
    """What of a passport the cell needs.

    Of connections the tester learns no more than ``MOST_CONNECTIONS``: a test of the
    tester need not take longer than the measurement. Of frames that arrive in pieces
    nothing: only a device makes such. Nor of a capture, which nobody else has. Nor of
    several ports on a side: a passport is one of two ports, and a tester that serves
    more of them is another one.
    """
    traffic = cell.traffic
    if traffic.fragmented or traffic.pcap or cell.pairs > 1:
        return []
    opened = cell.stateful
    beside: dict[str, Any] = {"features": features(traffic)}
    if opened:
        number = min(opened.connections, MOST_CONNECTIONS)
        opens = cell.phase2 is None
        way = "opened" if opens else "open"
        told = [f"{number:,} connections {way}", *_features(traffic, ports=False)]
        beside = {
            "connections": number,
            "opens": opens,
            "features": ", ".join(told),
        }
    tcp = cell.spec.tcp
    if tcp:
        told = [f"TCP connections, {tcp.until}", *_features(traffic)]
        # What is sent again costs the tester nothing where nothing is lost.
        once = tcp.model_copy(update={"retransmit": 0})
        beside = {"tcp": once, "features": ", ".join(told)}
    versions = {version_of(cell.ip, "left"), version_of(cell.ip, "right")}
    if cell.spec.dns:
        told = ["queries that the tester answers itself", *_features(traffic)]
        beside = {"dns": Dns(names=0, aaaa_percent=100, prefix="::")}
        beside |= {"features": ", ".join(told)}
        (way,) = directions(cell)
        versions = {version_of(cell.ip, ends(way)[0])}
    both = len(frame_versions(cell.ip, traffic)) > 1
    return [
        Sent(
            ip=ip,
            frame_sizes=[
                size - _IPV6_LONGER
                if both and frame_versions(ip, traffic) == {4}
                else size
                for size in cell.frame_sizes
            ],
            direction=opened.direction
            if opened and cell.phase2 is None
            else cell.direction,
            traffic=costly(traffic),
            **beside,
        )
        for ip in sorted(versions)
    ]


def costly(traffic: Traffic) -> dict[str, Any]:
    """The keys of a profile that cost the tester something, without defaults."""
    return traffic.model_dump(exclude=_FREE, exclude_defaults=True, mode="json")


def features(traffic: Traffic) -> str:
    """What of a profile costs the tester something, in words."""
    return ", ".join(_features(traffic))


def _features(traffic: Traffic, *, ports: bool = True) -> Iterator[str]:
    """``ports``: they are the profile's, and not those of connections."""
    if traffic.flows is not None:
        yield f"{traffic.flows:,} flows by {traffic.flows_by}"
    elif ports:
        yield _of_ports(traffic.ports)
    hosts = {side: traffic.addresses.count(side) for side in ("left", "right")}
    if traffic.flows is None and max(hosts.values()) > 1:
        yield f"{hosts['left']:,} and {hosts['right']:,} addresses"
    networks = traffic.networks
    if max(networks.left, networks.right) > 1:
        yield f"{networks.left} and {networks.right} networks"
    if traffic.has_background:
        yield f"mix {traffic.mix} with IPv{traffic.background_ip}"
    if traffic.ipv6_headers:
        yield f"IPv6 with {', '.join(traffic.ipv6_headers)}"
    if traffic.ipv4_options:
        yield f"IPv4 with {', '.join(traffic.ipv4_options)}"
    if traffic.beside:
        yield traffic.beside.words
    if traffic.imix:
        yield f"IMIX {traffic.imix.sequence}"
    if traffic.flow_label == "random":
        yield "random flow labels"
    if traffic.mac == "random":
        yield "random MAC addresses"
    if traffic.ignore_checksums:
        yield "checksums not verified"


def _of_ports(ports: Ports) -> str:
    fields = (ports.source.mode, ports.destination.mode)
    if len(set(fields)) == 1:
        return f"{fields[0]} ports"
    return f"{fields[0]} source, {fields[1]} destination ports"


def entries_of(cell: Cell, passport: Passport | None) -> list[PassportEntry]:
    """Those that the cell needs, if the passport has them all."""
    needed = sent_by(cell)
    if passport is None:
        return []
    found = [entry for entry in map(passport.entry, needed) if entry is not None]
    return found if len(found) == len(needed) else []


def first_load_fps(cell: Cell, passport: Passport | None) -> int | None:
    """Where a search of the cell may begin: what is safe for the tester."""
    safe = [entry.safe_rate_fps for entry in entries_of(cell, passport)]
    if cell.spec.dns:
        safe = [None if fps is None else int(fps / _SELF_TEST) for fps in safe]
    known = [rate_fps for rate_fps in safe if rate_fps is not None]
    return min(known) if known and len(known) == len(safe) else None


def beside_passport(
    result: CellResult,
    cell: Cell,
    passport: Passport | None,
    records: Sequence[TrialRecord],
) -> CellResult:
    """The result with its share of the passport, marked where the tester is near."""
    entries = entries_of(cell, passport)
    if passport is None or not entries:
        return result
    slower = min(entries, key=lambda entry: entry.safe_rate_fps or 0)
    rate_fps = _rate_of(result, records)
    if slower.sent.dns and rate_fps:
        rate_fps *= _SELF_TEST
    safe_fps = slower.safe_rate_fps
    use = PassportUse(
        passport=passport.owner.name,
        features=slower.sent.features,
        safe_rate_fps=safe_fps,
        trials=slower.trials,
        why_not_more=slower.why_not,
        rate_fps=rate_fps,
        share_percent=100 * rate_fps / safe_fps if rate_fps and safe_fps else None,
        floor=slower.floor,
        device_share_percent=_device_share(slower, rate_fps, len(directions(cell))),
    )
    marks = [_mark(use)] if use.near else []
    floor = slower.floor
    measures = (
        [_above(floor, measure) for measure in result.measures]
        if floor
        else result.measures
    )
    return result.model_copy(
        update={
            "passport": use,
            "findings": [*result.findings, *marks],
            "measures": measures,
        }
    )


def _above(floor: PassportDelay, measure: Measure) -> Measure:
    """Figures that are below what the tester's own way takes are told as that."""
    least_ns = {
        "TL": floor.typical_ns,
        "latency": floor.typical_ns,
        "WCL": floor.worst_ns,
        "PDV": floor.worst_ns - floor.minimum_ns,
    }.get(measure.name)
    if least_ns is None:
        return measure

    def told(figure: MeasuredValue) -> MeasuredValue:
        if figure.value is None or figure.value >= least_ns:
            return figure
        return figure.model_copy(update={"below_ns": float(least_ns)})

    return measure.model_copy(
        update={
            "repeats": list(map(told, measure.repeats)),
            "result": told(measure.result),
            "percentile_1": told(measure.percentile_1),
            "percentile_99": told(measure.percentile_99),
        }
    )


def _rate_of(result: CellResult, records: Sequence[TrialRecord]) -> float | None:
    """The rate that was found; of other results the highest of their valid trials.

    Of bursts the rate within them, which the tester has to keep up with, too.
    """
    valid = [
        record
        for record in records
        if record.cell == result.id
        and record.role in {"trial", "phase1"}
        and record.result.verdict.kind != "invalid"
    ]
    if result.cell.traffic.burst_frames:
        sent = [direction for r in valid for direction in r.request.directions]
        return max((direction.rate_fps for direction in sent), default=None)
    if PROCEDURES[result.procedure].varied == "rate":
        return result.median
    return max((record.load_fps for record in valid), default=None)


def _device_share(
    entry: PassportEntry, rate_fps: float | None, ways: int
) -> float | None:
    each_ns = entry.device_ns_per_frame
    if each_ns is None or not rate_fps:
        return None
    return min(100.0, each_ns * rate_fps * ways / 1e7)


def _mark(use: PassportUse) -> Finding:
    rate, safe = (in_unit(fps or 0, "fps") for fps in (use.rate_fps, use.safe_rate_fps))
    share = use.share_percent or 0
    told = (
        "the device may do more"
        if share <= 100
        else "what was measured there is judged by its own trials alone"
    )
    beyond = (
        f"; beyond it, without a device: {use.why_not_more}" if use.why_not_more else ""
    )
    return Finding(
        kind="near_limit",
        of="rate",
        message=f"{rate} is {share:.0f} % of the tester's own limit, {safe} "
        f"({use.features}; passport {use.passport}): {told}{beyond}",
        unit="fps",
        numbers={"share_percent": share},
    )
