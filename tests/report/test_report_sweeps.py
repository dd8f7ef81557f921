"""A sweep in the report: the curve, its knee, and what each queue took."""

from __future__ import annotations

import pytest

from dutperf.charts.chart import Chart
from dutperf.charts.repeat_charts import sweep_charts
from dutperf.charts.text import shown
from dutperf.results import SweepResult, SweptPoint
from dutperf.results.model import QueueLoad
from dutperf.tables import Verdict
from dutperf.tables.scalability_tables import Swept, swept

RATES = {1: 10_000, 4: 26_000, 16: 39_000, 64: 40_000, 256: 40_000}


def queues(number: int) -> list[QueueLoad]:
    """One address has the first queue alone, others all four."""
    took = [100, 0, 0, 0] if number == 1 else [40, 30, 20, 10]
    return [QueueLoad(queue=f"queue {n}", frames=each) for n, each in enumerate(took)]


def result(*, told: bool = True, **keys: object) -> SweepResult:
    found = SweepResult(
        procedure="throughput",
        name="throughput",
        unit="fps",
        key="addresses",
        series="throughput-ip4-both-over-addresses",
        within_percent=5,
        plateau=40_000,
        knee=16,
        knee_above=4,
        knee_until=64,
        words="knee at 16 addresses (above 4, at most 64)",
        points=[
            SweptPoint(
                number=number,
                cell=f"throughput-{number}",
                value=rate,
                low=0.98 * rate,
                high=1.02 * rate,
                queues=queues(number) if told else [],
            )
            for number, rate in RATES.items()
        ],
    )
    return found.model_copy(update=keys)


def chart(found: SweepResult) -> tuple[Swept, Chart]:
    [(view, drawn)] = sweep_charts(swept([found], []))
    assert drawn
    return view, drawn


def test_the_table_has_a_row_for_each_number_and_marks_the_interval() -> None:
    [view] = swept([result()], [])
    rows = [
        [shown(e) for e in row.entries if not isinstance(e, Verdict)]
        for row in view.table.rows
    ]
    assert [row[0] for row in rows] == ["1", "4", "16", "64", "256"]
    assert [row[-1] for row in rows] == ["", "above", "found", "at most", ""]
    assert view.table.notes == ("knee at 16 addresses (above 4, at most 64)",)


def test_the_interval_is_shaded_and_the_plateau_a_line() -> None:
    _, drawn = chart(result(told=False))
    band, line = drawn.layout["shapes"]
    assert (band["x0"], band["x1"]) == (4, 64)
    assert (line["y0"], line["y1"]) == (40_000, 40_000)
    assert drawn.data[0]["x"] == list(RATES)
    assert drawn.layout["xaxis"]["type"] == "log"


def test_each_queue_has_a_row_whose_fields_are_as_dark_as_its_share() -> None:
    _, drawn = chart(result())
    fields = [s for s in drawn.layout["shapes"] if s.get("yref") == "y2"]
    assert len(fields) == 4 * len(RATES)
    assert drawn.layout["yaxis2"]["ticktext"] == [f"queue {n}" for n in range(4)]
    of_one = [each["opacity"] for each in fields[:4]]
    of_four = [each["opacity"] for each in fields[4:8]]
    assert of_one == [1, 0, 0, 0]
    assert of_four == [0.4, 0.3, 0.2, 0.1]
    edges = [(each["x0"], each["x1"]) for each in fields[::4]]
    assert all(
        low < number < high for (low, high), number in zip(edges, RATES, strict=True)
    )
    assert [high for _, high in edges[:-1]] == [low for low, _ in edges[1:]]
    shares = drawn.data[1]["meta"]["ys"]
    assert shares[:8] == [100, 0, 0, 0, 40, 30, 20, 10]


def test_cpus_queues_and_interrupts_have_shares_of_their_own() -> None:
    loads = [QueueLoad(queue=f"CPU {n}", frames=n) for n in (1, 3)]
    loads += [QueueLoad(queue=f"queue {n}", frames=n) for n in (1, 3)]
    loads += [QueueLoad(queue=f"eth1-rx-{n} on CPU 0", interrupts=5) for n in (10, 2)]
    why = "cat /proc/interrupts on dut: was not read before the trial"
    points = [
        p.model_copy(update={"queues": loads, "unread": [why]}) for p in result().points
    ]
    view, drawn = chart(result(points=points))
    assert drawn.data[1]["meta"]["ys"][:6] == [25, 75, 25, 75, 50, 50]
    assert drawn.layout["yaxis2"]["ticktext"][2:4] == [
        "eth1-rx-2 on CPU 0",
        "eth1-rx-10 on CPU 0",
    ]
    assert view.table.notes[1:] == (f"not read, for 1 first: {why}",)


def test_without_a_knee_nothing_is_shaded() -> None:
    none = dict.fromkeys(("knee", "knee_above", "knee_until", "plateau"))
    view, drawn = chart(result(told=False, words="no knee: still rising", **none))
    assert drawn.layout["shapes"] == []
    assert view.sentence.endswith("no knee: still rising")


def test_lower_bounds_are_told_as_such() -> None:
    points = [p.model_copy(update={"high": None}) for p in result().points]
    view, drawn = chart(result(points=points))
    assert drawn.data[0]["hovertext"][0] == "1: 10,000 fps at least"
    assert "≥" in shown(view.table.rows[0].entries[1])  # type: ignore[arg-type]


def test_one_result_is_no_curve() -> None:
    [(_, drawn)] = sweep_charts(swept([result(points=result().points[:1])], []))
    assert drawn is None


@pytest.mark.parametrize("unit", ["percent", "ns", "connections/s"])
def test_each_unit_has_its_table_and_chart(unit: str) -> None:
    view, drawn = chart(result(unit=unit))
    assert view.table.rows
    assert drawn.figure
