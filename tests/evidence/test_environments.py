"""The environment that a run was measured in cannot be exchanged afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from planning import TESTBED, Run, campaign, spec

from dutperf.config import Campaign, PlannedTestbed
from dutperf.evidence import Check, verify
from dutperf.evidence.replayed import check_environments
from dutperf.results import load_environment, load_journal, load_results
from dutperf.results.environment import environment_sum
from dutperf.run.campaign_run import results_again
from dutperf.simulation.fake_engine import FakeEngine, step

Json = dict[str, Any]
WHAT = campaign(spec(resolution="20%", repeats=2, trial_duration_s=1))


def engine(end: int | None = None) -> FakeEngine:
    return FakeEngine(
        step(200_000), troubles={end: KeyboardInterrupt()} if end else None
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run"


def interrupted(path: Path, at_trial: int) -> None:
    with pytest.raises(KeyboardInterrupt):
        Run(path, engine(at_trial))(WHAT)


def plan(_campaign: Campaign) -> list[PlannedTestbed]:
    return [PlannedTestbed(testbed=TESTBED)]


def check(path: Path) -> Check:
    (found,) = (
        c for c in verify(path, plan, results_again).checks if c.name == "environment"
    )
    return found


def edited(path: Path, edit: Callable[[Json], object]) -> None:
    data = json.loads(path.read_text())
    edit(data)
    path.write_text(json.dumps(data))


def sums(path: Path) -> dict[int, str]:
    """Of the trials that have one."""
    records = load_journal(path).records
    return {r.number: r.environment for r in records if r.environment}


def test_the_first_trial_has_the_sum_of_the_environment(path: Path) -> None:
    Run(path, engine())(WHAT)
    stored = json.loads((path / "environment.json").read_text())
    assert sums(path) == {1: environment_sum(stored, 1)}
    assert load_results(path).trials == list(load_journal(path).records)
    assert (check(path).wrong, check(path).looked) == ([], True)


@pytest.mark.parametrize(
    "edit",
    [
        lambda data: data.update(kernel="7.0"),
        lambda data: data["ports"][0].update(mac="02:00:00:00:00:99"),
        lambda data: data.update(parts=[part(1)]),
    ],
)
def test_another_environment_is_a_difference(
    path: Path, edit: Callable[[Json], object]
) -> None:
    Run(path, engine())(WHAT)
    edited(path / "environment.json", edit)
    (told,) = check(path).wrong
    assert told.startswith("environment.json is not what trial 1 was measured in")


def part(first_trial: int) -> Json:
    at = "2026-01-01T00:00:00+00:00"
    return {"first_trial": first_trial, "started_at": at, "changes": []}


def test_an_environment_that_is_gone_is_a_difference(path: Path) -> None:
    Run(path, engine())(WHAT)
    (path / "environment.json").unlink()
    assert check(path).wrong == ["environment.json is missing: trial 1 has its sum"]


def test_a_run_that_goes_on_adds_the_sum_of_what_it_goes_on_in(path: Path) -> None:
    interrupted(path, 4)
    first = sums(path)
    Run(path, engine()).resume(WHAT)
    assert sums(path).keys() == {1, 4}
    assert sums(path)[1] == first[1]
    assert check(path).wrong == []
    assert verify(path, plan, results_again).good, "counters of ports begin anew"
    edited(
        path / "environment.json", lambda data: data["parts"][0].update(changes=["x"])
    )
    assert "not what trial 4 was measured in" in check(path).wrong[0]


def test_a_part_that_no_trial_has_the_sum_of_is_a_difference(path: Path) -> None:
    Run(path, engine())(WHAT)
    edited(path / "environment.json", lambda data: data["parts"].append(part(3)))
    assert check(path).wrong == [
        "environment.json: a part that began before trial 3, which has no sum of it"
    ]


def test_a_newer_version_goes_on_and_changes_nothing_of_what_was_stored(
    path: Path,
) -> None:
    """It knows keys that the version before did not store."""
    interrupted(path, 3)
    edited(path / "environment.json", lambda data: data.pop("stands_in"))
    stored = json.loads((path / "environment.json").read_text())
    journal = path / "journal.jsonl"
    text = journal.read_text()
    journal.write_text(text.replace(sums(path)[1], environment_sum(stored, 1)))
    Run(path, engine()).resume(WHAT)
    assert "stands_in" not in json.loads((path / "environment.json").read_text())
    assert len(load_environment(path).parts) == 1
    assert check(path).wrong == []


def test_without_sums_nothing_is_proven_of_the_environment(path: Path) -> None:
    """An older dutperf wrote none; whoever exchanges the environment takes them out."""
    Run(path, engine())(WHAT)
    journal = path / "journal.jsonl"
    journal.write_text(journal.read_text().replace(f'"{sums(path)[1]}"', "null"))
    edited(path / "environment.json", lambda data: data.update(kernel="7.0"))
    found = check(path)
    assert (found.wrong, found.looked, found.unproven) == ([], False, True)
    assert "no sum of environment.json" in found.unknown[0]


def test_nor_is_an_older_run_that_went_on_refused(path: Path) -> None:
    """Where its ports were opened anew is not in its journal."""
    interrupted(path, 4)
    Run(path, engine()).resume(WHAT)
    told = sums(path).values()
    for name in ("journal.jsonl", "results.json"):
        text = (path / name).read_text()
        for each in told:
            text = text.replace(f'"{each}"', "null")
        (path / name).write_text(text)
    assert verify(path, plan, results_again).good


def test_a_file_that_says_it_is_of_another_testbed_is_a_difference(path: Path) -> None:
    """Else it would be taken for the first one's."""
    Run(path, engine())(WHAT)
    own = (path / "environment.json").read_text()
    (path / "environment-other.json").write_text(own)
    assert "environment-other.json says" in check(path).wrong[0]


def test_of_a_cell_that_was_measured_anew_elsewhere_that_one_counts(path: Path) -> None:
    """The first testbed's environment was replaced with it."""
    Run(path, engine())(WHAT)
    records = load_journal(path).records
    gone = records[0].model_copy(update={"environment": "0" * 64})
    moved = [
        record.model_copy(update={"number": number, "stands_in": "spare"})
        for number, record in enumerate(records, 2)
    ]
    told = environment_sum(json.loads((path / "environment.json").read_text()), 2)
    moved[0] = moved[0].model_copy(update={"environment": told})
    assert check_environments(path, [gone, *moved]) == ([], [])
