"""Files that a user names or somebody sent: plain ones, and nobody waits for a FIFO."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from typing import BinaryIO


def open_plain(path: Path) -> BinaryIO:
    """``path`` to be read; links to plain files are followed.

    Raises:
        OSError: it cannot be opened, or is a directory, a FIFO, a device or a socket.
    """
    return os.fdopen(_opened(path, os.O_RDONLY), "rb")


def append_plain(path: Path) -> BinaryIO:
    """``path`` to be written on at its end, made if it is not there; no link.

    Raises:
        OSError: see ``open_plain``, or it is a link.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
    return os.fdopen(_opened(path, flags), "ab")


def _opened(path: Path, flags: int) -> int:
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
    kind = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(kind):
        os.close(descriptor)
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return descriptor


def read_plain(path: Path, most_bytes: int = -1) -> bytes:
    """The first ``most_bytes`` of ``path``; -1: all.

    Raises:
        OSError: see ``open_plain``.
    """
    with open_plain(path) as file:
        return file.read(most_bytes)


# Brackets in YAML: what reads them takes a time that grows with the square of depth.
#
# A hundred kilobytes of ``{`` keep it busy for hours, before it finds that no file of
# ours is nested like this.


_BRACKET = re.compile(r"[\[\]{}]")
_DEEPEST = 200
"""Files of ours have less than ten; brackets in words and comments count, too."""


def is_nested_too_deeply(text: str) -> bool:
    """Whether more brackets are open somewhere in ``text`` than make sense."""
    depth = 0
    for found in _BRACKET.finditer(text):
        depth = depth + 1 if found[0] in "[{" else max(0, depth - 1)
        if depth > _DEEPEST:
            return True
    return False
