"""A comparison as ``dutperf compare --json`` prints it (docs/json.md)."""

from __future__ import annotations

import math
from typing import Any

from dutperf.comparison.judging import Compared, Comparison
from dutperf.comparison.surroundings import differences_of


def as_data(found: Comparison, limit: float | None) -> dict[str, Any]:
    """All of it; what is infinite, or not known, is null.

    Args:
        found: what was compared.
        limit: of the gate; null: there is none.
    """
    baseline, *others = found.sides
    return {
        "runs": [
            {
                "run": run.letter,
                "side": side.letter,
                "directory": str(run.directory),
                "name": run.source.name,
                "created_at": run.source.created_at,
                "dutperf_version": run.source.written_by,
                "interruption": run.source.interruption or None,
            }
            for side in found.sides
            for run in side.runs
        ],
        "claims_about": "devices" if found.by_runs else "runs",
        "comparisons": found.family,
        "interval_percent": found.interval_percent,
        "limit": limit,
        "figures": [_figure(each, limit) for each in found.figures],
        "differences": [
            {
                "run": told.run,
                "environment": [change._asdict() for change in told.environment],
                "configuration": [change._asdict() for change in told.configuration],
            }
            for told in (differences_of(baseline, each) for each in others)
        ],
    }


def _figure(each: Compared, limit: float | None) -> dict[str, Any]:
    change, number = each.change, list(each.samples)
    return {
        "cell": each.key.words,
        "run": each.run,
        "procedure": each.cell.procedure or None,
        "figure": each.name or None,
        "repeats": None if each.by_runs else number,
        "runs": number if each.by_runs else None,
        "outcome": each.outcome,
        "why": each.why or None,
        "better": each.better,
        "unit": each.unit,
        "change": _number(change.value) if change else None,
        "bound": change.bound if change else None,
        "lower": _number(change.lower) if change else None,
        "upper": _number(change.upper) if change else None,
        "judgement": None if limit is None else each.judged(limit),
    }


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
