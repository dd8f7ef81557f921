"""Several runs a side: each is one value, whatever happens within it."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from comparison_sample import bounded, compared, compared_sides, latency, loss, rate
from comparison_sample import stored as stored_run
from report_sample import BEHIND, sample_environment
from told_cells import retyped

from dutperf.comparison import as_data, compare, read_sides
from dutperf.comparison.comparison_tables import differences_of, finding, sentences
from dutperf.comparison.judging import Compared
from dutperf.errors import InputError
from dutperf.results import CellResult, Finding
from dutperf.stats import Sample

NAME = "throughput-ip4-64-both"


def runs(*middles: float) -> list[CellResult]:
    """A run of three repeats around each of ``middles``."""
    return [rate(middle + 10, middle, middle - 10) for middle in middles]


FIVE = runs(100_000, 103_000, 99_000, 101_000, 98_000)
SLOW = runs(90_000, 92_000, 91_000, 89_000, 93_000)


def sides(before: Sequence[CellResult], after: Sequence[CellResult]) -> Compared:
    (found,) = compared_sides([[c] for c in before], [[c] for c in after]).figures
    return found


def _with(cell: CellResult, **update: object) -> CellResult:
    return cell.model_copy(update=update)


def _found(kind: str) -> list[Finding]:
    return [Finding(kind=kind, of="throughput", message="", unit="fps")]


def test_each_run_is_one_value() -> None:
    found = sides(FIVE, SLOW)
    assert (found.outcome, found.samples) == ("worse", (5, 5))
    assert found.change is not None
    assert found.change.value == pytest.approx(-9, abs=1)
    assert found.before is not None
    assert sorted(each.value for each in found.before.samples)[2] == 100_000
    assert getattr(found.before.shown, "digits", "") == "100,000"


def test_runs_of_one_device_that_differ_show_nothing() -> None:
    """One run a side says that the runs differ; several that such runs do."""
    wide = [
        rate(*[middle + n for n in range(10)]) for middle in range(97_000, 99_500, 500)
    ]
    (found,) = compared([wide[0]], [wide[4]]).figures
    assert found.outcome == "better"
    assert sides(wide, list(reversed(wide))).outcome == "none_shown"


def test_repeats_that_depend_on_those_before_are_worth_fewer_and_runs_are_not() -> None:
    rising = [[at + 1000 * n for n in range(20)] for at in (100_000, 94_000)]
    (found,) = compared(*([rate(*values)] for values in rising)).figures
    assert found.outcome == "none_shown"
    scattered = [[values[7 * n % 20] for n in range(20)] for values in rising]
    (found,) = compared(*([rate(*values)] for values in scattered)).figures
    assert found.outcome == "worse"
    assert sides(runs(*rising[0]), runs(*rising[1])).outcome == "worse"


def test_three_runs_are_too_few_and_one_beside_five_is() -> None:
    few = sides(FIVE[:3], SLOW[:3])
    assert (few.outcome, few.why) == ("too_few", "3 and 3 runs, at least 4 each")
    assert few.judged(3) == "cannot_tell"
    assert finding(few) == "too few runs: 3 and 3 runs, at least 4 each"
    one = sides(FIVE, SLOW[:1])
    assert (one.outcome, one.why) == (
        "too_few",
        "5 and 1 runs, at least 4 each, or 39 and 1",
    )
    assert sides(FIVE[:2], SLOW).why == "2 and 5 runs, at least 4 each, or 2 and 8"
    four = sides(FIVE[:4], SLOW[:4])
    assert four.outcome == "worse"
    assert four.before is not None
    assert getattr(four.before.shown, "digits", "") == "100,000"
    # A single new run is the lowest of forty in one of forty series.
    many = runs(*(100_000 + 100 * n for n in range(39)))
    assert sides(many[1:], SLOW[:1]).outcome == "too_few"
    assert sides(many, SLOW[:1]).outcome == "worse"


def test_a_run_that_measured_nothing_there_is_left_out_and_named() -> None:
    invalid = _with(FIVE[2], verdict="invalid", reasons=[BEHIND])
    found = sides([*FIVE[:2], invalid, *FIVE[3:]], SLOW)
    assert (found.outcome, found.samples) == ("worse", (4, 5))
    assert found.why.startswith("without A3: invalid: the sender")
    with_cell = [[cell] for cell in FIVE]
    with_cell[1] = []
    (found,) = compared_sides(with_cell, [[cell] for cell in SLOW]).figures
    assert (found.outcome, found.samples, found.why) == ("worse", (4, 5), "not in A2")


def test_many_runs_that_are_left_out_are_counted() -> None:
    before = [[FIVE[n]] if n < 5 else [] for n in range(9)]
    (found,) = compared_sides(before, [[cell] for cell in SLOW]).figures
    assert (found.outcome, found.samples) == ("worse", (5, 5))
    assert found.why == "without 4 of 9 runs"


def test_a_side_without_any_figure_has_none() -> None:
    invalid = [_with(cell, verdict="invalid", reasons=[BEHIND]) for cell in FIVE]
    gone = sides(FIVE, invalid)
    assert (gone.outcome, gone.judged(3)) == ("gone", "cannot_tell")
    assert gone.why.startswith("B1: invalid")
    assert sides(invalid, FIVE).outcome == "not_compared"
    (found,) = compared_sides([[cell] for cell in FIVE], [[], []]).figures
    assert (found.outcome, found.why) == ("gone", "in no run of B: not in B1")


def test_a_run_in_which_nothing_passes_is_not_left_out() -> None:
    nothing = _with(rate(None, None), verdict="fail")
    some = sides(FIVE, [*SLOW[:4], nothing])
    assert (some.outcome, some.why) == ("gone", "B5: nothing passed")
    assert some.judged(3) == "cannot_tell"
    assert sides(FIVE, [nothing] * 5).judged(3) == "worse"


@pytest.mark.parametrize("at", [1, 5])
def test_all_runs_must_have_measured_the_same(at: int) -> None:
    cells = [*FIVE, *SLOW]
    longer = cells[at].parameters | {"trial_duration_s": 2.0}
    cells[at] = retyped(_with(cells[at], parameters=longer))
    found = sides(cells[:5], cells[5:])
    assert found.outcome == "not_compared"
    other = "A2" if at == 1 else "B1"
    times = "1.0 and 2.0"
    assert found.why == f"A1 and {other}: another measure: trial_duration_s: {times}"


def test_what_happens_within_a_run_is_told_and_no_hindrance() -> None:
    before = [*FIVE[:3], *(_with(c, findings=_found("drift")) for c in FIVE[3:])]
    after = [_with(SLOW[0], findings=_found("modes")), *SLOW[1:]]
    found = sides(before, after)
    assert found.outcome == "worse"
    assert found.why == "A4, A5: no stable figure; B1: no single figure"
    (alone,) = compared([before[3]], [after[1]]).figures
    assert alone.outcome == "not_compared"


def test_bounds_losses_and_delays_of_several_runs() -> None:
    bounds = [bounded(cell) for cell in FIVE]
    assert sides(bounds, SLOW).outcome == "worse"
    assert sides(SLOW, bounds).outcome == "better"
    assert sides(bounds, bounds).outcome == "none_shown"
    none, some = [loss(*[0.0] * 3)] * 5, [loss(*[0.5] * 3)] * 5
    assert sides(none, none).change == (0, None, 0, 0)
    assert sides(none, some).outcome == "worse"
    delays = [
        [latency({"TL": [at + n], "WCL": [90_000]}) for n in range(5)]
        for at in (20_000, 30_000)
    ]
    told = compared_sides(*([[cell] for cell in side] for side in delays)).figures
    assert {each.why for each in told} == {""}
    delays[1][2:4] = [
        latency({"TL": [1], "WCL": [1]}, rate_fps=n) for n in (8000, 9000)
    ]
    loads = compared_sides(*([[cell] for cell in side] for side in delays)).figures
    assert {each.why for each in loads} == {"at 8,000 to 10,000 fps"}
    assert [(each.name, each.outcome) for each in told] == [
        ("TL, forward", "worse"),
        ("WCL, forward", "none_shown"),
    ]


def test_a_figure_that_a_run_does_not_have_is_told() -> None:
    both, one = latency({"TL": [1], "WCL": [1]}), latency({"TL": [1]})
    before = [[both], [one], [both], [both], [both], [both]]
    tl, wcl = compared_sides(before, [[both]] * 5).figures
    assert (tl.samples, tl.why) == ((6, 5), "")
    assert (wcl.samples, wcl.why) == ((5, 5), "not in A2")


def test_a_run_of_bounds_and_figures_is_as_sure_as_its_median() -> None:
    exactly = [Sample(v, v, v + 5) for v in (10, 20, 30)]
    at_least = Sample(10, 10, math.inf, "lower")
    middle = lambda found: sorted(found)[1]  # noqa: E731
    assert Sample.of(exactly, middle) == (20, 20, 25, None)
    assert Sample.of([at_least, *exactly[1:]], middle) == (20, 20, 35, "lower")
    assert Sample.of([at_least] * 3, middle) == at_least
    at_most = Sample(30, 0, 30, "upper")
    assert Sample.of([at_most, *exactly[:2]], middle) == (20, 10, 25, "upper")


def test_what_is_averaged_in_a_run_is_averaged_of_it() -> None:
    settings: dict[str, object] = {"step": "1", "max_load_fps": 1000}
    bursts = rate(10, 10, 40)
    bursts = retyped(
        _with(bursts, procedure="back-to-back", unit="frames", parameters=settings)
    )
    found = sides([bursts] * 4, [bursts] * 4)
    assert found.before is not None
    assert found.before.samples[0] == (20, 20, 21, None)


def test_what_several_runs_say_is_said_of_devices() -> None:
    several = compared_sides([[c] for c in FIVE], [[c] for c in SLOW])
    assert list(sentences(several, None)) == [
        "1 figure: 1 worse.",
        (
            "Each run counts as one value, so a difference is one of the sides, "
            "however runs of one side differ."
        ),
    ]
    told = as_data(several, None)
    assert told["claims_about"] == "devices"
    assert [run["run"] for run in told["runs"]][:6] == [
        "A1",
        "A2",
        "A3",
        "A4",
        "A5",
        "B1",
    ]
    assert {run["side"] for run in told["runs"]} == {"A", "B"}
    (figure,) = told["figures"]
    assert (figure["repeats"], figure["runs"]) == (None, [5, 5])
    alone = as_data(compared([FIVE[0]], [SLOW[0]]), None)
    assert alone["claims_about"] == "runs"
    assert (alone["figures"][0]["repeats"], alone["figures"][0]["runs"]) == (
        [3, 3],
        None,
    )


def test_what_sides_differ_in_is_what_not_both_have(tmp_path: Path) -> None:
    kernels = {
        "a": ("6.1", "6.2"),
        "b": ("6.2", "6.1"),
        "c": ("6.6", "6.1"),
        "d": "12345",
    }
    groups = [
        [
            stored_run(
                tmp_path / f"{side}{n}",
                rate(ord(side), n),
                environment=sample_environment().model_copy(update={"kernel": kernel}),
            )
            for n, kernel in enumerate(of)
        ]
        for side, of in kernels.items()
    ]
    a, b, c, d = read_sides(groups)
    (kernel,) = differences_of(b, d).environment
    assert kernel == ("kernel", "6.2 | 6.1", "1 | 2 | 3 | 2 more")
    assert differences_of(a, b).environment == ()
    assert differences_of(a, c).environment == (("kernel", "6.1 | 6.2", "6.6 | 6.1"),)
    assert differences_of(c, b).environment == (("kernel", "6.6 | 6.1", "6.2 | 6.1"),)


def test_a_run_counts_once(tmp_path: Path) -> None:
    paths = [stored_run(tmp_path / str(n), rate(100_000 + n)) for n in range(4)]
    compare(read_sides([paths[:2], paths[2:]]))
    copy = stored_run(tmp_path / "copy", rate(100_000))
    for groups in ([[*paths[:2], paths[0]], paths[2:]], [paths[:2], [copy]]):
        with pytest.raises(InputError, match="are one run") as error:
            read_sides(groups)
        assert error.value.hint == "give each run once"
    for one, other in ((paths, paths[:0]), (paths[:0], paths), (paths[:0],) * 2):
        with pytest.raises(InputError, match="no run on one side"):
            read_sides([one, other])


def _drawn(draw: random.Random, effect: float, within: float) -> CellResult:
    """20 repeats that scatter by 1 %, on a search's grid."""
    shared, values, last = effect * draw.gauss(0, 1), [], draw.gauss(0, 1)
    for _ in range(20):
        last = within * last + math.sqrt(1 - within**2) * draw.gauss(0, 1)
        values.append(50 * (100_000 * (1 + 0.01 * (shared + last)) // 50))
    return rate(*values)


@pytest.mark.parametrize(
    ("number", "effect", "within"), [(5, 1, 0.0), (5, 0.5, 0.6), (1, 0, 0.4)]
)
def test_of_one_device_19_in_20_comparisons_claim_nothing(
    number: int, effect: float, within: float
) -> None:
    draw = random.Random(9)  # noqa: S311 - repeatable
    wrong = 0
    for _ in range(60):
        before, after = (
            [[_drawn(draw, effect, within)] for _ in range(number)] for _ in range(2)
        )
        (found,) = compared_sides(before, after).figures
        wrong += found.outcome in ("worse", "better")
    assert wrong <= 3
