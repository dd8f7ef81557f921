"""Batches of runs read by as many processes as there are CPUs.

A process is a program of its own, not a copy of this one: who asks may be a notebook,
or have threads.
"""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from dutperf.errors import SetupError
from dutperf.query.index.lines import as_line, outcomes_of
from dutperf.query.index.places import Found, Place
from dutperf.query.index.reading import Batch, Outcome, read_batch

_BATCH = 100
"""Runs; a few seconds of work."""
_MOST = 8
"""Processes: more wait for the disk."""


class _Reader:
    """One such process. It ends with its input, so also when this one is killed."""

    def __init__(self, place: Place) -> None:
        program = [sys.executable, "-m", "dutperf.query.index.reader", place.name]
        self._process = subprocess.Popen(  # Ctrl-C is for this process, which tells it
            program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def read(self, batch: Batch) -> list[Outcome]:
        """As ``read_batch``."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise AssertionError("they are pipes")
        try:
            stdin.write(as_line(batch))
            stdin.flush()
            line = stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            code = self._process.wait()
            raise SetupError(
                f"a process that read runs ended early (exit code {code})",
                "free some memory, and ask again: what was read is kept",
            )
        return outcomes_of(line)

    def kill(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Of one that has ended."""
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(BrokenPipeError):  # what was not written yet
                if pipe:
                    pipe.close()


def read_all(
    place: Place, runs: Sequence[Found], staging: Path
) -> Iterator[list[Outcome]]:
    """Read ``runs`` into directories of their own below ``staging``.

    Raises:
        SetupError: a process was killed, or there is no memory for it.
    """
    batches = [
        Batch(tuple(runs[at : at + _BATCH]), str(staging / f"{at // _BATCH}"))
        for at in range(0, len(runs), _BATCH)
    ]
    processes = min(_MOST, len(batches), len(os.sched_getaffinity(0)))
    if processes <= 1:
        for batch in batches:
            yield read_batch(place, batch)
        return
    readers = [_Reader(place) for _ in range(processes)]
    free: queue.SimpleQueue[_Reader] = queue.SimpleQueue()
    for reader in readers:
        free.put(reader)

    def read(batch: Batch) -> list[Outcome]:
        reader = free.get()
        try:
            return reader.read(batch)
        finally:
            free.put(reader)

    try:
        with ThreadPoolExecutor(processes) as threads:
            try:
                asked = [threads.submit(read, each) for each in batches]
                for done in as_completed(asked):
                    yield done.result()
            finally:
                threads.shutdown(wait=False, cancel_futures=True)
                for reader in readers:
                    reader.kill()
    finally:
        for reader in readers:
            reader.close()
