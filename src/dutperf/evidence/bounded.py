"""Work on what somebody sent, in a process that may use so much and no more."""

from __future__ import annotations

import gc
import os
import pickle
import resource
import signal
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, TypeVar

from dutperf.errors import DutperfError, InputError, defect

T = TypeVar("T")

MEMORY_BYTES = 8 << 30
"""Of its addresses; an archive may unpack to a quarter of it."""
CPU_S = 1800
FILE_BYTES = 4 << 30


def bounded(
    work: Callable[[], T],
    what: Path,
    *,
    memory_bytes: int = MEMORY_BYTES,
    cpu_s: int = CPU_S,
    file_bytes: int = FILE_BYTES,
) -> T:
    """What ``work`` returns, done by a child; its temporary files are gone then.

    Args:
        work: reads ``what``; what it returns can be pickled.
        what: named if the child needs more than it may.
        memory_bytes: of its addresses.
        cpu_s: seconds of a CPU.
        file_bytes: of each file that it writes.

    Raises:
        InputError: it needed more, or was killed.
        DutperfError: ``work`` raised it.
    """
    limits = {
        resource.RLIMIT_AS: memory_bytes,
        resource.RLIMIT_CPU: cpu_s,
        resource.RLIMIT_FSIZE: file_bytes,
        resource.RLIMIT_CORE: 0,
    }
    with tempfile.TemporaryDirectory(prefix="dutperf-verify-") as folder:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            _child(work, what, limits, folder, writing)
        ended = 0
        try:
            os.close(writing)
            with os.fdopen(reading, "rb") as file:
                told = file.read()
            ended = os.waitpid(child, 0)[1]
            child = 0
        finally:
            if child:  # interrupted: it would go on
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
    if not told or ended:
        raise _beyond(what, ended)
    answer = pickle.loads(told)  # noqa: S301 - of our own child
    if isinstance(answer, DutperfError):
        raise answer
    result: T = answer
    return result


def _child(
    work: Callable[[], object],
    what: Path,
    limits: dict[int, int],
    folder: str,
    writing: int,
) -> NoReturn:
    """Never returns to the program that is forked."""
    code = 1
    try:
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(signum, signal.SIG_DFL)
        # What another thread was at when this was forked is not for us to collect.
        gc.freeze()
        before, tempfile.tempdir = tempfile.tempdir, folder
        for kind, most in limits.items():
            hard = resource.getrlimit(kind)[1]
            allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (allowed, hard))
        answer: object
        try:
            answer = work()
        except MemoryError:
            answer = _beyond(what, 0)
        except DutperfError as error:
            answer = error
        except Exception as error:  # noqa: BLE001 - told as the program would
            tempfile.tempdir = before  # what it is reported with stays
            answer = defect(error, None)
        with os.fdopen(writing, "wb") as file:
            file.write(pickle.dumps(answer))
        code = 0
    finally:
        os._exit(code)


def _beyond(what: Path, ended: int) -> InputError:
    signum = os.WTERMSIG(ended) if os.WIFSIGNALED(ended) else 0
    how = f" ({signal.Signals(signum).name})" if signum else ""
    return InputError(
        f"{what} is refused: to look at it takes more than {MEMORY_BYTES >> 30} GiB of "
        f"memory or {CPU_S} s of a CPU, or broke the process that did{how}",
        "it is damaged, or made to do harm: ask for it again",
    )
