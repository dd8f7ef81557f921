"""Tables and lines at the end of a run, from results alone."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Literal

import pytest
from told_cells import cell_of, retyped

from dutperf.cli.console import PatientConsole
from dutperf.cli.measuring import Show
from dutperf.cli.summary import show_all, show_summary
from dutperf.protocol.result_messages import Damage, Reason
from dutperf.results import (
    CellResult,
    DirectionLoss,
    GoalResult,
    LoadPoint,
    Media,
    RepeatResult,
    ResultsFile,
    Settlement,
    Withdrawal,
    spread_of,
)
from dutperf.results.rate_results import DamagedFrames, DamageFigure
from dutperf.standards import Conformance, Deviation
from dutperf.stats import median


def throughput(*values: float, cell_id: str = "throughput-ip4-64-both") -> CellResult:
    return CellResult(
        id=cell_id,
        procedure="throughput",
        quantity="throughput per direction (RFC 2544 26.1)",
        cell=cell_of("throughput", {"frame_sizes": "64", "direction": "both"}),
        parameters={"frame_sizes": "64", "direction": "both"},
        median=median(values),
        unit="fps",
        repeats=[RepeatResult(value=v, verdict="pass", trials=1) for v in values],
        verdict="pass",
        spread=spread_of(values),
    )


def shown(*cells: CellResult, show: Show = show_all, width: int = 160) -> str:
    results = ResultsFile(
        procedure="campaign",
        name="demo",
        created_at="2026-03-04T05:06:07+00:00",
        complete=True,
        cells=list(cells),
    )
    console = PatientConsole(file=io.StringIO(), width=width)
    show(console, results, None)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_repeats_that_do_not_count_are_named() -> None:
    cell = throughput(*range(100_001, 100_021))
    withdrawn = Withdrawal(repeats=[5, 6, 7], trials=5)
    out = shown(cell.model_copy(update={"withdrawn": withdrawn}))
    assert "throughput-ip4-64-both: repeats 5 to 7 do not count: " in out
    withdrawn = Withdrawal(repeats=[5], trials=2)
    out = shown(cell.model_copy(update={"withdrawn": withdrawn}))
    assert "repeat 5 does not count: " in out
    assert "count: " not in shown(cell)


def test_a_curve_tells_each_directions_loss_beside_that_of_both() -> None:
    repeat = RepeatResult(value=30, verdict="pass", trials=1)
    of_each = [
        DirectionLoss(direction="forward", loss_percent=50, repeats=[50]),
        DirectionLoss(direction="reverse", loss_percent=10, repeats=[10]),
    ]
    points = [
        LoadPoint(load_percent=load, load_fps=load, loss_percent=30, repeats=[repeat])
        for load in (100, 90)
    ]
    points[0] = points[0].model_copy(update={"directions": of_each})
    cell = CellResult(
        id="frame-loss-ip4-64-both",
        procedure="frame-loss",
        quantity="frame loss rate at the highest load",
        cell=cell_of("frame-loss", {}),
        parameters={},
        median=30,
        unit="percent",
        repeats=[repeat],
        verdict="pass",
        points=points,
    )
    out = shown(cell)
    assert "forward" in out
    assert "reverse" in out
    lines = [line for line in out.splitlines() if line.startswith("│   100 %")]
    first = [part.strip() for part in lines[0].strip("│").split("│")]
    assert first == ["100 %", "100", "30 %", "50 %", "10 %", "1 of 1", "1"]


def test_repeats_are_told_with_the_interval_of_their_median_and_dispersion() -> None:
    out = shown(throughput(*range(100_001, 100_021)))
    [row] = [line for line in out.splitlines() if "100,006" in line]
    assert "100,015" in row
    assert "0.019 %" in row


def test_of_several_cells_that_damage_limits_the_slowest_is_told_in_full() -> None:
    damage = DamageFigure(
        value=30_000,
        verdict="pass",
        bound="lower",
        bound_cause="set",
        trials=4,
        reused=3,
        frames=[
            DamagedFrames(direction="reverse", sent=200, damaged=Damage(truncated=3))
        ],
    )
    cells = [
        throughput(value, cell_id=name).model_copy(update={"damage": damage})
        for name, value in (("a", 2000), ("b", 1000), ("c", 3000))
    ]
    out = shown(*cells, show=show_summary)
    assert (
        "b: 0 damaged: 1,000 fps; damaged frames counted as received: >= 30,000 fps; "
        "reverse, 1 in 67: 3 of 200 frames damaged (3 truncated); the device sends "
        "frames that end before their IP packet does" in out
    )
    assert "a and c: damaged frames alone limited them, too" in out


COMPLIANT = Conformance(
    rfc="RFC 2544",
    section="26.1",
    status="unconditional",
    statement="unconditionally compliant with RFC 2544 26.1",
)
LEVELS = (("MUST", " (MUST)"), ("SHOULD", " (SHOULD)"), ("text", ""), (None, ""))


def test_what_holds_for_all_cells_is_said_once() -> None:
    cells = [
        throughput(1, cell_id=name).model_copy(update={"conformance": COMPLIANT})
        for name in ("a", "b")
    ]
    assert f"all test cases: {COMPLIANT.statement}" in shown(*cells)
    assert f"\na: {COMPLIANT.statement}" in shown(*cells[:1])
    other = replace(COMPLIANT, statement="not compliant")
    differing = cells[1].model_copy(update={"conformance": other})
    assert "\nb: not compliant" in shown(cells[0], differing)


@pytest.mark.parametrize(("level", "told"), LEVELS)
def test_a_deviation_says_what_the_rfc_calls_it(
    level: Literal["MUST", "SHOULD", "text"] | None, told: str
) -> None:
    point = Deviation(rfc="RFC 2544 24", requirement="60 s", actual="1 s", level=level)
    cell = throughput(1).model_copy(update={"deviations": [point]})
    assert f"deviation from RFC 2544 24{told}: 60 s: 1 s" in shown(cell)


def goal(name: str, lower_fps: int | None, **keys: object) -> GoalResult:
    given: dict[str, object] = {
        "name": name,
        "loss_ratio": 0,
        "exceed_ratio": 0,
        "final_duration_s": 60,
        "duration_sum_s": 60,
        "initial_duration_s": 1,
        "width": 0.001,
        "lower_fps": lower_fps,
        "upper_fps": 100_050,
        "conditional_fps": 99_990,
        "regular": True,
        "verdict": "pass",
    }
    return GoalResult.model_validate(given | keys)


def test_each_goal_has_a_row() -> None:
    reason = Reason(code="nothing_passed", message="frames were lost")
    goals = [
        goal("no loss", 99_991),
        goal("losing up to 0.5 %", None, regular=False, reasons=[reason]),
    ]
    out = shown(throughput(99_991).model_copy(update={"goals": goals}))
    first = next(line for line in out.splitlines() if "no loss" in line)
    assert [part.strip() for part in first.strip("│").split("│")] == [
        *("no loss", "60", "0.1 %", "99,991", "100,050", "99,990", "regular"),
    ]
    assert "irregular (nothing_passed)" in out


def test_it_is_told_whether_the_median_is_settled() -> None:
    settled = Settlement(width="1%", max_repeats=64, looks=2, reached=True)
    cell = throughput(*range(100_001, 100_017))
    told = shown(cell.model_copy(update={"settled": settled}))
    assert (
        "throughput-ip4-64-both: settled after 16 repeats (2 looks): the interval of "
        "the median is no wider than 1 % of it"
    ) in told
    open_end = settled.model_copy(update={"reached": False})
    told = shown(cell.model_copy(update={"settled": open_end}))
    assert "not settled after 16 repeats" in told


def test_what_is_no_rfc_2544_throughput_is_named() -> None:
    named = "throughput per direction, losses verified by 2 trials"
    found = throughput(100_000)
    told = found.parameters | {"verify_trials": 2}
    cell = retyped(found.model_copy(update={"quantity": named, "parameters": told}))
    out = shown(cell, throughput(100_000, cell_id="plain"))
    assert f"throughput-ip4-64-both: {named}" in out.splitlines()
    assert "Rate per direction, losses verified by 2 trials" in out


def test_a_narrow_terminal_has_room_for_what_matters() -> None:
    """80 columns: ids and figures stand in one piece, nothing is cut off."""
    values = [1_234_567.0 + n for n in range(20)]
    bound = {"bound": "lower", "bound_cause": "tester"}
    cells = [
        throughput(*values, cell_id=f"throughput-ip{v}-84-both").model_copy(
            update={
                **bound,
                "spread": spread_of(values, at_least=[True] * len(values)),
            }
        )
        for v in (4, 6)
    ]
    lines = shown(*cells, show=show_summary, width=80).splitlines()
    [row] = [s for s in lines if s.startswith("│ throughput-ip4-84-both")]
    assert ">= 1,234,576" in row
    assert max(len(s) for s in lines if s[:1] in "┃│") <= 80
    assert "…" not in "".join(lines)


def test_one_repeat_has_neither() -> None:
    out = shown(throughput(100_000))
    assert "interval" not in out
    assert "dispersion" not in out


def test_too_few_repeats_have_no_interval() -> None:
    out = shown(throughput(100_000, 110_000))
    assert "9.5" in out
    [row] = [line for line in out.splitlines() if "9.5" in line]
    assert [part.strip() for part in row.split("│")].count("-") >= 2


# --- beside the theoretical maximum


def at_size(size: int, maximum_fps: int, *, nominal: bool = False) -> CellResult:
    share = 100_000 * 100 / maximum_fps
    media = Media(
        rate_fps=maximum_fps,
        link_speed_mbps=1000,
        nominal=nominal,
        share_percent=share,
    )
    told = {"frame_size": size, "frame_sizes": str(size), "direction": "both"}
    versions = {"ip": 4, "ip_left": 4, "ip_right": 4}
    found = throughput(100_000, cell_id=f"throughput-ip4-{size}-both")
    return retyped(
        found.model_copy(
            update={"parameters": told | versions, "media": media, "sum_fps": 200_000}
        )
    )


def test_frame_sizes_stand_beside_the_theoretical_maximum() -> None:
    out = shown(at_size(1518, 81_274), at_size(64, 1_488_095))
    found = [[part.strip() for part in s.split("│")] for s in out.splitlines()]
    [first] = [n for n, parts in enumerate(found) if "1,488,095" in parts]
    assert found[first][3:7] == ["64", "1,488,095", "100,000", "200,000"]
    assert found[first][7] == "6.72 %"
    assert "81,274" in found[first + 1]
    assert "IPv4, both directions" in out
    assert "the maximum is that of 1,000 Mbit/s" in out
    assert "nominal" not in out


def test_one_frame_size_is_compared_on_request_and_a_virtual_link_is_told() -> None:
    cell = at_size(64, 1_488_095, nominal=True)
    out = shown(cell)
    assert "6.72 %" in out
    assert "1,000 Mbit/s, nominal: a virtual link, which may be faster" in out
    assert "Throughput and theoretical maximum" not in shown(cell, show=show_summary)


def of_bounds(verdict: str) -> list[CellResult]:
    bound = {"verdict": verdict, "bound": "lower", "bound_cause": "tester"}
    cells = (at_size(64, 1_488_095), at_size(1518, 81_274))
    return [cell.model_copy(update=bound) for cell in cells]


def test_a_lower_bound_is_one_wherever_the_figure_is() -> None:
    out = shown(*of_bounds("pass"))
    assert ">= 6.72 %" in out
    assert out.count("100,000") == out.count(">= 100,000")
    assert out.count("200,000") == out.count(">= 200,000") == 4


def test_what_is_not_measured_has_no_figure_but_what_did_pass() -> None:
    out = shown(*of_bounds("invalid"))
    assert "throughput-ip4-64-both: at least 100,000 fps did pass" in out
    assert "6.72 %" not in out
    assert "200,000" not in out


def test_figures_of_repeats_are_bounds_each_for_itself() -> None:
    values = range(100_001, 100_021)
    at_least = [value > 100_014 for value in values]
    found = throughput(*values).model_copy(
        update={"spread": spread_of(values, at_least=at_least)}
    )
    out = shown(found, width=300)
    row = next(s for s in out.splitlines() if s.startswith("│ throughput"))
    parts = [part.strip() for part in row.strip("│").split("│")]
    middle = parts.index("100,010")
    assert parts[middle + 1 : middle + 3] == ["100,006", ">= 100,015"]
    assert "200,021" in parts


def test_results_are_measured_failed_or_invalid() -> None:
    for verdict, word in (("pass", "measured"), ("fail", "failed")):
        out = shown(throughput(1).model_copy(update={"verdict": verdict}))
        assert f" {word} " in out
        assert f" {verdict} " not in out


def test_an_unknown_speed_is_said() -> None:
    unknown = at_size(64, 1_488_095).model_copy(update={"media": None})
    told = "theoretical maximum: not known, a link does not tell its speed"
    assert told in shown(unknown)
    assert told not in shown(throughput(100_000))  # of an older file
