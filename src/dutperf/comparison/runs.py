"""A run that is compared, and their cells by what two runs have in common."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dutperf.report.cells import CellView
from dutperf.report.page import cells_of
from dutperf.report.source import Source


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


def cells_by_key(source: Source, *, several: bool) -> dict[Key, CellView]:
    """Its cells. Where no run has several testbeds, what each has does not matter."""
    found = {}
    for cell in cells_of(source):
        place = cell.testbed or source.testbeds[0].name
        own = cell.id.removesuffix(f"@{place}")
        found[Key(own, place if several else "")] = cell
    return found
