"""The maximum rate that the tester can offer while frames come back.

They cost it more than those of a probe, so what a probe or the media promise is lowered
until a trial at it tells something.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.probe import MARGIN
from dutperf.procedures.searching import outcome
from dutperf.procedures.trial_verdicts import ATTEMPTS
from dutperf.procedures.trials import Ask, Trials
from dutperf.protocol import TrialResult
from dutperf.search import Outcome
from dutperf.search.sender_limit import sender_limit_fps

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
        results, offered_fps = _try(runner, ask(limit))
        if not offered_fps or lowering == MAX_LOWERINGS:
            break
        limit = _lowered(limit, max(1, int(offered_fps * MARGIN)))
    return limit, results


def _try(runner: Trials, ask: Ask) -> tuple[list[TrialResult], float | None]:
    """The trials at a load, and the tester's limit if they agree on one."""
    results: list[TrialResult] = []
    told: list[Outcome] = []
    limit_fps: float | None = None
    while limit_fps is None:
        results.append(runner.run(ask).result)
        told.append(outcome(results[-1]))
        if told[-1].offered_fps is None:
            break
        limit_fps = sender_limit_fps(told, 0, ATTEMPTS)
    return results, limit_fps


def _lowered(limit: MaxRate, rate_fps: int) -> MaxRate:
    """What was found before stays; only how far loads go up changes."""
    if limit.most is None:
        return limit.lowered(rate_fps)
    return replace(limit, most=limit.most.lowered(rate_fps))
