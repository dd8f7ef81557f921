"""Runs read into Parquet files, by as many processes as there are CPUs.

A process is a program of its own, not a copy of this one, for who asks may be a
notebook, or have threads.

A row of such a file is one of a table: ``table_name``, what each table says of the run,
``place`` among the run's rows there, and of the structs that have the tables' names the
one of its own.
"""

from __future__ import annotations

import gc
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dutperf.errors import DutperfError, InputError, SetupError, StorageError
from dutperf.query.rows import Row, moment, rows_of
from dutperf.query.views import OF_RUN, RUNS, TABLES, Column
from dutperf.report.source import Source, read_source
from dutperf.results.storage import storing
from dutperf.visible import visible

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

import hashlib
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from dutperf.results.directory import CAMPAIGN, ENVIRONMENT, RESULTS
from dutperf.results.journal import JOURNAL

ITS_PATH = "\ue000"
"""Stands for the run's directory in a notice: that is called as the user calls it."""
MEMORY = "600MB"
"""That DuckDB uses at most; what needs more is put on disk."""
_SHARE = 100
"""Runs that are worth a process of their own; a few seconds of work."""
_MOST = 8
"""Processes: more wait for the disk."""
_AT_ONCE = 5000
"""Rows that are handed to DuckDB in one statement, about."""
_PROGRAM = "from dutperf.query.reader import main; main()"
_NAMES = {table.name: {column.name for column in table.own} for table in TABLES}


@contextmanager
def bounded() -> Iterator[DuckDBPyConnection]:
    """A database in memory, with as much of it as a command may take.

    Raises:
        StorageError: the disk is full.
    """
    import duckdb  # noqa: PLC0415 - takes a while to be loaded

    with tempfile.TemporaryDirectory(prefix="dutperf-sort-") as spill:
        config: dict[str, Any] = {"memory_limit": MEMORY, "temp_directory": spill}
        try:
            with room_in(Path(spill)), duckdb.connect(config=config) as database:
                database.execute("set threads = 1")  # which keeps the order of rows
                yield database
        except RuntimeError as error:
            if "interrupted" in str(error):  # what DuckDB makes of Ctrl-C
                raise KeyboardInterrupt from error
            raise


@contextmanager
def room_in(directory: Path) -> Iterator[None]:
    """Turns what DuckDB says of a full disk inside into a StorageError."""
    import duckdb  # noqa: PLC0415 - as above

    try:
        yield
    except duckdb.IOException as error:
        raise StorageError(
            f"cannot write {directory}: {str(error).splitlines()[0]}",
            "free some space there, or set TMPDIR to a directory on another disk",
        ) from error


def quoted(text: object) -> str:
    """A text of SQL."""
    return "'" + str(text).replace("'", "''") + "'"


def read_all(place: Place, runs: Sequence[Found], staging: Path) -> list[Path]:
    """Files in ``staging`` with the rows of all ``runs``.

    Raises:
        InputError: a run could not be fetched.
        SetupError: a process was killed, or there is no memory for it.
    """
    count = min(_MOST, len(os.sched_getaffinity(0)), math.ceil(len(runs) / _SHARE))
    if count <= 1:
        read_into(staging / "0.parquet", place, runs)
        return [staging / "0.parquet"]
    files = [staging / f"{at}.parquet" for at in range(count)]
    processes = []
    try:
        for at, file in enumerate(files):
            share = file.with_suffix(".json")
            with storing(share):
                share.write_text(json.dumps([astuple(run) for run in runs[at::count]]))
            program = [sys.executable, "-c", _PROGRAM, place.name, str(file)]
            with share.open() as listed:  # Ctrl-C is for this process, which ends them
                processes.append(
                    subprocess.Popen(program, stdin=listed, start_new_session=True)
                )
        for process in processes:
            if code := process.wait():
                raise SetupError(
                    f"a process that read runs ended early (exit code {code})",
                    "free some memory, and ask again: what was read is kept",
                )
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return files


def read_into(file: Path, place: Place, runs: Iterable[Found]) -> None:
    """Write the rows of ``runs``; what cannot be read costs its run alone."""
    with bounded() as database:
        database.execute(f"create table rows as {_parsed('[]')}")
        waiting: list[tuple[Found, list[str]]] = []
        for found in runs:
            waiting.append((found, _lines(place, found)))
            if sum(len(lines) for _, lines in waiting) >= _AT_ONCE:
                _insert(database, waiting)
                waiting = []
        _insert(database, waiting)
        database.execute(f"copy rows to {quoted(file)} (format parquet)")


def _parsed(lines: str) -> str:
    """SQL for the rows that are JSON in ``lines``, a list of SQL."""
    structure = {
        "table_name": "VARCHAR",
        "place": "BIGINT",
        **{column.name: column.type for column in OF_RUN},
        **{table.name: {c.name: _type(c) for c in table.own} for table in TABLES},
    }
    return (
        f"select unnest(from_json_strict(line, {quoted(json.dumps(structure))})) "
        f"from (select unnest({lines}::VARCHAR[]) as line)"
    )


def _type(column: Column) -> object:
    """As ``from_json`` is told it. JSON is kept as it was made, a text."""
    kind = {"JSON": "VARCHAR"}.get(column.type, column.type)
    return [kind.removesuffix("[]")] if kind.endswith("[]") else kind


def _insert(
    database: DuckDBPyConnection, runs: Sequence[tuple[Found, Sequence[str]]]
) -> None:
    """All at once; one by one if one of them has what cannot be stored."""
    import duckdb  # noqa: PLC0415 - as above

    lines = [line for _, of_run in runs for line in of_run]
    try:
        database.execute(f"insert into rows by name {_parsed('?')}", [lines])
    except (duckdb.ConversionException, duckdb.InvalidInputException) as error:
        for found, of_run in runs:
            alone = of_run if len(runs) > 1 else [_no_figure(found, error)]
            _insert(database, [(found, alone)])


def _lines(place: Place, found: Found) -> list[str]:
    """JSON of the run's rows, or of the one that says why it was left out."""
    with place.fetched(found.path) as directory:
        try:
            source = read_source(directory)
        except InputError as error:
            return [_about(found, error.message.replace(str(directory), ITS_PATH))]
    try:
        rows = rows_of(source)
    except (OverflowError, ValueError) as error:
        return [_no_figure(found, error)]
    return [
        _about(found),
        *(
            _line(found, name, at, row, source)
            for name, of_table in rows.items()
            for at, row in enumerate(of_table)
        ),
    ]


def _about(found: Found, notice: str = "") -> str:
    """A row of the table of runs."""
    row: Row = {"_fingerprint": found.fingerprint, "_notice": notice}
    return _line(found, RUNS.name, 0, row)


def _no_figure(found: Found, error: Exception) -> str:
    told = " ".join(str(error).split())
    return _about(found, f"{ITS_PATH} holds what is no figure: {told}")


def _line(
    found: Found, table: str, place: int, row: Row, source: Source | None = None
) -> str:
    if row.keys() != _NAMES[table]:
        raise AssertionError(f"{table}: {row.keys() ^ _NAMES[table]}")
    told = {
        "table_name": table,
        "run": found.key,
        "campaign": source and source.name,
        "created_at": source and moment(source.created_at),
        "place": place,
        **dict.fromkeys(_NAMES),
        table: row,
    }
    return json.dumps(_shown(told), default=datetime.isoformat)


def _shown(value: object) -> object:
    """Texts of files as they may be shown, wherever they go from here."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {key: _shown(each) for key, each in value.items()}
    return [_shown(each) for each in value] if isinstance(value, list) else value


def _asked_for() -> Iterator[Found]:
    """Those on standard input, until the process that listed them is gone."""
    asked_by = os.getppid()
    for told in json.load(sys.stdin):
        if os.getppid() != asked_by:
            raise SetupError("nobody waits for these runs any more")
        yield Found(*told)


def main() -> None:
    """Read what standard input lists of a place into a file; both are arguments."""
    gc.disable()  # a tenth of the time, and there are no circles to be found
    try:
        read_into(Path(sys.argv[2]), place_of(sys.argv[1]), _asked_for())
    except DutperfError as error:
        sys.exit(f"error: {error}")


# Where runs are: below a directory, or at an address that fsspec knows.
#
# A place lists its runs without reading one: which there are, and a fingerprint of the
# files of each, which is another one as soon as they are.


Notify = Callable[[str], None]
"""Takes what a user should know, a sentence."""

INDEX = ".dutperf-index"
"""The directory that an index lives in; no runs are looked for there."""
UNSETTLED = ""
"""The fingerprint of files that may change without one's seeing it."""
_TICK_NS = 2_000_000_000
"""Two changes of a file within a file system's tick may look like one."""
_ENVIRONMENTS, _JSON = ENVIRONMENT.split(".")


@dataclass(frozen=True)
class Found:
    """A run that is there.

    Attributes:
        key: its directory below the place, as it may be shown; ``.``: the place itself.
        path: the same as it is.
        fingerprint: of what is read of it.
    """

    key: str
    path: str
    fingerprint: str


def unheard(_notice: str) -> None:
    """Nobody is told."""


def place_of(name: str) -> Place:
    """A directory, or an address as ``s3://bucket/runs``.

    Raises:
        InputError: there is nothing, or no package that reads such addresses.
    """
    return RemotePlace(name) if "://" in name else LocalPlace(name)


def _read_of(names: Collection[str]) -> set[str]:
    """Files of a directory that its run is read from; none: it has no run.

    The journal is read where there are no results.
    """
    if RESULTS not in names and JOURNAL not in names:
        return set()
    return {
        name
        for name in names
        if name in (RESULTS, CAMPAIGN)
        or (name == JOURNAL and RESULTS not in names)
        or (name.startswith(_ENVIRONMENTS) and name.endswith(_JSON))
    }


class LocalPlace:
    """A directory, looked through at any depth."""

    def __init__(self, name: str) -> None:
        self.root = Path(name)
        self.name = str(self.root)
        if not self.root.is_dir():
            raise InputError(
                f"{self.root} is no directory", "give one that results are stored in"
            )

    def runs(self, notify: Notify) -> dict[str, Found]:
        """Those that are there; links to directories are not followed."""
        found: dict[str, Found] = {}
        settled_before = time.time_ns() - _TICK_NS
        below = ["."]
        while below:
            path = below.pop()
            try:
                files, directories = _looked_into(self.root / path)
            except OSError as error:
                notify(f"left out: cannot read {error.filename}: {error.strerror}")
                continue
            below += [os.path.normpath(f"{path}/{name}") for name in directories]
            if not (names := _read_of(files)):
                continue
            fingerprint = _fingerprint([files[n] for n in names], settled_before)
            run = Found(visible(path), path, fingerprint)
            if found.setdefault(run.key, run) is not run:
                notify(f"left out: two directories look like {self.root / run.key}")
        return found

    @contextmanager
    def fetched(self, path: str) -> Iterator[Path]:
        """They are there."""
        yield self.root / path


def _looked_into(directory: Path) -> tuple[dict[str, os.DirEntry[str]], list[str]]:
    """Its files by name, and directories that may have runs."""
    with os.scandir(directory) as entries:
        found = list(entries)
    files = {entry.name: entry for entry in found if not entry.is_dir()}
    below = [e.name for e in found if e.is_dir(follow_symlinks=False)]
    return files, [name for name in below if name != INDEX]


def _fingerprint(files: Iterable[os.DirEntry[str]], settled_before: int) -> str:
    told = []
    for entry in files:
        try:
            stat = entry.stat()
        except OSError:  # a link to nothing, or gone meanwhile
            return UNSETTLED
        if stat.st_ctime_ns > settled_before:
            return UNSETTLED
        told.append(f"{entry.name}\0{stat.st_size}\0{stat.st_mtime_ns}")
    return _hashed(told)


def _hashed(told: list[str]) -> str:
    text = "\0".join(sorted(told)).encode("utf-8", "surrogateescape")
    return hashlib.blake2b(text, digest_size=12).hexdigest()


class RemotePlace:
    """What fsspec finds at an address, fetched file by file to be read."""

    def __init__(self, name: str) -> None:
        self.name = name.rstrip("/")
        try:
            from fsspec.core import url_to_fs  # noqa: PLC0415 - only who asks needs it
        except ImportError as error:
            raise InputError(
                f"{name}: addresses are read by the package fsspec, which is not there",
                "pip install fsspec, and the package for this kind of address",
            ) from error
        try:
            self._system, self._root = url_to_fs(self.name)
            there = self._system.isdir(self._root)
        except (ImportError, OSError, ValueError) as error:
            raise InputError(
                f"cannot read {name}: {error}", "fsspec says what it lacks for that"
            ) from error
        if not there:
            raise InputError(
                f"{name} is no directory", "give one that results are stored in"
            )

    def runs(self, _notify: Notify) -> dict[str, Found]:
        """Those that are there; a file is another one if anything told of it is."""
        of_run: dict[str, dict[str, str]] = {}
        try:
            listed = self._system.find(self._root, detail=True)
        except OSError as error:
            raise InputError(f"cannot read {self.name}: {error}") from error
        for path, told in listed.items():
            directory, _, name = path.rpartition("/")
            below = directory[len(self._root) :].strip("/") or "."
            if INDEX not in below.split("/"):
                of_run.setdefault(below, {})[name] = repr(sorted(told.items(), key=str))
        found = {}
        for below, files in of_run.items():
            if names := _read_of(files):
                fingerprint = _hashed([f"{name}\0{files[name]}" for name in names])
                found[visible(below)] = Found(visible(below), below, fingerprint)
        return found

    @contextmanager
    def fetched(self, path: str) -> Iterator[Path]:
        """Copies, in a directory that is gone afterwards."""
        with tempfile.TemporaryDirectory(prefix="dutperf-run-") as copy:
            there = self._root if path == "." else f"{self._root}/{path}"
            try:
                names = [
                    each.rstrip("/").rpartition("/")[2]
                    for each in self._system.ls(there, detail=False)
                ]
                for name in _read_of(names):
                    self._system.get_file(f"{there}/{name}", str(Path(copy) / name))
            except OSError as error:
                raise InputError(f"cannot read {self.name}/{path}: {error}") from error
            yield Path(copy)


Place = LocalPlace | RemotePlace
"""``name`` as the user gave it; ``runs`` by key; ``fetched``: a directory with one."""
