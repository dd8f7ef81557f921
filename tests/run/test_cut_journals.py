"""Every procedure, its journal cut after every record: it goes on to the same result.

A resumed run has a new engine, so what phase 1 opened in the run before is gone.
"""

from __future__ import annotations

import pytest
from every_procedure import CASES

from dutperf.results import CellResult


def figures(result: CellResult) -> object:
    """All that a user reads but how many trials it took."""
    repeats = [r.model_dump(exclude={"trials"}) for r in result.repeats]
    points = [(p.load_fps, p.loss_percent) for p in result.points]
    told = (result.median, result.verdict, result.bound, result.reasons)
    beside = (result.measures, result.eviction, result.behaviour)
    return told, repeats, points, beside


@pytest.mark.parametrize("name", CASES)
def test_a_journal_that_was_cut_anywhere_gives_the_same_result(name: str) -> None:
    case = CASES[name]
    whole, complete = case.run()
    trials = len(complete.records)
    assert trials > 1
    made_anew = set()
    for cut in range(1, trials + 1):
        stored = complete.records[:cut]
        result, rest = case.run(stored)
        assert figures(result) == figures(whole), cut
        made_anew.add(cut + len(rest.records) - trials)
        # What is in the journal now is enough for the same, once more.
        again, nothing = case.run([*stored, *rest.records])
        assert figures(again) == figures(whole), cut
        assert nothing.records == [], cut
    # Phase 1, or a trial with its phase 1, was made once more where they were lost; of
    # data on TCP connections the trial that opens them, too, and of answers from
    # elsewhere all that came before.
    phases = {1, 2, 3} if "TCP" in name or name == "nat-behaviour" else {1, 2}
    assert made_anew <= {0, *(phases if case.nat else ())}
