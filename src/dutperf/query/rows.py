"""The rows that a stored run has in each table: what each column holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from dutperf.catalogue import Unit
from dutperf.protocol.base import DirectionName, Side
from dutperf.protocol.result_messages import BesideResult, Histogram, StreamResult
from dutperf.report.source import Source, TestbedRecord
from dutperf.results import CellResult, Environment, Measure, PortRecord, TrialRecord
from dutperf.results.figures import Figure, figures_of
from dutperf.results.rate_results import BesideCount, ManagementCount
from dutperf.stats import histogram_median, histogram_percentile, merged_histogram
from dutperf.tables import Subject
from dutperf.tables.subject import trials_by_cell
from dutperf.visible import visible_json

Row = dict[str, object]
"""Values by the names of a table's own columns."""

_ABOUT = {
    "altered": "frames",
    "unanswered": "queries",
    "routing_fell": "trials",
    "misdirected": "frames",
    "proxied": "connections",
}
"""Kinds of findings that are not about a result's repeats."""
_AS_STORED = (
    *("dutperf_version", "engine_version", "dpdk_version", "os", "kernel"),
    *("cpu_model", "cpus_total", "cores_used", "turbo", "hypervisor", "memory_mb"),
    *("hugepages_used", "seed"),
)
"""Columns of ``environment`` that have the same names there."""


def rows_of(source: Source) -> dict[str, list[Row]]:
    """Those of a run, by table."""
    cells = stored_cells(source)
    return {
        "results": [row for cell in cells for row in _results(source, cell)],
        "trials": [_trial(source, trial) for trial in source.trials],
        "environment": [
            _environment(testbed, testbed.environment)
            for testbed in source.testbeds
            if testbed.environment
        ],
        "findings": list(_findings(source, cells)),
    }


def stored_cells(source: Source) -> list[Subject]:
    """Those with a result, with their own trials."""
    trials = trials_by_cell(source.trials)
    return [
        Subject(
            cell.id,
            device_of(source, cell.place),
            cell.procedure,
            cell,
            tuple(trials.get(cell.id, ())),
        )
        for cell in source.cells
    ]


def device_of(source: Source, place: str | None) -> str:
    """The name of a lab or testbed; a run with one says it once."""
    return (place or "") if source.several else source.testbeds[0].name


def moment(stamp: str) -> datetime | None:
    """An ISO 8601 time stamp as UTC without a zone; None: it is none."""
    try:
        told = datetime.fromisoformat(stamp)
        return told.astimezone(UTC).replace(tzinfo=None) if told.tzinfo else told
    except (ValueError, OverflowError):
        return None


def _results(source: Source, cell: Subject) -> Iterator[Row]:
    if cell.result is None:
        return
    same = _asked(cell) | _of_cell(cell, cell.result) | {"_begun": source.created_at}
    for figure in figures_of(cell.result):
        yield same | _figure(figure, cell) | _beside(figure)


def _asked(cell: Subject) -> Row:
    return {
        "device": cell.testbed or None,
        "cell": cell.id,
        "procedure": cell.procedure,
        "ip": str(cell.cell.ip) if cell.cell else None,
        "frame_size": cell.frame_size,
        "sizes": cell.sizes,
        "traffic": (cell.traffic.label if cell.traffic else "") or None,
        "broadcast_percent": cell.beside_percent("broadcast"),
        "hop_by_hop_percent": cell.beside_percent("hop-by-hop"),
        "spoofed_percent": cell.beside_percent("spoofed"),
        "flood_percent": cell.beside_percent("flood"),
        "flows": cell.flows,
        "connections": cell.connections,
        "judged": cell.judged or None,
        "settings": visible_json(json.dumps(dict(cell.settings))),
    }


def _of_cell(cell: Subject, result: CellResult) -> Row:
    def management(of: Callable[[ManagementCount], int | None]) -> int | None:
        return of(result.management) if result.management else None

    return {
        "trials": cell.trial_count,
        "passport_percent": result.passport and result.passport.share_percent,
        "media_percent": result.media and result.media.share_percent,
        "queries_asked": management(lambda count: count.asked),
        "queries_answered": management(lambda count: count.answered),
        "queries_wrong": management(lambda count: count.wrong),
        "queries_slowest_ns": management(lambda count: count.slowest_ns),
        "quantity": result.quantity,
        "conformance": result.conformance and result.conformance.status,
    }


def _figure(figure: Figure, cell: Subject) -> Row:
    """Where the load of delays was not recorded, that of the cell's trials is told."""
    of_delays = isinstance(figure.stored, Measure)

    def in_unit(unit: Unit) -> float | None:
        return figure.value if figure.unit == unit else None

    return {
        "figure": figure.name,
        "direction": figure.direction or None,
        "stream": figure.stream or None,
        "load_percent": figure.load_percent,
        "load_fps": cell.load_fps if of_delays else figure.load_fps,
        "rate_fps": in_unit("fps"),
        "loss_percent": in_unit("percent"),
        "burst_frames": in_unit("frames"),
        "delay_ns": in_unit("ns"),
        "queries_per_s": in_unit("queries/s"),
        "connections_per_s": in_unit("connections/s"),
        "capacity_connections": in_unit("connections"),
        "energy_nj_per_bit": in_unit("nJ/bit"),
        "_unit": figure.unit,
        "_value": figure.value,
        "_leads": figure.leads,
        "bound": figure.limit,
        "bound_cause": figure.bound_cause,
        "verdict": figure.verdict,
        "interval_lower": figure.interval("interval_lower"),
        "interval_upper": figure.interval("interval_upper"),
        "dispersion_percent": figure.dispersion_percent,
        "repeats": list(figure.repeats),
        "repeats_at_least": figure.repeats_at_least,
    }


def _beside(figure: Figure) -> Row:
    """In the figure's directions; none where nothing was beside the stream."""
    counts = figure.result.beside
    own = [c for c in counts if figure.direction in ("both", c.direction)]

    def frames(of: Callable[[BesideCount], int]) -> int | None:
        return sum(map(of, own)) if own else None

    return {
        "beside_sent_frames": frames(lambda count: count.sent),
        "beside_received_frames": frames(lambda count: count.received),
    }


def _trial(source: Source, trial: TrialRecord) -> Row:
    verdict, directions = trial.result.verdict, trial.result.directions
    lags_ns = [d.lag_ns.max for d in directions if d.lag_ns.max is not None]
    return {
        "device": device_of(source, trial.place) or None,
        "cell": trial.cell,
        "procedure": trial.procedure,
        "trial": trial.number,
        "repeat": trial.repeat,
        "attempt": trial.attempt,
        "role": trial.role,
        "started_at": moment(trial.started_at),
        "load_fps": trial.load_fps,
        "duration_s": trial.request.duration_ns / 1e9,
        "verdict": verdict.kind,
        "reasons": [reason.code for reason in verdict.reasons],
        "lag_max_ns": max(lags_ns, default=None),
        "stalls": sum(len(direction.stalls) for direction in directions),
        **_frames(trial),
        **_lost_in_a_row([s for d in directions for s in d.streams]),
        **_delays([s.delay_ns for d in directions for s in d.streams]),
    }


def _frames(trial: TrialRecord) -> Row:
    directions = trial.result.directions

    def total(of: Callable[[StreamResult], int]) -> int:
        return sum(of(stream) for each in directions for stream in each.streams)

    def lost_of(name: DirectionName) -> int | None:
        own = [direction for direction in directions if direction.name == name]
        return sum(s.lost for each in own for s in each.streams) if own else None

    def beside(of: Callable[[BesideResult], int]) -> int | None:
        found = [direction.beside for direction in directions if direction.beside]
        return sum(map(of, found)) if found else None

    sent, lost = total(lambda s: s.sent), total(lambda s: s.lost)
    return {
        "intended_frames": total(lambda s: s.intended),
        "sent_frames": sent,
        "received_frames": total(lambda s: s.received),
        "lost_frames": lost,
        "lost_frames_forward": lost_of("forward"),
        "lost_frames_reverse": lost_of("reverse"),
        "loss_percent": lost * 100 / sent if sent else None,
        "late_frames": total(lambda s: s.late),
        "duplicate_frames": total(lambda s: s.duplicate),
        "reordered_frames": total(lambda s: s.reordered),
        "damaged_frames": total(lambda s: s.corrupt),
        "shadow_lost_frames": total(lambda s: s.lost_in_shadow),
        "beside_sent_frames": beside(lambda frames: frames.sent),
        "beside_received_frames": beside(lambda frames: frames.received),
    }


def _lost_in_a_row(streams: Sequence[StreamResult]) -> Row:
    runs = [stream.longest_loss for stream in streams if stream.longest_loss]
    if not runs:
        return {"longest_loss_frames": None, "longest_loss_ns": None}
    longest = max(runs, key=lambda run: run.frames)
    lasted = longest.end_ns is not None and longest.end_ns - longest.begin_ns
    return {
        "longest_loss_frames": longest.frames,
        "longest_loss_ns": None if longest.end_ns is None else lasted,
    }


def _delays(of_streams: Sequence[Histogram]) -> Row:
    """Of all streams together."""
    parts = [delays for delays in of_streams if delays.count]
    buckets = merged_histogram([part.buckets for part in parts])
    return {
        "delay_min_ns": min((p.min for p in parts if p.min is not None), default=None),
        "delay_median_ns": histogram_median(buckets) if parts else None,
        "delay_p99_ns": histogram_percentile(buckets, 99) if parts else None,
        "delay_max_ns": max((p.max for p in parts if p.max is not None), default=None),
    }


def _environment(testbed: TestbedRecord, stored: Environment) -> Row:
    def port(side: Side, of: Callable[[PortRecord], object]) -> object:
        """Something of a side's first port; None: there is no such port."""
        own = [each for each in stored.ports if each.name == side and not each.number]
        return of(own[0]) if own else None

    return {
        "device": testbed.name or None,
        "dut": stored.dut or None,
        "started_at": moment(stored.started_at),
        **{name: getattr(stored, name) for name in _AS_STORED},
        "left_driver": port("left", lambda port: port.driver),
        "left_link_mbps": port("left", lambda port: port.link_speed_mbps),
        "right_driver": port("right", lambda port: port.driver),
        "right_link_mbps": port("right", lambda port: port.link_speed_mbps),
    }


def _findings(source: Source, cells: Sequence[Subject]) -> Iterator[Row]:
    for cell in cells:
        yield from _of_result(cell)
    for testbed in source.testbeds:
        for check in testbed.environment.checks if testbed.environment else ():
            if check.is_finding:
                told = " ".join(part for part in (check.found, check.why) if part)
                yield _finding(
                    testbed.name, "", "machine", check.name, told, check.cure
                )
    for failure in source.failures:
        why = ("run", "not_measured", failure.message, failure.hint)
        for cell_id in failure.cells:
            yield _finding(failure.testbed, cell_id, *why)
    if source.interruption:
        for trial in source.open_cells():
            at = (device_of(source, trial.place), trial.cell)
            yield _finding(*at, "run", "not_finished", source.interruption)


def _of_result(cell: Subject) -> Iterator[Row]:
    if cell.result is None:
        return
    at = (cell.testbed, cell.id)
    for reason in cell.result.reasons:
        yield _finding(*at, "verdict", reason.code, reason.message, reason.hint)
    for finding in cell.result.findings:
        about = _ABOUT.get(finding.kind, "repeats")
        yield _finding(*at, about, finding.kind, finding.message)
    for deviation in cell.result.deviations:
        told = f"{deviation.requirement}: {deviation.actual}"
        yield _finding(*at, "deviation", deviation.rfc, told)


def _finding(
    device: str, cell: str, about: str, kind: str, message: str, remedy: str = ""
) -> Row:
    return {
        "device": device or None,
        "cell": cell or None,
        "about": about,
        "kind": kind,
        "message": message,
        "remedy": remedy or None,
    }
