"""A port has one tester at a time: a second one would ruin both results.

Each port has a lock file. The kernel holds the lock for the process that took it and
drops it with the process, however that ends, so nothing is ever stale; what the file
says is for messages only.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from dutperf.errors import SetupError

DIRECTORY = Path("/run/dutperf/ports")


@contextmanager
def owned(ports: Mapping[str, str], directory: Path = DIRECTORY) -> Iterator[None]:
    """Own these ports.

    Args:
        ports: what tells each from all others on the machine -> how people call it.
        directory: where the lock files are.

    Raises:
        SetupError: another process owns one, or the lock files cannot be made.
    """
    _sweep(directory)
    with ExitStack() as locks:
        # In one order, so that of two processes one gets all that both want.
        for key in sorted(ports):
            locks.enter_context(_owned(directory / quote(key, safe=""), ports[key]))
        yield


def _sweep(directory: Path) -> None:
    """Remove the files of owners that were killed.

    A lab's ports have other names each time: nobody would come upon theirs again.
    """
    for path in directory.glob("*"):
        with suppress(OSError), path.open() as file:  # of somebody who lives, or gone
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is(path, file.fileno()):
                path.unlink()


@contextmanager
def _owned(path: Path, name: str) -> Iterator[None]:
    descriptor = _locked(path, name)
    try:
        os.pwrite(descriptor, json.dumps(_self()).encode(), 0)
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _locked(path: Path, name: str) -> int:
    """The file, once it is locked and still the one that others would find."""
    while True:
        descriptor = _opened(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is(path, descriptor):
                os.ftruncate(descriptor, 0)
                return descriptor
        except BlockingIOError:
            owner = _owner(descriptor)
            os.close(descriptor)
            raise SetupError(
                f"{name} is in use by {owner}",
                "wait until it has ended: two testers on a port ruin both results",
            ) from None
        os.close(descriptor)  # its owner has just removed it


def _is(path: Path, descriptor: int) -> bool:
    try:
        return path.stat().st_ino == os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False


def _opened(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise SetupError(
            f"{path}: {error.strerror}", "dutperf needs root, and room in /run"
        ) from error


def _self() -> dict[str, object]:
    command = " ".join(["dutperf", *sys.argv[1:]])
    return {"pid": os.getpid(), "command": command, "since": time.time()}


def _owner(descriptor: int) -> str:
    """As far as the file tells: its owner may be writing it just now."""
    try:
        told = json.loads(os.pread(descriptor, 4096, 0))
        age_s = max(0, round(time.time() - told["since"]))
        return f"process {told['pid']} ({told['command']}), for {age_s} s"
    except (ValueError, KeyError, TypeError):
        return "another process"
