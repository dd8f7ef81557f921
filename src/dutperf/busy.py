"""A CPU, a port or a lab that is needed has one owner: what to do if that is another.

DUTPERF_BUSY says it, for all commands, and for siitperf's, pytest and Robot Framework:

    refuse   say who has it, and end; the default
    wait     say who has it, and wait until it is free
    share    take CPUs all the same: results may be disturbed, and say so

A lock that is only held for a moment is waited for in any case, but not for ever.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import re
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Literal, TypeVar, cast, get_args
from urllib.parse import quote

from dutperf.errors import BusyError, InputError, SetupError

VARIABLE = "DUTPERF_BUSY"
WAITING = f"to wait for it: {VARIABLE}=wait"
_POLL_S = 0.5
_TURN_S = 300.0
"""Longer than any lab takes to be brought up."""
_SILENT_S = 1.0
_SHORT_POLL_S = 0.02
_LONGEST_COMMAND = 80
_AGE = re.compile(r", for \d+ s")
"""How long an owner has had it: no news."""
_nobody_waits = threading.Event()

Choice = Literal["refuse", "wait", "share"]
T = TypeVar("T")


def choice() -> Choice:
    """What the user has chosen.

    Raises:
        InputError: the variable has another value.
    """
    value = os.environ.get(VARIABLE, "refuse")
    if value not in get_args(Choice):
        raise InputError(
            f"{VARIABLE} is {value!r}", f"one of: {', '.join(get_args(Choice))}"
        )
    return cast(Choice, value)


def wait_by_default() -> None:
    """For what runs unattended: whoever wants something else has said so."""
    os.environ.setdefault(VARIABLE, "wait")


def give_up_waiting(*, now: bool) -> None:
    """Those who wait in other threads are refused from now on, or may wait again."""
    if now:
        _nobody_waits.set()
    else:
        _nobody_waits.clear()


def once_free(attempt: Callable[[], T]) -> T:
    """What ``attempt`` gives; tried again until nobody has it, if that was chosen.

    Each one that is waited for is told once, on standard error.

    Raises:
        BusyError: as ``attempt``, if it is not to wait.
    """
    told = ""
    while True:
        try:
            return attempt()
        except BusyError as error:
            if choice() != "wait" or _nobody_waits.is_set():
                raise
            who = _AGE.sub("", error.message)
            if who != told:
                told = who
                _on_standard_error(f"waiting: {error.message}; Ctrl-C ends it")
        time.sleep(_POLL_S)


def _on_standard_error(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def take_turn(
    descriptor: int,
    path: Path,
    kind: int = fcntl.LOCK_EX,
    most_s: float = _TURN_S,
    tell: Callable[[str], object] = _on_standard_error,
) -> None:
    """Lock ``descriptor``, the open file or directory ``path``; others come first.

    Who is waited for longer than a second is told, once.

    Args:
        descriptor: closing it gives the lock back.
        path: what it is of.
        kind: see ``fcntl.flock``.
        most_s: how long to wait.
        tell: takes who is waited for, a sentence.

    Raises:
        BusyError: somebody had it all that time.
    """
    began = time.monotonic()
    told = False
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            return
        waited_s = time.monotonic() - began
        if waited_s >= most_s:
            raise BusyError(
                f"{path} is locked by {holder(path)}, for more than {waited_s:.0f} s",
                "wait until that has ended, or end it, and try again",
            )
        if waited_s >= _SILENT_S and not told:
            told = True
            tell(
                f"waiting: {path} is locked by {holder(path)}; for {most_s:.0f} s at "
                "most, Ctrl-C ends it"
            )
        time.sleep(_SHORT_POLL_S)


def holder(path: Path) -> str:
    """Who has a lock on ``path``, as far as the kernel tells: process, command, user.

    Programs of other containers are not seen, nor who let go of it meanwhile.
    """
    with suppress(OSError, KeyError, ValueError):
        at = path.stat()
        device = f"{os.major(at.st_dev):02x}:{os.minor(at.st_dev):02x}:{at.st_ino}"
        for line in Path("/proc/locks").read_text("ascii").splitlines():
            words = line.split()
            if device in words and "->" not in words and int(words[-4]) > 0:
                process = Path("/proc", words[-4])
                words = (process / "cmdline").read_text(errors="replace").split("\0")
                named = " ".join(" ".join(words).split())[:_LONGEST_COMMAND]
                user = pwd.getpwuid(process.stat().st_uid).pw_name
                return f"process {process.name} ({named}) of user {user}"
    return "another process"


def make_private(directory: Path) -> None:
    """Make ``directory``, or take it from others: who cannot open it cannot lock it.

    Raises:
        OSError: it cannot be made, or is somebody else's.
    """
    directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.mkdir(mode=0o700, exist_ok=True)
    if directory.stat().st_mode & 0o077:
        directory.chmod(0o700)


# A port has one tester at a time, and so has a CPU: a second would ruin both results.
#
# Each port and each CPU has a lock file. The kernel holds the lock for the process that
# took it and drops it with the process, however that ends, so nothing is ever stale;
# what the file says is for messages only. Whoever takes or looks at locks has the
# directory's for that moment: nobody meets a lock that is only being looked at.


DIRECTORY = Path("/run/dutperf/ports")
CPUS = Path("/run/dutperf/cpus")
_PORTS_ALONE = "wait until it has ended: two testers on a port ruin both results"
_CPUS_ALONE = (
    f"{WAITING}; or give cores, or another lab, that nobody has: two runs on a "
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
    if choice() == "share":
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
    with once_free(take):
        yield


@contextmanager
def _directory_locked(directory: Path) -> Iterator[None]:
    try:
        make_private(directory)
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _unusable(directory, error) from error
    try:
        take_turn(descriptor, directory)
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
        return holder(path)
