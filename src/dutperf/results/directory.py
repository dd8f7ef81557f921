"""The directory of one run.

* ``campaign.yaml``: what was asked for, as resolved; a valid campaign again
* ``environment.json``: machine, versions, ports, seed; of several testbeds each has one
  of its own, ``environment-TESTBED.json``
* ``journal.jsonl``: every finished trial, appended while the run lasts
* ``results.json``: the results; complete=false when the run was interrupted
* ``report.html``: made from the files above
* ``engine.log``: what the engine and DPDK printed; or ``engine-TESTBED.log``

A run that ended early is resumed in its directory: the journal holds all it measured,
and ``campaign.yaml`` tells whether the same is asked for again.
"""

from __future__ import annotations

import contextlib
import copy
import io
import itertools
import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from dutperf.errors import InputError
from dutperf.plain_files import is_nested_too_deeply
from dutperf.programs import postponed_signals
from dutperf.results.environment import (
    Environment,
    differences,
    environment_sum,
    listed,
)
from dutperf.results.journal import (
    JOURNAL,
    Journal,
    JournalContents,
    JournalHeader,
    StoredTrials,
    load_journal,
)
from dutperf.results.model import ResultsFile, RunPart
from dutperf.results.storage import (
    load_versioned,
    parse_object,
    read_text,
    remove_unfinished,
    stored_file,
    storing,
    write_atomically,
)
from dutperf.results.trial_record import TrialRecord
from dutperf.visible import visible_json

# Where a new run begins its journal: in a directory that is its own.


class _TakenError(InputError):
    """The directory has files in it."""


def begin_journal(
    path: Path | None, default: str, header: JournalHeader
) -> tuple[Path, Journal]:
    """Take a directory and begin the journal in it.

    Args:
        path: the directory, absent or empty; None: results/``default``, or the first of
            results/``default``-2, -3, ... that no other run took in the same second.
        default: its name, if none is given.
        header: the first line of the journal.

    Raises:
        InputError: the directory holds files, or another run has it.
        SetupError: it cannot be made or written to.
    """
    if path is not None:
        _check_place(path)
        return path, _begin(path, header)
    for place in _default_places(Path("results") / default):
        with contextlib.suppress(_TakenError):
            return place, _begin(place, header)
    raise AssertionError("there is always another number")


def _default_places(first: Path) -> Iterator[Path]:
    yield first
    yield from (first.with_name(f"{first.name}-{n}") for n in itertools.count(2))


def _begin(path: Path, header: JournalHeader) -> Journal:
    try:
        _claim(path)
        return Journal.create(path / JOURNAL, header)
    except FileExistsError as error:
        raise _TakenError(
            f"{path} holds the files of another run, or other ones",
            "give a new or empty directory, results are never overwritten; to go "
            f"on with a run that ended early: dutperf run --resume {path}",
        ) from error


def _claim(path: Path) -> None:
    with storing(path):
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise FileExistsError(path)


def _check_place(path: Path) -> None:
    """Refuse what can be no directory of files, before anything is opened."""
    for part in (path, *path.parents):
        if part.exists() and not part.is_dir():
            raise InputError(
                f"{path} cannot be a results directory: {part} is a file",
                "give a new or empty directory; stored results are in a directory, and "
                "--json prints them",
            )
    nearest = next((p for p in path.absolute().parents if p.exists()), Path("/"))
    if nearest.resolve().is_relative_to("/proc"):
        raise InputError(
            f"{path} cannot be a results directory: /proc holds no files",
            "give a new or empty directory elsewhere",
        )


CAMPAIGN = "campaign.yaml"
_LARGEST_CAMPAIGN = 2_000_000
"""Characters; one that asks for hundreds of testbeds is smaller."""
ENVIRONMENT = "environment.json"
RESULTS = "results.json"
ENGINE_LOG = "engine.log"
_START_ANEW = "give --output with a new directory to start anew"


class ResultsDirectory:
    """Writes the files of one run; made by :meth:`create` or :meth:`resume`.

    Nobody else can have the directory until the end of a ``with`` block, or ``close``.

    Attributes:
        path: the directory.
        created_at: when the run began; ISO 8601, UTC.
        notices: what the user should know of a run that is resumed.
    """

    stands_in: str | None = None

    def __init__(
        self,
        path: Path,
        journal: Journal,
        created_at: str,
        records: StoredTrials,
        notices: tuple[str, ...] = (),
    ) -> None:
        self.path = path
        self.created_at = created_at
        self.notices = notices
        self._journal = journal
        self._records = records
        self._opened: dict[str | None, dict[str, Any]] = {}
        """Environments in which no trial has begun yet; see ``environment_sum``."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let other runs have the directory."""
        self._journal.close()

    @classmethod
    def create(cls, path: Path | None, name: str) -> ResultsDirectory:
        """Take a directory for a new run and start its journal.

        Args:
            path: the directory, absent or empty; None: results/<name>-<UTC time>, with
                a number behind it if another run began in the same second.
            name: the campaign's name.

        Raises:
            InputError: the directory holds files, or another run has it.
            SetupError: it cannot be made or written to.
        """
        now = datetime.now(UTC)
        header = _header(name, now)
        taken, journal = begin_journal(path, f"{name}-{now:%Y%m%dT%H%M%SZ}", header)
        return cls(taken, journal, header.created_at, journal.trials())

    @classmethod
    def resume(
        cls,
        path: Path,
        name: str,
        campaign: dict[str, Any],
        reading: Callable[[dict[str, Any]], dict[str, Any]] = dict,
    ) -> Self:
        """Take the directory of a run that ended early, to continue it.

        Args:
            path: the directory.
            name: the campaign's name.
            campaign: what is asked for now, as for :meth:`write_campaign`.
            reading: makes of a stored campaign what is asked for now, if the same is.

        Raises:
            InputError: it holds no run, or one of another campaign or schema version;
                or it is in use. Nothing was changed.
            SetupError: it cannot be written to.
        """
        if not (path / JOURNAL).is_file():
            raise InputError(
                f"{path} holds no run to resume: there is no {JOURNAL}",
                "give the results directory of a run that ended early",
            )
        journal = Journal.open(path / JOURNAL)
        try:
            if not journal.begun:
                header = _header(name, datetime.now(UTC))
                journal.begin(header)
                remove_unfinished(path)
                told = f"{path} holds no trial yet: the run begins at its start"
                return cls(path, journal, header.created_at, journal.trials(), (told,))
            contents = load_journal(path)
            _check_same(path, contents, name, campaign, reading)
            journal.mend(contents)
            remove_unfinished(path)
        except BaseException:
            journal.close()
            raise
        return cls(
            path,
            journal,
            contents.header.created_at,
            journal.trials(contents),
            tuple(_resumption(journal.path, contents)),
        )

    @property
    def has_environment(self) -> bool:
        """Whether ports were opened at any testbed."""
        return bool(environment_files(self.path))

    @property
    def is_there(self) -> bool:
        """Whether its journal is still where it was made; somebody may remove it."""
        return (self.path / JOURNAL).exists()

    @property
    def records(self) -> StoredTrials:
        """The trials stored so far, in order."""
        return self._records

    def write_campaign(self, data: dict[str, Any]) -> None:
        """Store the resolved campaign as YAML.

        Raises:
            SetupError: the file system refused.
        """
        write_atomically(self.path / CAMPAIGN, as_yaml(data), self._safe())

    def write_environment(self, env: Environment) -> None:
        """Store where the run, or its part at ``env.place``, took place.

        Raises:
            SetupError: the file system refused.
        """
        path = self.path / file_of(ENVIRONMENT, env.place)
        data = json.loads(env.stored_text())
        stored = self.environment(env.place)
        if stored and stored.model_copy(update={"parts": env.parts}) == env:
            # An older version may have stored other keys, and trials have their sum.
            data = raw_environment(path) | {"parts": data["parts"]}
        text = visible_json(json.dumps(data, indent=2, ensure_ascii=False)) + "\n"
        write_atomically(path, text, self._safe())
        self._opened[env.place] = data

    def environment(self, testbed: str | None) -> Environment | None:
        """What was stored of the only testbed, or of one of several; if it still is."""
        try:
            return load_environment(self.path / file_of(ENVIRONMENT, testbed))
        except InputError:  # lost, or damaged: no reason to give the run up
            return None

    @property
    def parts(self) -> list[RunPart]:
        """Of all testbeds: what was measured after the run was resumed."""
        with contextlib.suppress(InputError):  # damaged: no reason to give the run up
            found = load_environments(self.path).values()
            parts = [part for environment in found for part in environment.parts]
            return sorted(parts, key=lambda part: part.first_trial)
        return []

    def engine_log(self, testbed: str | None) -> Path:
        """Where the engine of the only testbed writes, or that of one of several."""
        return self.path / file_of(ENGINE_LOG, testbed)

    @property
    def logs(self) -> list[Path]:
        """The logs of all engines that were started."""
        return sorted(self.path.glob(file_of(ENGINE_LOG, "*"))) + [
            log for log in (self.path / ENGINE_LOG,) if log.exists()
        ]

    def complete_results(self) -> ResultsFile | None:
        """The results of a run that is complete already; else nothing."""
        try:
            results = load_results(self.path)
        except InputError:  # they are made of the journal, which is read
            return None
        return results if results.complete else None

    def append(self, record: TrialRecord) -> TrialRecord:
        """Store one finished trial, and give it back; it is on disk when this returns.

        Raises:
            SetupError: the file system refused; earlier trials are not affected.
        """
        (stored,) = self.append_all([record])
        return stored

    def append_all(self, records: Sequence[TrialRecord]) -> list[TrialRecord]:
        """Store finished trials, one or more at once; see ``append``."""
        records = [self._with_sum(record) for record in records]
        # Interrupted in between, the results would not have what the journal has.
        with postponed_signals():
            sizes = self._journal.append(records)
            for record, size in zip(records, sizes, strict=True):
                self._records.add(record, size)
        return records

    def _with_sum(self, record: TrialRecord) -> TrialRecord:
        """With that of its environment, if it is the first trial in it."""
        place = record.place if record.place in self._opened else None
        opened = self._opened.pop(place, None)
        if opened is None:
            return record
        told = environment_sum(opened, record.number)
        return record.model_copy(update={"environment": told})

    def write_results(self, results: ResultsFile) -> None:
        """Store the results, replacing earlier ones in one step.

        Raises:
            SetupError: the file system refused; journal and earlier results are safe.
        """
        path, safe = self.path / RESULTS, self._safe()
        if results.trials is not self._records:
            write_atomically(path, results.stored_text() + "\n", safe)
            return
        text = results.model_copy(update={"trials": []}).stored_text()
        text = text.removesuffix("]}")  # trials are the last key
        write_atomically(path, text, safe, more=_listed(self._records.pieces()))

    def _safe(self) -> str:
        if not self._records:
            return ""
        return f"all {len(self._records)} trials are safe in {self._journal.path}"


def load_results(path: Path, *, trials: bool = True) -> ResultsFile:
    """Read results.json in directory ``path``, or the file ``path``.

    ``trials``: they, too, which are most of it.

    Raises:
        InputError: missing, damaged, or written by a newer dutperf.
    """
    return load_versioned(ResultsFile, path, RESULTS, None if trials else "trials")


def load_environment(path: Path) -> Environment:
    """Read environment.json in directory ``path``, or the file ``path``.

    Raises:
        InputError: missing, damaged, or written by a newer dutperf.
    """
    return load_versioned(Environment, path, ENVIRONMENT)


def load_environments(path: Path) -> dict[str | None, Environment]:
    """Read what is stored of each testbed of the run in directory ``path``, by name.

    A run at one testbed has one without a name.

    Raises:
        InputError: one is damaged, or written by a newer dutperf.
    """
    found = [load_environment(file) for file in environment_files(path)]
    return {environment.place: environment for environment in found}


def environment_files(path: Path) -> list[Path]:
    """Those that are stored in directory ``path``: of the only testbed, or of each."""
    files = [path / ENVIRONMENT, *sorted(path.glob(file_of(ENVIRONMENT, "*")))]
    return [file for file in files if file.exists()]


def raw_environment(file: Path) -> dict[str, Any]:
    """As it stands in ``file``, whichever version wrote it.

    Raises:
        InputError: missing, or no JSON object.
    """
    return parse_object(read_text(file), str(file))


def load_campaign(path: Path) -> dict[str, Any]:
    """Read campaign.yaml in directory ``path``, or the file ``path``, as plain data.

    Raises:
        InputError: missing, or not a YAML mapping.
    """
    file = stored_file(path, CAMPAIGN)
    text = read_text(file)
    if len(text) > _LARGEST_CAMPAIGN or is_nested_too_deeply(text):
        raise InputError(f"{file} is not a campaign that dutperf stored")
    try:
        data = copy.deepcopy(_yaml_data(text))
    except YAMLError as error:
        raise InputError(f"{file} is not valid YAML: {error}") from error
    except (ValueError, TypeError, RecursionError) as error:
        # What Python says of a date 2001-99-99, a list as a key, a thousand brackets.
        raise InputError(f"{file} is not a campaign that dutperf stored") from error
    if not isinstance(data, dict):
        raise InputError(f"{file} is not a YAML mapping")
    return data


@lru_cache(maxsize=128)
def _yaml_data(text: str) -> object:
    """Campaigns of many runs are the same, and YAML is most of the time of reading."""
    return YAML(typ="safe", pure=True).load(text)


def how_to_go_on(path: Path) -> str:
    """The command that continues the run in directory ``path``; empty: none can."""
    if not (path / CAMPAIGN).exists():
        return ""
    return shlex.join(["dutperf", "run", "--resume", str(path)])


def stored_campaign(path: Path) -> Path:
    """The campaign of the run in directory ``path``, as it was resolved.

    Raises:
        InputError: it has none.
    """
    campaign = path / CAMPAIGN
    if campaign.exists():
        return campaign
    raise InputError(
        f"{path} has no {CAMPAIGN}: it holds no run that could be resumed",
        "give the results directory of a run, and its campaign if that is elsewhere",
    )


def file_of(file: str, testbed: str | None) -> str:
    """``environment-TESTBED.json``; of the only testbed the name as it is."""
    if testbed is None:
        return file
    stem, _, ending = file.partition(".")
    return f"{stem}-{testbed}.{ending}"


def _listed(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines of JSON as the rest of a list that has begun, and the end of its object."""
    held = b""
    for piece in lines:
        yield (held + piece[:-1]).replace(b"\n", b",")
        held = piece[-1:]
    yield b"]}\n"


def _header(name: str, now: datetime) -> JournalHeader:
    return JournalHeader(campaign=name, created_at=now.isoformat("T", "seconds"))


def as_yaml(data: dict[str, Any]) -> str:
    """As ``campaign.yaml`` has it."""
    stream = io.StringIO()
    YAML(typ="safe", pure=True).dump(data, stream)
    return stream.getvalue()


def _check_same(
    path: Path,
    contents: JournalContents,
    name: str,
    campaign: dict[str, Any],
    reading: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    """Refuse to mix what was measured with what is not the same."""
    header = contents.header
    if header.campaign != name:
        raise InputError(
            f"{path} holds a run of another campaign: {header.campaign}, not {name}",
            f"give the campaign that the run began with, which is in {path / CAMPAIGN}",
        )
    if contents.records or (path / CAMPAIGN).exists():
        began = reading(_began_with(path))
        changes = differences(*(_through_yaml(each) for each in (began, campaign)))
        if changes:
            raise InputError(
                f"the campaign has changed since the run in {path} began:\n"
                f"{listed(changes)}",
                f"undo the changes, resume with {path / CAMPAIGN}, or {_START_ANEW}",
            )
    numbers = [record.number for record in contents.records]
    if numbers != list(range(1, len(numbers) + 1)):
        raise InputError(
            f"{path / JOURNAL}: its trials are not numbered 1, 2, 3, ...",
            "the file was changed by hand, or damaged",
        )


def _through_yaml(campaign: dict[str, Any]) -> Any:  # noqa: ANN401 - plain data
    return YAML(typ="safe", pure=True).load(as_yaml(campaign))


def _began_with(path: Path) -> dict[str, Any]:
    try:
        return load_campaign(path)
    except InputError as error:
        raise InputError(
            f"nobody can tell what the run in {path} began with: {error.message}",
            f"put the file back, or {_START_ANEW}",
        ) from error


def _resumption(journal: Path, contents: JournalContents) -> Iterator[str]:
    trials = len(contents.records)
    if contents.truncated:
        last = f"trial {trials}" if trials else "its header"
        yield (
            f"{journal} ends in the middle of a line: going on after the last whole "
            f"record, {last}"
        )
    yield f"resuming: {trials} finished trials are in {journal}"
