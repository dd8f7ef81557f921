"""Degradation by the number of flows (RFC 8219 10.2), of results made by hand."""

from __future__ import annotations

import pytest
from told_cells import cell_of, retyped

from dutperf.procedures.scalability import degradation_percent, scalability
from dutperf.protocol.base import DirectionName
from dutperf.results import (
    CellResult,
    DelayRecord,
    Finding,
    Measure,
    MeasuredValue,
    RepeatResult,
    Scalability,
)
from dutperf.results.rate_results import Load, LoadPoint

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
        cell=cell_of("throughput", told(flows, size)),
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
        cell=cell_of("latency", told(flows, SIZE)),
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
    figure = MeasuredValue(value=value, absent=None if value else "lost")
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
            cell=cell_of("frame-loss", told(flows, SIZE)),
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
        return retyped(
            throughput(flows, frames).model_copy(
                update={
                    "id": name,
                    "series": "back-to-back-ip4-both-flows",
                    "procedure": "back-to-back",
                    "unit": "frames",
                    "parameters": told(flows, SIZE) | {"max_load_fps": 1_000_000},
                }
            )
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


def repeated(flows: int, *rates_fps: int, **keys: object) -> CellResult:
    repeats = [RepeatResult(value=v, verdict="pass", trials=1) for v in rates_fps]
    cell = throughput(flows, sorted(rates_fps)[len(rates_fps) // 2])
    told = cell.parameters | {"resolution": "0.1%"}
    return retyped(
        cell.model_copy(update={"repeats": repeats, "parameters": told} | keys)
    )


def intervals(of: Scalability) -> list[tuple[float | None, float | None]]:
    return [(point.lower_percent, point.upper_percent) for point in of.points]


DELAYS = DelayRecord(
    definition="", resolution="", floor_ns=1, bound_ns=1, usual_bound_ns=1
)
ONE = (1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007)


def test_a_change_larger_than_what_repeats_differ_is_shown() -> None:
    [found] = scalability(
        [repeated(1, *ONE), repeated(4, 900, 901, 902, 903, 904, 905, 906, 907)]
    )
    one, four = found.points
    assert (one.lower_percent, one.upper_percent) == (None, None)
    assert four.degradation_percent == pytest.approx(9.97, abs=0.01)
    low, high = four.lower_percent or 0, four.upper_percent or 0
    assert 9 < low < (four.degradation_percent or 0) < high < 11


def test_what_repeats_differ_anyway_is_no_difference() -> None:
    """The medians differ by 0.3 %, and nobody can tell whether flows did that."""
    [found] = scalability(
        [repeated(1, *ONE), repeated(4, 985, 990, 995, 999, 1000, 1006, 1009, 1012)]
    )
    _, (low, high) = intervals(found)
    assert low is not None
    assert high is not None
    assert low < 0 < high


def test_an_average_has_its_own_interval_in_which_it_lies() -> None:
    """One repeat of eight at half: the average falls, no median of pairs does."""

    def bursts(flows: int, *frames: int) -> CellResult:
        cell = repeated(flows, *frames, procedure="back-to-back", unit="frames")
        average = sum(frames) / len(frames)
        step = cell.parameters | {"step": "1"}
        return retyped(cell.model_copy(update={"median": average, "parameters": step}))

    [found] = scalability([bursts(1, *ONE), bursts(4, 8, 8, *[1002] * 6)])
    told = found.points[1]
    assert told.degradation_percent == pytest.approx(24.9, abs=0.1)
    assert told.lower_percent is not None
    assert told.upper_percent is not None
    assert told.lower_percent < 24.9 < told.upper_percent


def test_a_delay_that_grew_is_worse() -> None:
    def delays(flows: int, *values_ns: float) -> CellResult:
        cell = latency(flows, 900, TL=sorted(values_ns)[3])
        own = [
            each.model_copy(
                update={"repeats": [MeasuredValue(value=v) for v in values_ns]}
            )
            for each in cell.measures
        ]
        return cell.model_copy(update={"measures": own, "delays": DELAYS})

    one = delays(1, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007)
    found = scalability(
        [one, delays(8, 1500, 1501, 1502, 1503, 1504, 1505, 1506, 1507)]
    )
    for each in found:
        _, (low, high) = intervals(each)
        assert low is not None
        assert high is not None
        assert 48 < low < 50 < high < 52


def test_there_is_no_interval_of_few_repeats_or_of_none_with_a_common_value() -> None:
    four = repeated(4, 900, 901, 902, 903, 904, 905, 906, 907)
    doubt = Finding(kind="drift", of="throughput", message="", unit="fps")
    for one in (
        repeated(1, 1000, 1001),
        repeated(1, *ONE, findings=[doubt]),
        repeated(1, *ONE, bound="lower"),
    ):
        [found] = scalability([one, four])
        assert intervals(found) == [(None, None)] * 2


def test_a_doubt_of_one_delay_is_none_of_another() -> None:
    def delays(flows: int) -> CellResult:
        cell = latency(flows, 900, TL=1000.0, WCL=2000.0)
        own = [
            each.model_copy(update={"repeats": [each.result] * 8})
            for each in cell.measures
        ]
        doubt = Finding(kind="modes", of="TL, forward", message="", unit="ns")
        return cell.model_copy(
            update={"measures": own, "delays": DELAYS, "findings": [doubt]}
        )

    found = {of.name: intervals(of)[1] for of in scalability([delays(1), delays(4)])}
    assert [name for name, (low, _) in found.items() if low is None] == ["TL, forward"]


def test_all_intervals_of_a_run_share_the_5_percent() -> None:
    """Seven repeats each are enough for one interval, and not for two."""
    few = [repeated(n, *(1000 * n + k for k in range(7))) for n in (1, 2, 3)]
    [alone] = scalability(few[:2])
    [together] = scalability(few)
    assert None not in intervals(alone)[1]
    assert intervals(together)[1:] == [(None, None)] * 2


def test_a_load_that_grows_with_the_flows_is_told() -> None:
    cells = [latency(n, 100 * n, TL=1000) for n in (1, 4)]
    told = {"rate_fps": "100 per flow"}
    cells = [
        retyped(c.model_copy(update={"parameters": c.parameters | told})) for c in cells
    ]
    [forward, _] = scalability(cells)
    assert forward.rate_per_flow_fps == 100
    assert [point.rate_fps for point in forward.points] == [100, 400]
    [plain] = scalability([throughput(1, 200)])
    assert plain.rate_per_flow_fps is None
