"""``journal.jsonl``: every finished trial, on disk before the next one starts.

The first line is a header, every other one a TrialRecord. The writer takes back a line
that it could write in part only, but a machine that loses power may leave a torn last
line; readers ignore it and say so, and a run that is resumed cuts it off.

The journal is locked as long as a run may append to it.
"""

from __future__ import annotations

import fcntl
import os
import weakref
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple, overload

from pydantic import Field

from dutperf import __version__, busy
from dutperf.errors import InputError
from dutperf.plain_files import open_plain
from dutperf.results.model import RESULTS_SCHEMA_VERSION, SchemaVersion
from dutperf.results.storage import (
    append_line,
    check_version,
    create_exclusively,
    cut,
    lock,
    parse_object,
    read_bytes,
    stored_file,
    validated,
)
from dutperf.results.trial_record import TrialRecord
from dutperf.results.units import Stored

# Which trials of a journal count.
#
# A cell that was begun at one testbed and went on at an equal one, because the first
# had gone, was measured there as a whole: what the first one measured of it is kept,
# but is nobody's result.


def counting(records: Iterable[TrialRecord]) -> list[TrialRecord]:
    """Of each cell those at the testbed that ended it, in their order."""
    records = list(records)
    from_number: dict[str, int] = {}
    last: dict[str, str | None] = {}
    for record in records:
        if last.setdefault(record.cell, record.stands_in) != record.stands_in:
            from_number[record.cell] = record.number
            last[record.cell] = record.stands_in
    if not from_number:
        return records
    return [r for r in records if r.number >= from_number.get(r.cell, 0)]


# The trials of a journal, read from it when they are looked at.
#
# A trial takes ten times as much memory as its line in the file, so a run of a hundred
# thousand keeps only where each one stands; those that came last are at hand.


_AT_HAND = 100
_PIECE_BYTES = 1 << 20


class _Line(NamedTuple):
    begin: int
    size: int


class StoredTrials(Sequence[TrialRecord]):
    """Those of the journal at ``path``, whose lines begin behind ``begin_byte``.

    The file may be gone from its directory meanwhile: it is held open.
    """

    def __init__(self, path: Path, begin_byte: int) -> None:
        self._path = path
        with open_plain(path) as file:
            self._file = os.dup(file.fileno())
        self._begin = self._end = begin_byte
        self._lines: list[_Line] = []
        self._of_cell: dict[str, list[int]] = {}
        self._at_hand: OrderedDict[int, TrialRecord] = OrderedDict()
        weakref.finalize(self, os.close, self._file)

    def add(self, record: TrialRecord, size: int) -> None:
        """``record`` has been appended, a line of ``size`` bytes."""
        place = len(self._lines)
        self._lines.append(_Line(self._end, size))
        self._of_cell.setdefault(record.cell, []).append(place)
        self._end += size
        self._remember(place, record)

    @property
    def cells(self) -> Collection[str]:
        """The ids of all cells that have trials."""
        return self._of_cell.keys()

    def of(self, cells: Iterable[str]) -> list[TrialRecord]:
        """The trials of ``cells`` that count, in their order."""
        places = [n for cell in cells for n in self._of_cell.get(cell, ())]
        return counting(self[n] for n in sorted(places))

    def pieces(self) -> Iterator[bytes]:
        """As they stand in the file: a line of JSON each."""
        at = self._begin
        while at < self._end:
            piece = os.pread(self._file, min(_PIECE_BYTES, self._end - at), at)
            if not piece:  # somebody cut the file off
                return
            yield piece
            at += len(piece)

    def __len__(self) -> int:
        return len(self._lines)

    @overload
    def __getitem__(self, place: int) -> TrialRecord: ...
    @overload
    def __getitem__(self, place: slice) -> list[TrialRecord]: ...
    def __getitem__(self, place: int | slice) -> TrialRecord | list[TrialRecord]:
        if isinstance(place, slice):
            return [self[n] for n in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        if place not in self._at_hand:
            self._remember(place, self._read(place))
        return self._at_hand[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        raise TypeError  # it grows

    def _read(self, place: int) -> TrialRecord:
        line = os.pread(self._file, self._lines[place].size, self._lines[place].begin)
        where = f"{self._path}:{place + 2}"
        return validated(TrialRecord, parse_object(line, where), where)

    def _remember(self, place: int, record: TrialRecord) -> None:
        self._at_hand[place] = record
        if len(self._at_hand) > _AT_HAND:
            self._at_hand.popitem(last=False)


JOURNAL = "journal.jsonl"
LONGEST_LINE_BYTES = 1 << 27
"""Twice what the engine may tell of a trial (``engine/client.py``)."""


class JournalHeader(Stored):
    """First line of a journal."""

    schema_version: SchemaVersion = RESULTS_SCHEMA_VERSION
    dutperf_version: str = Field(default=__version__, description="who wrote it")
    campaign: str
    created_at: str = Field(description="ISO 8601, UTC")


class JournalContents(NamedTuple):
    """A journal as read; ``truncated``: a torn last line was left out.

    ``whole_bytes`` is its length up to the torn line.
    """

    header: JournalHeader
    records: tuple[TrialRecord, ...]
    truncated: bool
    whole_bytes: int


class Journal:
    """Appends to one journal, and keeps others from it until ``close``.

    Made by ``create`` or ``open``; not thread-safe.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._lock = descriptor

    @classmethod
    def create(cls, path: Path, header: JournalHeader) -> Journal:
        """Begin a journal.

        Raises:
            FileExistsError: there is one.
            SetupError: the file system refused.
        """
        create_exclusively(path, _line(header) + "\n")
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> Journal:
        """Take a journal that exists; it is not changed yet.

        Raises:
            InputError: a run appends to it at this moment.
            SetupError: it cannot be opened.
        """
        try:
            return cls(path, lock(path))
        except BlockingIOError:
            raise InputError(
                f"{path.parent} is in use by another run: {busy.holder(path)}",
                "wait for its end, or give another directory",
            ) from None

    def close(self) -> None:
        """Let others have it."""
        os.close(self._lock)

    @property
    def begun(self) -> bool:
        """Whether its first line is whole: else the run ended before any trial."""
        return b"\n" in read_bytes(self.path)

    def begin(self, header: JournalHeader) -> None:
        """Start again with an empty journal.

        Raises:
            SetupError: the file system refused.
        """
        cut(self.path, 0)
        append_line(self.path, _line(header))

    def mend(self, contents: JournalContents) -> None:
        """Take a torn last line away, so that the next one stands on its own.

        Raises:
            SetupError: the file system refused.
        """
        if contents.truncated:
            cut(self.path, contents.whole_bytes)

    def trials(self, contents: JournalContents | None = None) -> StoredTrials:
        """Those that are in it: of a journal that has just begun none."""
        header, *lines = read_bytes(self.path).split(b"\n")[:-1]
        trials = StoredTrials(self.path, len(header) + 1)
        records = contents.records if contents else ()
        for record, line in zip(records, lines, strict=True):
            trials.add(record, len(line) + 1)
        return trials

    def append(self, records: Sequence[TrialRecord]) -> list[int]:
        """Store ``records``; they are on disk when this returns: how many bytes each.

        Raises:
            SetupError: the file system refused; earlier records are not affected.
        """
        lines = [record.stored_text() for record in records]
        append_line(self.path, "\n".join(lines), "every earlier trial is safe")
        return [len(line.encode()) + 1 for line in lines]


def load_journal(path: Path) -> JournalContents:
    """Read the journal in directory ``path``, or the file ``path``.

    Raises:
        InputError: missing, damaged before its last line, or of a newer dutperf.
    """
    file = stored_file(path, JOURNAL)
    stored = read_bytes(file)
    *lines, torn = stored.split(b"\n")
    if not lines:
        raise InputError(f"{file} is empty", "the run ended before its first trial")
    header = header_of(lines[0], file)
    records = tuple(
        record_of(line, f"{file}:{number}") for number, line in enumerate(lines[1:], 2)
    )
    return JournalContents(header, records, bool(torn), len(stored) - len(torn))


_DAMAGED = (
    "the file was changed by hand, or damaged; what stands above that line is good: to "
    "measure the rest again, keep a copy, cut the file off there, and resume"
)


def _line(header: JournalHeader) -> str:
    return header.stored_text()


def header_of(line: bytes, file: Path) -> JournalHeader:
    """The first line of a journal.

    Raises:
        InputError: it is damaged, or of a dutperf that stored other things.
    """
    data = parse_object(line, f"{file}:1")
    check_version(data, f"{file}:1")
    return validated(JournalHeader, data, f"{file}:1")


def record_of(line: bytes, where: str) -> TrialRecord:
    """Any other line of a journal.

    Raises:
        InputError: it is damaged.
    """
    if len(line) > LONGEST_LINE_BYTES:
        raise InputError(f"{where} is longer than any trial's record", _DAMAGED)
    try:
        return validated(TrialRecord, parse_object(line, where), where)
    except InputError as error:
        raise InputError(error.message, _DAMAGED) from error


# A run that may still go on, looked at without disturbing it.


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
