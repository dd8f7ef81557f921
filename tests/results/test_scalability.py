"""Degradation by the number of flows (RFC 8219 10.2.1), of results made by hand."""

from __future__ import annotations

import pytest

from dutperf.protocol import DirectionName
from dutperf.results import (
    CellResult,
    Figure,
    Measure,
    RepeatResult,
    Scalability,
    scalability,
)
from dutperf.results.rate_results import Load, LoadPoint
from dutperf.results.scalable import degradation_percent

SIZE = 64


def told(flows: int | None, size: int) -> dict[str, str | int | float | bool | None]:
    found: dict[str, str | int | float | bool | None] = {
        "frame_size": size,
        "frame_sizes": str(size),
        "direction": "both",
    }
    return found | ({} if flows is None else {"flows": flows, "flows_by": "ports"})


def throughput(
    flows: int | None, rate_fps: float | None, size: int = SIZE
) -> CellResult:
    return CellResult(
        id=f"throughput-ip4-{size}-both-flows{flows}",
        series=None if flows is None else "throughput-ip4-both-flows",
        procedure="throughput",
        quantity="throughput",
        parameters=told(flows, size),
        median=rate_fps,
        unit="fps",
        repeats=[],
        verdict="invalid" if rate_fps is None else "pass",
    )


def latency(flows: int, load_fps: int, **delays_ns: float | None) -> CellResult:
    return CellResult(
        id=f"latency-ip4-{SIZE}-both-at-throughput-flows{flows}",
        series="latency-ip4-both-at-throughput-flows",
        procedure="latency",
        quantity="latency",
        parameters=told(flows, SIZE),
        median=None,
        unit="ns",
        repeats=[],
        verdict="pass" if delays_ns else "invalid",
        load=Load(rate_fps=load_fps, asked="throughput", words=""),
        measures=[
            measure(name, way, value)
            for name, value in delays_ns.items()
            for way in ("forward", "reverse")
        ],
    )


def measure(name: str, direction: DirectionName, value: float | None) -> Measure:
    figure = Figure(value=value, absent=None if value else "lost")
    return Measure(
        name=name,
        quantity=name,
        direction=direction,
        repeats=[figure],
        samples=[1],
        lost=[0],
        count=1,
        result=figure,
        percentile_1=figure,
        percentile_99=figure,
    )


def changes(of: Scalability) -> dict[int, float | None]:
    return {point.flows: point.degradation_percent for point in of.points}


@pytest.mark.parametrize(
    ("one", "several", "rate", "delay"),
    [
        (1000, 1000, 0, 0),
        (1000, 750, 25, -25),
        (1000, 1100, -10, 10),
        (1000, 0, 100, -100),
    ],
)
def test_the_formulas_are_the_rfcs(
    one: float, several: float, rate: float, delay: float
) -> None:
    assert degradation_percent(one, several, higher_is_better=True) == rate
    assert degradation_percent(one, several, higher_is_better=False) == delay


@pytest.mark.parametrize(("one", "several"), [(None, 1), (0, 1), (1, None)])
def test_what_cannot_be_compared_is_not(
    one: float | None, several: float | None
) -> None:
    assert degradation_percent(one, several, higher_is_better=True) is None


def test_a_throughput_is_compared_with_that_of_one_flow() -> None:
    [found] = scalability(
        [
            throughput(16, 150),
            throughput(1, 200),
            throughput(4, 220),
            throughput(None, 7),
        ]
    )
    assert (found.better, found.unit) == ("higher", "fps")
    assert changes(found) == {1: None, 4: -10, 16: 25}
    assert [point.rate_fps for point in found.points] == [200, 220, 150]
    assert found.series == "throughput-ip4-both-flows"
    assert found.varied.startswith("source ports")


def test_a_lower_bound_is_not_compared() -> None:
    """What passed at the highest load that was allowed may be more."""
    one, four, many = throughput(1, 200), throughput(4, 200), throughput(16, 100)
    capped = four.model_copy(update={"bound": "lower", "bound_cause": "set"})
    [found] = scalability([one, capped, many])
    assert [point.at_least for point in found.points] == [False, True, False]
    assert changes(found) == {1: None, 4: None, 16: 50}
    [found] = scalability([one.model_copy(update={"bound": "lower"}), four, many])
    assert changes(found) == {1: None, 4: None, 16: None}


def test_frame_sizes_are_series_of_their_own() -> None:
    cells = [throughput(n, 100 * n, size) for size in (64, 128) for n in (1, 2)]
    small, large = scalability(cells)
    assert (small.series, small.frame_size, large.frame_size) == (
        large.series,
        "64",
        "128",
    )


def test_each_value_of_a_delay_is_compared() -> None:
    cells = [latency(1, 900, TL=100, WCL=1000), latency(8, 800, TL=150, WCL=None)]
    found = {each.name: each for each in scalability(cells)}
    assert list(found) == ["TL, forward", "TL, reverse", "WCL, forward", "WCL, reverse"]
    assert changes(found["TL, forward"]) == {1: None, 8: 50}
    assert changes(found["WCL, reverse"]) == {1: None, 8: None}
    assert [p.rate_fps for p in found["TL, forward"].points] == [900, 800]


def test_what_was_not_measured_keeps_its_place() -> None:
    cells = [throughput(1, 200), throughput(4, None)]
    cells += [latency(1, 900, TL=100), latency(4, 800)]
    found = scalability(cells)
    assert [each.name for each in found] == ["throughput", "TL, forward", "TL, reverse"]
    for each in found:
        assert changes(each) == {1: None, 4: None}
        assert each.points[1].value is None


def test_without_one_flow_nothing_is_compared() -> None:
    [found] = scalability([throughput(2, 200), throughput(4, 100)])
    assert changes(found) == {2: None, 4: None}


def test_a_loss_is_that_at_the_highest_load() -> None:
    def loss(flows: int, percent: float) -> CellResult:
        repeat = RepeatResult(value=percent, verdict="pass", trials=1)
        points = [
            LoadPoint(
                load_percent=100, load_fps=500, loss_percent=percent, repeats=[repeat]
            )
        ]
        return CellResult(
            id=f"frame-loss-ip4-{SIZE}-both-flows{flows}",
            series="frame-loss-ip4-both-flows",
            procedure="frame-loss",
            quantity="loss",
            parameters=told(flows, SIZE),
            median=percent,
            unit="percent",
            repeats=[repeat],
            verdict="pass",
            points=points,
        )

    [found] = scalability([loss(1, 4), loss(2, 5)])
    assert (found.better, changes(found)) == ("lower", {1: None, 2: 25})
    assert [point.rate_fps for point in found.points] == [500, 500]


def test_a_longer_burst_is_better_and_has_the_rate_at_which_it_was_sent() -> None:
    def burst(flows: int, frames: float) -> CellResult:
        name = f"back-to-back-ip4-{SIZE}-both-flows{flows}"
        return throughput(flows, frames).model_copy(
            update={
                "id": name,
                "series": "back-to-back-ip4-both-flows",
                "procedure": "back-to-back",
                "unit": "frames",
                "parameters": told(flows, SIZE) | {"max_load_fps": 1_000_000},
            }
        )

    [found] = scalability([burst(1, 1000), burst(4, 750)])
    assert (found.name, found.unit, found.better) == (
        "longest burst",
        "frames",
        "higher",
    )
    assert changes(found) == {1: None, 4: 25}
    assert [point.rate_fps for point in found.points] == [1_000_000, 1_000_000]


def test_what_differs_in_more_than_size_and_flows_is_compared_apart() -> None:
    cells = [
        throughput(flows, 1000).model_copy(update={"series": series})
        for series in ("throughput-ip4-both-flows@a", "throughput-ip4-both-flows@b")
        for flows in (1, 16)
    ]
    assert [len(found.points) for found in scalability(cells)] == [2, 2]
