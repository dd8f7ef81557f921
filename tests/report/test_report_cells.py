"""What one cell says in words and figures."""

from __future__ import annotations

import pytest
from report_sample import (
    BEHIND,
    LOSSES_4,
    LOSSES_6,
    all_sizes,
    loss_cell,
    throughput_cell,
    trial,
)
from told_cells import retyped

from dutperf.charts import text
from dutperf.charts.cells import (
    FAILED,
    INVALID,
    MEASURED,
    CellView,
    finished_cell,
    open_cell,
)
from dutperf.charts.text import MISSING, NBSP
from dutperf.protocol.result_messages import VerdictKind
from dutperf.report.summary import headline
from dutperf.results import CellResult, overall
from dutperf.results.rate_results import DamageFigure, WireRate
from dutperf.tables import Value
from dutperf.tables.result_tables import result_table
from dutperf.tables.table_model import NONE

NAME = "throughput-ip4-64-both"


def plain(words: str) -> str:
    return words.replace(NBSP, " ")


def spread(cell: CellView) -> list[str]:
    ends = (cell.of_spread("percentile_1"), cell.of_spread("percentile_99"))
    extremes = (cell.of_spread("minimum"), cell.of_spread("maximum"))
    return [text.shown(value) for value in (*ends, *extremes)]


def test_a_throughput_is_told_per_direction_in_sum_and_on_the_wire() -> None:
    shown = headline(finished_cell(throughput_cell(NAME, 4, 64, [100_000.0]), ()))
    assert (shown.value, shown.unit, shown.caption) == (
        "100,000",
        "fps",
        "Forwarded without loss in each direction.",
    )
    # 84 bytes of frame, preamble and gap, 8 bits each, 100,000 times a second.
    assert [plain(line) for line in shown.lines] == [
        "200,000 fps, sum of both directions",
        "67.2 Mbit/s on the wire per direction, 134.4 in sum",
    ]


def test_behind_a_translator_each_direction_takes_its_own_share_of_the_wire() -> None:
    result = throughput_cell(NAME, 6, 84, [250_000.0])
    wire = [
        WireRate(direction="forward", mbps=208.0),
        WireRate(direction="reverse", mbps=168.0),
    ]
    cell = finished_cell(result.model_copy(update={"wire": wire}), ())
    assert Value("208.0 / 168.0") in result_table("throughput", [cell]).rows[0].entries
    told = "208.0 Mbit/s forward and 168.0 Mbit/s reverse on the wire, 376.0 in sum"
    assert told in [plain(line) for line in headline(cell).lines]


def test_what_damaged_frames_hide_is_the_first_line_and_not_the_figure() -> None:
    damage = DamageFigure(value=30_000, verdict="pass", trials=4, reused=3, frames=[])
    result = throughput_cell(NAME, 4, 64, [9_000.0])
    result = result.model_copy(update={"damage": damage})
    shown = headline(finished_cell(result, ()))
    assert shown.value == "9,000"
    assert plain(shown.lines[0]) == "30,000 fps, damaged frames counted as received"
    failed = result.model_copy(update={"verdict": "fail", "median": 0})
    assert headline(finished_cell(failed, ())).lines == shown.lines[:1]


def bounded(*values: float, verdict: VerdictKind = "pass") -> CellResult:
    """Every repeat ended at the tester's limit."""
    result = throughput_cell(NAME, 4, 64, values, verdict)
    repeats = [
        repeat.model_copy(update={"bound": "lower", "bound_cause": "tester"})
        for repeat in result.repeats
    ]
    found = overall(repeats)._asdict()
    return result.model_copy(update={"repeats": repeats, **found})


def test_all_figures_of_a_lower_bound_say_so() -> None:
    cell = finished_cell(bounded(100_000.0), ())
    shown = headline(cell)
    assert plain(shown.value) == "≥ 100,000"
    assert (shown.unit, shown.limit) == ("fps", "the tester's limit")
    assert shown.caption.endswith("the device may do more.")
    assert [plain(line) for line in shown.lines] == [
        "≥ 200,000 fps, sum of both directions",
        "≥ 67.2 Mbit/s on the wire per direction, ≥ 134.4 in sum",
    ]


def test_of_repeats_only_what_rests_on_a_bound_is_one() -> None:
    result = throughput_cell(NAME, 4, 64, [100_000.0, 101_000.0, 102_000.0])
    repeats = list(result.repeats)
    repeats[2] = repeats[2].model_copy(update={"bound": "lower"})
    found = overall(repeats)._asdict()
    cell = finished_cell(result.model_copy(update={"repeats": repeats, **found}), ())
    assert cell.figure_text == "101,000"
    assert [plain(told) for told in spread(cell)] == [
        "100,000",
        "≥ 102,000",
        "100,000",
        "≥ 102,000",
    ]
    assert text.shown(cell.dispersion) == MISSING


def test_a_bound_is_a_figure_also_where_the_result_is_invalid() -> None:
    cell = finished_cell(bounded(100_000.0, verdict="invalid"), ())
    shown = headline(cell)
    assert (plain(shown.value), shown.unit) == ("≥ 100,000", "fps")
    assert shown.limit == "the tester's limit"
    assert cell.badge is INVALID


def test_a_single_search_tells_what_it_passed_and_failed_at() -> None:
    result = throughput_cell(NAME, 4, 64, [100_000.0])
    trials = (trial(1, NAME, 110_000, "fail"), trial(2, NAME, 100_000, "pass"))
    assert headline(finished_cell(result, trials)).interval == (
        "One repeat: passed at 100,000, failed at 110,000"
    )
    # No fail, no upper bound: the highest rate that was tried is none.
    assert headline(finished_cell(result, trials[1:])).interval == "One repeat"


def test_repeats_tell_their_interval_or_their_ends() -> None:
    values = [100_000.0 + n for n in range(3)]
    few = finished_cell(throughput_cell(NAME, 4, 64, values), ())
    told = headline(few).interval
    assert told == "Median of 3 repeats, 100,000 to 100,002"
    result = throughput_cell(NAME, 4, 64, [100_000.0 + n for n in range(9)])
    many = finished_cell(result, ())
    assert many.spread
    low, high = many.spread.interval_lower, many.spread.interval_upper
    assert f"interval {low:,.0f} to {high:,.0f}" in plain(headline(many).interval)


def test_one_direction_has_no_sum() -> None:
    result = throughput_cell(NAME, 4, 64, [100_000.0])
    parameters = {**result.parameters, "direction": "forward"}
    forward = {"parameters": parameters, "wire": result.wire[:1]}
    cell = finished_cell(retyped(result.model_copy(update=forward)), ())
    assert cell.sum_fps == cell.rate_fps == 100_000
    assert [plain(line) for line in headline(cell).lines] == [
        "67.2 Mbit/s on the wire per direction"
    ]


@pytest.mark.parametrize("verdict", ["invalid", "fail"])
def test_a_result_that_is_not_measured_has_no_figure_anywhere(
    verdict: VerdictKind,
) -> None:
    cell = finished_cell(throughput_cell(NAME, 4, 64, [123_457.0], verdict), ())
    shown = headline(cell)
    assert shown.value == "No result"
    assert not any(letter.isdigit() for letter in shown.caption)
    assert shown.lines == ()
    assert cell.median is cell.rate_fps is cell.sum_fps is None
    assert cell.wire == {}
    assert spread(cell) == ["\N{EN DASH}"] * 4


def test_a_result_without_a_median_is_not_called_measured() -> None:
    assert finished_cell(throughput_cell(NAME, 4, 64, [None], "pass"), ()).badge is (
        INVALID
    )


@pytest.mark.parametrize(
    ("verdict", "badge"), [("pass", MEASURED), ("fail", FAILED), ("invalid", INVALID)]
)
def test_a_verdict_is_told_by_word_and_symbol(
    verdict: VerdictKind, badge: object
) -> None:
    cell = finished_cell(throughput_cell(NAME, 4, 64, [1.0], verdict), ())
    assert cell.badge is badge
    assert cell.badge.label
    assert cell.badge.symbol


def test_the_reason_and_the_remedy_are_said_once() -> None:
    result = throughput_cell(NAME, 4, 64, [None, None, None], "invalid")
    repeats_only = result.model_copy(update={"reasons": []})
    for stored in (result, repeats_only):
        cell = finished_cell(stored, ())
        assert cell.reasons == [(BEHIND.message, BEHIND.hint)]


def test_a_remedy_for_both_directions_follows_the_last_of_them() -> None:
    ways = [
        BEHIND.model_copy(update={"message": f"{way}: {BEHIND.message}"})
        for way in ("forward", "reverse")
    ]
    result = throughput_cell(NAME, 4, 64, [None], "invalid")
    cell = finished_cell(result.model_copy(update={"reasons": ways}), ())
    assert cell.reasons == [(ways[0].message, ""), (ways[1].message, BEHIND.hint)]


def test_a_valid_repeat_of_an_invalid_cell_still_counts() -> None:
    cell = finished_cell(
        throughput_cell(NAME, 4, 64, [10.0, None, 30.0], "invalid"), ()
    )
    assert cell.valid_repeats == Value("2 of 3")


def test_repeats_that_gave_nothing_are_counted_as_such() -> None:
    cell = finished_cell(throughput_cell(NAME, 4, 64, [10.0, None, 30.0]), ())
    assert cell.valid_repeats == Value("2 of 3")
    assert cell.values == [10.0, 30.0]
    one = finished_cell(throughput_cell(NAME, 4, 64, [10.0]), ())
    assert one.valid_repeats == Value("1")


def test_the_spread_is_that_of_the_valid_repeats() -> None:
    """The slow way: with fewer than 100 repeats p1 and p99 are the ends."""
    for result in all_sizes().cells:
        cell = finished_cell(result, ())
        values = sorted(r.value for r in result.repeats if r.value is not None)
        ends = [f"{values[0]:,.0f}", f"{values[-1]:,.0f}"]
        assert spread(cell) == ends * 2


def test_the_first_percentile_of_many_repeats_is_not_the_minimum() -> None:
    values = [float(number) for number in range(1, 201)]
    cell = finished_cell(throughput_cell(NAME, 4, 64, values), ())
    assert spread(cell) == ["2", "198", "1", "200"]


def test_a_frame_loss_is_told_at_the_highest_load() -> None:
    shown = headline(finished_cell(loss_cell("frame-loss", 4, 64, LOSSES_4), ()))
    assert (shown.value, shown.unit) == ("38.6", "%")
    assert plain(shown.caption) == (
        "Lost at 100 % load (500,000 fps); no loss up to 60 % load (300,000 fps)."
    )


def test_the_table_has_the_load_of_the_loss_beside_it() -> None:
    """Also where that is not 100 %, and where the highest load is not valid."""
    cases: list[tuple[dict[int, float | None], str]] = [
        ({115: 24.6, 100: 0.0}, "575,000"),
        ({115: None, 100: 9.0}, "500,000"),
    ]
    for losses, fps in cases:
        cell = finished_cell(loss_cell("frame-loss", 4, 64, losses), ())
        table = result_table("losses", [cell])
        names = [column.name for column in table.columns]
        (row,) = table.rows
        assert row.entries[names.index("maximum load")] == Value(fps)


def test_one_repeat_has_no_percentiles_beside_one_that_has() -> None:
    one, three = (
        finished_cell(throughput_cell(NAME, 4, 64, values), ())
        for values in ([1000.0], [1000.0, 1100.0, 1200.0])
    )
    assert one.of_spread("percentile_1") == one.of_spread("percentile_99") == NONE
    assert three.of_spread("percentile_99") == Value("1,200")


def test_loss_at_every_load_is_said() -> None:
    shown = headline(finished_cell(loss_cell("frame-loss", 6, 84, LOSSES_6), ()))
    assert shown.caption.endswith("; loss at every load tried.")


def test_an_unknown_lowest_load_is_not_taken_for_loss() -> None:
    cell = loss_cell("frame-loss", 4, 64, {100: 9.0, 90: 0.0, 80: None})
    assert plain(headline(finished_cell(cell, ())).caption) == (
        "Lost at 100 % load (500,000 fps)."
    )


def test_loss_at_the_lowest_load_is_said_though_a_higher_one_is_clean() -> None:
    cell = loss_cell("frame-loss", 4, 64, {100: 9.0, 90: 0.0, 80: 0.1})
    caption = plain(headline(finished_cell(cell, ())).caption)
    assert "; loss even at 80 % load (400,000 fps), the lowest tried" in caption


def test_a_clean_load_above_a_lossy_one_does_not_count() -> None:
    cell = loss_cell("frame-loss", 4, 64, {100: 9.0, 90: 0.0, 80: 0.1, 70: 0.0})
    caption = plain(headline(finished_cell(cell, ())).caption)
    assert "; no loss up to 70 % load (350,000 fps)" in caption


def test_cells_that_differ_in_their_direction_only_have_different_titles() -> None:
    one = loss_cell("frame-loss", 4, 64, {100: 9.0})
    titles = []
    for direction in ("both", "forward", "reverse"):
        parameters = one.parameters | {"direction": direction}
        cell = finished_cell(
            retyped(one.model_copy(update={"parameters": parameters})), ()
        )
        titles.append(plain(cell.title))
    assert titles == [
        "Frame loss, IPv4, 64 bytes",
        "Frame loss, IPv4, 64 bytes, forward only",
        "Frame loss, IPv4, 64 bytes, reverse only",
    ]


def test_an_open_cell_is_described_by_its_trials() -> None:
    trials = tuple(trial(n, NAME, 1_000, "pass", ip=6, frame_size=1280) for n in (1, 2))
    cell = open_cell(trials[0], trials)
    assert plain(cell.title) == "Throughput, IPv6, 1,280 bytes"
    assert cell.ways == "both directions"
    assert (cell.measured, cell.median, cell.valid_repeats) == (False, None, Value())
    assert headline(cell).caption == "The run ended here, 2 trials stored."


@pytest.mark.parametrize(
    ("changed", "stream"),
    [
        ({}, "IPv4, 64 bytes"),
        ({"ip": "6-4", "frame_sizes": "84/64"}, "IPv6-IPv4, 84/64 bytes"),
        ({"traffic": "many-hosts"}, "IPv4, 64 bytes, many-hosts"),
        ({"frame_size": None, "frame_sizes": "imix: 64, 570"}, "IPv4, imix"),
    ],
)
def test_the_traffic_is_told_in_the_fields_words(
    changed: dict[str, str | int | float | bool | None], stream: str
) -> None:
    result = throughput_cell(NAME, 4, 64, [1.0])
    parameters = {**result.parameters, **changed}
    cell = finished_cell(
        retyped(result.model_copy(update={"parameters": parameters})), ()
    )
    assert plain(cell.stream) == stream
