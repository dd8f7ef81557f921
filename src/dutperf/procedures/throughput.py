"""Throughput (RFC 2544 26.1, 8219 7.1): the fastest rate at which no frame is lost.

How it is searched is the cell's choice (``searching``). The DUT is blamed for lost
frames only: a trial that the tester spoilt is repeated, and when the tester cannot do
better, the result is what was proven: a lower bound. With a frame timeout or a
tolerated loss the result is another one, and is called so. Where damaged frames alone
limit it, a second figure tells how fast the device is but for them (``damage``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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
    Evidence,
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
    search = strategy_of(cell, limit.rate_fps, limit.begin_fps)
    measured = _search_until_enough(runner, cell, limit, search)
    return _cell_result(cell, limit, measured)


class _Searched(NamedTuple):
    """One repeat: what its search found, and what the trials of that say.

    ``passed``: the last one that counts at the rate that was found.
    """

    found: Found
    evidence: Evidence
    passed: TrialResult | None
    trials: int

    def told(self, cell: Cell, limit: MaxRate) -> RepeatResult:
        """As it is stored."""
        return repeat_result(self.found.result, cell, limit, self.evidence, self.trials)


class _Measured(NamedTuple):
    """The repeats that count, and what was measured or withdrawn beside."""

    searched: list[_Searched]
    damage: DamageFigure | None
    withdrawn: Withdrawal | None


def _search_until_enough(
    runner: Trials, cell: Cell, limit: MaxRate, search: Strategy
) -> _Measured:
    searched: list[_Searched] = []
    damage: DamageFigure | None = None
    withdrawn: Withdrawal | None = None
    number = 0
    while not _enough(cell, [each.told(cell, limit) for each in searched]):
        number += 1
        trials = SearchTrials(runner, cell, number)
        found = _search(search, trials)
        evidence = trials.evidence(found.result.upper_fps)
        passed = trials.at(found.result.rate_fps)
        searched.append(_Searched(found, evidence, passed, trials.count))
        # A repeat that contradicts others has two trials: too few to search with.
        searchable = damage is None and not found.withdrawn
        if searchable and limited_by_damage(cell, found, trials):
            damage = search_without_damage(runner, cell, limit, trials, number)
        if found.withdrawn:
            kept = len(searched) - found.withdrawn
            withdrawn = _withdrawal(number, searched[kept:])
            del searched[kept:]
            runner.on_event(Notice(f"{cell.id}: {withdrawn_words(withdrawn)}"))
    return _Measured(searched, damage, withdrawn)


def _cell_result(cell: Cell, limit: MaxRate, measured: _Measured) -> CellResult:
    searched = measured.searched
    repeats = [each.told(cell, limit) for each in searched]
    goals = [
        goal
        for each in searched
        for goal in goal_results(each.found.goals, cell, limit, each.evidence)
    ]
    of_all = overall(repeats, repeats_of(cell, limit.rate_fps).interval)
    return CellResult(
        **of_cell(cell, limit, bound_deviations(cell, of_all)),
        **of_repeats(repeats, of_all, judged=goals),
        quantity=throughput_quantity(cell),
        timeouts=timeout_losses(cell, [each.passed for each in searched]),
        damage=measured.damage,
        settled=settlement(cell, repeats),
        withdrawn=measured.withdrawn,
        goals=goals,
        findings=rate_findings(cell, repeats),
    )


def _search(search: Strategy, trials: SearchTrials) -> Found:
    try:
        return search(trials.measure, trials.on_step)
    except NoUseError:
        return Found(SearchResult(trials.passed_fps, None, "unstable", []))


def _withdrawal(last: int, repeats: Sequence[_Searched]) -> Withdrawal:
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
