"""The trials of a journal, read from it when they are looked at.

A trial takes ten times as much memory as its line in the file, so a run of a hundred
thousand keeps only where each one stands; those that came last are at hand.
"""

from __future__ import annotations

import os
import weakref
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, overload

from dutperf.plain_files import open_plain
from dutperf.results.counting import counting
from dutperf.results.loading import parse_object, validated
from dutperf.results.trial_record import TrialRecord

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
