"""Runs that are kept: what every procedure made of its trials when they were measured.

``python tests/tools/kept_runs.py`` measures them anew, on simulated devices: only where
a figure is meant to change, and then the change is told with the commit.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from every_procedure import CASES

from dutperf.export import csv_table
from dutperf.procedures.measurements import tables
from dutperf.results import CellResult, ResultsFile, TrialRecord
from dutperf.tables import subjects

FOLDER = Path(__file__).parents[1] / "kept"
Json = dict[str, Any]


def kept(name: str) -> Path:
    return FOLDER / f"{name.replace(', ', '-').replace(' ', '-')}.json.gz"


def measured(name: str, stored: Sequence[TrialRecord] = ()) -> Json:
    """Of a case, answered by ``stored`` as far as that goes: trials, result, tables."""
    result, recording = CASES[name].run(stored)
    records = [*stored, *recording.records]
    return {
        "trials": [json.loads(record.model_dump_json()) for record in records],
        "result": json.loads(result.model_dump_json()),
        "tables": _tables(result, records),
    }


def _tables(result: CellResult, records: Sequence[TrialRecord]) -> dict[str, str]:
    whole = ResultsFile(
        procedure=result.procedure,
        name="kept",
        created_at="2026-01-02T03:04:05+00:00",
        complete=True,
        cells=[result],
        trials=list(records),
    )
    return {each.key: csv_table(each) for each in tables(list(subjects(whole)), [])}


if __name__ == "__main__":
    for case in CASES:
        text = json.dumps(measured(case), separators=(",", ":"))
        kept(case).write_bytes(gzip.compress(text.encode(), 9, mtime=0))
        sys.stdout.write(f"{kept(case)}\n")
