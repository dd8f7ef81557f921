"""Stateful gateways: the table of RFC 9693 6, searches for a capacity, tear-down."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

from dutperf.model.stateful_keys import bounds
from dutperf.protocol.base import DirectionName
from dutperf.protocol.result_messages import DirectionResult
from dutperf.results.details import CapacityStep, TableLimits, TeardownRate
from dutperf.tables.result_tables import (
    ENDING,
    EXTREMES,
    PERCENTILES,
    derived_columns,
    title,
)
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import (
    NONE,
    Column,
    Columns,
    Entry,
    Table,
    Value,
    count,
    duration,
    heads,
    number,
    percent,
    rows,
)

_HELD = {
    "held": "held",
    "full": "full",
    "too_slow": "too slow",
    "collapsed": "collapsed",
    "unstable": "unstable",
}


def _limits(cell: Subject) -> TableLimits:
    shown = cell.result.limits if cell.result else None
    return shown or TableLimits()


def _per_bucket(cell: Subject) -> Value:
    buckets, sessions = _limits(cell).hash_size, cell.connections
    return number(sessions / buckets, 3) if sessions and buckets else NONE


PORTS: Columns[Subject] = (
    (
        Column("source ports", "How many the connections have."),
        lambda cell: _ports(bounds(cell.opened.source_ports) if cell.opened else None),
    ),
    (
        Column("destination ports", "How many the connections have.", below=True),
        lambda cell: _ports(cell.opened.destinations if cell.opened else None),
    ),
)
_SPREAD_ADDRESSES: Columns[Subject] = (
    (
        Column("source addresses", "Between how many they are."),
        lambda cell: number(cell.opened.source_addresses if cell.opened else 1),
    ),
    (
        Column("destination addresses", "Between how many they are.", below=True),
        lambda cell: number(cell.opened.destination_addresses if cell.opened else 1),
    ),
)
_HASH: Columns[Subject] = (
    (
        Column("hash size", "Buckets of the device's hash table, as its hooks show."),
        lambda cell: count(_limits(cell).hash_size),
    ),
    (
        Column("connections per bucket", "Sessions / hash size.", below=True),
        _per_bucket,
    ),
)
_LIMIT: Columns[Subject] = (
    (
        Column("table size", "The limit that the device's hooks show."),
        lambda cell: count(_limits(cell).table_size),
    ),
)


def addresses(cells: Sequence[Subject]) -> Columns[Subject]:
    """How many addresses there are, if any cell has several on a side."""
    opened = [cell.opened for cell in cells if cell.opened]
    several = any(o.source_addresses * o.destination_addresses > 1 for o in opened)
    return _SPREAD_ADDRESSES if several else ()


def connection_table(key: str, cells: Sequence[Subject]) -> Table:
    """Rates and capacities; what hooks show of a table stands there if any did."""
    is_capacity = cells[0].unit == "connections"
    most = Column("at most", "How many could be tried.")
    opened = Column("connections", "How many were opened, with a four-tuple each.")
    error = Column(
        "error", "How far a capacity may be from what is not held; of a rate: the same."
    )
    result = Column(
        "capacity" if is_capacity else "rate",
        "Median of the repeats.",
        "connections" if is_capacity else "connections/s",
        tone="strong",
    )
    columns: Columns[Subject] = (
        (
            Column("traffic", "IP versions and frame size.", spared=6, words=True),
            lambda cell: f"{cell.versions}, {cell.sizes}{cell.at}",
        ),
        (
            Column("order", "Who opens them, and how.", "", 6, True, True, "muted"),
            _opening,
        ),
        (
            most if is_capacity else opened,
            lambda cell: number(cell.connections),
        ),
        *PORTS,
        *addresses(cells),
        *(_HASH if any(_limits(cell).hash_size for cell in cells) else ()),
        *(_LIMIT if any(_limits(cell).table_size for cell in cells) else ()),
        (
            Column("alpha", "Validated at that share of the rate (RFC 9693 4.6)."),
            lambda cell: _given(cell, "alpha"),
        ),
        (
            error,
            lambda cell: _given(cell, "error" if is_capacity else "resolution"),
        ),
        (result, lambda cell: cell.figure),
        *derived_columns(cells),
        *((*PERCENTILES, *EXTREMES) if any(cell.several for cell in cells) else ()),
        *ENDING,
    )
    return Table(
        key=key,
        title=title(cells),
        columns=heads(columns),
        rows=rows(columns, cells, lambda cell: cell.id),
        sideways=True,
    )


def step_table(cell: Subject) -> Table:
    """Of the last repeat's search, in the order in which they were tried."""
    columns: Columns[CapacityStep] = (
        (
            Column("connections", "How many were opened."),
            lambda step: count(step.connections),
        ),
        (
            Column("rate", "Validated, at which they are held.", "connections/s"),
            lambda step: count(step.rate_per_s),
        ),
        (
            Column("had to reach", "Else they are not held.", "connections/s"),
            lambda step: count(step.least_per_s),
        ),
        (
            Column("result", "Full: as many missing at a lower rate.", words=True),
            lambda step: _HELD[step.held],
        ),
        (
            Column("tests", "Phase 1 and validation together are one."),
            lambda step: count(step.tests),
        ),
    )
    return Table(
        key=f"steps-{cell.id}",
        title=f"{cell.id}: steps of the search",
        columns=heads(columns),
        rows=rows(columns, cell.result.capacity[-1].steps if cell.result else ()),
        detail=True,
    )


def teardown_table(cell: Subject) -> Table:
    """Each repeat that deleted all connections at once (RFC 9693 4.8)."""
    columns: Columns[TeardownRate] = (
        (
            Column("connections", "How many were opened."),
            lambda each: count(each.connections),
        ),
        (
            Column("counted before", "By the device."),
            lambda each: count(each.counted_before),
        ),
        (
            Column("counted after", "By the device."),
            lambda each: count(each.counted_after),
        ),
        (
            Column("deleted in", "What the hook bulk_delete took."),
            lambda each: duration(each.delete_s * 1e9, 3),
        ),
        (
            Column("command alone", "The same on an empty table, the median."),
            lambda each: duration(each.command_s * 1e9, 3),
        ),
        (
            Column("N / (B - A)", "As RFC 9693 4.8 has it.", "connections/s"),
            lambda each: count(each.rfc_rate_per_s),
        ),
        (
            Column("rate", "Without the command.", "connections/s", tone="strong"),
            lambda each: count(each.rate_per_s),
        ),
    )
    return Table(
        key=f"deletions-{cell.id}",
        title=f"{cell.id}: deletions",
        columns=heads(columns),
        rows=rows(columns, cell.result.teardown if cell.result else ()),
        detail=True,
    )


def _ports(ends: tuple[int, int] | None) -> Value:
    return count(ends[1] - ends[0] + 1 if ends else None)


def _opening(cell: Subject) -> str:
    opened = cell.opened
    return f"initiator {opened.initiator}, {opened.order} order" if opened else ""


def _given(cell: Subject, key: str) -> Value:
    """As it was given: a number of connections, or a share."""
    told = cell.settings.get(key)
    return Value("" if told is None else str(told))


# Cells on open connections (RFC 9693 4.7): what was opened, when, and forwarded.


_WAYS: tuple[DirectionName, ...] = ("forward", "reverse")
_TIMES: Sequence[tuple[Column, str]] = (
    (Column("R", "Rate of phase 1, which opens them.", "fps"), "phase1_rate"),
    (Column("T", "Wait for the last frame of phase 1.", "ms"), "timeout_ms"),
    (Column("D", "From phase 1's start to phase 2's.", "ms"), "phase2_after_ms"),
    (
        Column("needed timeout", "Of the device, 10 % to spare.", "s"),
        "needed_dut_timeout_s",
    ),
    (Column("known timeout", "Of the device, as it was given.", "s"), "dut_timeout_s"),
)


def phase_table(cells: Sequence[Subject]) -> Table | None:
    """One of all such cells, if there are any."""
    phased = [cell for cell in cells if cell.settings.get("phase1_rate") is not None]
    if not phased:
        return None
    columns: Columns[Subject] = (
        (
            Column("traffic", "Procedure and frames.", "", 4, words=True),
            lambda cell: cell.title,
        ),
        (
            Column("order", "Who opens, and answers how.", "", 4, True, True, "muted"),
            lambda cell: (
                f"initiator {cell.opened.initiator}, "
                f"responder's order {cell.opened.responder_order}"
                if cell.opened
                else ""
            ),
        ),
        (
            Column("connections", "N: opened before each trial."),
            lambda cell: count(cell.connections),
        ),
        *PORTS,
        *addresses(phased),
        *((head, _setting(key)) for head, key in _TIMES),
        *(
            (
                Column(
                    f"forwarded, {way}",
                    "What it received in the fastest trial that passed.",
                    "fps",
                    spared=2,
                    below=way != _WAYS[0],
                ),
                _forwarded(way),
            )
            for way in _WAYS
        ),
    )
    return Table(
        key="phases",
        title="Connections opened before each trial (RFC 9693 4.7)",
        columns=heads(columns),
        rows=rows(columns, phased, lambda cell: cell.id),
        detail=True,
    )


def _setting(key: str) -> Callable[[Subject], Entry]:
    return lambda cell: number(cell.settings.get(key))


def _forwarded(way: DirectionName) -> Callable[[Subject], Entry]:
    """In the last trial at the highest load that passed, where that is known."""

    def entry(cell: Subject) -> Value:
        passed = [t for t in cell.counting_trials if t.result.verdict.kind == "pass"]
        if not passed or not cell.measured:
            return count(None)
        trial = max(passed, key=lambda t: (t.load_fps, t.number))
        duration_s = trial.request.duration_ns / 1e9
        found = [d for d in trial.result.directions if d.name == way]
        return count(_received(found[0]) / duration_s if found else None)

    return entry


def _received(direction: DirectionResult) -> int:
    return sum(stream.received for stream in direction.streams)


# What the same device does with connections of UDP, and with those of TCP.


class _Pair(NamedTuple):
    what: str
    udp: Subject
    tcp: Subject


_OF_EITHER: Mapping[str, str] = {
    "connection-rate": "new connections, per second",
    "tcp-connection-rate": "new connections, per second",
    "table-capacity": "connections held",
    "tcp-capacity": "connections held",
}
"""What procedures of UDP and of TCP both find."""
_TRANSPORT_COLUMNS: Columns[_Pair] = (
    (Column("of", "What was measured.", words=True), lambda pair: pair.what),
    (Column("of UDP", "Frames and connections.", words=True), lambda p: p.udp.frames),
    (Column("UDP", "Its result.", tone="strong"), lambda pair: pair.udp.figure),
    (
        Column("of TCP", "Segments and connections.", words=True),
        lambda pair: pair.tcp.frames,
    ),
    (Column("TCP", "Its result.", tone="strong"), lambda pair: pair.tcp.figure),
    (
        Column("TCP / UDP", "Where neither is a bound.", "of UDP's"),
        lambda pair: percent(_share_percent(pair), digits=3),
    ),
)


def transport_table(cells: Sequence[Subject]) -> Table | None:
    """A row for what was found of UDP and of TCP alike; None: there is nothing."""
    found: dict[tuple[str, ...], tuple[list[Subject], list[Subject]]] = {}
    for cell in cells:
        if cell.opened is None and cell.procedure not in _OF_EITHER:
            continue
        on_open = cell.opened if cell.procedure not in _OF_EITHER else None
        what = _OF_EITHER.get(cell.procedure, f"{cell.name}, {cell.unit}")
        key = (what, cell.versions, cell.at, str(on_open and on_open.connections))
        is_tcp = cell.procedure.startswith("tcp-") or (
            cell.opened is not None and cell.opened.transport == "tcp"
        )
        found.setdefault(key, ([], []))[is_tcp].append(cell)
    pairs = [
        _Pair(what, udp, tcp)
        for (what, *_), (of_udp, of_tcp) in found.items()
        for udp, tcp in _alike(of_udp, of_tcp)
    ]
    if not pairs:
        return None
    return Table(
        key="transports",
        title="UDP and TCP (RFC 8219 8)",
        columns=heads(_TRANSPORT_COLUMNS),
        rows=rows(_TRANSPORT_COLUMNS, pairs, lambda pair: pair.tcp.id),
    )


def _alike(
    udp: Sequence[Subject], tcp: Sequence[Subject]
) -> Iterable[tuple[Subject, Subject]]:
    """Each with its like by size, or, if there are more of one, with every other."""
    if len(udp) != len(tcp):
        return product(udp, tcp)
    by_size = partial(sorted, key=lambda cell: cell.frame_size or 0)
    return zip(by_size(udp), by_size(tcp), strict=True)


def _share_percent(pair: _Pair) -> float | None:
    udp, tcp = pair.udp, pair.tcp
    if not udp.median or tcp.median is None or udp.is_bound or tcp.is_bound:
        return None
    return tcp.median * 100 / udp.median
