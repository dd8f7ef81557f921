"""Whether the run, made again from its journal by its own code, is what is stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dutperf.config import Campaign, PlannedTestbed
from dutperf.errors import InputError
from dutperf.results import ResultsFile
from dutperf.results.changes import differences

Json = dict[str, Any]
Replay = Callable[[Path, Campaign, Sequence[PlannedTestbed]], ResultsFile]
"""Makes the results of the run in a directory again; nothing is measured."""
_REMAIN = "connections_remain"


def replayed(
    directory: Path,
    results: Json,
    campaign: Campaign,
    planned: Sequence[PlannedTestbed],
    replay: Replay,
) -> tuple[list[str], list[str]]:
    """What differs, and what cannot be told."""
    try:
        made = replay(directory, campaign, planned)
        wrong = list(_differences(results, json.loads(made.stored_text())))
    except InputError as error:
        wrong = error.message.replace(str(directory), "the run").splitlines()
    except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as e:
        wrong = [f"nothing follows from the journal ({type(e).__name__}: {e})"]
    # What the device may have known was kept outside of the run.
    return wrong, [
        f"{cell['id']}: why it opened no more connections is not in the journal"
        for cell in results["cells"]
        if ended_by_remaining(cell)
    ]


def ended_by_remaining(cell: Json) -> bool:
    """Whether it has no figures, as the device may have known its connections."""
    return any(reason["code"] == _REMAIN for reason in cell.get("reasons", []))


def _differences(stored: Json, again: Json) -> Iterator[str]:
    made = {cell["id"]: cell for cell in again["cells"]}
    for cell in stored["cells"]:
        name = cell["id"]
        if name not in made:
            yield f"{name}: the journal does not hold all of its trials"
            continue
        yield from (f"{name}: {line}" for line in differences(made[name], cell))
    absent = {cell["id"] for cell in stored.get("not_measured", [])}
    yield from (f"{name} was measured" for name in made if name in absent)
    for key in ("scalability", "parts"):
        whole = len(made) == len(stored["cells"])
        if whole and stored.get(key, []) != again[key]:
            lines = differences({key: again[key]}, {key: stored.get(key, [])})
            yield from lines


def begins_in_order(trials: Sequence[Json]) -> Iterator[str]:
    """That no trial began before the one that was before it at the same testbed."""
    last: dict[str | None, tuple[datetime, Json]] = {}
    for trial in trials:
        told = f"trial {trial['number']} began at {trial['started_at']}"
        try:
            began = datetime.fromisoformat(trial["started_at"]).astimezone(UTC)
        except (TypeError, ValueError, OverflowError):
            yield f"{told}, which is no time"
            continue
        latest, before = last.get(trial.get("place"), (began, trial))
        if began < latest:
            yield f"{told}, trial {before['number']} at {before['started_at']}"
        last[trial.get("place")] = began, trial
