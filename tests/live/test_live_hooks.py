"""Hooks of a lab's device around trials that are measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from livetools import SHORT, dutperf, needs_engine

from dutperf import lab
from dutperf.results import load_journal

pytestmark = [*needs_engine, pytest.mark.lab]

DROP = {"forward": {"rules": [{"every": 2, "do": "drop"}]}}


def test_the_known_answer_is_in_the_journal_beside_what_was_measured(
    tmp_path: Path,
) -> None:
    behaviour = tmp_path / "drop.json"
    behaviour.write_text(json.dumps(DROP))
    loads = ("--load", "100", "--load", "50", "--max-rate", "2000", "--ip", "4")
    output = tmp_path / "results"
    try:
        dutperf("lab", "up", "known-answer", "--behaviour", str(behaviour))
        where = ("--lab", "known-answer", "--output", str(output))
        dutperf("frame-loss", *where, *loads, *SHORT)
    finally:
        lab.down(all_=True)
    records = load_journal(output).records
    own = [record for record in records if record.role == "trial"]
    assert {record.load_fps for record in own} == {2000, 1000}
    for record in own:
        (run,) = record.hooks
        sent, received = (
            sum(getattr(s, key) for s in record.result.directions[0].streams)
            for key in ("sent", "received")
        )
        assert (run.moment, run.succeeded) == ("after_trial", True)
        assert f"trial id {record.request.trial_id}, " in run.output
        assert (
            f"forward foreground: seen {sent}, left {received}, "
            f"dropped_by_rule {sent - received}"
        ) in run.output
        assert received == sent // 2
