"""Stateful gateways: the search for a capacity, who survives, and how tables empty."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dutperf.charts.cells import CellView
from dutperf.charts.chart import HOVER_END, Chart, Figure, Trace, layout, line_trace
from dutperf.charts.text import whole
from dutperf.results import CellResult
from dutperf.results.details import (
    Capacity,
    CapacityStep,
    Expiry,
    Picture,
    TeardownRate,
)

_LOOKS = {
    "held": ("held", "circle", "var(--pass)"),
    "full": ("full: as many are missing at a lower rate", "x", "var(--fail)"),
    "too_slow": ("not held at this rate or more", "x", "var(--fail)"),
    "collapsed": ("the device collapsed", "star-triangle-down", "var(--fail)"),
    "unstable": ("tests stayed invalid", "diamond-open", "var(--invalid)"),
}


@dataclass(frozen=True)
class ConnectionView:
    """What a cell tells of its device's table; charts are None without figures."""

    cell: CellView
    capacity: Chart | None
    survival: Chart | None
    expiry: Chart | None

    @property
    def searches(self) -> Sequence[Capacity]:
        """Those of each repeat."""
        return self._result.capacity

    @property
    def eviction(self) -> str:
        """What the device does when its table is full, in words."""
        return self._result.eviction.words if self._result.eviction else ""

    @property
    def pictures(self) -> Sequence[Picture]:
        """What that is told from."""
        return self._result.eviction.pictures if self._result.eviction else ()

    @property
    def deletions(self) -> Sequence[TeardownRate]:
        """Of all connections at once, those of each repeat."""
        return self._result.teardown

    @property
    def charts(self) -> Iterator[Chart]:
        """All that there are."""
        yield from filter(None, (self.capacity, self.survival, self.expiry))

    @property
    def _result(self) -> CellResult:
        assert self.cell.result is not None, "it has something to tell"  # noqa: S101
        return self.cell.result


def connection_views(cells: Sequence[CellView]) -> list[ConnectionView]:
    """Of the cells that tell more of the table than a rate."""
    return [
        ConnectionView(
            cell,
            capacity_chart(result.capacity, number, cell.title),
            survival_chart(
                result.eviction.pictures if result.eviction else [], number, cell.title
            ),
            expiry_chart(result.expiry, number, cell.title),
        )
        for number, cell in enumerate(cells, 1)
        if (result := cell.result)
        and (result.capacity or result.eviction or result.teardown or result.expiry)
    ]


def capacity_chart(
    searches: Sequence[Capacity], number: int, title: str
) -> Chart | None:
    """Connections against the rate at which they are held, of the last repeat."""
    steps = searches[-1].steps if searches else []
    if not steps:
        return None
    data = [
        _steps_trace([s for s in steps if s.held == held], *look)
        for held, look in _LOOKS.items()
        if any(step.held == held for step in steps)
    ]
    figure = layout(
        "connections",
        "connections per second",
        {"type": "log", "tickformat": ",~s", "dtick": "D2"},
        {"rangemode": "tozero", "tickformat": ",~s"},
    )
    figure["height"] = 300
    return Chart(f"capacity-{number}", f"Rate over connections: {title}", data, figure)


def _steps_trace(
    steps: Sequence[CapacityStep], name: str, symbol: str, colour: str
) -> Trace:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [step.connections for step in steps],
        "y": [step.rate_per_s or step.least_per_s for step in steps],
        "marker": {"symbol": symbol, "size": 10, "color": colour},
        "cliponaxis": False,
        "hovertemplate": "%{x:,d} connections: %{y:,d}/s" + HOVER_END,
    }


def survival_chart(
    pictures: Sequence[Picture], number: int, title: str
) -> Chart | None:
    """The share of connections that survived, over the order of their opening."""
    if not pictures:
        return None
    data = [_survival_trace(index, each) for index, each in enumerate(pictures)]
    figure = layout(
        "connection, in the order of opening",
        "survived, %",
        {"rangemode": "tozero", "tickformat": ",~s", "nticks": 6},
        {"range": [-3, 103], "dtick": 25},
    )
    figure["height"] = 280
    return Chart(f"survival-{number}", f"Who survived: {title}", data, figure)


def _survival_trace(index: int, picture: Picture) -> Trace:
    """A step for each block; the last one ends where the connections do."""
    size, total = picture.block_connections, picture.connections
    begins = [n * size for n in range(len(picture.blocks))]
    shares: list[float | None] = [
        round(100 * alive / min(size, total - begin), 2)
        for begin, alive in zip(begins, picture.blocks, strict=True)
    ]
    name = f"{whole(picture.survived)} of {whole(total)}"
    ends = [*map(float, begins), float(total)]
    return line_trace(index, name, ends, [*shares, *shares[-1:]]) | {
        "mode": "lines",
        "line": {
            **line_trace(index, "", [], [])["line"],
            "width": 2,
            "shape": "hv",
        },
        "hovertemplate": "from connection %{x:,d}: %{y:.3g} %" + HOVER_END,
    }


def expiry_chart(found: Sequence[Expiry], number: int, title: str) -> Chart | None:
    """How many connections the device counted over time, of each repeat."""
    data: list[Trace] = []
    for index, each in enumerate(found):
        times_s = [count.after_s for count in each.counts]
        left: list[float | None] = [float(c.connections) for c in each.counts]
        data.append(
            line_trace(index, f"repeat {index + 1}", times_s, left) | {"mode": "lines"}
        )
    if not any(trace["x"] for trace in data):
        return None
    figure: Figure = layout(
        "after phase 1, s",
        "connections",
        {"rangemode": "tozero"},
        {"rangemode": "tozero", "tickformat": ",~s"},
    )
    figure["height"] = 280
    return Chart(f"expiry-{number}", f"Connections over time: {title}", data, figure)
