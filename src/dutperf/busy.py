"""What to do when another process has a CPU, a port or a lab that is needed.

DUTPERF_BUSY says it, for all commands, and for siitperf's, pytest and Robot Framework:

    refuse   say who has it, and end; the default
    wait     say who has it, and wait until it is free
    share    take CPUs all the same: results may be disturbed, and say so
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable
from typing import Literal, TypeVar, cast, get_args

from dutperf.errors import BusyError, InputError

VARIABLE = "DUTPERF_BUSY"
WAITING = f"to wait for it: {VARIABLE}=wait"
_POLL_S = 0.5
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
                sys.stderr.write(f"waiting: {error.message}; Ctrl-C ends it\n")
                sys.stderr.flush()
        time.sleep(_POLL_S)
