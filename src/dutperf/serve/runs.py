"""The runs below a directory: found, put in order, and summed up; nothing is written.

What is asked for by name is a real directory below it, and all that is read of it are
real files: no link leads a reader elsewhere.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Literal

from dutperf.charts.cells import CellView
from dutperf.errors import DutperfError, InputError, defect
from dutperf.plain_files import read_plain
from dutperf.report.page import REPORT, cells_of, render
from dutperf.report.source import read_source
from dutperf.report.summary import headline
from dutperf.results import JournalFollower, is_running

RESULTS, JOURNAL = "results.json", "journal.jsonl"
_DEEPEST = 6
"""Directories below the one that is served in which runs are looked for."""
_LOOK_S = 3.0
_TICK_NS = 2_000_000_000
"""No file system's times are coarser."""
_SUMMARIES = 2048
"""So many are kept; one is some kilobytes."""
_CELLS_TOLD = 3

State = Literal["running", "complete", "incomplete", "interrupted", "damaged"]
Stamp = tuple[str, int, int]
"""Name, time of change in nanoseconds and size in bytes of a file."""


@dataclass(frozen=True)
class ServedRun:
    """A directory that holds a run; ``name``: its path below the one served."""

    name: str
    path: Path

    @property
    def is_running(self) -> bool:
        """Whether it goes on at this moment."""
        return is_running(self.path)


@dataclass(frozen=True)
class MainFigure:
    """The main figure of a cell."""

    what: str
    value: str
    kind: str


@dataclass(frozen=True)
class Summary:
    """A run in a row of the list; ``why`` it is in that state, where that is told.

    ``more``: how many cells it has beside those in ``found``.
    """

    run: ServedRun
    state: State
    why: str = ""
    title: str = ""
    created_at: str = ""
    devices: tuple[str, ...] = ()
    found: tuple[MainFigure, ...] = ()
    more: int = 0

    @property
    def kind(self) -> str:
        """How the report colours it."""
        kinds = {"complete": "pass", "running": "running", "damaged": "fail"}
        return kinds.get(self.state, "invalid")


def find_run(root: Path, name: str) -> ServedRun | None:
    """The run of that name below ``root``; None: there is none."""
    try:
        # No part of the name may be a link, or lead up again.
        directory = (root / name).resolve(strict=True)
        below = directory.relative_to(root.resolve(strict=True)).as_posix()
        if below != name or not _holds_run(directory):
            return None
    except (OSError, ValueError, RuntimeError):
        return None
    return ServedRun(name, directory)


class RunList:
    """Every run below a directory, newest first, for all pages together.

    Somebody has to ask for it to be looked through, at most every ``_LOOK_S``. A run is
    read once; it is looked at again only if the directory that it is in has changed.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._looking = threading.Lock()
        self._looked_s = -math.inf
        self._seen: dict[str, _SeenDirectory] = {}
        self._runs: list[ServedRun] = []

    def runs(self) -> list[ServedRun]:
        """As they were ``_LOOK_S`` ago, or before a look that goes on; or later."""
        if self._looking.acquire(blocking=not self._seen):
            try:
                now_s = time.monotonic()
                if now_s - self._looked_s >= _LOOK_S:
                    self._look()
                    self._looked_s = now_s
            finally:
                self._looking.release()
        return self._runs

    def _look(self) -> None:
        seen = dict(self._visit(str(self._root), 0))
        if seen == self._seen:
            return
        found = [(-each.began_s, each.run) for each in seen.values() if each.run]
        found.sort(key=lambda each: (each[0], each[1].name))
        self._seen, self._runs = seen, [run for _, run in found]

    def _visit(self, path: str, depth: int) -> Iterator[tuple[str, _SeenDirectory]]:
        """It, and what is below."""
        old = self._seen.get(path)
        stamp = _stamp_of(path)
        if not stamp:
            return
        # What came in the same tick of the file system's clock left no other stamp.
        is_young = abs(time.time_ns() - stamp[1]) < _TICK_NS
        is_kept = old and old.stamp == stamp and (old.settled or not is_young)
        now = old if old and is_kept else self._read(Path(path), stamp, depth)
        yield path, now
        for below in now.below:
            known = self._seen.get(below)
            if known and known.settled and now is old:
                yield below, known
            else:
                yield from self._visit(below, depth + 1)

    def _read(self, path: Path, stamp: tuple[int, ...], depth: int) -> _SeenDirectory:
        if _holds_run(path):
            run = ServedRun(path.relative_to(self._root).as_posix(), path)
            began_s = _began(path)
            return _SeenDirectory(
                stamp, run, began_s or stamp[1] / 1e9, began_s is not None
            )
        below = () if depth == _DEEPEST else _entries(path)
        return _SeenDirectory(
            stamp,
            below=tuple(
                entry.path
                for entry in below
                if not entry.name.startswith(".")
                and entry.is_dir(follow_symlinks=False)
            ),
        )


@dataclass(frozen=True)
class _SeenDirectory:
    """A directory that holds a run, or directories.

    ``began_s``: since the epoch; ``settled``: it stays so, and the journal tells it.
    """

    stamp: tuple[int, ...]
    run: ServedRun | None = None
    began_s: float = 0.0
    settled: bool = False
    below: tuple[str, ...] = ()


def check_files(run: ServedRun) -> None:
    """Refuse a run whose files are elsewhere, or no files.

    Raises:
        InputError: one is a link, a pipe, or the like.
    """
    for entry in _entries(run.path):
        is_ours = entry.name in {RESULTS, JOURNAL, REPORT} or entry.name.endswith(
            (".json", ".yaml")
        )
        if is_ours and not entry.is_file(follow_symlinks=False):
            raise InputError(
                f"{entry.name} is not a file of its own",
                "links are not followed; put the file itself into the directory",
            )


def summary_of(run: ServedRun) -> Summary:
    """What the list tells of ``run``, whatever state it is in."""
    try:
        check_files(run)
        return _summary(run, stamps(run), running=run.is_running)
    except InputError as error:
        told: DutperfError = error
    except Exception as error:  # noqa: BLE001 - one run must not cost the whole list
        told = defect(error, None)
    return Summary(run, "damaged", why=f"{told.message}; {told.hint}".strip("; "))


def stamps(run: ServedRun) -> tuple[Stamp, ...]:
    """Of each file of ``run``, by name: the same as long as nothing is stored."""
    found = []
    for entry in _entries(run.path):
        with contextlib.suppress(OSError):
            known = entry.stat(follow_symlinks=False)
            found.append((entry.name, known.st_mtime_ns, known.st_size))
    return tuple(sorted(found))


@lru_cache(maxsize=_SUMMARIES)
def _summary(run: ServedRun, _stamps: tuple[Stamp, ...], *, running: bool) -> Summary:
    """Read again only if a file has changed: ``_stamps``."""
    source = read_source(run.path, trials=False)
    why = "" if running else source.interruption
    if running:
        state: State = "running"
    elif source.failures:
        state = "incomplete"
        why = "; ".join(dict.fromkeys(failure.message for failure in source.failures))
    else:
        state = "interrupted" if source.interruption else "complete"
    cells = cells_of(source)
    told = [_found(cell) for cell in _first_of_each(cells)][:_CELLS_TOLD]
    return Summary(
        run,
        state,
        why,
        source.name,
        source.created_at,
        tuple(testbed.words for testbed in source.testbeds if testbed.words),
        tuple(told),
        len(cells) - len(told),
    )


def _first_of_each(cells: list[CellView]) -> Iterator[CellView]:
    """One cell of each procedure, with a figure if any has."""
    of_name: dict[str, list[CellView]] = {}
    for cell in cells:
        of_name.setdefault(cell.name, []).append(cell)
    for own in of_name.values():
        yield next((cell for cell in own if cell.measured), own[0])


def _found(cell: CellView) -> MainFigure:
    told = headline(cell)
    value = f"{told.value} {told.unit}".strip()
    return MainFigure(cell.heading, value, cell.badge.kind)


def _holds_run(directory: Path) -> bool:
    return any(os.path.lexists(directory / name) for name in (RESULTS, JOURNAL))


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    """Nothing of a directory that has gone, or that is not for us."""
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError:
        return []


def _began(directory: Path) -> float | None:
    """When a run began, seconds since the epoch; None: its journal does not tell."""
    try:
        if (directory / JOURNAL).is_file():
            told = JournalFollower(directory).header.created_at
            when = datetime.fromisoformat(told)
            return when.replace(tzinfo=when.tzinfo or UTC).timestamp()
    except (InputError, OSError, ValueError, OverflowError):
        pass  # its summary says what is wrong
    return None


def _stamp_of(directory: str) -> tuple[int, ...]:
    """Inode and time of change in nanoseconds, and the journal's; empty: it is gone."""
    told: list[int] = []
    for path in (directory, f"{directory}/{JOURNAL}"):
        with contextlib.suppress(OSError):
            known = os.lstat(path)
            told += known.st_ino, known.st_mtime_ns, known.st_size
    return tuple(told)


# The report of a run: the stored one, or one made of what is stored now.


_KEPT = 2
"""Each may have ten megabytes."""
_one_at_a_time = threading.Lock()


def report_of(run: ServedRun) -> str | bytes:
    """The page, stored if that shows all that is stored; else made, in memory only.

    Raises:
        InputError: there is nothing to report on, or a file is damaged.
    """
    check_files(run)
    now = stamps(run)
    changed = {name: changed_ns for name, changed_ns, _ in now}
    newest = max(changed.get(name, 0) for name in (RESULTS, JOURNAL))
    if changed.get(REPORT, -1) >= newest:
        return _stored(run)
    with _one_at_a_time:
        return _made(run, now)


def _stored(run: ServedRun) -> bytes:
    try:
        return read_plain(run.path / REPORT)
    except OSError as error:
        raise InputError(f"cannot read {REPORT}: {error.strerror}") from error


@lru_cache(maxsize=_KEPT)
def _made(run: ServedRun, _now: tuple[Stamp, ...]) -> str:
    return render(read_source(run.path))
