"""Overload scalability (RFC 8219 10.2.1): how results change with the number of flows.

Each value of a benchmark is compared with that of one flow. All flows of a direction
are started at once and share its rate evenly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dutperf.catalogue import PROCEDURES, ProcedureName
from dutperf.results.model import CellResult, Scalability, ScalabilityPoint

_VARIED = {
    "ports": "source ports (in the reverse direction destination ports)",
    "addresses": "source and destination addresses",
}


_NAMES: Mapping[ProcedureName, str] = {
    "throughput": "throughput",
    "back-to-back": "longest burst",
    "frame-loss": "loss at the highest load",
    "system-recovery": "recovery time",
    "outage": "outage",
}
"""Of the one value of a cell; delays have names of their own."""


@dataclass(frozen=True)
class _Value:
    """One value of one cell."""

    cell: CellResult
    name: str
    value: float | None

    @property
    def flows(self) -> int:
        return _flows(self.cell) or 0

    @property
    def at_least(self) -> bool:
        """Whether the device may do more than was asked of it."""
        return self.cell.bound is not None

    @property
    def exactly(self) -> float | None:
        return None if self.at_least else self.value

    @property
    def series(self) -> tuple[str, str, str]:
        sizes = str(self.cell.parameters["frame_sizes"])
        return self.cell.series or "", sizes, self.name


def scalability(cells: Iterable[CellResult]) -> list[Scalability]:
    """A series for each benchmark value of the cells with a number of flows.

    What was not measured has its place in those that were.
    """
    series: dict[tuple[str, str, str], list[_Value]] = {}
    unmeasured: list[CellResult] = []
    for cell in cells:
        if cell.series is None:
            continue
        values = list(_values(cell))
        unmeasured += [cell] if not values else []
        for value in values:
            series.setdefault(value.series, []).append(value)
    for cell in unmeasured:
        for (_, _, name), others in series.items():
            missing = _Value(cell, name, None)
            if missing.series == others[0].series:
                others.append(missing)
    return [_compared(key, values) for key, values in series.items()]


def degradation_percent(
    one: float | None, several: float | None, *, higher_is_better: bool
) -> float | None:
    """RFC 8219 10.2.1: above 0 is worse than one flow."""
    if not one or several is None:
        return None
    change = one - several if higher_is_better else several - one
    return change * 100 / one


def _compared(key: tuple[str, str, str], values: Sequence[_Value]) -> Scalability:
    series, frame_size, name = key
    first = values[0].cell
    better = PROCEDURES[first.procedure].better
    one = next((v.exactly for v in values if v.flows == 1), None)
    points = [
        ScalabilityPoint(
            flows=each.flows,
            cell=each.cell.id,
            rate_fps=_rate_fps(each.cell),
            value=each.value,
            at_least=each.at_least,
            degradation_percent=None
            if each.flows == 1
            else degradation_percent(
                one, each.exactly, higher_is_better=better == "higher"
            ),
        )
        for each in sorted(values, key=lambda v: v.flows)
    ]
    return Scalability(
        procedure=first.procedure,
        name=name,
        unit=first.unit,
        better=better,
        series=series,
        frame_size=frame_size,
        varied=_VARIED[str(first.parameters["flows_by"])],
        points=points,
    )


def _values(cell: CellResult) -> Iterator[_Value]:
    """Delays that were not measured have no names either."""
    valid = cell.verdict != "invalid"
    if cell.procedure in _NAMES:
        yield _Value(cell, _NAMES[cell.procedure], cell.median if valid else None)
        return
    streams = {measure.stream for measure in cell.measures}
    for measure in cell.measures:
        stream = f", {measure.stream}" if len(streams) > 1 else ""
        name = f"{measure.name}, {measure.direction}{stream}"
        yield _Value(cell, name, measure.result.value if valid else None)


def _rate_fps(cell: CellResult) -> float | None:
    """A throughput is its own rate; bursts are sent at the highest."""
    if cell.procedure == "throughput":
        return cell.median
    if cell.points:
        return cell.points[0].load_fps
    if cell.recovery:
        return cell.recovery.overload_fps
    most = cell.parameters.get("max_load_fps")
    return cell.load.rate_fps if cell.load else _number(most)


def _number(told: str | int | float | bool | None) -> float | None:
    return None if told is None or isinstance(told, str) else float(told)


def _flows(cell: CellResult) -> int | None:
    flows = cell.parameters.get("flows")
    return flows if isinstance(flows, int) else None
