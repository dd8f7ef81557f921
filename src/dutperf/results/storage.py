"""Files that survive a crash: written whole or not at all, and on disk when we say so.

Every failure of the file system becomes a StorageError that names the file and says
what to do: the usual ones (disk full, read only, not allowed) are the user's to mend.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from dutperf import __version__
from dutperf.errors import InputError, StorageError
from dutperf.plain_files import read_plain
from dutperf.results.model import RESULTS_SCHEMA_VERSION
from dutperf.results.units import Stored

_NO_LINK = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Neither a link's target nor a FIFO's reader is written to, or waited for."""
_NEW = os.O_CREAT | os.O_EXCL
_FULL = "free some space, or give a directory on another disk"
_DENIED = "give a directory that this user may write to"
_HINTS = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: "raise the limit on file sizes (ulimit -f)",
    errno.EROFS: "the file system is mounted read only; give a directory on another",
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.ENOTDIR: "a part of the path is a file; give another directory",
    errno.ENAMETOOLONG: "give a shorter path",
    errno.ENOENT: "somebody removed it; give a directory that nobody cleans up",
    errno.ELOOP: "links are not followed; put the file itself in its place",
    errno.EIO: "the disk reports errors; see the kernel log",
}


def storage_error(error: OSError, path: Path, safe: str = "") -> StorageError:
    """What the user needs to know when ``path`` could not be written.

    Args:
        error: what the operating system said.
        path: the file or directory concerned.
        safe: which earlier data is not affected, as a clause; may be empty.
    """
    reason = os.strerror(error.errno) if error.errno else str(error)
    hint = _HINTS.get(error.errno or 0, "give another results directory")
    # What was removed is not safe, whatever was in it.
    kept = f"; {safe}" if safe and error.errno != errno.ENOENT else ""
    return StorageError(f"cannot write {path}: {reason}{kept}", hint)


@contextmanager
def storing(path: Path, safe: str = "") -> Iterator[None]:
    """Turns an OSError inside into the StorageError of ``path``.

    FileExistsError passes: who else has the name is for the caller to judge.
    """
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        raise storage_error(error, path, safe) from error


def write_atomically(
    path: Path, text: str, safe: str = "", *, more: Iterable[bytes] = ()
) -> None:
    """Replace ``path`` by ``text``: a reader sees the old content or all of the new.

    ``more`` comes behind it, piece by piece.

    Raises:
        StorageError: the file system refused; an old content is still there.
    """
    temporary = unfinished(path).name
    with storing(path, safe), _opened(path.parent) as folder:
        try:
            _write_synced(temporary, folder, text.encode(), _NEW, more)
            os.replace(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:  # an interrupt, too
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            raise
        os.fsync(folder)


def unfinished(path: Path) -> Path:
    """Where a file is written before it gets its name: a reader never sees a part.

    In a directory that somebody else sent no link waits there: nobody knows the name.
    """
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")


_UNFINISHED = re.compile(r"\..+\.[0-9a-f]{16}\.new")


def remove_unfinished(directory: Path) -> None:
    """Remove what a killed writer left; nobody else may be writing there."""
    with storing(directory), _opened(directory) as folder:
        for name in filter(_UNFINISHED.fullmatch, os.listdir(folder)):  # noqa: PTH208 - no link's
            with suppress(FileNotFoundError, IsADirectoryError):
                os.unlink(name, dir_fd=folder)


def create_exclusively(path: Path, text: str) -> None:
    """Write a new file, refusing to touch an existing one.

    Raises:
        FileExistsError: somebody else has made it.
        StorageError: the file system refused.
    """
    with storing(path), _opened(path.parent) as folder:
        try:
            _write_synced(path.name, folder, text.encode(), _NEW)
        except FileExistsError:
            raise
        except OSError:
            with suppress(FileNotFoundError):
                os.unlink(path.name, dir_fd=folder)
            raise
        os.fsync(folder)


def append_line(path: Path, line: str, safe: str = "") -> None:
    """Append one line to an existing file; it is on disk when this returns.

    A line that could be written in part only is taken back, so the file stays whole.

    Raises:
        StorageError: the file system refused, or the file is gone.
    """
    with storing(path, safe), _opened(path.parent) as folder:
        _write_synced(path.name, folder, line.encode() + b"\n", os.O_APPEND)


def cut(path: Path, size: int) -> None:
    """Keep the first ``size`` bytes of a file; the rest is gone when this returns.

    Raises:
        StorageError: the file system refused, or the file is gone.
    """
    with storing(path):
        descriptor = os.open(path, os.O_WRONLY | _NO_LINK)
        try:
            os.ftruncate(descriptor, size)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def lock(path: Path) -> int:
    """Lock a file against other runs until the returned descriptor is closed.

    The kernel lets go of it when the process ends, however that happens. Programs that
    this one starts do not inherit it.

    Raises:
        BlockingIOError: another process has it.
        StorageError: the file cannot be opened.
    """
    with storing(path):
        descriptor = os.open(path, os.O_RDONLY | _NO_LINK)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _write_synced(
    name: str, folder: int, data: bytes, flags: int, more: Iterable[bytes] = ()
) -> None:
    flags |= os.O_WRONLY | _NO_LINK
    descriptor = os.open(name, flags, 0o644, dir_fd=folder)
    try:
        before = os.fstat(descriptor).st_size
        try:
            for piece in itertools.chain((data,), more):
                _write_all(descriptor, piece)
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, before)
            raise
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


@contextmanager
def _opened(directory: Path) -> Iterator[int]:
    """A directory that nobody exchanges for another one while a file is written in it.

    A new name is safe only when it is on disk, too (fsync).
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


# Reading stored files, with errors that say which file and which version wrote it.


S = TypeVar("S", bound=Stored)

_DIGITS = 40
_LONG = re.compile(rf"\d{{{_DIGITS}}}")
"""Only then is each number looked at, which takes time."""


def stored_file(path: Path, name: str) -> Path:
    """``path`` itself if it is a file, else the file ``name`` in directory ``path``."""
    return path / name if path.is_dir() else path


def read_text(path: Path) -> str:
    """Whole file as text.

    Raises:
        InputError: it is missing, unreadable or not text.
    """
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"cannot read {path}: {error}") from error


def read_bytes(path: Path) -> bytes:
    """Whole file.

    Raises:
        InputError: it is missing or unreadable.
    """
    try:
        return read_plain(path)
    except FileNotFoundError as error:
        raise InputError(
            f"{path} does not exist", "give the results directory of a run"
        ) from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error}") from error


def parse_object(text: str | bytes, where: str) -> dict[str, Any]:
    """``text`` as a JSON object; ``where`` names it in errors.

    Raises:
        InputError: it is not JSON, or not an object.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode()
        value = json.loads(text, parse_int=_whole if _LONG.search(text) else None)
    except RecursionError as error:
        raise InputError(f"{where} is not valid JSON: nested too deeply") from error
    except ValueError as error:  # not JSON, or not even text
        raise InputError(f"{where} is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise InputError(f"{where} is not a JSON object")
    return value


def _whole(digits: str) -> int:
    """A count or an address has fewer digits; figures of more overflow a float."""
    if len(digits) > _DIGITS:
        raise ValueError(f"{digits[:20]}... is a number of {len(digits)} digits")
    return int(digits)


def check_version(data: dict[str, Any], where: str) -> None:
    """Refuse what another dutperf wrote, before its keys look like mistakes.

    Raises:
        InputError: the schema version is missing, or not this program's.
    """
    version = data.get("schema_version")
    if not isinstance(version, int):
        raise InputError(f"{where} has no schema_version: not a file of dutperf")
    if version != RESULTS_SCHEMA_VERSION:
        writer = data.get("dutperf_version", "another version")
        newer = version > RESULTS_SCHEMA_VERSION
        raise InputError(
            f"{where} has schema version {version}, written by dutperf {writer}; "
            f"dutperf {__version__} reads version {RESULTS_SCHEMA_VERSION}",
            f"use the dutperf that wrote it{', or a newer one' if newer else ''}",
        )


def validated(model: type[S], data: dict[str, Any], where: str) -> S:
    """``data`` as ``model``.

    Raises:
        InputError: naming the first key that does not fit.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"{where}: {key}: {first['msg']}",
            "the file was changed by hand, or damaged",
        ) from error


def load_versioned(
    model: type[S], path: Path, name: str, without: str | None = None
) -> S:
    """The JSON file ``name`` in directory ``path`` (or the file ``path``) as ``model``.

    The key ``without`` is left out as if it were not there.

    Raises:
        InputError: missing, damaged, or written by another dutperf.
    """
    file = stored_file(path, name)
    data = parse_object(read_text(file), str(file))
    check_version(data, str(file))
    if without is not None:
        data.pop(without, None)
    return validated(model, data, str(file))
