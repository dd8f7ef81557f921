"""Whether the run, made again from its journal by its own code, is what is stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dutperf.config import Campaign, PlannedTestbed
from dutperf.errors import InputError
from dutperf.results import ResultsFile, TrialRecord
from dutperf.results.directory import (
    ENVIRONMENT,
    environment_files,
    file_of,
    raw_environment,
)
from dutperf.results.environment import differences, environment_sum
from dutperf.results.journal import counting

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


# Whether environments are those that the trials were measured in, by their sums.


def check_environments(
    directory: Path, records: Sequence[TrialRecord]
) -> tuple[list[str], list[str]]:
    """What differs, and what cannot be told, as a journal has no sums.

    The environments were read before: they are sound.
    """
    stored = {file.name: raw_environment(file) for file in environment_files(directory)}
    wrong = [
        f"{name} says that it is of the testbed {data['place']}"
        for name, data in stored.items()
        if file_of(ENVIRONMENT, data.get("place")) != name
    ]
    unknown = []
    for name, own in _by_file(stored, counting(records)).items():
        if not any(trial.environment for trial in own):
            unknown.append(
                f"the journal has no sum of {name}: dutperf 1.0 or older made it, or "
                "it was taken out"
            )
        elif name in stored:
            wrong += _environment_differences(name, stored[name], own)
        else:
            first = next(t.number for t in own if t.environment)
            wrong.append(f"{name} is missing: trial {first} has its sum")
    return wrong, unknown


def _by_file(
    stored: Collection[str], trials: Sequence[TrialRecord]
) -> dict[str, list[TrialRecord]]:
    """The trials of each environment; that of the only testbed is of none by name."""
    found: dict[str, list[TrialRecord]] = {}
    for trial in trials:
        named = file_of(ENVIRONMENT, trial.place)
        found.setdefault(named if named in stored else ENVIRONMENT, []).append(trial)
    return found


def _environment_differences(
    name: str, data: Json, trials: Sequence[TrialRecord]
) -> Iterator[str]:
    began, seed = data["started_at"], data["seed"]
    if not _is_before(began, trials[0].started_at):
        yield f"{name} was stored at {began}, and a trial began before that"
    if trials[0].request.seed != seed:
        yield f"{name}: the seed is {seed}, of trials {trials[0].request.seed}"
    last = 0
    for trial in trials:
        number, told = trial.number, trial.environment
        if told and environment_sum(data, number) != told:
            yield (
                f"{name} is not what trial {number} was measured in: its SHA-256 sum "
                "is another one"
            )
            return
        last = number if told else last
    for part in data.get("parts", []):
        if last < part["first_trial"] <= trials[-1].number:
            yield (
                f"{name}: a part that began before trial {part['first_trial']}, which "
                "has no sum of it"
            )


def _is_before(one: str, other: str) -> bool:
    """In whole seconds, as environments have them."""
    try:
        times = [datetime.fromisoformat(text).astimezone(UTC) for text in (one, other)]
    except ValueError:
        return False
    return times[0] <= times[1]
