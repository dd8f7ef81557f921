"""Throughputs, frame losses, bursts: the result of each cell, and loss curves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import Generic, NamedTuple, Protocol, TypeVar

from dutperf.catalogue import PROCEDURES
from dutperf.protocol.base import DirectionName
from dutperf.results import LoadPoint
from dutperf.results.details import OutageTime, RecoveryTime
from dutperf.results.rate_results import DamageFigure
from dutperf.results.units import in_unit as in_words
from dutperf.results.words import RECEIVED
from dutperf.tables.subject import COUNTED, Subject
from dutperf.tables.table_model import (
    NONE,
    TIME_DIGITS,
    Column,
    Columns,
    Entry,
    Row,
    Table,
    Value,
    Verdict,
    count,
    derived,
    duration,
    heads,
    in_unit,
    percent,
    rows,
    state_word,
)

TRAFFIC: Columns[Subject] = (
    (
        Column("traffic", "IP versions, frame size and profile.", spared=6, words=True),
        lambda cell: cell.stream,
    ),
    (
        Column(
            "directions",
            "In which frames were sent, and by which search the rate was found.",
            spared=9,
            below=True,
            words=True,
            tone="muted",
        ),
        lambda cell: cell.setting,
    ),
)
TRIAL_TIME: Columns[Subject] = (
    (
        Column(
            "trial time",
            "How long frames were sent in each trial that counts.",
            "s",
            spared=8,
        ),
        lambda cell: cell.duration_s,
    ),
)
REPEATS = (
    Column(
        "N",
        "Repeats that the result is taken from; of how many, if some are not valid.",
        spared=4,
    ),
    lambda cell: cell.valid_repeats,
)
ENDING: Columns[Subject] = (
    REPEATS,
    (
        Column("trials", "How many trials the repeats took.", spared=4),
        lambda cell: count(cell.trial_count),
    ),
    (
        Column("verdict", "Whether there is a result that may be quoted.", words=True),
        lambda cell: Verdict(cell.state),
    ),
)
PERCENTILES: Columns[Subject] = (
    (
        Column(
            "1st %ile",
            "Of the repeats (RFC 8219 12); below 100 repeats their minimum.",
            spared=7,
        ),
        lambda cell: cell.of_spread("percentile_1"),
    ),
    (
        Column(
            "99th %ile",
            "Of the repeats (RFC 8219 12); below 100 repeats their maximum.",
            spared=7,
            below=True,
        ),
        lambda cell: cell.of_spread("percentile_99"),
    ),
)
EXTREMES: Columns[Subject] = (
    (
        Column("min", "The least of the repeats.", spared=8),
        lambda cell: cell.of_spread("minimum"),
    ),
    (
        Column("max", "The most of the repeats.", spared=8, below=True),
        lambda cell: cell.of_spread("maximum"),
    ),
    (
        Column(
            "dispersion",
            "99th - 1st percentile of the repeats, in percent of the median.",
            spared=2,
        ),
        lambda cell: cell.dispersion,
    ),
)
_INTERVAL: Columns[Subject] = (
    (
        Column(
            "interval from",
            "The lower end of the interval of the median, where six repeats tell one.",
            spared=1,
        ),
        lambda cell: cell.of_spread("interval_lower"),
    ),
    (
        Column(
            "interval to",
            "The upper end of the interval of the median.",
            spared=1,
            below=True,
        ),
        lambda cell: cell.of_spread("interval_upper"),
    ),
)
_DOUBT: Columns[Subject] = (
    (
        Column(
            "doubt",
            "Why the median is not the figure of all repeats.",
            spared=5,
            below=True,
            words=True,
            tone="bad",
        ),
        lambda cell: cell.doubt,
    ),
)


def _wire(cell: Subject) -> Value:
    each = list(dict.fromkeys(f"{mbps:,.1f}" for mbps in cell.wire.values()))
    return Value(" / ".join(each), "", "lower" if cell.is_bound else None)


_RATE: Columns[Subject] = (
    (
        Column("sum", "Throughput of all directions together.", "fps", spared=3),
        lambda cell: count(cell.sum_fps, "lower" if cell.is_bound else None),
    ),
    (
        Column(
            "on the wire",
            "What the rate takes of the medium, preambles and gaps included; behind a "
            "translator forward / reverse.",
            "Mbit/s per direction",
            spared=6,
        ),
        _wire,
    ),
)


def alike(cells: Sequence[Subject]) -> list[list[Subject]]:
    """Cells that may stand in one table: of one procedure, judged alike.

    What is not the RFC's measure stands apart from what is.
    """
    groups: dict[tuple[str, str], list[Subject]] = {}
    for cell in cells:
        groups.setdefault((cell.procedure, cell.judged), []).append(cell)
    return [
        group for name in PROCEDURES for (of, _), group in groups.items() if of == name
    ]


def title(cells: Sequence[Subject]) -> str:
    """A rate that is not the RFC's throughput is not called so."""
    first = cells[0]
    if first.judged and first.family == "rate search":
        return f"Rate per direction, {first.judged}"
    known = first.known
    return first.name if first.judged or not known else known.heading


def result_table(key: str, cells: Sequence[Subject]) -> Table:
    """Throughputs, losses at the highest load, bursts."""
    is_rate = cells[0].family == "rate search" and cells[0].unit == "fps"
    is_counted = cells[0].family in COUNTED
    repeated = any(cell.several for cell in cells)
    result = _head(cells[0], repeated)
    maximum = Column(
        "burst rate" if is_counted else "maximum load",
        "At which the frames of all bursts are sent."
        if is_counted
        else "The highest that was tried; of a loss curve that of its loss.",
        "fps per direction",
        spared=8,
    )
    columns: Columns[Subject] = (
        *TRAFFIC,
        *(() if is_counted else TRIAL_TIME),
        (maximum, lambda cell: count(cell.most_load_fps)),
        (result, lambda cell: cell.figure),
        *(_DOUBT if any(cell.doubt for cell in cells) else ()),
        *(_spread(cells[0]) if repeated else ()),
        *derived_columns(cells),
        *(_RATE if is_rate else ()),
        *ENDING,
    )
    made = zip(rows(columns, cells, lambda cell: cell.id), cells, strict=True)
    return Table(
        key=key,
        title=title(cells),
        columns=heads(columns),
        rows=tuple(row for of in made for row in _with_damage(*of, heads(columns))),
        notes=tuple(filter(None, map(_did_pass, cells))),
        detail=cells[0].family == "load sweep",
    )


def _spread(cell: Subject) -> Columns[Subject]:
    """RFC 9004 7 wants the ends of what is averaged, RFC 8219 12 percentiles."""
    if cell.statistic == "average":
        return EXTREMES
    return (*_INTERVAL, *PERCENTILES, *EXTREMES)


def derived_columns(cells: Sequence[Subject]) -> Columns[Subject]:
    """A column for each that one of the cells has."""
    known = {each.name: each for cell in cells for each in cell.derived.values()}

    def told(name: str) -> Callable[[Subject], Entry]:
        return lambda cell: derived(cell.derived.get(name))

    return tuple(
        (
            Column(
                each.name,
                each.meaning,
                "" if each.unit == "s" else each.unit,
                spared=spared,
            ),
            told(each.name),
        )
        for spared, each in enumerate(known.values())
    )


def _head(cell: Subject, repeated: bool) -> Column:
    if cell.family == "rate search":
        return _rate_head(cell, repeated)
    known = cell.known
    if not known or cell.family == "load sweep":
        return _loss_head(repeated)
    summed = f", {known.statistic}" if repeated else ""
    return Column(
        f"{known.noun}{summed}",
        known.finds,
        f"{known.unit} per direction",
        tone="strong",
    )


def _rate_head(cell: Subject, repeated: bool) -> Column:
    known = cell.known
    if known and known.unit != "fps":
        return Column(
            f"{known.noun}, median" if repeated else known.noun,
            known.finds,
            known.unit,
            tone="strong",
        )
    name = "rate" if cell.judged else "throughput"
    return Column(
        f"{name}, median" if repeated else name,
        "The highest rate at which no frame was lost, or what else is named above.",
        "fps per direction",
        tone="strong",
    )


def _loss_head(repeated: bool) -> Column:
    return Column(
        "loss, median" if repeated else "loss",
        "Of the frames of all directions, at the highest load.",
        "of frames",
        tone="strong",
    )


def _with_damage(row: Row, cell: Subject, shown: Sequence[Column]) -> Iterator[Row]:
    """The second figure of a throughput that damaged frames limit stands below it."""
    yield row
    damage = cell.result.damage if cell.result else None
    if damage:
        told = _of_damage(damage)
        entries = (
            told.get("throughput" if each.tone == "strong" else each.name, "")
            for each in shown
        )
        yield Row(f"  {RECEIVED}", tuple(entries))


def _of_damage(damage: DamageFigure) -> dict[str, Entry]:
    return {
        "traffic": RECEIVED,
        "throughput": count(damage.value, damage.bound),
        "trials": count(damage.trials),
        "verdict": Verdict(damage.verdict),
    }


def _did_pass(cell: Subject) -> str:
    """What passed before it went wrong; that is no result yet."""
    result = cell.result
    known = result and result.bound and result.median is not None
    if cell.state != "invalid" or not result or not known or result.median is None:
        return ""
    return f"{cell.id}: at least {in_words(result.median, result.unit)} did pass"


def curve_table(cell: Subject) -> Table:
    """Loss over load of one cell, the highest load first (RFC 2544 26.3)."""
    points = cell.result.points if cell.result else []
    names = dict.fromkeys(d.direction for p in points for d in p.directions)
    of = "maximum" if cell.throughput_fps is None else "throughput"
    lost = "lost or late" if cell.judged else "loss"
    columns: Columns[LoadPoint] = (
        (
            Column("load", f"In percent of the {of}.", f"of {of}"),
            lambda point: percent(point.load_percent),
        ),
        (
            Column(
                "load", "What each direction was asked to send.", "fps per direction"
            ),
            lambda point: count(point.load_fps),
        ),
        (
            Column(
                lost,
                "Of the frames of all directions together, median of the repeats.",
                "of frames",
                tone="strong",
            ),
            lambda point: (
                percent(point.loss_percent)
                if _valid(point)
                else Value(absent="invalid")
            ),
        ),
        *((_direction_head(name), _loss_of(name)) for name in names),
        (
            Column("N", "Valid repeats, of how many."),
            lambda point: Value(f"{_valid(point)} of {len(point.repeats)}"),
        ),
        (
            Column("trials", "How many trials the repeats took.", spared=1),
            lambda point: count(sum(r.trials for r in point.repeats)),
        ),
    )
    falling = sorted(points, key=lambda point: -point.load_percent)
    return Table(
        key=f"curve-{cell.id}",
        title=f"{cell.id}, {state_word(cell.state)}: loss over load",
        columns=heads(columns),
        rows=rows(columns, falling),
        notes=(cell.result.quantity,) if cell.result else (),
    )


def _direction_head(name: DirectionName) -> Column:
    return Column(name, "What this direction lost of its own.", "of its frames")


def _loss_of(name: DirectionName) -> Callable[[LoadPoint], Entry]:
    def entry(point: LoadPoint) -> Entry:
        found = [d.loss_percent for d in point.directions if d.direction == name]
        return percent(found[0]) if found else NONE

    return entry


def _valid(point: LoadPoint) -> int:
    return sum(repeat.verdict != "invalid" for repeat in point.repeats)


# Times of each direction (RFC 6201 1.3, RFC 2544 26.5), in each repeat and on average.


_Time = TypeVar("_Time", bound=OutageTime | RecoveryTime)


class _Line(NamedTuple, Generic[_Time]):
    """One direction in one repeat; without a time: invalid."""

    repeat: int
    direction: DirectionName
    time: _Time | None


class _OfDirection(Protocol[_Time]):
    """As it is stored."""

    @property
    def direction(self) -> DirectionName: ...
    @property
    def repeats(self) -> list[_Time | None]: ...


def repeats_table(
    cell: Subject,
    what: Column,
    known: str,
    beside: Columns[_Time],
    directions: Sequence[_OfDirection[_Time]],
) -> Table:
    """A row for each repeat and direction.

    Args:
        cell: whose times they are.
        what: they are.
        known: what it means how far they are known.
        beside: further columns; nothing stands there in an invalid repeat.
        directions: as stored.
    """
    invalid = Value(absent="invalid")
    columns: Columns[_Line[_Time]] = (
        (Column("repeat", "Its number."), lambda line: count(line.repeat)),
        (
            Column("direction", "In which the frames went.", words=True),
            lambda line: line.direction,
        ),
        (what, lambda line: _average([line.time]) if line.time else invalid),
        (
            Column("known to", known),
            _of_time(lambda time: duration(time.within_ns, TIME_DIGITS)),
        ),
        *((column, _of_time(entry)) for column, entry in beside),
    )
    lines = [
        _Line(n + 1, each.direction, each.repeats[n])
        for n in range(len(directions[0].repeats) if directions else 0)
        for each in directions
    ]
    return Table(
        key=f"{what.name}-{cell.id}",
        title=f"{cell.id}: {what.name} in each repeat",
        columns=heads(columns),
        rows=rows(columns, lines),
        detail=True,
    )


def of_directions(what: str) -> Columns[Subject]:
    """A column for each: ``what`` of it, on average."""
    ways: tuple[DirectionName, ...] = ("forward", "reverse")
    meaning = f"{what} of this direction, average."
    return [(Column(way, meaning, spared=6), _of_way(way)) for way in ways]


def _of_way(way: DirectionName) -> Callable[[Subject], Value]:
    def entry(cell: Subject) -> Value:
        found = cell.result if cell.measured else None
        timed = found and (found.outage or found.recovery)
        for each in timed.directions if timed else ():
            if each.direction == way:
                return _average([time for time in each.repeats if time])
        return NONE

    return entry


def _average(times: Sequence[OutageTime | RecoveryTime]) -> Value:
    """Told as less than what it is known to, where it is 0."""
    if not times:
        return NONE
    value_ns = fmean(time.value_ns for time in times)
    if value_ns == 0:
        return in_unit(max(time.within_ns for time in times), "ns", "below")
    return in_unit(value_ns, "ns", "lower" if any(t.bound for t in times) else None)


def _of_time(entry: Callable[[_Time], Entry]) -> Callable[[_Line[_Time]], Entry]:
    return lambda line: entry(line.time) if line.time else NONE
