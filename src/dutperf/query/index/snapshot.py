"""What indexes have at one moment: the files of each table, as SQL."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dutperf.errors import InputError, StorageError
from dutperf.query.columns import View
from dutperf.query.index.bounded import bounded
from dutperf.query.index.files import Contents, is_ours
from dutperf.query.index.places import INDEX, Found, LocalPlace, Place, place_of
from dutperf.query.index.reading import ITS_PATH, Outcome, quoted
from dutperf.query.index.tables import stored_columns
from dutperf.query.index.updating import Updating, is_due, reading, usable
from dutperf.query.runs import Notify
from dutperf.results.directory import RESULTS
from dutperf.results.journal import JOURNAL
from dutperf.results.storage import storing
from dutperf.visible import visible

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True)
class _Part:
    """The index of one place, and which of its runs another place has already."""

    place: Place
    home: Path
    contents: Contents
    without: tuple[str, ...] = ()

    def rows(self, table: View[Any], names: Sequence[str]) -> str:
        """SQL; empty: it has none. ``run`` is the directory as the user calls it."""
        files = self.contents.tables[table.name]
        if not files:
            return ""
        paths = ", ".join(quoted(str(self.home / record.name)) for record in files)
        name = visible(self.place.name)
        below = quoted("" if name == "." else f"{name.rstrip('/')}/")
        rows = (
            f"select case when run = '.' then {quoted(name)} else {below} || run end "
            f"as run, {', '.join(names[1:])} "
            f"from read_parquet([{paths}], hive_partitioning = false)"
        )
        conditions = [
            f"run <> {quoted(key)} and not starts_with(run, {quoted(f'{key}/')})"
            for key in self.without
        ]
        return " where ".join(
            [rows, *([" and ".join(conditions)] if conditions else [])]
        )


class Snapshot:
    """The rows of all runs; nobody removes its files before ``close``."""

    def __init__(self, parts: Sequence[_Part], held: ExitStack) -> None:
        self._parts = parts
        self._held = held

    def close(self) -> None:
        """Let go of the files."""
        self._held.close()

    @property
    def directories(self) -> list[str]:
        """That it reads from."""
        return [f"{part.home}/" for part in self._parts]

    def rows(self, table: View[Any], *, placed: bool = False) -> str:
        """SQL that gives a table's rows, of a testbed's month in the order of time.

        ``placed``: the column with their places in their runs, too.
        """
        columns = stored_columns(table)[: None if placed else -1]
        rows = [part.rows(table, [name for name, _ in columns]) for part in self._parts]
        none = ", ".join(f"null::{kind} as {name}" for name, kind in columns)
        return " union all ".join(filter(None, rows)) or f"select {none} where false"


def indexed(names: Sequence[str], notify: Notify) -> Snapshot:
    """The runs in or below each of ``names``, directories or addresses, once.

    Args:
        names: as the user gave them.
        notify: is told what is left out, and where the index is if not as usual.

    Raises:
        InputError: there is no such place, or no run in it that can be read.
        StorageError: no index can be kept, not even for the moment.
    """
    places = [place_of(name) for name in names]
    found, parts, held = False, [], ExitStack()
    with ExitStack() as until_whole:
        until_whole.push(held)
        for at, place in enumerate(places):
            without = _had(place, places[:at])
            listed = place.runs(notify) if without is not None else {}
            if without is None or not listed:
                continue
            part, outcomes = _part(place, listed, notify, held)
            found |= any(not outcome.notice for outcome in outcomes.values())
            parts.append(replace(part, without=without))
        if not found:
            raise InputError(
                f"no results in {', '.join(names)}",
                f"give a directory that has runs in it: {RESULTS} or {JOURNAL}",
            )
        until_whole.pop_all()
    return Snapshot(parts, held)


def _had(place: Place, before: Sequence[Place]) -> tuple[str, ...] | None:
    """What of ``place`` others have; None: all of it."""
    if not isinstance(place, LocalPlace):
        return None if place.name in [other.name for other in before] else ()
    own, keys = place.root.resolve(), []
    for other in before:
        if isinstance(other, LocalPlace):
            root = other.root.resolve()
            if own.is_relative_to(root):
                return None
            if root.is_relative_to(own):
                keys.append(visible(str(root.relative_to(own))))
    return tuple(keys)


def _part(
    place: Place, listed: dict[str, Found], notify: Notify, held: ExitStack
) -> tuple[_Part, dict[str, Outcome]]:
    """The index of a place in the first home where one is, or can be kept."""
    with bounded() as database:
        for home in _homes(place):
            try:
                return _at(home, place, listed, database, notify, held)
            except StorageError as error:
                notify(f"no index in {home}: {error.message}")
        home = Path(held.enter_context(_passing()))
        if _homes(place):
            notify(f"the index of {place.name} is made for this time only")
        return _at(home, place, listed, database, notify, held)


def _at(
    home: Path,
    place: Place,
    listed: dict[str, Found],
    database: DuckDBPyConnection,
    notify: Notify,
    held: ExitStack,
) -> tuple[_Part, dict[str, Outcome]]:
    """The index at ``home``, up to date; what was left out is told."""
    with ExitStack() as own:
        with storing(home):
            if not is_ours(home):
                raise StorageError(
                    f"{home} is a link, or has a link or FIFO in it, or is another "
                    "user's",
                    "remove it",
                )
            there = home.exists()
        if there:
            _read(home, own)
        contents, outcomes = usable(database, home, _unheard)
        if (
            contents is None
            or outcomes.keys() != listed.keys()
            or any(is_due(found, outcomes) for found in listed.values())
        ):
            own.close()
            Updating(home, place, notify).up_to_date(listed)
            _read(home, own)
            contents, outcomes = usable(database, home, notify)
        if contents is None:
            raise StorageError(f"{home} was removed meanwhile", "ask again")
        held.push(own.pop_all())
    for outcome in outcomes.values():
        if outcome.notice:
            told = outcome.notice.replace(ITS_PATH, _called(place, outcome.key))
            notify(f"left out: {told}")
    return _Part(place, home, contents), outcomes


def _called(place: Place, key: str) -> str:
    """A run's directory as the user calls it."""
    if "." in (place.name, key):
        return key if place.name == "." else place.name
    return f"{place.name.rstrip('/')}/{key}"


def _read(home: Path, held: ExitStack) -> None:
    with storing(home):
        held.enter_context(reading(home))


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


def _passing() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="dutperf-index-")


def _unheard(_notice: str) -> None:
    """It is told when the index is made anew."""
