"""Trials at a load that is given: each repeat is one trial that the tester vouches for.

What the DUT loses meanwhile does not fail a repeat: RFC 8219 wants delays at the
throughput, where every other trial may lose a frame. It is counted and said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

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
from dutperf.search.attempts import attempted
from dutperf.search.sender_limit import tells_nothing


@dataclass(frozen=True)
class Repeat:
    """One repeat; ``result`` is null when all its trials were invalid."""

    result: TrialResult | None
    trials: int
    reasons: list[Reason]


def run_repeats(
    runner: Trials,
    ask: Ask,
    hopeless: Callable[[Sequence[Reason]], bool],
    tried: Sequence[TrialResult] = (),
) -> list[Repeat]:
    """Measure as often as the cell says; invalid trials are run again.

    Args:
        runner: runs the trials.
        ask: for the trial.
        hopeless: whether a repeat that stayed invalid for these reasons is the last.
        tried: the first trials of the first repeat, where they were run already.

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    repeats: list[Repeat] = []
    for number in range(1, ask.cell.repeats + 1):
        asked = replace(ask, repeat=number, attempts=PATIENT_ATTEMPTS)
        more = (runner.run(asked).result for _ in range(PATIENT_ATTEMPTS))
        repeats.append(_repeat(attempted(chain(tried, more), _may_try_again)))
        tried = ()
        if hopeless(repeats[-1].reasons):
            break
    return repeats


def _repeat(tried: Sequence[TrialResult]) -> Repeat:
    last = tried[-1]
    if last.verdict.kind == "invalid":
        return Repeat(None, len(tried), last.verdict.reasons)
    return Repeat(last, len(tried), [])


def same_each_time(reasons: Sequence[Reason]) -> bool:
    """What the tester could not offer time after time it will not offer later."""
    return could_not_offer(reasons) or no_rate_helps(reasons)


def _may_try_again(tried: Sequence[TrialResult]) -> bool:
    """Whether a load is tried once more after these trials.

    What the tester cannot offer, as trials that agree say, it will not offer then.
    """
    verdict = tried[-1].verdict
    if verdict.kind != "invalid" or is_final(verdict.reasons):
        return False
    if len(tried) < ATTEMPTS:
        return True
    told = [outcome(result) for result in tried]
    return comes_and_goes(verdict.reasons) and tells_nothing(told, 0, PATIENT_ATTEMPTS)


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
