"""The runs below a directory: found, put in order, and summed up; nothing is written.

What is asked for by name is a real directory below it, and all that is read of it are
real files: no link leads a reader elsewhere.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Literal

from dutperf.defects import defect
from dutperf.errors import DutperfError, InputError
from dutperf.report.cells import CellView
from dutperf.report.headline import headline
from dutperf.report.page import REPORT, cells_of
from dutperf.report.source import read_source
from dutperf.results import JournalFollower, is_running

RESULTS, JOURNAL = "results.json", "journal.jsonl"
_DEEPEST = 6
"""Directories below the one that is served in which runs are looked for."""
_SUMMARIES = 2048
"""So many are kept; one is some kilobytes."""
_CELLS_TOLD = 3

State = Literal["running", "complete", "incomplete", "interrupted", "damaged"]
Stamp = tuple[str, int, int]
"""Name, time of change in nanoseconds and size in bytes of a file."""


@dataclass(frozen=True)
class Run:
    """A directory that holds a run; ``name``: its path below the one served."""

    name: str
    path: Path

    @property
    def is_running(self) -> bool:
        """Whether it goes on at this moment."""
        return is_running(self.path)


@dataclass(frozen=True)
class Found:
    """The main figure of a cell."""

    what: str
    value: str
    kind: str


@dataclass(frozen=True)
class Summary:
    """A run in a row of the list; ``why`` it is in that state, where that is told.

    ``more``: how many cells it has beside those in ``found``.
    """

    run: Run
    state: State
    why: str = ""
    title: str = ""
    created_at: str = ""
    devices: tuple[str, ...] = ()
    found: tuple[Found, ...] = ()
    more: int = 0

    @property
    def kind(self) -> str:
        """How the report colours it."""
        kinds = {"complete": "pass", "running": "running", "damaged": "fail"}
        return kinds.get(self.state, "invalid")


def find_run(root: Path, name: str) -> Run | None:
    """The run of that name below ``root``; None: there is none."""
    try:
        # No part of the name may be a link, or lead up again.
        directory = (root / name).resolve(strict=True)
        below = directory.relative_to(root.resolve(strict=True)).as_posix()
        if below != name or not _holds_run(directory):
            return None
    except (OSError, ValueError, RuntimeError):
        return None
    return Run(name, directory)


def all_runs(root: Path) -> list[Run]:
    """Every run below ``root``, newest first."""
    found = [Run(path.relative_to(root).as_posix(), path) for path in _walk(root)]
    return sorted(found, key=lambda run: (-_began(run.path), run.name))


def check_files(run: Run) -> None:
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


def summary_of(run: Run) -> Summary:
    """What the list tells of ``run``, whatever state it is in."""
    try:
        check_files(run)
        return _summary(run, stamps(run), running=run.is_running)
    except InputError as error:
        told: DutperfError = error
    except Exception as error:  # noqa: BLE001 - one run must not cost the whole list
        told = defect(error, None)
    return Summary(run, "damaged", why=f"{told.message}; {told.hint}".strip("; "))


def stamps(run: Run) -> tuple[Stamp, ...]:
    """Of each file of ``run``, by name: the same as long as nothing is stored."""
    found = []
    for entry in _entries(run.path):
        with contextlib.suppress(OSError):
            known = entry.stat(follow_symlinks=False)
            found.append((entry.name, known.st_mtime_ns, known.st_size))
    return tuple(sorted(found))


@lru_cache(maxsize=_SUMMARIES)
def _summary(run: Run, _stamps: tuple[Stamp, ...], *, running: bool) -> Summary:
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


def _found(cell: CellView) -> Found:
    told = headline(cell)
    value = f"{told.value} {told.unit}".strip()
    return Found(cell.heading, value, cell.badge.kind)


def _walk(directory: Path, depth: int = 0) -> Iterator[Path]:
    if _holds_run(directory):
        yield directory
        return
    if depth == _DEEPEST:
        return
    for entry in _entries(directory):
        if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), depth + 1)


def _holds_run(directory: Path) -> bool:
    return any(os.path.lexists(directory / name) for name in (RESULTS, JOURNAL))


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    """Nothing of a directory that has gone, or that is not for us."""
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError:
        return []


def _began(directory: Path) -> float:
    """When a run began, seconds since the epoch; else when its directory changed."""
    try:
        if (directory / JOURNAL).is_file():
            told = JournalFollower(directory).header.created_at
            when = datetime.fromisoformat(told)
            return when.replace(tzinfo=when.tzinfo or UTC).timestamp()
    except (InputError, OSError, ValueError, OverflowError):
        pass  # its summary says what is wrong
    try:
        return directory.stat().st_mtime
    except OSError:
        return 0.0
