"""Delays that the tester's stalls decided are its own."""

from __future__ import annotations

import random
from collections.abc import Collection

from planning import Recording, cell

from dutperf.engine.fake import FakeEngine, fixed, perfect
from dutperf.engine.measurer import ProgressCallback, ignore_progress
from dutperf.engine.protocol import (
    DirectionResult,
    Histogram,
    Shadow,
    StreamResult,
    TagResult,
    TrialRequest,
    TrialResult,
)
from dutperf.procedures import in_light
from dutperf.procedures.executor import PROCEDURES
from dutperf.procedures.limits import MaxRate
from dutperf.results import CellResult

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
    return stream.model_copy(
        update={
            "delay_ns": histogram((low, high, count - STALLED), late),
            "shaded_delay_ns": histogram(late),
            "tags": tags,
        }
    )


def measured(
    procedure: str, engine: FakeEngine, repeats: int = 3
) -> tuple[CellResult, Recording]:
    recording = Recording(engine)
    tagged = {"first_tag_s": 2, "tags": 2000} if procedure == "latency" else {}
    keys = {"trial_duration_s": 4, "repeats": repeats, "rate_fps": 1000, **tagged}
    wanted = cell(procedure=procedure, **keys)
    return PROCEDURES[wanted.procedure](recording.runner, wanted, LOAD), recording


def kinds(recording: Recording) -> list[str]:
    return [record.result.verdict.kind for record in recording.records]


def test_a_trial_whose_worst_delays_are_a_stalls_is_run_again() -> None:
    for procedure in ("latency", "pdv"):
        result, recording = measured(procedure, Stalling({2}))
        assert kinds(recording) == ["pass", "invalid", "pass", "pass"]
        (reason, *_) = recording.records[1].result.verdict.reasons
        assert reason.code == "sender_burst"
        assert {"latency": "5 ms", "pdv": "4.9 ms"}[procedure] in reason.message
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
    assert "WCL: upper bound" in finding.message


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
        told = in_light.less(
            histogram(*[(*c, n) for c, n in whole.items() if n]),
            histogram(*[(*c, n) for c, n in part.items() if n]),
        )
        assert told == histogram(*[(*c, n) for c, n in left.items() if n])


def test_ends_that_were_clipped_are_found_in_their_bucket() -> None:
    whole = histogram((10, 15, 3), (16, 31, 5), (32, 40, 2))
    part = histogram((12, 15, 1), (32, 33, 2))
    assert in_light.less(whole, part) == histogram((10, 15, 2), (16, 31, 5))
