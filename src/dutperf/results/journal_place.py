"""Where a new run begins its journal: in a directory that is its own."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path

from dutperf.errors import InputError
from dutperf.results.journal import JOURNAL, Journal, JournalHeader
from dutperf.results.storage import storing


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
