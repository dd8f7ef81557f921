"""Whether environments are those that the trials were measured in, by their sums."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dutperf.results import TrialRecord
from dutperf.results.counting import counting
from dutperf.results.directory import (
    ENVIRONMENT,
    environment_files,
    file_of,
    raw_environment,
)
from dutperf.results.environment import environment_sum

Json = dict[str, Any]


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
            wrong += _differences(name, stored[name], own)
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


def _differences(name: str, data: Json, trials: Sequence[TrialRecord]) -> Iterator[str]:
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
