"""Trials at a load that is given: each repeat is one trial that the tester vouches for.

What the DUT loses meanwhile does not fail a repeat: RFC 8219 wants delays at the
throughput, where every other trial may lose a frame. It is counted and said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dutperf.config.cell import Cell
from dutperf.procedures.in_light import Rejudge
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.searching import outcome
from dutperf.procedures.trial_verdicts import (
    ATTEMPTS,
    PATIENT_ATTEMPTS,
    comes_and_goes,
    could_not_offer,
    is_final,
    no_rate_helps,
)
from dutperf.procedures.trials import Ask, Trials
from dutperf.protocol import Reason, StreamResult, TrialResult
from dutperf.results.delay_results import FrameCount
from dutperf.search.sender_limit import sender_limit_fps


@dataclass(frozen=True)
class Repeat:
    """One repeat; ``result`` is null when all its trials were invalid."""

    result: TrialResult | None
    trials: int
    reasons: list[Reason]


def run_repeats(
    runner: Trials, cell: Cell, load: MaxRate, rejudge: Rejudge
) -> list[Repeat]:
    """Measure ``cell.repeats`` times at ``load``; ``rejudge`` has the last word.

    Ends early when a repeat stays invalid for a reason that holds for all of them.

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    repeats: list[Repeat] = []
    for number in range(1, cell.repeats + 1):
        repeats.append(_repeat(runner, cell, load.rate_fps, number, rejudge))
        if _the_same_each_time(repeats[-1].reasons):
            break
    return repeats


def _the_same_each_time(reasons: list[Reason]) -> bool:
    """What the tester could not offer time after time it will not offer later."""
    return could_not_offer(reasons) or no_rate_helps(reasons)


def _repeat(
    runner: Trials, cell: Cell, rate_fps: int, number: int, rejudge: Rejudge
) -> Repeat:
    invalid: list[TrialResult] = []
    while not invalid or may_try_again(invalid):
        result = runner.run(
            Ask(
                cell,
                rate_fps,
                repeat=number,
                rejudge=rejudge,
                attempts=PATIENT_ATTEMPTS,
            )
        ).result
        if result.verdict.kind != "invalid":
            return Repeat(result, len(invalid) + 1, [])
        invalid.append(result)
    return Repeat(None, len(invalid), invalid[-1].verdict.reasons)


def may_try_again(invalid: Sequence[TrialResult]) -> bool:
    """Whether a load is tried once more after trials that were all ``invalid``.

    What the tester cannot offer, as trials that agree say, it will not offer then.
    """
    reasons = invalid[-1].verdict.reasons
    if is_final(reasons):
        return False
    if len(invalid) < ATTEMPTS:
        return True
    if len(invalid) >= PATIENT_ATTEMPTS or not comes_and_goes(reasons):
        return False
    told = [outcome(result) for result in invalid]
    return sender_limit_fps(told, 0, PATIENT_ATTEMPTS) is None


def valid_results(repeats: Iterable[Repeat]) -> list[TrialResult]:
    """The trials that count."""
    return [repeat.result for repeat in repeats if repeat.result]


def frame_counts(results: Sequence[TrialResult]) -> list[FrameCount]:
    """Frames of each direction and stream, over all ``results``."""
    found: dict[tuple[str, int], FrameCount] = {}
    for result in results:
        for direction in result.directions:
            for stream in direction.streams:
                counted = FrameCount(
                    direction=direction.name,
                    stream=stream.name,
                    **{key: getattr(stream, key) for key in _COUNTED},
                )
                before = found.get((direction.name, stream.id))
                found[direction.name, stream.id] = _sum(counted, before)
    return list(found.values())


def remarks(results: Sequence[TrialResult]) -> list[Reason]:
    """What a user should know of trials that count nevertheless."""
    found = []
    for count in frame_counts(results):
        where = f"{count.direction} {count.stream}"
        if count.lost:
            found.append(
                Reason(
                    code="frames_lost",
                    message=f"{where}: {count.lost:,} of {count.sent:,} frames were "
                    f"lost{_in_trials(results, count, 'lost')}",
                    hint="delays are those of the frames that arrived; lower the rate "
                    "for a load without loss",
                )
            )
        if count.negative_delays:
            found.append(
                Reason(
                    code="clock_unstable",
                    message=f"{where}: {count.negative_delays:,} frames arrived before "
                    "they left, by the tester's clocks; they have no delay",
                    hint="the clocks of the tester's cores are not in step: use cores "
                    "of one socket, and an invariant TSC",
                )
            )
    return found


_COUNTED = ("sent", "received", "lost", "late", "negative_delays")


def _sum(count: FrameCount, before: FrameCount | None) -> FrameCount:
    if before is None:
        return count
    sums = {key: getattr(count, key) + getattr(before, key) for key in _COUNTED}
    return count.model_copy(update=sums)


def _in_trials(results: Sequence[TrialResult], count: FrameCount, key: str) -> str:
    with_any = sum(
        any(getattr(stream, key) for stream in _streams(result, count))
        for result in results
    )
    return f", in {with_any} of {len(results)} trials"


def _streams(result: TrialResult, count: FrameCount) -> list[StreamResult]:
    return [
        stream
        for direction in result.directions
        for stream in direction.streams
        if (direction.name, stream.name) == (count.direction, count.stream)
    ]
