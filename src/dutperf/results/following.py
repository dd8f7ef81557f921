"""A run that may still go on, looked at without disturbing it."""

from __future__ import annotations

import fcntl
import os
from itertools import islice
from pathlib import Path

from dutperf.errors import InputError
from dutperf.plain_files import open_plain
from dutperf.results.journal import (
    JOURNAL,
    LONGEST_LINE_BYTES,
    JournalHeader,
    header_of,
    record_of,
)
from dutperf.results.trial_record import TrialRecord


def is_running(directory: Path) -> bool:
    """Whether a run appends to the journal in ``directory`` at this moment.

    The lock that tells is a shared one, and given back at once.
    """
    try:
        descriptor = os.open(
            directory / JOURNAL, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
        )
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no file system for locks: nobody can tell
        return False
    finally:
        os.close(descriptor)
    return False


class JournalFollower:
    """Reads a journal while it grows; a line that is not whole yet is for later."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / JOURNAL
        self._at_byte = 0
        self._lines = 0
        self._begin: JournalHeader | None = None

    @property
    def header(self) -> JournalHeader:
        """Its first line.

        Raises:
            InputError: it is missing, not written yet, damaged, or of a newer dutperf.
        """
        return self._begun()

    def more(self, most: int) -> list[TrialRecord]:
        """Up to ``most`` trials that were not read before, in order; empty: none yet.

        Raises:
            InputError: as above, or the journal is damaged.
        """
        self._begun()
        return [
            record_of(line, f"{self._file}:{number}")
            for number, line in self._whole_lines(most)
        ]

    def _begun(self) -> JournalHeader:
        if self._begin is None:
            for _, line in self._whole_lines(1):
                self._begin = header_of(line, self._file)
        if self._begin is None:
            raise InputError(f"{self._file} is empty", "the run has not begun")
        return self._begin

    def _whole_lines(self, most: int) -> list[tuple[int, bytes]]:
        """The next lines with their numbers."""
        try:
            with open_plain(self._file) as file:
                file.seek(self._at_byte)
                lines = iter(lambda: file.readline(LONGEST_LINE_BYTES + 1), b"")
                read = list(islice(lines, most))
        except OSError as error:
            raise InputError(f"cannot read {self._file}: {error.strerror}") from error
        found = []
        for line in read:
            if not line.endswith(b"\n") and len(line) <= LONGEST_LINE_BYTES:
                break
            self._at_byte += len(line)
            self._lines += 1
            found.append((self._lines, line))
        return found
