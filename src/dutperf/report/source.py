"""What a report is made from: the stored files of one run, complete or not."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dutperf.errors import InputError
from dutperf.model.requirements import Requirement, requirement
from dutperf.results import (
    CellResult,
    Environment,
    JournalFollower,
    NotMeasured,
    ResultsFile,
    Scalability,
    SweepResult,
    TrialRecord,
    load_campaign,
    load_environments,
    load_journal,
    load_results,
)
from dutperf.results.directory import CAMPAIGN
from dutperf.results.journal import counting
from dutperf.results.storage import read_text
from dutperf.visible import lab_name, without_cores


@dataclass(frozen=True)
class TestbedRecord:
    """A lab or testbed of the run, and what is stored of it."""

    name: str
    description: str
    environment: Environment | None

    @property
    def words(self) -> str:
        """Its name, and the description of the DUT."""
        return ": ".join(part for part in (self.name, self.description) if part)

    @property
    def forwards(self) -> str:
        """What the DUT is, without where it runs; its description where that is all."""
        told = self.environment.device.get("nat") if self.environment else None
        return told or self.description


@dataclass(frozen=True)
class Failure:
    """Why cells were not measured, and which."""

    testbed: str
    message: str
    hint: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class StoredCampaign:
    """What was asked for, as it was resolved; empty where that is not stored."""

    data: Mapping[str, Any]
    text: str

    @property
    def requirements(self) -> list[Requirement]:
        """What figures were to be; what is none, was not written by dutperf."""
        told = self.data.get("require")
        found = []
        for text in told if isinstance(told, list) else []:
            with suppress(InputError):
                found.append(requirement(str(text)))
        return found

    @property
    def is_quick(self) -> bool:
        """Whether its times and repeats are those for looking around."""
        return self.data.get("preset") == "quick"


@dataclass(frozen=True)
class Source:
    """One run as stored. ``interruption`` is empty for a complete run."""

    name: str
    created_at: str
    written_by: str
    testbeds: tuple[TestbedRecord, ...]
    interruption: str
    failures: tuple[Failure, ...]
    cells: tuple[CellResult, ...]
    scalability: tuple[Scalability, ...]
    sweeps: tuple[SweepResult, ...]
    trials: tuple[TrialRecord, ...]
    campaign: StoredCampaign

    @property
    def several(self) -> bool:
        """Whether it has more than one testbed."""
        return len(self.testbeds) > 1

    @property
    def environment(self) -> Environment | None:
        """Of the only testbed."""
        return None if self.several else self.testbeds[0].environment

    def is_copy_of(self, other: Source) -> bool:
        """Whether both are one run, stored twice."""
        return self.created_at == other.created_at and self.cells == other.cells

    def trials_of(self, cell: str) -> tuple[TrialRecord, ...]:
        """The trials of one cell, in the order they were run.

        Those that only prepare or check others (``role``) are not among them.
        """
        return tuple(self._by_cell.get(cell, ()))

    @functools.cached_property
    def _by_cell(self) -> dict[str, list[TrialRecord]]:
        found: dict[str, list[TrialRecord]] = {}
        for trial in counting(self.trials):
            if trial.role == "trial":
                found.setdefault(trial.cell, []).append(trial)
        return found

    def open_cells(self) -> tuple[TrialRecord, ...]:
        """The first trials of cells without a result: the run ended in them."""
        finished = {cell.id for cell in self.cells}
        first: dict[str, TrialRecord] = {}
        for trial in self.trials:
            first.setdefault(trial.cell, trial)
        return tuple(t for name, t in first.items() if name not in finished)


def read_source(directory: Path, *, trials: bool = True) -> Source:
    """Read results.json, or, if the run never wrote it, the journal.

    ``trials``: they, too; without them it is quick, however long the run was.

    Raises:
        InputError: neither exists, or a file is damaged or of a newer dutperf.
    """
    if (directory / "results.json").exists():
        return _from_results(directory, load_results(directory, trials=trials))
    if (directory / "journal.jsonl").exists():
        return _from_journal(directory, trials=trials)
    raise InputError(
        f"{directory} holds neither results.json nor journal.jsonl",
        "give the results directory of a run",
    )


def _from_results(directory: Path, results: ResultsFile) -> Source:
    campaign = _campaign(directory)
    interruption = ""
    if results.not_measured:
        interruption = "Not every testbed could be measured to the end."
    elif not results.complete:
        interruption = "It was stopped before all was measured."
    return Source(
        name=results.name,
        created_at=results.created_at,
        written_by=results.dutperf_version,
        testbeds=_testbeds(directory, campaign),
        interruption=interruption,
        failures=_failures(results.not_measured),
        cells=tuple(results.cells),
        scalability=tuple(results.scalability),
        sweeps=tuple(results.sweeps),
        trials=tuple(results.trials),
        campaign=campaign,
    )


def _from_journal(directory: Path, *, trials: bool) -> Source:
    if trials:
        journal = load_journal(directory)
        header, records, truncated = journal[:3]
    else:
        header, records, truncated = JournalFollower(directory).header, (), False
    campaign = _campaign(directory)
    torn = " The last trial was being written and is lost." if truncated else ""
    return Source(
        name=header.campaign,
        created_at=header.created_at,
        written_by=header.dutperf_version,
        testbeds=_testbeds(directory, campaign),
        failures=(),
        interruption=f"It ended without writing results.{torn}",
        cells=(),
        scalability=(),
        sweeps=(),
        trials=records,
        campaign=campaign,
    )


def _failures(cells: Sequence[NotMeasured]) -> tuple[Failure, ...]:
    found: dict[tuple[str, str, str], list[str]] = {}
    for cell in cells:
        found.setdefault((cell.place, cell.message, cell.hint), []).append(cell.id)
    return tuple(Failure(*why, tuple(ids)) for why, ids in found.items())


def _campaign(directory: Path) -> StoredCampaign:
    if not (directory / CAMPAIGN).exists():
        return StoredCampaign({}, "")
    return StoredCampaign(load_campaign(directory), read_text(directory / CAMPAIGN))


def _testbeds(directory: Path, campaign: StoredCampaign) -> tuple[TestbedRecord, ...]:
    """As in the campaign; at least one, also if nothing is known of it."""
    environments = load_environments(directory)
    given = list(_named(campaign.data)) or [("", "")]
    named = [
        (place, told)
        for name, told in given
        for place in _with_cores(name, [each for each in environments if each])
    ]
    found = []
    for name, description in named:
        environment = environments.get(name if len(named) > 1 else None)
        told = environment.dut if environment else ""
        found.append(TestbedRecord(name, told or description, environment))
    return tuple(found)


def _with_cores(name: str, places: Sequence[str]) -> Sequence[str]:
    """The testbeds that a lab was, one for each number of active cores."""
    return [p for p in places if name in (p, without_cores(p))] or [name]


def _named(campaign: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and description of each lab or testbed; a list of one needs no list."""
    given = campaign.get("lab") or campaign.get("testbed") or []
    for testbed in given if isinstance(given, list) else [given]:
        if isinstance(testbed, dict) and "lab" in campaign:
            rules = testbed.get("rules")
            name = lab_name(
                _text(testbed, "name"),
                rules if isinstance(rules, int) else None,
                _text(testbed, "label") or None,
            )
            yield name, ""
        elif isinstance(testbed, dict):
            yield _text(testbed, "name"), _text(testbed, "description")
        elif isinstance(testbed, str):
            yield lab_name(testbed) if "lab" in campaign else testbed, ""


def _text(data: dict[str, Any], key: str) -> str:
    """What stands there, if it is a text: a list may be one of lists, and so on."""
    value = data.get(key)
    return value if isinstance(value, str) else ""
