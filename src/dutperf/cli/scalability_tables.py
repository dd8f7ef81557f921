"""Overload scalability at the end of a run (RFC 8219 10.2.1)."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from dutperf.cli import figures
from dutperf.cli.delay_tables import loss
from dutperf.results import Bound, Scalability, ScalabilityPoint
from dutperf.results.units import about, duration


def scalability_tables(series: Sequence[Scalability]) -> list[Table]:
    """One for each benchmark; its values stand side by side."""
    groups: dict[tuple[str, str], list[Scalability]] = {}
    for each in series:
        groups.setdefault((each.series, each.frame_size), []).append(each)
    return [_table(values) for values in groups.values()]


def _table(values: list[Scalability]) -> Table:
    first = values[0]
    table = Table(
        title=f"{first.series}, {first.frame_size} bytes: overload scalability "
        "(RFC 8219 10.2.1)",
        caption=f"flows differ in {first.varied} and share the rate; + is worse than "
        "one flow",
    )
    is_rate = first.procedure == "throughput"  # which is its own rate
    names = ["degradation"] if is_rate else [each.name for each in values]
    for name in ("flows", "fps per direction", *names):
        table.add_column(name, justify="right")
    for row in zip(*(each.points for each in values), strict=True):
        bound: Bound = "lower" if row[0].at_least else None
        table.add_row(
            f"{row[0].flows:,}",
            figures.rate(row[0].rate_fps, bound),
            *(
                _cell(each, point, is_rate=is_rate)
                for each, point in zip(values, row, strict=True)
            ),
        )
    return table


def _cell(of: Scalability, point: ScalabilityPoint, *, is_rate: bool) -> str:
    """The value, which a rate has in a column of its own, and its degradation."""
    change = point.degradation_percent
    sign = "+" if change and change > 0 else ""
    changed = "" if change is None else f"{sign}{about(change, 3)} %"
    if is_rate:
        return changed or "-"
    return " ".join(part for part in (_value(of, point.value), changed) if part)


def _value(of: Scalability, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{loss(value)} %" if of.unit == "percent" else duration(value)
