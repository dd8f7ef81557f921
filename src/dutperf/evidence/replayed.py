"""Runs against runs: made again by their own code, and measured again."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dutperf.config import Campaign, PlannedTestbed
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.procedures.side_by_side import known_range
from dutperf.results import CellResult, ResultsFile, TrialRecord
from dutperf.results.directory import (
    ENVIRONMENT,
    environment_files,
    file_of,
    raw_environment,
)
from dutperf.results.environment import differences, environment_sum
from dutperf.results.figures import cell_figure
from dutperf.results.journal import counting
from dutperf.results.units import in_unit

# Whether the run, made again from its journal by its own code, is what is stored.


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
        known = cell | {"cell": _as_now(cell.get("cell"))}
        yield from (f"{name}: {line}" for line in differences(made[name], known))
    absent = {cell["id"] for cell in stored.get("not_measured", [])}
    yield from (f"{name} was measured" for name in made if name in absent)
    for key in ("scalability", "sweeps", "parts"):
        whole = len(made) == len(stored["cells"])
        if whole and stored.get(key, []) != again[key]:
            lines = differences({key: again[key]}, {key: stored.get(key, [])})
            yield from lines


def _as_now(cell: object) -> object:
    """What was asked for, with keys that it was stored without at what they mean then.

    A key that came later changes nothing in a cell that does not have it.
    """
    with suppress(ValidationError):
        return Cell.model_validate(cell).model_dump(mode="json")
    return cell


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


# Two runs of one campaign: whether the figures of the second are those of the first.
#
# A figure is known to within its repeats: the interval of its median where there is
# one, else from the least to the most; and not closer than what a search can tell. Two
# figures agree if these ranges touch. Of single values that differ nobody can tell.


@dataclass(frozen=True)
class TwoRuns:
    """One cell, then and now; ``agrees``: None where nobody can tell."""

    cell: str
    unit: str
    then: float | None
    now: float | None
    difference_percent: float | None
    agrees: bool | None
    words: str


def two_runs(then: ResultsFile, now: ResultsFile) -> list[TwoRuns]:
    """Each cell that either of them has."""
    before = {cell.id: cell for cell in then.cells}
    after = {cell.id: cell for cell in now.cells}
    return [_row(before.get(name), after.get(name)) for name in {**before, **after}]


def _row(then: CellResult | None, now: CellResult | None) -> TwoRuns:
    known = then or now
    assert known is not None, "one of them has it"  # noqa: S101
    one, other = (cell.median if cell else None for cell in (then, now))
    difference = None
    if one and other is not None:
        difference = (other - one) * 100 / abs(one)
    change = "" if difference is None else f" ({difference:+.2g} %)"
    return TwoRuns(
        cell=known.id,
        unit=known.unit,
        then=one,
        now=other,
        difference_percent=difference,
        agrees=_agrees(then, now),
        words=f"{_told(then)} then, {_told(now)} now{change}",
    )


def _told(cell: CellResult | None) -> str:
    if cell is None:
        return "not measured"
    if cell.median is None:
        return cell.verdict
    sign = ">= " if cell.bound else ""
    return f"{sign}{in_unit(cell.median, cell.unit)}"


def _agrees(then: CellResult | None, now: CellResult | None) -> bool | None:
    if then is None or now is None or "invalid" in (then.verdict, now.verdict):
        return None
    if then.median is None or now.median is None:
        return then.median == now.median
    low, high = known_range(cell_figure(then))
    other_low, other_high = known_range(cell_figure(now))
    if low <= other_high and other_low <= high:
        return True
    alone = any(len(list(_values(cell))) < 2 for cell in (then, now))
    return None if alone else False


def _values(cell: CellResult) -> Iterator[float]:
    return (r.value for r in cell.repeats if r.value is not None)
