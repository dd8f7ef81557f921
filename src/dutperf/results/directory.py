"""The directory of one run.

* ``campaign.yaml``: what was asked for, as resolved; a valid campaign again
* ``environment.json``: machine, versions, ports, seed
* ``journal.jsonl``: every finished trial, appended while the run lasts
* ``results.json``: the results; complete=false when the run was interrupted
* ``report.html``: made from the files above
* ``engine.log``: what the engine and DPDK printed
"""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from dutperf.errors import InputError
from dutperf.results.environment import Environment
from dutperf.results.journal import JOURNAL, Journal, JournalHeader
from dutperf.results.loading import load_versioned, read_text, stored_file
from dutperf.results.model import ResultsFile, TrialRecord
from dutperf.results.storage import storing, write_atomically

CAMPAIGN = "campaign.yaml"
ENVIRONMENT = "environment.json"
RESULTS = "results.json"


class ResultsDirectory:
    """Writes the files of one run; made by :meth:`create`."""

    def __init__(self, path: Path, journal: Journal) -> None:
        self.path = path
        self._journal = journal
        self._records: list[TrialRecord] = []

    @classmethod
    def create(cls, path: Path | None, name: str) -> ResultsDirectory:
        """Take a directory for a new run and start its journal.

        Args:
            path: the directory, absent or empty; None: results/<name>-<UTC time>.
            name: the campaign's name.

        Raises:
            InputError: the directory holds files, or another run has it.
            SetupError: it cannot be made or written to.
        """
        now = datetime.now(UTC)
        if path is None:
            path = Path("results") / f"{name}-{now:%Y%m%dT%H%M%SZ}"
        header = JournalHeader(campaign=name, created_at=now.isoformat("T", "seconds"))
        try:
            _claim(path)
            journal = Journal(path / JOURNAL, header)
        except FileExistsError as error:
            raise InputError(
                f"{path} holds the files of another run, or is a file itself",
                "give a new or empty directory; results are never overwritten",
            ) from error
        return cls(path, journal)

    @property
    def records(self) -> tuple[TrialRecord, ...]:
        """The trials stored so far, in order."""
        return tuple(self._records)

    def write_campaign(self, data: dict[str, Any]) -> None:
        """Store the resolved campaign as YAML.

        Raises:
            SetupError: the file system refused.
        """
        stream = io.StringIO()
        YAML(typ="safe", pure=True).dump(data, stream)
        write_atomically(self.path / CAMPAIGN, stream.getvalue(), self._safe())

    def write_environment(self, env: Environment) -> None:
        """Store where the run took place.

        Raises:
            SetupError: the file system refused.
        """
        text = env.model_dump_json(indent=2) + "\n"
        write_atomically(self.path / ENVIRONMENT, text, self._safe())

    def append(self, record: TrialRecord) -> None:
        """Store one finished trial; it is on disk when this returns.

        Raises:
            SetupError: the file system refused; earlier trials are not affected.
        """
        self._journal.append(record)
        self._records.append(record)

    def write_results(self, results: ResultsFile) -> None:
        """Store the results, replacing earlier ones in one step.

        Raises:
            SetupError: the file system refused; journal and earlier results are safe.
        """
        text = results.model_dump_json() + "\n"
        write_atomically(self.path / RESULTS, text, self._safe())

    def _safe(self) -> str:
        if not self._records:
            return ""
        return f"all {len(self._records)} trials are safe in {self._journal.path}"


def load_results(path: Path) -> ResultsFile:
    """Read results.json in directory ``path``, or the file ``path``.

    Raises:
        InputError: missing, damaged, or written by a newer dutperf.
    """
    return load_versioned(ResultsFile, path, RESULTS)


def load_environment(path: Path) -> Environment:
    """Read environment.json in directory ``path``, or the file ``path``.

    Raises:
        InputError: missing, damaged, or written by a newer dutperf.
    """
    return load_versioned(Environment, path, ENVIRONMENT)


def load_campaign(path: Path) -> dict[str, Any]:
    """Read campaign.yaml in directory ``path``, or the file ``path``, as plain data.

    Raises:
        InputError: missing, or not a YAML mapping.
    """
    file = stored_file(path, CAMPAIGN)
    try:
        data = YAML(typ="safe", pure=True).load(read_text(file))
    except YAMLError as error:
        raise InputError(f"{file} is not valid YAML: {error}") from error
    if not isinstance(data, dict):
        raise InputError(f"{file} is not a YAML mapping")
    return data


def _claim(path: Path) -> None:
    with storing(path):
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise FileExistsError(path)
