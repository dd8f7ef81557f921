"""Files that a user names or somebody sent: plain ones, and nobody waits for a FIFO."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_plain(path: Path) -> BinaryIO:
    """``path`` to be read; links to plain files are followed.

    Raises:
        OSError: it cannot be opened, or is a directory, a FIFO, a device or a socket.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    kind = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(kind):
        os.close(descriptor)
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return os.fdopen(descriptor, "rb")


def read_plain(path: Path, most_bytes: int = -1) -> bytes:
    """The first ``most_bytes`` of ``path``; -1: all.

    Raises:
        OSError: see ``open_plain``.
    """
    with open_plain(path) as file:
        return file.read(most_bytes)
