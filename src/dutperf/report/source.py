"""What a report is made from: the stored files of one run, complete or not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dutperf.errors import InputError
from dutperf.results import (
    CellResult,
    Environment,
    ResultsFile,
    Scalability,
    TrialRecord,
    load_campaign,
    load_environment,
    load_journal,
    load_results,
)


@dataclass(frozen=True)
class Source:
    """One run as stored. ``interruption`` is empty for a complete run."""

    name: str
    created_at: str
    written_by: str
    device: str
    interruption: str
    cells: tuple[CellResult, ...]
    scalability: tuple[Scalability, ...]
    trials: tuple[TrialRecord, ...]
    environment: Environment | None

    def trials_of(self, cell: str) -> tuple[TrialRecord, ...]:
        """The trials of one cell, in the order they were run."""
        return tuple(trial for trial in self.trials if trial.cell == cell)

    def open_cells(self) -> tuple[str, ...]:
        """Ids of cells that have trials but no result: the run ended in them."""
        finished = {cell.id for cell in self.cells}
        names = dict.fromkeys(trial.cell for trial in self.trials)
        return tuple(name for name in names if name not in finished)


def read_source(directory: Path) -> Source:
    """Read results.json, or, if the run never wrote it, the journal.

    Raises:
        InputError: neither exists, or a file is damaged or of a newer dutperf.
    """
    if (directory / "results.json").exists():
        return _from_results(directory, load_results(directory))
    if (directory / "journal.jsonl").exists():
        return _from_journal(directory)
    raise InputError(
        f"{directory} holds neither results.json nor journal.jsonl",
        "give the results directory of a run",
    )


def _from_results(directory: Path, results: ResultsFile) -> Source:
    interruption = "" if results.complete else "It was stopped before all was measured."
    return Source(
        name=results.name,
        created_at=results.created_at,
        written_by=results.dutperf_version,
        device=_device(directory),
        interruption=interruption,
        cells=tuple(results.cells),
        scalability=tuple(results.scalability),
        trials=tuple(results.trials),
        environment=_environment(directory),
    )


def _from_journal(directory: Path) -> Source:
    journal = load_journal(directory)
    torn = " The last trial was being written and is lost." if journal.truncated else ""
    return Source(
        name=journal.header.campaign,
        created_at=journal.header.created_at,
        written_by=journal.header.dutperf_version,
        device=_device(directory),
        interruption=f"It ended without writing results.{torn}",
        cells=(),
        scalability=(),
        trials=journal.records,
        environment=_environment(directory),
    )


def _environment(directory: Path) -> Environment | None:
    if not (directory / "environment.json").exists():
        return None
    return load_environment(directory)


def _device(directory: Path) -> str:
    """Name of the lab or testbed, and the description of the DUT."""
    environment = _environment(directory)
    described = environment.dut if environment else ""
    if not (directory / "campaign.yaml").exists():
        return described
    campaign = load_campaign(directory)
    testbed: Any = campaign.get("testbed")
    if isinstance(testbed, dict):
        described = described or str(testbed.get("description") or "")
        testbed = testbed.get("name")
    name = campaign.get("lab") or testbed
    return ": ".join(str(part) for part in (name, described) if part)
