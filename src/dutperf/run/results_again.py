"""The results of a run made again from its journal, by what measured it.

As a run that is resumed: each trial is asked for again, and must be the next one of the
journal with the same request. Nothing is opened, nothing is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Never

from dutperf.config import Campaign, PlannedTestbed, expand
from dutperf.procedures.contradictions import with_contradictions
from dutperf.procedures.scalable import scalability
from dutperf.results import CellResult, ResultsFile, load_results
from dutperf.run.campaign_run import resumed
from dutperf.run.jobs import jobs_of
from dutperf.run.local_executor import Surroundings, visits_of
from dutperf.run.openings import told_again
from dutperf.run.replay import JournalEndsError


def results_again(
    directory: Path, campaign: Campaign, planned: Sequence[PlannedTestbed]
) -> ResultsFile:
    """What ``results.json`` should hold beside its trials.

    ``complete``: the journal holds all trials of the campaign.

    Args:
        directory: a copy of the results directory: a torn last line is cut off.
        campaign: what was asked for.
        planned: where.

    Raises:
        InputError: the journal is not that of a run of ``campaign``.
    """
    testbeds = [each.testbed for each in planned]
    stored = load_results(directory, trials=False)
    told = {cell.id: told_again(cell) for cell in stored.cells}
    ended = {cell: reason for cell, reason in told.items() if reason}
    cells: list[CellResult] = []
    complete = True
    with resumed(directory, campaign, testbeds) as store:
        jobs = jobs_of(campaign, planned, expand(campaign, *testbeds))
        around = Surroundings(open_engine=_never, write_report=_never)
        for visit in visits_of(jobs, around, store, lambda _event: None):
            try:
                for result in visit.told_by_journal(ended):
                    cells.append(result)  # noqa: PERF402 - those before the end count
            except JournalEndsError:
                complete = False
        order = {job.cell.id: number for number, job in enumerate(jobs)}
        cells.sort(key=lambda result: order[result.id])
        cells = with_contradictions(cells)
        made = {"cells": cells, "scalability": scalability(cells)}
        made |= {"complete": complete, "parts": store.parts}
        return stored.model_copy(update=made)


def _never(*_args: Any) -> Never:  # noqa: ANN401 - whatever it is
    raise AssertionError("the journal alone answers")
