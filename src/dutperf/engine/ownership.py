"""A port has one tester at a time, and so has a CPU: a second would ruin both results.

Each port and each CPU has a lock file. The kernel holds the lock for the process that
took it and drops it with the process, however that ends, so nothing is ever stale; what
the file says is for messages only. Whoever takes or looks at locks has the directory's
for that moment: nobody meets a lock that is only being looked at.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from dutperf import busy
from dutperf.errors import BusyError, SetupError

DIRECTORY = Path("/run/dutperf/ports")
CPUS = Path("/run/dutperf/cpus")
_PORTS_ALONE = "wait until it has ended: two testers on a port ruin both results"
_CPUS_ALONE = (
    f"{busy.WAITING}; or give cores, or another lab, that nobody has: two runs on a "
    "CPU ruin both results"
)


@contextmanager
def owned(ports: Mapping[str, str], directory: Path = DIRECTORY) -> Iterator[None]:
    """Own these ports.

    Args:
        ports: what tells each from all others on the machine -> how people call it.
        directory: where the lock files are.

    Raises:
        BusyError: another process owns one.
        SetupError: the lock files cannot be made.
    """
    with _all_owned(ports, (), directory, _PORTS_ALONE):
        yield


@contextmanager
def owned_cpus(
    alone: Collection[int],
    shared: Collection[int] = (),
    directory: Path = CPUS,
) -> Iterator[None]:
    """Own these CPUs: ``alone`` those that measure or forward.

    ``shared``: of threads that sleep while frames are sent; they may have a CPU
    together, but not one that another process has alone.

    Raises:
        BusyError: another process has one.
        InputError, SetupError: see ``busy``; the lock files cannot be made.
    """
    if busy.choice() == "share":
        yield
        return
    named = {str(cpu): f"CPU {cpu}" for cpu in {*alone, *shared}}
    kept = {str(cpu) for cpu in set(shared) - set(alone)}
    with _all_owned(named, kept, directory, _CPUS_ALONE):
        yield


def owners_of_cpus(directory: Path = CPUS) -> dict[int, str]:
    """The CPUs that processes have now, and which process that is.

    To ordinary users, who cannot measure, nobody has any.
    """
    found: dict[int, str] = {}
    if not os.access(directory, os.R_OK | os.W_OK):
        return found
    with _directory_locked(directory):
        for path in directory.glob("*"):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                found[int(path.name)] = _owner(descriptor, path)
            finally:
                os.close(descriptor)
    return found


@contextmanager
def _all_owned(
    names: Mapping[str, str], shared: Collection[str], directory: Path, hint: str
) -> Iterator[None]:
    """All at once or none; ``shared`` are those that others may share."""

    def take() -> ExitStack:
        with ExitStack() as locks, _directory_locked(directory):
            _sweep(directory)
            for key, name in names.items():
                path = directory / quote(key, safe="")
                kind = fcntl.LOCK_SH if key in shared else fcntl.LOCK_EX
                descriptor = _locked(path, kind, name, hint)
                locks.callback(_give_back, path, descriptor)
            return locks.pop_all()

    if not names:
        yield
        return
    with busy.once_free(take):
        yield


@contextmanager
def _directory_locked(directory: Path) -> Iterator[None]:
    try:
        busy.make_private(directory)
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _unusable(directory, error) from error
    try:
        busy.take_turn(descriptor, directory)
        yield
    finally:
        os.close(descriptor)


def _sweep(directory: Path) -> None:
    """Remove the files of owners that were killed.

    A lab's ports have other names each time: nobody would come upon theirs again.
    """
    for path in directory.glob("*"):
        with suppress(OSError), path.open() as file:  # of somebody who lives
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def _locked(path: Path, kind: int, name: str, hint: str) -> int:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _unusable(path, error) from error
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = _owner(descriptor, path)
        os.close(descriptor)
        raise BusyError(f"{name} is in use by {owner}", hint) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(_self()).encode(), 0)
    return descriptor


def _give_back(path: Path, descriptor: int) -> None:
    """The file goes with its last owner."""
    try:
        with _directory_locked(path.parent):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
    except BlockingIOError:
        pass
    finally:
        os.close(descriptor)


def _unusable(path: Path, error: OSError) -> SetupError:
    return SetupError(
        f"{path}: {error.strerror}", "dutperf needs root, and room in /run"
    )


def _self() -> dict[str, object]:
    command = " ".join(["dutperf", *sys.argv[1:]])
    return {"pid": os.getpid(), "command": command, "since": time.time()}


def _owner(descriptor: int, path: Path) -> str:
    """As far as the file tells: of several owners it names the last."""
    try:
        told = json.loads(os.pread(descriptor, 4096, 0))
        os.kill(told["pid"], 0)
        age_s = max(0, round(time.time() - told["since"]))
        return f"process {told['pid']} ({told['command']}), for {age_s} s"
    except (ValueError, KeyError, TypeError, OSError):
        return busy.holder(path)
