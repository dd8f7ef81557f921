"""Where the engine of one command writes its log.

    ends well, or by a mistake in the file   the folder goes
    the engine failed                        it stays: the error sends somebody there
    killed                                   the next command removes it

A folder is locked while its command runs; the kernel lets go of it however that ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dutperf.errors import EngineError

_PREFIX = "siitperf-"
_KEPT = "kept"
_UNLOCKED_S = 60
"""Who has just made a folder has yet to lock it."""


@contextmanager
def log_folder() -> Iterator[Path]:
    """A folder of the block's own."""
    _remove_those_of_the_killed()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    with _locked(folder):
        try:
            yield folder
        except EngineError:
            (folder / _KEPT).touch()
            raise
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _remove_those_of_the_killed() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        # Others' folders, links, and what another command removes at this moment.
        with contextlib.suppress(OSError):
            if not _is_left(folder):
                continue
            with _locked(folder):
                shutil.rmtree(folder)


def _is_left(folder: Path) -> bool:
    about = folder.lstat()
    own = about.st_uid == os.getuid() and not folder.is_symlink()
    made_just_now = time.time() - about.st_mtime < _UNLOCKED_S
    return own and not made_just_now and not (folder / _KEPT).exists()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Raises OSError if another has it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
