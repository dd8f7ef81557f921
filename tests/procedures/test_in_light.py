"""Delays that the tester's stalls decided are its own."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Collection

import pytest
from planning import Recording, cell

from dutperf.engine.client import ProgressCallback, ignore_progress
from dutperf.procedures import stall_filter
from dutperf.procedures.delays import Quantity, Reading
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.measurements import METHODS
from dutperf.procedures.trials import Ask
from dutperf.protocol.result_messages import (
    NOTHING,
    DirectionResult,
    Histogram,
    Reason,
    Shadow,
    StreamResult,
    TagResult,
    TrialResult,
    Verdict,
)
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import CellResult
from dutperf.results.words import rare_share_ns
from dutperf.simulation.fake_engine import FakeEngine, fixed, perfect

US = 1_000
MS = 1_000_000
STALL = Shadow(begin_ns=5 * MS, end_ns=15 * MS, of="sender", may_lose=True, frames=20)
LOAD = MaxRate(1000, "load")
STALLED = 20
"""Frames of each stream that stood in the shadow, of 4000."""


def histogram(*buckets: tuple[int, int, int]) -> Histogram:
    return Histogram(
        count=sum(count for *_, count in buckets),
        min=buckets[0][0] if buckets else None,
        max=buckets[-1][1] if buckets else None,
        buckets=list(buckets),
    )


class Stalling(FakeEngine):
    """In ``trials`` (from 1) the tester is away for 10 ms, and frames wait 5 ms."""

    def __init__(self, trials: Collection[int], *, delay_ns: int = 100 * US) -> None:
        super().__init__(perfect(), delays=fixed(delay_ns))
        self._stalled = trials
        self._trials = 0

    def measure(
        self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        result = super().measure(trial, on_progress)
        self._trials += 1
        if self._trials not in self._stalled:
            return result
        directions = [_stalled(direction) for direction in result.directions]
        return result.model_copy(update={"directions": directions})


def _stalled(direction: DirectionResult) -> DirectionResult:
    streams = [_delayed(stream) for stream in direction.streams]
    return direction.model_copy(update={"streams": streams, "shadows": [STALL]})


def _delayed(stream: StreamResult) -> StreamResult:
    (low, high, count), late = stream.delay_ns.buckets[0], (5 * MS, 5 * MS, STALLED)
    tags = stream.tags and TagResult(
        lost=0,
        delays_ns=[*stream.tags.delays_ns[STALLED:], *[5 * MS] * STALLED],
        shaded=list(range(len(stream.tags.delays_ns))[-STALLED:]),
    )
    told = {
        "delay_ns": histogram((low, high, count - STALLED), late),
        "shaded_delay_ns": histogram(late),
        "tags": tags,
    }
    if stream.ipdv_ns is not None:
        ((low, high, count),) = stream.ipdv_ns.buckets
        told["ipdv_ns"] = histogram((low, high, count - STALLED), late)
        told["shaded_ipdv_ns"] = histogram(late)
    return stream.model_copy(update=told)


def measured(
    procedure: str, engine: FakeEngine, repeats: int = 3
) -> tuple[CellResult, Recording]:
    recording = Recording(engine)
    tagged = {"first_tag_s": 2, "tags": 2000} if procedure == "latency" else {}
    keys = {"trial_duration_s": 4, "repeats": repeats, "rate_fps": 1000, **tagged}
    wanted = cell(procedure=procedure, **keys)
    return METHODS[wanted.procedure].trials.measure(
        recording.runner, wanted, LOAD
    ), recording


def kinds(recording: Recording) -> list[str]:
    return [record.result.verdict.kind for record in recording.records]


def test_a_trial_whose_worst_delays_are_a_stalls_is_run_again() -> None:
    told = {"latency": "5 ms", "pdv": "4.9 ms", "ipdv": "5 ms"}
    for procedure, worst in told.items():
        result, recording = measured(procedure, Stalling({2}))
        assert kinds(recording) == ["pass", "invalid", "pass", "pass"]
        (reason, *_) = recording.records[1].result.verdict.reasons
        assert reason.code == "sender_burst"
        assert worst in reason.message
        assert "isolate the tester's cores" in (reason.hint or "")
        assert result.verdict == "pass"
        assert not any(m.result.at_most for m in result.measures)


def test_a_trial_all_of_whose_tags_stood_in_the_shadow_is_run_again() -> None:
    class AllShaded(Stalling):
        def measure(
            self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
        ) -> TrialResult:
            result = super().measure(trial, on_progress)
            (first, *others) = result.directions
            (stream,) = first.streams
            assert stream.tags is not None
            every = list(range(len(stream.tags.delays_ns)))
            tags = stream.tags.model_copy(update={"shaded": every})
            shaded = [stream.model_copy(update={"tags": tags})]
            told = {"streams": shaded, "shadows": [STALL]}
            directions = [first.model_copy(update=told), *others]
            return result.model_copy(update={"directions": directions})

    result, recording = measured("latency", AllShaded(()), repeats=1)
    assert kinds(recording) == ["invalid", "invalid", "pass"]
    assert all(m.result.at_most for m in result.measures if m.direction == "forward")


def test_the_typical_latency_stands_whatever_a_few_frames_did() -> None:
    _, recording = measured("latency", Stalling({1}))
    messages = [r.message for r in recording.records[0].result.verdict.reasons]
    assert len(messages) == 2
    assert all("WCL" in message for message in messages)


def test_after_the_last_attempt_the_figure_is_an_upper_bound_and_says_so() -> None:
    result, recording = measured("latency", Stalling(range(100)), repeats=2)
    assert kinds(recording) == ["invalid", "invalid", "pass"] * 2
    assert result.verdict == "pass"
    figures = {m.name: m.result for m in result.measures if m.direction == "forward"}
    assert (figures["WCL"].value, figures["WCL"].at_most) == (5 * MS, True)
    assert (figures["TL"].value, figures["TL"].at_most) == (100 * US, False)
    (finding,) = [f for f in result.findings if f.kind == "tester"]
    assert "may be the tester's: an upper bound" in finding.message


def test_one_bound_of_three_repeats_does_not_make_their_median_one() -> None:
    engine = Stalling({1, 2, 3})  # all attempts of the first repeat
    result, _ = measured("pdv", engine)
    (pdv,) = [m for m in result.measures if (m.name, m.direction) == ("PDV", "forward")]
    assert [figure.at_most for figure in pdv.repeats] == [True, False, False]
    assert not pdv.result.at_most
    assert pdv.percentile_99.at_most


def test_a_delay_of_which_the_tester_may_have_a_quarter_is_an_upper_bound() -> None:
    """The fake's share is 1,200 ns."""
    result, _ = measured("latency", FakeEngine(perfect(), delays=fixed(4_000)))
    assert all(m.result.at_most for m in result.measures)
    result, _ = measured("latency", FakeEngine(perfect(), delays=fixed(5_000)))
    assert not any(m.result.at_most for m in result.measures)
    assert not result.findings


def test_what_is_in_the_light_is_the_whole_less_the_shaded() -> None:
    chance = random.Random(5)  # noqa: S311
    for _ in range(200):
        cells = [(8 * k, 8 * k + 7) for k in range(20)]
        whole = {c: chance.randrange(4) for c in cells}
        part = {c: chance.randint(0, n) for c, n in whole.items()}
        left = {c: whole[c] - part[c] for c in cells}
        told = stall_filter.less(
            histogram(*[(*c, n) for c, n in whole.items() if n]),
            histogram(*[(*c, n) for c, n in part.items() if n]),
        )
        assert told == histogram(*[(*c, n) for c, n in left.items() if n])


def test_where_all_stood_in_the_shadow_nothing_is_in_the_light() -> None:
    whole = histogram((10, 15, 3), (32, 40, 2))
    assert stall_filter.less(whole, whole) == NOTHING


def test_a_stream_of_which_no_shadow_is_told_is_all_in_the_light() -> None:
    recording = Recording(FakeEngine(perfect(), delays=fixed(100 * US)))
    wanted = cell(procedure="ipdv", trial_duration_s=4, rate_fps=1000)
    result = recording.runner.run(Ask(wanted, 1000)).result
    (stream,) = result.directions[0].streams
    stream = stream.model_copy(update={"shaded_ipdv_ns": None})
    assert stream.ipdv_ns is not None
    assert stall_filter.stream_in_light(stream).ipdv_ns == stream.ipdv_ns


# --- by how much a figure may differ


def shadowed(share_ns: int = 0) -> DirectionResult:
    """A direction in which a stall threw a shadow, with so much of the tester's own."""
    recording = Recording(FakeEngine(perfect()))
    direction = recording.runner.run(Ask(cell(), 1000)).result.directions[0]
    own = histogram((share_ns, share_ns, 1))
    told = {"shadows": [STALL], "send_call_ns": own, "receive_gap_ns": NOTHING}
    return direction.model_copy(update=told)


def moved_words(
    whole: Reading | None, light: Reading | None, share_ns: int = 0
) -> str | None:
    readings = iter([whole, light])
    quantity = Quantity("X", "x", lambda _stream: next(readings))
    direction = shadowed(share_ns)
    return stall_filter.moved_words(quantity, direction, direction.streams[0])


@pytest.mark.parametrize(
    ("whole_ns", "light_ns", "share_ns", "differ"),
    [
        (10_100, 10_000, 0, False),
        (10_101, 10_000, 0, True),
        (9_899, 10_000, 0, True),
        (10_101, 10_000, 101, False),
        (10_102, 10_000, 101, True),
        (math.inf, math.inf, 0, False),
        (math.inf, 10_000, 0, True),
        (10_000, math.inf, 0, True),
        (10_000, None, 10**9, True),
    ],
)
def test_one_percent_or_the_testers_share_is_no_difference(
    whole_ns: float, light_ns: float | None, share_ns: int, differ: bool
) -> None:
    told = moved_words(Reading(whole_ns, 9), Reading(light_ns, 9), share_ns)
    assert (told is not None) == differ


def test_what_was_moved_is_told_with_both_figures() -> None:
    told = moved_words(Reading(math.inf, 9), Reading(2_000, 9))
    assert told == (
        "forward: X is infinite with the frames in recovery windows of the tester's "
        "own stalls, and 2 us without"
    )
    nothing = moved_words(Reading(2_000, 9), Reading(None, 0))
    assert nothing is not None
    assert nothing.endswith("and nothing without")


def test_a_stream_without_the_figure_was_not_moved() -> None:
    assert moved_words(None, None) is None
    assert moved_words(Reading(None, 0), Reading(None, 0)) is None


def test_what_is_invalid_already_keeps_its_reasons() -> None:
    direction = shadowed()
    recording = Recording(FakeEngine(perfect()))
    result = recording.runner.run(Ask(cell(), 1000)).result
    verdict = Verdict(
        kind="invalid", reasons=[Reason(code="link_down", message="link down")]
    )
    told = {"directions": [direction], "verdict": verdict}
    invalid = result.model_copy(update=told)
    readings = (Reading(value, 9) for value in itertools.count(1_000, 1_000))
    quantity = Quantity("X", "x", lambda _stream: next(readings))
    judge = stall_filter.rejudged_by([quantity])
    assert judge(invalid, again=True) == invalid
    passed = result.model_copy(update={"directions": [direction]})
    assert judge(passed, again=True).verdict.kind == "invalid"
    assert judge(passed, again=False) == passed


def test_the_testers_rare_share_is_that_of_all_but_one_in_a_thousand() -> None:
    """Of each of its two parts."""
    part = histogram((1, 1, 9985), (5, 5, 5), (9, 9, 10))
    told = {"send_call_ns": part, "receive_gap_ns": part}
    assert rare_share_ns(shadowed().model_copy(update=told)) == 10


def test_ends_that_were_clipped_are_found_in_their_bucket() -> None:
    whole = histogram((10, 15, 3), (16, 31, 5), (32, 40, 2))
    part = histogram((12, 15, 1), (32, 33, 2))
    assert stall_filter.less(whole, part) == histogram((10, 15, 2), (16, 31, 5))
