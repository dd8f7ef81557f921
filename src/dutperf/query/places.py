"""Where runs are: below a directory, or at an address that fsspec knows.

A place lists its runs without reading one: which there are, and a fingerprint of the
files of each, which is another one as soon as they are.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dutperf.errors import InputError
from dutperf.results.directory import CAMPAIGN, ENVIRONMENT, RESULTS
from dutperf.results.journal import JOURNAL
from dutperf.visible import visible

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
