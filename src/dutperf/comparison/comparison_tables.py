"""A comparison as tables: the figures side by side, and what else differs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from dutperf.charts.text import shown
from dutperf.comparison.judging import Compared, Comparison, Judgement, Outcome
from dutperf.comparison.sides import Reading, Run, Side
from dutperf.report.source import TestbedRecord
from dutperf.report.trust import Level, TrustRow
from dutperf.results import Environment, load_campaign
from dutperf.results.directory import CAMPAIGN
from dutperf.results.environment import Change, changes
from dutperf.results.units import about
from dutperf.tables import Column, Entry, Row, Span, Subject, Table, Value
from dutperf.tables.result_tables import TRAFFIC, alike, title
from dutperf.tables.table_model import NONE, STYLE, Columns, heads, rows

OUTCOMES: dict[Outcome, str] = {
    "worse": "worse",
    "better": "better",
    "none_shown": "no difference shown",
    "too_few": "too few repeats",
    "not_compared": "not compared",
    "gone": "has no value now",
}
JUDGEMENTS: dict[Judgement, str] = {
    "worse": "FAILED",
    "not_worse": "held",
    "cannot_tell": "cannot tell",
}
_MOST_DIFFERENCES = 20


def comparison_tables(found: Comparison, limit: float | None) -> Iterator[Table]:
    """One for each procedure, as it is judged.

    Args:
        found: what was compared.
        limit: of the gate, if there is one.
    """
    numbers: Counter[str] = Counter()
    cells = {id(each.cell): each.cell for each in found.figures}
    for group in alike(list(cells.values())):
        own = {id(cell) for cell in group}
        figures = [each for each in found.figures if id(each.cell) in own]
        procedure = group[0].procedure
        numbers[procedure] += 1
        number = "" if numbers[procedure] == 1 else f"-{numbers[procedure]}"
        yield _table(
            f"compare-{procedure}{number}", title(group), figures, found, limit
        )


def _table(
    key: str,
    name: str,
    figures: Sequence[Compared],
    found: Comparison,
    limit: float | None,
) -> Table:
    unit = figures[0].unit
    samples = "runs" if found.by_runs else "repeats"
    columns: Columns[Compared] = (
        *((column, _of_cell(entry)) for column, entry in TRAFFIC),
        *_which(figures, found),
        (
            Column(
                "A",
                "The figure of the baseline; of several runs that of the middle one.",
                _unit(figures),
            ),
            lambda each: _figure(each.before),
        ),
        (
            Column(
                "B" if len(found.sides) == 2 else "other",
                "The figure of what is compared with it.",
                _unit(figures),
            ),
            lambda each: _figure(each.after),
        ),
        (
            Column(
                "difference",
                "How much higher: the median of the differences of all pairs of "
                f"{samples}, one of each side (Hodges and Lehmann).",
                unit,
            ),
            _change,
        ),
        (
            Column(
                "interval",
                "What the difference lies in. All intervals of this comparison hold "
                "together with 95 %.",
                unit,
                spared=1,
            ),
            _interval,
        ),
        (
            Column("finding", "What that shows.", words=True),
            finding,
        ),
        *_gate(limit, unit),
    )
    made = rows(columns, figures, lambda each: each.key.words)
    return Table(key, name, heads(columns), tuple(_once(made)))


def _of_cell(entry: Callable[[Subject], Entry]) -> Callable[[Compared], Entry]:
    return lambda each: entry(each.cell)


def _which(figures: Sequence[Compared], found: Comparison) -> Columns[Compared]:
    """Which figure of a cell that has several, and which of several runs."""
    named = any(each.name for each in figures)
    several = len(found.sides) > 2
    name = Column(
        "figure",
        "Which of the test case's figures, and in which direction.",
        words=True,
    )
    run = Column("run", "What is compared with A.", words=True)
    return (
        *([(name, lambda each: each.name)] if named else []),
        *([(run, lambda each: each.run)] if several else []),
    )


def _gate(limit: float | None, unit: str) -> Columns[Compared]:
    if limit is None:
        return ()
    column = Column(
        "gate",
        "FAILED: all of the interval is worse than that, or nothing passes now. "
        "Cannot tell: a part of it is, or there is no figure.",
        f"{limit:g} {unit}",
        words=True,
    )
    return ((column, lambda each: judgement(each, limit)),)


def judgement(each: Compared, limit: float) -> str:
    """What the gate says of it; empty: nothing."""
    found = each.judged(limit)
    return JUDGEMENTS[found] if found else ""


def _unit(figures: Sequence[Compared]) -> str:
    """Of a whole column; delays have each their own, and so have shares."""
    units = {
        side.unit for each in figures for side in (each.before, each.after) if side
    }
    return "".join(units - {"ns", "percent"})


def _figure(side: Reading | None) -> Entry:
    return NONE if side is None else side.shown


def _change(each: Compared) -> Value:
    if each.change is None:
        return NONE
    return signed(each.change.value, each.change.bound)


def _interval(each: Compared) -> Value | Span:
    """An end that is not known is left out."""
    change = each.change
    if change is None or change.lower is None or change.upper is None:
        return NONE
    low, high = signed(change.lower), signed(change.upper)
    if low.digits and high.digits:
        return Span(low, high)
    if low.digits:
        return replace(low, bound="lower")
    return replace(high, bound="upper") if high.digits else NONE


def change_words(each: Compared) -> str:
    """The difference and its interval, as pages write them, with their unit."""
    change = _change(each)
    told = [shown(change)] if change.digits else []
    return " ".join([*told, f"({shown(_interval(each))})", each.unit])


def interval_words(each: Compared) -> str:
    """The interval in brackets; empty: there is none."""
    found = _interval(each)
    return "" if found == NONE else f" ({found.text(STYLE)} {each.unit})"


def signed(value: float | None, bound: str | None = None) -> Value:
    """A change in two or three digits, with its sign."""
    if value is None or not math.isfinite(value):
        return NONE
    told = about(value, 3 if abs(value) >= 1 else 2)
    return Value(f"+{told}" if value > 0 else told, "", bound)  # type: ignore[arg-type]


def finding(each: Compared) -> str:
    """What is shown, and why no more."""
    return ": ".join(part for part in (outcome_word(each), each.why) if part)


def outcome_word(each: Compared) -> str:
    """What is shown, in short: of one run a side that the runs differ."""
    word = OUTCOMES[each.outcome]
    if each.by_runs:
        return word.replace("repeats", "runs")
    return f"{word} run" if each.outcome in ("worse", "better") else word


def _once(made: Sequence[Row]) -> Iterator[Row]:
    """A name stands at the first of its rows only."""
    last = ""
    for row in made:
        yield replace(row, name="" if row.name == last else row.name)
        last = row.name


# What two sides differ in beside their results: machine, ports, versions, settings.


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
            yield Change(where, _listed(before), _listed(after))


def _listed(values: Iterable[str]) -> str:
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


@dataclass(frozen=True)
class _Difference:
    kind: str
    change: Change


def difference_table(found: Differences) -> Table:
    """What the runs differ in beside their results; without rows if in nothing."""
    told = [
        *(_Difference("environment", change) for change in found.environment),
        *(_Difference("configuration", change) for change in found.configuration),
    ]
    columns: Columns[_Difference] = (
        (
            Column("of", "Environment or configuration.", words=True, spared=1),
            lambda d: d.kind,
        ),
        (Column("what", "Key of what differs.", words=True), lambda d: d.change.where),
        (Column("A", "In the baseline.", words=True), lambda d: d.change.old),
        (Column(found.run, "In the other run.", words=True), lambda d: d.change.new),
    )
    more = len(told) - _MOST_DIFFERENCES
    return Table(
        f"differences-{found.run}",
        f"What differs between A and {found.run} beside the results",
        heads(columns),
        rows(columns, told[:_MOST_DIFFERENCES]),
        (f"and {more} more, which --json lists",) if more > 0 else (),
    )


def sentences(found: Comparison, limit: float | None) -> Iterator[str]:
    """What was found, in short."""
    ordered = sorted(found.figures, key=lambda each: list(OUTCOMES).index(each.outcome))
    counts = Counter(map(outcome_word, ordered))
    told = [f"{count} {word}" for word, count in counts.items()]
    number = len(found.figures)
    yield f"{number} figure{'' if number == 1 else 's'}: {', '.join(told) or 'none'}."
    if found.family > 1:
        yield (
            f"All {found.family} intervals hold together with 95 %, so each by itself "
            f"with {found.interval_percent:.4g} %."
        )
    if found.by_runs:
        yield (
            "Each run counts as one value, so a difference is one of the sides, "
            "however runs of one side differ."
        )
    elif found.family:
        yield (
            "Each side is one run: a difference is one of these runs. Whether devices "
            "differ, several runs a side tell: dutperf compare BASE... -- NEW..."
        )
    if limit is None:
        return
    judged = _judged(found, limit)
    parts = [
        f"{judged[kind]} {word}" for kind, word in JUDGEMENTS.items() if judged[kind]
    ]
    yield f"At most {limit:g} % worse (losses: percentage points): {', '.join(parts)}."
    if not judged["worse"] and not judged["not_worse"]:
        yield "So nothing could be judged: this is no gate."


def in_a_sentence(found: Comparison, limit: float | None) -> TrustRow:
    """What came of the gate, else what was found, as a traffic light has it."""
    first, *_ = told = list(sentences(found, limit))
    outcomes = {each.outcome for each in found.figures}
    if limit is not None:
        judged = _judged(found, limit)
        gates: dict[Judgement, Level] = {
            "worse": "bad",
            "not_worse": "good",
            "cannot_tell": "note",
        }
        gate: Judgement = next((each for each in gates if judged[each]), "cannot_tell")
        words = next(each for each in told if each.startswith("At most"))
        return TrustRow(f"Gate {JUDGEMENTS[gate]}", words[:-1], gates[gate])
    if outcomes & {"worse", "gone"}:
        return TrustRow("Worse", first[:-1], "bad")
    if "better" in outcomes:
        return TrustRow("Better", first[:-1], "good")
    return TrustRow("No difference shown", first[:-1], "note")


def _judged(found: Comparison, limit: float) -> Counter[Judgement | None]:
    return Counter(each.judged(limit) for each in found.figures)
