"""The index: what is known of all runs below a directory, read once (docs/query.md).

It is one Parquet file beside the runs, which DuckDB writes and reads::

    DIR/.dutperf-index/runs-DIGEST.parquet
    DIR/.dutperf-index/lock                      held by who writes

The digest is of the file, of who wrote it and of the directory that it is in: what is
damaged, of another version or from elsewhere has another one, and is made anew. Who
asks copies the file while its digest is made, so it may be replaced at any time; that
is done in one step.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path, PurePath

from dutperf import __version__, busy
from dutperf.errors import InputError, StorageError
from dutperf.query.reader import (
    INDEX,
    ITS_PATH,
    UNSETTLED,
    Found,
    LocalPlace,
    Notify,
    Place,
    bounded,
    place_of,
    quoted,
    read_all,
    unheard,
)
from dutperf.query.views import OF_RUN, RUNS, TABLES, View
from dutperf.results.directory import RESULTS
from dutperf.results.journal import JOURNAL
from dutperf.results.storage import storing, write_atomically
from dutperf.visible import visible

_OURS = re.compile(
    r"runs-[0-9a-f]{32}\.parquet|\.runs-[0-9a-f]{32}\.parquet\.[0-9a-f]{16}\.new"
)
"""An index, or what is left of one that was being written by who was killed."""
_NO_LINK = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_PIECE = 1 << 20
_ROUND = 5000
"""Runs that are read before they are kept."""
_MANY = 500
"""Runs that take so long to be read that it is told."""


def rows_in(files: Mapping[str, Path], table: View, *, hidden: bool = False) -> str:
    """SQL that gives a table's rows, of each of the ``files`` in the order of time.

    Args:
        files: by the names of the places, as the user calls them.
        table: which one.
        hidden: with the columns that SQL does not see.
    """
    own = [c for c in table.own if hidden or c in table.columns]
    names = [
        *(column.name for column in OF_RUN[1:]),
        *(f"{table.name}.{c.name}::{c.type} as {c.name}" for c in own),
        *(["place"] if hidden else []),
    ]
    selects = []
    for place, file in files.items():
        name = visible(place)
        below = "" if name == "." else f"{name.rstrip('/')}/"
        selects.append(
            f"select case when run = '.' then {quoted(name)} else {quoted(below)} || "
            f"run end as run, {', '.join(names)} from read_parquet({quoted(file)}) "
            f"where table_name = {quoted(table.name)}"
        )
    return " union all ".join(selects)


def indexed(names: Sequence[str], notify: Notify, into: Path) -> dict[str, Path]:
    """Files with the runs in or below ``names``, directories or addresses; each once.

    Args:
        names: as the user gave them.
        notify: is told what is left out, and where the index is if not as usual.
        into: a directory of the caller's for the files.

    Raises:
        InputError: there is no such place, or no run in it that can be read.
        StorageError: there is no room for the files.
    """
    files: dict[str, Path] = {}
    found = False
    for place in _apart([place_of(name) for name in names]):
        if listed := place.runs(notify):
            file = files[place.name] = into / f"{len(files)}.parquet"
            _make(file, place, listed, notify)
    if files:
        with bounded() as database:
            sql = f"select run, _notice from ({rows_in(files, RUNS, hidden=True)})"
            for run, notice in database.execute(sql).fetchall():
                found |= not notice
                if notice:
                    notify(f"left out: {notice.replace(ITS_PATH, run)}")
    if not found:
        raise InputError(
            f"no results in {', '.join(names)}",
            f"give a directory that has runs in it: {RESULTS} or {JOURNAL}",
        )
    return files


def _apart(places: Sequence[Place]) -> list[Place]:
    """Without those that are in another one, or the same as one before."""
    roots = [
        each.root.resolve() if isinstance(each, LocalPlace) else PurePath(each.name)
        for each in places
    ]
    return [
        place
        for at, place in enumerate(places)
        if roots[at] not in roots[:at] and not {*roots[at].parents} & {*roots}
    ]


def _make(file: Path, place: Place, listed: dict[str, Found], notify: Notify) -> None:
    """Make ``file`` have the rows of all that is ``listed``.

    Of the index in the first home that can have one; it is brought up to date there.
    """
    homes = _homes(place)
    for path in homes:
        try:
            with _opened(path) as home:
                if not _is_current(home, file, listed, unheard):
                    with home.turn(notify):
                        # Who had it before may have done the work.
                        if not _is_current(home, file, listed, notify):
                            for _ in _rounds(file, place, listed, notify):
                                home.keep(file)
                return
        except StorageError as error:
            notify(f"no index in {path}: {error.message}")
    if homes:
        notify(f"the index of {place.name} is made for this time only")
    for _ in _rounds(file, place, listed, notify):
        pass


def _homes(place: Place) -> list[Path]:
    """Beside the runs, else in the user's cache; a run alone needs none."""
    user = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    if not isinstance(place, LocalPlace):
        return [_in(Path(user), place.name)]
    if (place.root / RESULTS).exists() or (place.root / JOURNAL).exists():
        return []
    return [place.root / INDEX, _in(Path(user), str(place.root.resolve()))]


def _in(cache: Path, name: str) -> Path:
    own = hashlib.blake2b(os.fsencode(name), digest_size=8).hexdigest()
    return cache / "dutperf" / f"index-{own}"


@contextmanager
def _opened(path: Path) -> Iterator[_Home]:
    """A home, which is made.

    Raises:
        StorageError: it cannot be, is a link, or is another user's.
    """
    if path.is_symlink():
        raise StorageError(f"{path} is a link", "remove it")
    with storing(path):
        with suppress(FileExistsError):  # what is no directory is not opened as one
            path.mkdir(parents=True, exist_ok=True)
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK)
    try:
        if os.fstat(folder).st_uid != os.geteuid():
            raise StorageError(f"{path} is another user's", "remove it")
        yield _Home(path, folder)
    finally:
        os.close(folder)


@dataclass(frozen=True)
class _Home:
    """A directory that an index is kept in, opened once: nobody exchanges it then."""

    path: Path
    folder: int

    def files(self) -> list[str]:
        """Each that is an index or was to become one; one that counts is enough."""
        with os.scandir(self.folder) as entries:
            return [
                entry.name
                for entry in entries
                if _OURS.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
            ]

    def copied(self, name: str, file: Path) -> bool:
        """Copy ``name`` to ``file``, if it is what its name says."""
        copy, digest = file.with_suffix(".copy"), self._digest()
        try:
            index = os.open(name, os.O_RDONLY | _NO_LINK, dir_fd=self.folder)
        except FileNotFoundError:  # replaced meanwhile
            return False
        with os.fdopen(index, "rb") as source, storing(copy), copy.open("wb") as into:
            while piece := source.read(_PIECE):
                digest.update(piece)
                into.write(piece)
        if name != _name(digest):
            return False
        copy.replace(file)
        return True

    @contextmanager
    def turn(self, notify: Notify) -> Iterator[None]:
        """Within, no other process brings the index up to date: it waits."""
        flags = os.O_RDWR | os.O_CREAT | _NO_LINK
        with storing(self.path):
            lock = os.open("lock", flags, 0o644, dir_fd=self.folder)
        try:
            busy.take_turn(lock, self.path / "lock", tell=notify)
            yield
        finally:
            os.close(lock)

    def keep(self, file: Path) -> None:
        """From now on ``file`` is the index; what was there before is removed."""
        digest, inside = self._digest(), Path(f"/proc/self/fd/{self.folder}")
        with file.open("rb") as source:
            while piece := source.read(_PIECE):
                digest.update(piece)
            source.seek(0)
            pieces = iter(partial(source.read, _PIECE), b"")
            try:
                write_atomically(inside / _name(digest), "", more=pieces)
            except StorageError as error:
                told = error.message.replace(str(inside), str(self.path))
                raise StorageError(told, error.hint) from error
        for other in self.files():
            if other != _name(digest):
                with suppress(FileNotFoundError):
                    os.unlink(other, dir_fd=self.folder)

    def _digest(self) -> hashlib.blake2b:
        """Of who writes, and where: what others wrote has another one."""
        tables = [asdict(table) for table in TABLES]
        told = [__version__, tables, os.fstat(self.folder).st_ino]
        return hashlib.blake2b(json.dumps(told).encode(), digest_size=16)


def _name(digest: hashlib.blake2b) -> str:
    return f"runs-{digest.hexdigest()}.parquet"


def _is_current(
    home: _Home, file: Path, listed: dict[str, Found], notify: Notify
) -> bool:
    """Copy the index, if there is one, to ``file``; whether it has all ``listed``."""
    names = home.files()
    if any(home.copied(name, file) for name in names):
        known = _known(file)
        return known.keys() == listed.keys() and not _due(known, listed)
    if names:
        notify(
            f"the index in {home.path} is made anew: it is damaged, of another "
            "version, or was made elsewhere"
        )
    return False


def _known(file: Path) -> dict[str, str]:
    """The runs in ``file``, and of each the fingerprint."""
    if not file.exists():
        return {}
    with bounded() as database:
        rows = database.execute(
            f"select run, {RUNS.name}._fingerprint from read_parquet({quoted(file)}) "
            f"where table_name = {quoted(RUNS.name)}"
        )
        return dict(rows.fetchall())


def _due(known: dict[str, str], listed: dict[str, Found]) -> list[str]:
    """Runs that have to be read."""
    return sorted(
        key
        for key, found in listed.items()
        if found.fingerprint == UNSETTLED or found.fingerprint != known.get(key)
    )


def _rounds(
    file: Path, place: Place, listed: dict[str, Found], notify: Notify
) -> Iterator[None]:
    """Bring ``file`` up to date; after each step it has what is read so far."""
    due = _due(_known(file), listed)
    if len(due) > _MANY:
        notify(f"reading {len(due):,} runs of {place.name} once, for the index")
    for at in range(0, max(len(due), 1), _ROUND):
        runs = [listed[key] for key in due[at : at + _ROUND]]
        with tempfile.TemporaryDirectory(dir=file.parent) as staging:
            parts = read_all(place, runs, Path(staging)) if runs else []
            _join(file, listed.keys() - set(due[at:]), parts)
        yield
        if at + _ROUND < len(due):
            notify(f"{at + _ROUND:,} of {len(due):,} runs are read and kept")


def _join(file: Path, keep: Collection[str], parts: Sequence[Path]) -> None:
    """Make ``file`` have the rows of the runs to ``keep``, and those of ``parts``."""
    new, sources = file.with_suffix(".new"), []
    if file.exists():
        sources.append(f"from read_parquet({quoted(file)}) semi join kept using (run)")
    sources += [f"from read_parquet({quoted(part)})" for part in parts]
    of_run = ", ".join(column.name for column in OF_RUN)
    tables = [
        f"(select table_name, {of_run}, place, {table.name} from rows "
        f"where table_name = {quoted(table.name)} order by created_at, run, place)"
        for table in TABLES
    ]
    with bounded() as database:
        database.execute(
            "create table kept as select unnest(?::VARCHAR[]) as run", [list(keep)]
        )
        database.execute(f"create view rows as {' union all by name '.join(sources)}")
        database.execute(
            f"copy ({' union all by name '.join(tables)}) to {quoted(new)} "
            "(format parquet, compression zstd)"
        )
    new.replace(file)
