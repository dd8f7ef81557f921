"""The maximum rate that the tester can offer while frames come back.

They cost it more than those of a probe, so what a probe or the media promise is lowered
until a trial at it tells something.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.probe import MARGIN
from dutperf.procedures.searching import outcome
from dutperf.procedures.trial_verdicts import ATTEMPTS
from dutperf.procedures.trials import Ask, Trials
from dutperf.protocol import TrialResult
from dutperf.search.attempts import attempted
from dutperf.search.sender_limit import sender_limit_fps, tells_nothing

MAX_LOWERINGS = 5
"""How often it is lowered at most."""


def reach_maximum(
    runner: Trials, limit: MaxRate, ask: Callable[[MaxRate], Ask]
) -> tuple[MaxRate, list[TrialResult]]:
    """Lower ``limit`` until the tester can offer what ``ask`` makes of it.

    Returns:
        The maximum, and the results of the first trials at it, the last of which may
        count.

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    for lowering in range(MAX_LOWERINGS + 1):
        asked = ask(limit)
        trials = (runner.run(asked).result for _ in range(ATTEMPTS))
        results = attempted(trials, _may_be_too_much)
        told = [outcome(result) for result in results]
        offered_fps = sender_limit_fps(told, 0, ATTEMPTS)
        if not told[-1].offered_fps or not offered_fps or lowering == MAX_LOWERINGS:
            break
        limit = _lowered(limit, max(1, int(offered_fps * MARGIN)))
    return limit, results


def _may_be_too_much(tried: Sequence[TrialResult]) -> bool:
    """Whether the last trial could not be offered, and they do not agree how much."""
    told = [outcome(result) for result in tried]
    return told[-1].offered_fps is not None and tells_nothing(told, 0, ATTEMPTS)


def _lowered(limit: MaxRate, rate_fps: int) -> MaxRate:
    """What was found before stays; only how far loads go up changes."""
    if limit.most is None:
        return limit.lowered(rate_fps)
    return replace(limit, most=limit.most.lowered(rate_fps))
