"""Latency, PDV and IPDV of simulated devices whose delays are known."""

from __future__ import annotations

import pytest
from planning import Recording, cell, spoilt

from dutperf.procedures.delays import PDV, Reading
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.measurements import METHODS
from dutperf.protocol.result_messages import Histogram
from dutperf.results import CellResult, Measure, MeasuredValue
from dutperf.results.units import in_unit
from dutperf.simulation.fake_engine import (
    FakeEngine,
    every,
    fixed,
    jitter,
    jump,
    perfect,
    sometimes,
    step,
)
from dutperf.stats import median, percentile

MS = 1_000_000
LOAD = MaxRate(1000, "load")


def measured(
    engine: FakeEngine, procedure: str, **keys: object
) -> tuple[CellResult, Recording]:
    """Four seconds at 1000 fps, the second half of the latency's tagged."""
    short = {"trial_duration_s": 4, "repeats": 3, "rate_fps": 1000}
    tagged = {"first_tag_s": 2, "tags": 2000} if procedure == "latency" else {}
    if keys.get("rfc2544_latency"):
        tagged.pop("tags")
    recording = Recording(engine)
    given = short | tagged | keys
    wanted = cell(procedure=procedure, **given)
    return METHODS[wanted.procedure].trials.measure(
        recording.runner, wanted, LOAD
    ), recording


def named(result: CellResult, name: str, stream: str = "foreground") -> list[Measure]:
    return [m for m in result.measures if (m.name, m.stream) == (name, stream)]


def figures(result: CellResult, name: str) -> list[MeasuredValue]:
    return [m.result for m in named(result, name)]


# --- latency


def test_every_tag_of_a_constant_delay_takes_it() -> None:
    result, recording = measured(
        FakeEngine(perfect(), delays=fixed(123_456)), "latency"
    )
    assert (
        figures(result, "TL")
        == figures(result, "WCL")
        == [MeasuredValue(value=123_456)] * 2
    )
    assert (result.verdict, result.median, result.unit) == ("pass", 123_456, "ns")
    assert [m.direction for m in named(result, "TL")] == ["forward", "reverse"]
    assert named(result, "TL")[0].samples == [2000] * 3
    assert recording.loads_fps == [1000] * 3


def test_the_delays_say_what_they_are_and_how_far_they_may_be_wrong() -> None:
    result, _ = measured(FakeEngine(perfect()), "latency")
    assert result.delays is not None
    assert "one clock" in result.delays.definition
    assert (result.delays.floor_ns, result.delays.bound_ns) == (1200, 1200)
    assert result.delays.usual_bound_ns == 1200
    assert "1,000 fps per direction" in result.quantity


def test_the_result_is_the_median_of_the_repeats() -> None:
    delays = jitter(1, 5 * MS)
    result, recording = measured(FakeEngine(perfect(), delays=delays), "latency")
    tags = [r.result.directions[0].streams[0].tags for r in recording.records]
    exact = [[d for d in t.delays_ns if d is not None] for t in tags if t]
    typical = named(result, "TL")[0]
    worst = named(result, "WCL")[0]
    assert [f.value for f in typical.repeats] == [median(d) for d in exact]
    assert [f.value for f in worst.repeats] == [percentile(d, 999, 1000) for d in exact]
    assert typical.result.value == sorted(median(d) for d in exact)[1]
    assert typical.percentile_1.value == min(median(d) for d in exact)
    assert typical.percentile_99.value == max(median(d) for d in exact)
    assert result.median == typical.result.value


def test_every_tenth_frame_a_second_late_is_the_worst_case_only() -> None:
    delays = every(10, 1000 * MS)
    result, _ = measured(FakeEngine(perfect(), delays=delays), "latency")
    assert figures(result, "TL") == [MeasuredValue(value=20_000)] * 2
    assert figures(result, "WCL") == [MeasuredValue(value=1000 * MS + 20_000)] * 2


def test_lost_tags_rank_as_infinite_and_are_counted() -> None:
    """A quarter of the frames is lost at the end: half of the tags."""
    result, _ = measured(FakeEngine(step(750)), "latency", tags=2000, first_tag_s=2)
    typical, worst = named(result, "TL")[0], named(result, "WCL")[0]
    assert typical.lost == [1000, 1000, 1000]
    assert typical.result == worst.result == MeasuredValue(value=None, absent="lost")
    assert result.median is None
    assert [r.value for r in result.repeats] == [None] * 3


def test_fewer_lost_tags_than_half_leave_the_median_finite() -> None:
    result, _ = measured(FakeEngine(step(800)), "latency")
    assert figures(result, "TL") == [MeasuredValue(value=20_000)] * 2
    assert figures(result, "WCL") == [MeasuredValue(value=None, absent="lost")] * 2


def test_loss_does_not_fail_a_latency_but_is_said() -> None:
    result, recording = measured(FakeEngine(step(999)), "latency")
    assert result.verdict == "pass"
    assert {r.result.verdict.kind for r in recording.records} == {"fail"}
    assert [reason.code for reason in result.reasons] == ["frames_lost"] * 2
    assert "12 of 12,000 frames were lost, in 3 of 3" in result.reasons[0].message
    assert [(f.direction, f.sent, f.lost) for f in result.frames] == [
        ("forward", 12_000, 12),
        ("reverse", 12_000, 12),
    ]


def test_the_old_latency_is_the_average_of_one_tag_a_trial() -> None:
    delays = sometimes(3, 1000 * MS)
    engine = FakeEngine(perfect(), delays=delays)
    result, recording = measured(engine, "latency", rfc2544_latency=True, repeats=30)
    forward = named(result, "latency")[0]
    slow = sum(f.value == 1000 * MS + 20_000 for f in forward.repeats)
    assert 0 < slow < 30
    assert (forward.summary, forward.samples) == ("mean", [1] * 30)
    assert forward.result.value == pytest.approx(20_000 + slow * 1000 * MS / 30)
    tags = recording.records[0].request.record.tags
    assert tags is not None
    assert (tags.count, tags.first_ns) == (1, 2000 * MS)


def test_an_average_over_a_lost_tag_is_infinite() -> None:
    result, _ = measured(FakeEngine(step(400)), "latency", rfc2544_latency=True)
    assert figures(result, "latency") == [MeasuredValue(value=None, absent="lost")] * 2


def test_only_the_foreground_has_tags() -> None:
    mix = {"traffic": {"mix": "50/50", "background_ip": 6}, "tags": 1000}
    result, _ = measured(FakeEngine(perfect()), "latency", **mix)
    assert {m.stream for m in result.measures} == {"foreground"}
    assert [(f.direction, f.stream) for f in result.frames] == [
        ("forward", "foreground"),
        ("forward", "background"),
        ("reverse", "foreground"),
        ("reverse", "background"),
    ]


# --- PDV and IPDV


def test_pdv_is_the_spread_up_to_the_999th_of_1000() -> None:
    """Of 4000 frames 40 or 4 are slow: one percent counts, one per mille does not."""
    for slow, expected in ((100, 5 * MS), (1000, 0)):
        engine = FakeEngine(perfect(), delays=every(slow, 5 * MS))
        result, _ = measured(engine, "pdv")
        values = [figure.value for figure in figures(result, "PDV")]
        assert values == [pytest.approx(expected, rel=1e-3, abs=20)] * 2
        assert figures(result, "Dmin") == [MeasuredValue(value=20_000)] * 2
        assert result.median == values[0]


def test_pdv_is_told_of_each_stream() -> None:
    mix = {"traffic": {"mix": "3/4", "background_ip": 6}}
    result, _ = measured(FakeEngine(perfect()), "pdv", **mix)
    assert [m.samples[0] for m in named(result, "PDV")] == [3000, 3000]
    assert [m.samples[0] for m in named(result, "PDV", "background")] == [1000, 1000]


@pytest.mark.parametrize(
    ("least_ns", "most_ns"), [(1 * MS, 9 * MS), (100 * MS, 100 * MS + 2_000)]
)
def test_pdv_of_jitter_is_within_a_thousandth_of_itself(
    least_ns: int, most_ns: int
) -> None:
    """However long the way is on which it arises."""
    delays = jitter(least_ns, most_ns)
    result, recording = measured(FakeEngine(perfect(), delays=delays), "pdv", repeats=1)
    pattern = delays(1)
    exact = sorted(pattern.delay_ns(i, 4000) for i in range(4000))
    pdv = named(result, "PDV")[0]
    assert pdv.result.value is not None
    assert pdv.rounding_ns is not None
    too_large_ns = pdv.result.value - (exact[3995] - exact[0])
    assert 0 <= too_large_ns <= pdv.rounding_ns <= pdv.result.value / 1000
    assert recording.records[0].request.record.fine_delays
    assert result.delays is not None
    told = f"rounded up by {in_unit(pdv.rounding_ns, 'ns')} at most"
    assert told in result.delays.resolution


def test_a_delay_that_is_known_coarsely_says_so() -> None:
    """Of frames that got faster than all of the first: by the ends of their bucket."""
    coarse = Histogram(
        count=1000,
        min=20_000,
        max=30_000_000,
        buckets=[(20_000, 49_295, 999), (30_000_000, 30_000_000, 1)],
    )
    engine = FakeEngine(perfect())
    (trial,) = measured(engine, "pdv", repeats=1)[1].records
    stream = trial.result.directions[0].streams[0]
    reading = PDV.read(stream.model_copy(update={"delay_ns": coarse}))
    assert reading == Reading(29_295, 1000, rounding=29_295)


def test_ipdv_has_a_sign() -> None:
    result, recording = measured(FakeEngine(perfect(), delays=jump(-5_000)), "ipdv")
    assert figures(result, "IPDV min") == [MeasuredValue(value=-5_000)] * 2
    assert figures(result, "IPDV median") == [MeasuredValue(value=0)] * 2
    assert figures(result, "IPDV max") == [MeasuredValue(value=0)] * 2
    assert named(result, "IPDV max")[0].samples == [3999] * 3
    assert recording.records[0].request.record.ipdv


def test_nothing_that_arrives_has_no_variation() -> None:
    def nothing(_rate_fps: float, _frames: int) -> int:
        return 0

    for procedure, name in (("pdv", "PDV"), ("ipdv", "IPDV max")):
        result, _ = measured(FakeEngine(nothing), procedure)
        assert (
            figures(result, name) == [MeasuredValue(value=None, absent="undefined")] * 2
        )
        assert (result.verdict, result.median) == ("pass", None)
        assert named(result, name)[0].count == 0


# --- invalid trials


@pytest.mark.parametrize("procedure", ["latency", "pdv", "ipdv"])
def test_an_invalid_trial_is_run_again(procedure: str) -> None:
    engine = FakeEngine(perfect(), troubles=spoilt("receiver_overflow", 2))
    result, recording = measured(engine, procedure)
    assert [(r.repeat, r.attempt) for r in recording.records] == [
        (1, 1),
        (2, 1),
        (2, 2),
        (3, 1),
    ]
    assert [r.trials for r in result.repeats] == [1, 2, 1]
    assert result.verdict == "pass"


def test_a_repeat_that_stays_invalid_is_left_out_and_said() -> None:
    engine = FakeEngine(perfect(), troubles=spoilt("receiver_overflow", 2, 3, 4))
    result, _ = measured(engine, "latency")
    typical = named(result, "TL")[0]
    assert result.verdict == "invalid"
    assert typical.repeats[1] == MeasuredValue(value=None, absent="invalid")
    assert (typical.samples, typical.count) == ([2000, 0, 2000], 2)
    assert typical.result.value == 20_000
    assert [reason.code for reason in result.reasons] == ["receiver_overflow"]


def test_a_dead_link_ends_the_cell_after_three_attempts() -> None:
    engine = FakeEngine(perfect(), troubles=spoilt("link_down", *range(1, 99)))
    result, recording = measured(engine, "pdv", repeats=20)
    assert len(recording.records) == 3
    assert (result.verdict, result.median, result.measures) == ("invalid", None, [])
    assert result.delays is None


def test_a_load_that_the_tester_cannot_offer_ends_the_cell_after_three_attempts() -> (
    None
):
    engine = FakeEngine(perfect(), tester_limit_fps=900)
    result, recording = measured(engine, "latency", repeats=20)
    assert len(recording.records) == 3
    assert result.verdict == "invalid"
    assert [reason.code for reason in result.reasons] == ["sender_behind"]


def test_parameters_are_those_that_matter() -> None:
    latency, _ = measured(FakeEngine(perfect()), "latency")
    pdv, _ = measured(FakeEngine(perfect()), "pdv")
    assert latency.parameters["rate_fps"] == 1000
    assert latency.parameters["tags"] == 2000
    for other in ("max_load_fps", "resolution", "frame_timeout_ms", "rfc2544_latency"):
        assert other not in latency.parameters
    assert "tags" not in pdv.parameters
