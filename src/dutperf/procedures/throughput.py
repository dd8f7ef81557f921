"""Throughput (RFC 2544 26.1, 8219 7.1): the fastest rate at which no frame is lost.

How it is searched is the cell's choice (``searching``). The DUT is blamed for lost
frames only: a trial that the tester spoilt is repeated, and when the tester cannot do
better, the result is what was proven: a lower bound. With a frame timeout or a
tolerated loss the result is another one, and is called so. Where damaged frames alone
limit it, a second figure tells how fast the device is but for them (``damage``).
"""

from __future__ import annotations

from collections.abc import Sequence

from dutperf import stats
from dutperf.config.cell import Cell
from dutperf.procedures.cell_results import of_cell, of_repeats
from dutperf.procedures.conclusions import (
    bound_deviations,
    goal_results,
    repeat_result,
    settlement,
)
from dutperf.procedures.damage_search import limited_by_damage, search_without_damage
from dutperf.procedures.events import Notice
from dutperf.procedures.findings import rate_findings
from dutperf.procedures.loss_criterion import throughput_quantity, timeout_losses
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.searching import (
    NoUseError,
    SearchTrials,
    repeats_of,
    strategy_of,
)
from dutperf.procedures.trial_verdicts import no_rate_helps
from dutperf.procedures.trials import Trials
from dutperf.protocol import TrialResult
from dutperf.results.bounds import overall, valued
from dutperf.results.model import CellResult
from dutperf.results.rate_results import (
    DamageFigure,
    GoalResult,
    RepeatResult,
    Withdrawal,
)
from dutperf.results.settled import withdrawn_words
from dutperf.search import SearchResult
from dutperf.search.strategies import Found, Strategy


def measure_throughput(runner: Trials, cell: Cell, limit: MaxRate) -> CellResult:
    """Search as often as the cell says; the result is the median (RFC 8219 12).

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    search = strategy_of(cell, limit.rate_fps)
    repeats: list[RepeatResult] = []
    passed: list[TrialResult | None] = []
    goals: list[GoalResult] = []
    damage: DamageFigure | None = None
    withdrawn: Withdrawal | None = None
    number = 0
    while not _enough(cell, repeats):
        number += 1
        trials = SearchTrials(runner, cell, number)
        found = _search(search, trials)
        troubles = trials.troubles.at(found.result.upper_fps)
        repeats.append(
            repeat_result(
                found.result,
                cell,
                limit,
                trials=trials.count,
                troubles=troubles,
                held_back=trials.troubles.held_back,
                otherwise=trials.failed_otherwise,
            )
        )
        if damage is None and _is_damaging(cell, found, trials):
            damage = search_without_damage(runner, cell, limit, trials, number)
        passed.append(trials.at(found.result.rate_fps))
        goals += goal_results(
            found.goals,
            cell,
            limit,
            troubles,
            held_back=trials.troubles.held_back,
            otherwise=trials.failed_otherwise,
        )
        if found.withdrawn:
            kept = len(repeats) - found.withdrawn
            withdrawn = _withdrawal(number, repeats[kept:])
            del repeats[kept:], passed[kept:]
            runner.on_event(Notice(f"{cell.id}: {withdrawn_words(withdrawn)}"))
    of_all = overall(repeats, repeats_of(cell, limit.rate_fps).interval)
    return CellResult(
        **of_cell(cell, limit, bound_deviations(cell, of_all)),
        **of_repeats(repeats, of_all, judged=goals),
        quantity=throughput_quantity(cell),
        timeouts=timeout_losses(cell, passed),
        damage=damage,
        settled=settlement(cell, repeats),
        withdrawn=withdrawn,
        goals=goals,
        findings=rate_findings(cell, repeats),
    )


def _search(search: Strategy, trials: SearchTrials) -> Found:
    try:
        return search(trials.measure, trials.on_step)
    except NoUseError:
        return Found(SearchResult(trials.passed_fps, None, "unstable", []))


def _is_damaging(cell: Cell, found: Found, trials: SearchTrials) -> bool:
    """A repeat that contradicts others has two trials: too few to search with."""
    return not found.withdrawn and limited_by_damage(cell, found, trials)


def _withdrawal(last: int, repeats: Sequence[RepeatResult]) -> Withdrawal:
    return Withdrawal(
        repeats=list(range(last - len(repeats) + 1, last + 1)),
        trials=sum(repeat.trials for repeat in repeats),
    )


def _enough(cell: Cell, repeats: Sequence[RepeatResult]) -> bool:
    """An invalid repeat spoils the result: then ``auto`` has no reason to go on."""
    if repeats and no_rate_helps(repeats[-1].reasons):
        return True
    if cell.auto and any(r.verdict == "invalid" for r in repeats):
        return len(repeats) >= stats.LOOKS[0]
    if not cell.auto:
        return len(repeats) >= cell.repeats
    return repeats_of(cell).enough(*valued(repeats))
