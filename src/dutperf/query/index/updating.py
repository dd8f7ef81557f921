"""An index brought up to date: what is new or has changed is read, what is gone goes.

The rows of a partition are written anew with each of its runs: a testbed's month is one
file. Nothing counts before ``index.json`` names it: whoever is killed, or asks in
between, finds the index as it was. A long reading is kept round by round.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dutperf import busy
from dutperf.errors import StorageError
from dutperf.query.columns import View
from dutperf.query.index.bounded import bounded
from dutperf.query.index.files import (
    Contents,
    FileRecord,
    UnusableError,
    load,
    record_of,
    save,
    stored_outcomes,
    sweep,
    write_outcomes,
)
from dutperf.query.index.places import UNSETTLED, Found, Place
from dutperf.query.index.reading import Outcome, quoted
from dutperf.query.index.tables import MONTH, PLACE, TABLES, TESTBED, stored_columns
from dutperf.query.index.workers import read_all
from dutperf.query.runs import Notify
from dutperf.results.storage import storing

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_STAGING = re.compile("staging-[0-9a-f]{16}")
_NAME_BYTES = 64
_ROUND = 5000
"""Runs that are read before they are kept."""
_MANY = 500
"""Runs that take so long to be read that it is told."""


class Updating:
    """One index, by who has the right to write it at this moment."""

    def __init__(self, home: Path, place: Place, notify: Notify) -> None:
        self._home = home
        self._place = place
        self._notify = notify

    def up_to_date(self, listed: dict[str, Found]) -> Contents:
        """Bring the index to what is ``listed``.

        Raises:
            StorageError: the file system refused; what was kept before still is.
            SetupError: a process that read was killed.
        """
        import duckdb  # noqa: PLC0415 - takes a while to be loaded

        with (
            self._alone() as lock,
            self._staging(lock) as staging,
            bounded() as database,
        ):
            database.execute("set threads = 1")  # which keeps the order of rows
            try:
                return self._updated(database, listed, staging)
            except duckdb.IOException as error:  # a full disk, above all
                raise StorageError(
                    f"cannot write {self._home}: {str(error).splitlines()[0]}",
                    "free some space there",
                ) from error

    @contextmanager
    def _alone(self) -> Iterator[int]:
        """One process at a time; another one waits, and finds the work done.

        Yields the file that is locked, which has the name of the staging directory.
        """
        with storing(self._home):
            self._home.mkdir(parents=True, exist_ok=True)
            lock = os.open(
                self._home / "lock",
                os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK,
                0o644,
            )
        try:
            busy.take_turn(lock, self._home / "lock", tell=self._notify)
            yield lock
        finally:
            os.close(lock)

    @contextmanager
    def _staging(self, lock: int) -> Iterator[Path]:
        """A new directory; the one that was listed by who was killed is removed."""
        left = os.pread(lock, _NAME_BYTES, 0).decode("ascii", "replace")
        if _STAGING.fullmatch(left):
            shutil.rmtree(self._home / left, ignore_errors=True)
        staging = self._home / f"staging-{secrets.token_hex(8)}"
        with storing(self._home):
            os.ftruncate(lock, 0)
            os.pwrite(lock, staging.name.encode(), 0)
            staging.mkdir()
        try:
            yield staging
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _updated(
        self, database: DuckDBPyConnection, listed: dict[str, Found], staging: Path
    ) -> Contents:
        contents, known = usable(database, self._home, self._notify)
        due = sorted(key for key, found in listed.items() if is_due(found, known))
        gone = known.keys() - listed.keys()
        if len(due) > _MANY:
            self._notify(
                f"reading {len(due):,} runs of {self._place.name} once, for the index "
                f"in {self._home}"
            )
        at = 0
        while contents is None or at < len(due) or gone:
            keys = due[at : at + _ROUND]
            outcomes = self._read([listed[key] for key in keys], staging)
            contents = self._kept(database, contents, known, outcomes, gone, staging)
            at, gone = at + _ROUND, set()
            if at < len(due):
                self._notify(f"{at:,} of {len(due):,} runs are read and kept")
        return contents

    def _read(self, runs: Sequence[Found], staging: Path) -> list[Outcome]:
        return [
            outcome
            for outcomes in read_all(self._place, runs, staging / "rows")
            for outcome in outcomes
        ]

    def _kept(
        self,
        database: DuckDBPyConnection,
        contents: Contents | None,
        known: dict[str, Outcome],
        outcomes: Sequence[Outcome],
        gone: Collection[str],
        staging: Path,
    ) -> Contents:
        """The index with these outcomes, and without what is ``gone``."""
        token = uuid.uuid4().hex[:12]
        replaced = {*(each.key for each in outcomes), *gone} & known.keys()
        changed = [*outcomes, *(known[key] for key in replaced)]
        parts = {part for outcome in changed for part in outcome.parts}
        for key in replaced:
            del known[key]
        known |= {each.key: each for each in outcomes}
        tables = {}
        for table in TABLES:
            before = contents.tables[table.name] if contents else []
            kept = [record for record in before if record.part not in parts]
            files = [self._home / r.name for r in before if r.part in parts]
            rows = _selected(table, files, replaced)
            rows += _selected(table, [*staging.glob(f"rows/*/{table.name}.parquet")])
            kept += self._written(database, table, rows, token)
            tables[table.name] = sorted(kept, key=lambda record: record.name)
        runs = self._home / f"runs-{token}.parquet"
        write_outcomes(database, runs, known)
        contents = save(self._home, record_of(self._home, runs), tables, contents)
        shutil.rmtree(staging / "rows", ignore_errors=True)
        self._sweep(contents)
        return contents

    def _written(
        self,
        database: DuckDBPyConnection,
        table: View[Any],
        rows: Sequence[str],
        token: str,
    ) -> list[FileRecord]:
        """The files of these rows, a directory for each partition."""
        place = self._home / table.name
        if not rows:
            return []
        told = database.execute(
            f"copy (select *, {MONTH} as month, {TESTBED} as testbed "
            f"from ({' union all '.join(rows)}) "
            f"order by month, testbed, created_at, run, {PLACE}) "
            f"to {quoted(str(place))} (format parquet, compression zstd, "
            f"partition_by (month, testbed), filename_pattern '{token}_{{i}}', "
            "overwrite_or_ignore true, return_files true)"
        ).fetchall()
        written = [Path(name) for _, names in told for name in names or ()]
        return [
            record_of(self._home, path, str(path.parent.relative_to(place)))
            for path in written
        ]

    def _sweep(self, contents: Contents) -> None:
        """Unless somebody reads: what they read may not count any more."""
        with storing(self._home), reading(self._home, fcntl.LOCK_EX) as alone:
            if alone:
                sweep(self._home, contents)


@contextmanager
def reading(home: Path, kind: int = fcntl.LOCK_SH) -> Iterator[bool]:
    """Within, no file of the index is removed by others; whether nobody minds.

    With LOCK_EX nobody reads: if somebody does, it is not waited for.
    """
    flags = os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    lock = os.open(home / "readers", flags, 0o644)
    try:
        if kind == fcntl.LOCK_SH:
            busy.take_turn(lock, home / "readers", kind)
        else:
            fcntl.flock(lock, kind | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(lock)


def usable(
    database: DuckDBPyConnection, home: Path, notify: Notify
) -> tuple[Contents | None, dict[str, Outcome]]:
    """What the index has, and of which runs; an unusable one has nothing, and is told.

    Raises:
        StorageError: it cannot be read.
    """
    import duckdb  # noqa: PLC0415 - as above

    try:
        with storing(home):
            contents = load(home)
        return contents, stored_outcomes(database, home, contents) if contents else {}
    except (UnusableError, duckdb.Error) as error:
        notify(f"the index in {home} is made anew: {str(error).splitlines()[0]}")
        return None, {}


def is_due(found: Found, known: dict[str, Outcome]) -> bool:
    """Whether a run has to be read."""
    before = known.get(found.key)
    same = before and before.fingerprint == found.fingerprint
    return not same or found.fingerprint == UNSETTLED


def _selected(
    table: View[Any], files: Sequence[Path], without: Collection[str] = ()
) -> list[str]:
    """SQL for the rows in some files, if there are any."""
    if not files:
        return []
    names = ", ".join(name for name, _ in stored_columns(table))
    places = ", ".join(quoted(str(path)) for path in files)
    rows = f"select {names} from read_parquet([{places}], hive_partitioning = false)"
    if without:
        rows += f" where run not in ({', '.join(map(quoted, without))})"
    return [rows]
