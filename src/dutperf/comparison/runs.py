"""The runs that are compared, and their cells by what two runs have in common."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dutperf.errors import InputError
from dutperf.report.cells import CellView
from dutperf.report.page import cells_of
from dutperf.report.source import Source, read_source

_LETTERS = string.ascii_uppercase


class Key(NamedTuple):
    """What a cell is called in all runs; ``place`` is empty where each has only one."""

    cell: str
    place: str

    @property
    def words(self) -> str:
        """As a cell's id has it."""
        return f"{self.cell}@{self.place}" if self.place else self.cell


@dataclass(frozen=True)
class Run:
    """One run; ``letter`` is what it is called beside the others, A the baseline."""

    letter: str
    directory: Path
    source: Source
    cells: dict[Key, CellView]

    def why_without(self, key: Key) -> str:
        """Why it has no such cell."""
        failures = (f for f in self.source.failures if key.words in f.cells)
        failed = next(failures, None)
        if failed:
            return f"not measured in {self.letter}: {failed.message}"
        stopped = ", which was stopped" if self.source.interruption else ""
        return f"not in {self.letter}{stopped}"


def read_runs(directories: Sequence[Path]) -> list[Run]:
    """The runs in ``directories``, the baseline first.

    Raises:
        InputError: there are not two, or too many; one has no results, or a file is
            damaged or of a newer dutperf.
    """
    if not 1 < len(directories) <= len(_LETTERS):
        raise InputError(
            f"{len(directories)} runs cannot be compared",
            f"give two to {len(_LETTERS)} results directories, the baseline first",
        )
    return runs_of([(each, read_source(each)) for each in directories])


def runs_of(stored: Sequence[tuple[Path, Source]]) -> list[Run]:
    """The same of what was read already."""
    several = any(source.several for _, source in stored)
    return [
        Run(letter, directory, source, _cells(source, several=several))
        for letter, (directory, source) in zip(_LETTERS, stored, strict=False)
    ]


def _cells(source: Source, *, several: bool) -> dict[Key, CellView]:
    """Where no run has several testbeds, what each has does not matter."""
    found = {}
    for cell in cells_of(source):
        place = cell.testbed or source.testbeds[0].name
        own = cell.id.removesuffix(f"@{place}")
        found[Key(own, place if several else "")] = cell
    return found
