"""What to do when another process has a CPU, a port or a lab that is needed.

DUTPERF_BUSY says it, for all commands, and for siitperf's, pytest and Robot Framework:

    refuse   say who has it, and end; the default
    wait     say who has it, and wait until it is free
    share    take CPUs all the same: results may be disturbed, and say so

A lock that is only held for a moment is waited for in any case, but not for ever.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import re
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeVar, cast, get_args

from dutperf.errors import BusyError, InputError

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
