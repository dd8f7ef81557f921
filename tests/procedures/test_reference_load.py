"""Latency, PDV and IPDV at the throughput that the same campaign has just found."""

from __future__ import annotations

from pathlib import Path

import pytest
from planning import Run, campaign, spec

from dutperf.config import Campaign
from dutperf.errors import InputError
from dutperf.protocol.result_messages import ReasonCode
from dutperf.results import CellResult, ResultsFile, load_results
from dutperf.simulation.fake_engine import Dut, FakeEngine, step

LIMIT_FPS = 300_000
TAGS = {"tags": 500, "first_tag_s": 0.5, "trial_duration_s": 1}


def at(rate: str, procedure: str = "latency", **keys: object) -> Campaign:
    """A search to the frame, then a measurement at what it finds."""
    tags = TAGS if procedure == "latency" else {}
    return campaign(
        spec(search="classic", resolution="1", repeats=keys.pop("searches", 1)),
        spec(procedure=procedure, rate_fps=rate, repeats=2, **tags, **keys),
    )


def run(path: Path, dut: Dut | None = None, **keys: object) -> Run:
    engine = FakeEngine(dut or step(LIMIT_FPS), **keys)  # type: ignore[arg-type]
    return Run(path / "run", engine)


def measured(results: ResultsFile) -> CellResult:
    """The last cell."""
    return results.cells[-1]


def loads_of(results: ResultsFile, cell: str) -> set[int]:
    own = [trial for trial in results.trials if trial.role == "trial"]
    return {trial.load_fps for trial in own if trial.cell == cell}


@pytest.mark.parametrize("procedure", ["latency", "pdv", "ipdv"])
def test_it_is_measured_at_the_throughput(tmp_path: Path, procedure: str) -> None:
    asked = at("throughput", procedure)
    results = run(tmp_path)(asked)
    found = measured(results)
    assert found.verdict == "pass"
    assert found.reasons == []
    assert loads_of(results, found.id) == {LIMIT_FPS}
    assert found.quantity.endswith(
        ", at the throughput found: one repeat, 300,000 fps per direction"
    )
    assert found.load is not None
    assert found.load.model_dump() == {
        "rate_fps": LIMIT_FPS,
        "asked": "throughput",
        "cell": "throughput-ip4-64-both-classic",
        "words": "the throughput found: one repeat",
    }
    assert found.parameters["rate_fps"] == LIMIT_FPS
    assert load_results(tmp_path / "run") == results


def ageing(*limits_fps: int) -> Dut:
    """A device that is another one in each repeat of a search.

    The first trial of a repeat is the only one at the maximum rate.
    """
    repeat = -1

    def forward(rate_fps: float, frames: int) -> int:
        nonlocal repeat
        # Both directions ask; so the maximum is seen twice a repeat.
        repeat += rate_fps == 1_000_000
        limit_fps = limits_fps[min(repeat // 2, len(limits_fps) - 1)]
        return frames if rate_fps <= limit_fps else 0

    return forward


@pytest.mark.parametrize(
    ("rate", "load_fps", "words"),
    [
        ("throughput", 300_000, "the throughput found: median of 5 repeats"),
        ("throughput p25", 200_000, "the throughput found: 25th percentile of 5 repea"),
        ("throughput p1", 100_000, "the throughput found: 1st percentile of 5 repeats"),
        ("90% of throughput", 270_000, "90 % of 300,000 fps, the throughput found: me"),
        (
            "12.5% of throughput p21",
            25_000,
            "12.5 % of 200,000 fps, the throughput found: 21st percentile of 5 repeats",
        ),
    ],
)
def test_quantiles_and_shares_are_labelled(
    tmp_path: Path, rate: str, load_fps: int, words: str
) -> None:
    asked = at(rate, searches=5)
    limits_fps = (400_000, 100_000, 300_000, 500_000, 200_000)
    results = run(tmp_path, ageing(*limits_fps))(asked)
    assert results.cells[0].median == 300_000
    load = measured(results).load
    assert load is not None
    assert load.rate_fps == load_fps
    assert load.words.startswith(words)
    assert f"at {load.words}, {load_fps:,} fps" in measured(results).quantity


def test_a_quantile_is_labelled_even_of_one_repeat(tmp_path: Path) -> None:
    load = measured(run(tmp_path)(at("throughput p25", "pdv"))).load
    assert load is not None
    assert load.words == "the throughput found: 25th percentile of one repeat"


def test_what_is_not_rfc_2544s_throughput_is_not_called_so(tmp_path: Path) -> None:
    asked = campaign(
        spec(resolution="1", loss_tolerance_percent=50),
        spec(procedure="pdv", rate_fps="throughput", repeats=1),
    )
    results = run(tmp_path)(asked)
    load = measured(results).load
    assert load is not None
    assert load.words == (
        "the throughput per direction, losing up to 50 % found: one repeat"
    )
    assert len(short_loads(results)) == 1


def test_the_links_need_not_tell_their_speed(tmp_path: Path) -> None:
    asked = campaign(
        spec(resolution="1"),
        spec(procedure="pdv", rate_fps="throughput", repeats=1, max_rate_fps=None),
    )
    results = run(tmp_path, link_speed_mbps=None)(asked)
    assert loads_of(results, measured(results).id) == {LIMIT_FPS}
    assert measured(results).media is None


# --- a loss curve around it


def around(**keys: object) -> Campaign:
    return campaign(
        spec(search="classic", resolution="1"),
        spec(procedure="frame-loss", rate_fps="throughput", **keys),
    )


def curve(results: ResultsFile) -> list[tuple[float, int]]:
    return [(p.load_percent, p.load_fps) for p in measured(results).points]


def test_a_loss_curve_lies_around_the_throughput(tmp_path: Path) -> None:
    results = run(tmp_path)(around())
    found = measured(results)
    assert curve(results) == [
        *((200, 600_000), (150, 450_000), (125, 375_000), (110, 330_000)),
        *((100, 300_000), (90, 270_000), (75, 225_000), (50, 150_000)),
    ]
    losses = [point.loss_percent for point in found.points]
    assert losses == pytest.approx([50, 100 / 3, 20, 100 / 11, 0, 0, 0, 0])
    assert found.quantity == (
        "frame loss at 200 % of the throughput found: one repeat, 300,000 fps per "
        "direction (RFC 2544 26.3)"
    )
    assert found.load is not None
    assert (found.load.rate_fps, found.load.asked) == (LIMIT_FPS, "throughput")
    (told,) = [d for d in found.deviations if d.requirement.startswith("100 % is")]
    assert (told.rfc, told.level) == ("RFC 2544 26.3", "SHOULD")
    assert told.actual == (
        "100 % is the throughput found: one repeat, 300,000 fps per direction; the "
        "most that may be offered is the maximum rate that was set, 1,000,000 fps"
    )


def test_loads_that_cannot_be_offered_are_one_that_can(tmp_path: Path) -> None:
    results = run(tmp_path)(around(max_rate_fps=400_000, load_percent=[200, 150, 50]))
    assert curve(results) == [(133.3, 400_000), (50, 150_000)]


def test_what_the_tester_turns_out_to_offer_is_as_high_as_they_go(
    tmp_path: Path,
) -> None:
    asked = around(load_percent=[200, 110, 50])
    results = run(tmp_path, tester_limit_fps=400_000)(asked)
    assert results.cells[0].median == pytest.approx(300_000, rel=0.01)
    assert [fps for _, fps in curve(results)] == [380_000, 330_000, 150_000]
    assert measured(results).verdict == "pass"


def test_without_a_throughput_100_percent_is_the_maximum_rate(tmp_path: Path) -> None:
    asked = around(load_percent=[200, 150, 100, 50])
    results = run(tmp_path, lambda _rate_fps, frames: frames // 2)(asked)
    found = measured(results)
    assert curve(results) == [(100, 1_000_000), (50, 500_000)]
    assert "50" not in found.quantity
    assert "the maximum rate that was set, 1,000,000 fps" in found.quantity
    [reason] = found.reasons
    assert reason.code == "no_throughput"
    assert "the throughput of throughput-ip4-64-both-classic is 0" in reason.message
    assert found.load is None


# --- no throughput


def nothing_sent(results: ResultsFile, code: str = "no_throughput") -> str:
    """What a user reads of a cell that was not measured."""
    found = measured(results)
    assert (found.verdict, found.median, found.repeats) == ("invalid", None, [])
    assert loads_of(results, found.id) == set()
    [reason] = found.reasons
    assert reason.code == code
    assert reason.hint
    return reason.message


def test_no_throughput_no_latency(tmp_path: Path) -> None:
    asked = at("throughput")
    results = run(tmp_path, lambda _rate_fps, frames: frames // 2)(asked)
    assert nothing_sent(results) == (
        "nothing was sent: the throughput of throughput-ip4-64-both-classic is 0: no "
        "rate that was tried passed"
    )
    assert results.complete


def test_an_invalid_throughput_is_no_load(tmp_path: Path) -> None:
    asked = at("throughput")
    troubles: dict[int, ReasonCode] = dict.fromkeys(range(1, 50), "link_down")
    results = run(tmp_path, troubles=troubles)(asked)
    assert (
        "throughput-ip4-64-both-classic is not known: its test case is invalid"
        in nothing_sent(results)
    )


def test_a_lower_bound_is_a_load_that_is_told_as_such(tmp_path: Path) -> None:
    results = run(tmp_path, tester_limit_fps=200_000)(at("throughput"))
    source, load = results.cells[0], measured(results).load
    assert (source.verdict, source.bound_cause) == ("pass", "tester")
    assert load is not None
    assert load.rate_fps == source.median
    assert load.words == (
        "the throughput found: one repeat, as much as the tester could offer"
    )
    assert short_loads(results) == [
        f"at {load.rate_fps:,} fps, as much as the tester could offer"
    ]


def test_tags_that_do_not_fit_are_known_only_then(tmp_path: Path) -> None:
    asked = at("throughput")
    results = run(tmp_path, step(600))(asked)
    assert nothing_sent(results) == (
        "nothing was sent at the throughput found: one repeat, 600 fps per direction: "
        "tags: 500 are more than the 300 frames of a direction's foreground that are "
        "sent after 0.5 s"
    )
    assert "300 or less" in measured(results).reasons[0].hint


def test_a_load_above_the_cells_own_maximum_is_not_sent(tmp_path: Path) -> None:
    asked = at("throughput", "pdv", max_rate_fps=250_000)
    results = run(tmp_path)(asked)
    assert "300000 is more than the maximum rate that was set, 250000" in nothing_sent(
        results
    )


def test_less_than_a_frame_is_no_load(tmp_path: Path) -> None:
    asked = at("0.0001% of throughput", "pdv")
    results = run(tmp_path)(asked)
    assert "0.0001 % of 300,000 fps" in nothing_sent(results)


def test_a_load_that_nothing_finds_is_refused_before_the_first_frame(
    tmp_path: Path,
) -> None:
    asked = campaign(spec(procedure="pdv", rate_fps="throughput"))
    simulated = run(tmp_path)
    with pytest.raises(InputError, match=r"procedures\[0\].rate_fps"):
        simulated(asked)
    assert simulated.engine.trials == []
    assert not (tmp_path / "run").exists()


# --- resume


def test_a_resumed_run_comes_to_the_same_load(tmp_path: Path) -> None:
    asked = campaign(
        spec(resolution="100000", repeats=2),
        spec(procedure="pdv", rate_fps="90% of throughput p25", repeats=2),
    )
    whole = run(tmp_path / "whole")(asked)
    trials = len(whole.trials)
    for last in (trials - 3, trials - 1, trials):
        broken = run(tmp_path / str(last), troubles={last: KeyboardInterrupt()})
        with pytest.raises(KeyboardInterrupt):
            broken(asked)
        again = run(tmp_path / str(last)).resume(asked)
        assert again.cells == whole.cells
        assert [t.request for t in again.trials] == [t.request for t in whole.trials]


def test_a_throughput_that_was_capped_is_told_as_such(tmp_path: Path) -> None:
    asked = at("throughput", "pdv")
    results = run(tmp_path, step(10**9))(asked)
    load = measured(results).load
    assert load is not None
    assert (load.rate_fps, load.words) == (
        1_000_000,
        (
            "the throughput found: one repeat, as much as the search was allowed to "
            "ask for"
        ),
    )
    assert short_loads(results) == [
        "at 1,000,000 fps, as much as the search was allowed to ask for"
    ]


def short_loads(results: ResultsFile) -> list[str]:
    return [
        deviation.actual
        for deviation in measured(results).deviations
        if deviation.requirement == "load at the throughput rate"
    ]


def test_more_than_the_media_carry_is_no_throughput_of_anything(
    tmp_path: Path,
) -> None:
    asked = campaign(
        spec(resolution="1", max_rate_fps=None),
        spec(procedure="pdv", rate_fps="throughput", repeats=1, max_rate_fps=None),
    )
    results = run(tmp_path, step(10**9), link_speed_mbps=10)(asked)
    assert loads_of(results, measured(results).id) == {14_880}
    assert short_loads(results) == []
