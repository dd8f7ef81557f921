"""The sides that are compared: a run each, or several runs of one device each.

Of one run the repeats are compared with those of the other. They share what is the same
in a whole run, so only the runs can be told to differ. Of several runs each counts as
one value, the figure that it found: those scatter as runs of one device do.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from dutperf import stats
from dutperf.catalogue import PROCEDURES
from dutperf.comparison.readings import Reading, readings
from dutperf.comparison.runs import Key, Run, cells_by_key
from dutperf.errors import InputError
from dutperf.report.cells import CellView
from dutperf.report.source import Source, read_source
from dutperf.results import CellResult
from dutperf.stats import Sample, Statistic

_MOST_NAMED = 3
"""Runs that are left out; of more their number is told."""
_LETTERS = string.ascii_uppercase


@dataclass(frozen=True)
class Side:
    """One run or several; ``letter`` is what it is called, A the baseline."""

    letter: str
    runs: tuple[Run, ...]

    @property
    def keys(self) -> list[Key]:
        """Of all cells."""
        return list(dict.fromkeys(key for run in self.runs for key in run.cells))

    def cells(self, key: Key) -> tuple[CellView, ...]:
        """Of each run that has it."""
        return tuple(run.cells[key] for run in self.runs if key in run.cells)

    def results(self, key: Key) -> list[tuple[str, CellResult]]:
        """What runs found, by their letters."""
        cells = ((run.letter, run.cells.get(key)) for run in self.runs)
        return [(name, cell.result) for name, cell in cells if cell and cell.result]

    def why_without(self, key: Key) -> str:
        """Why it has no such cell."""
        first, *more = self.runs
        why = first.why_without(key)
        return f"in no run of {self.letter}: {why}" if more else why

    def readings(self, key: Key, *, by_runs: bool) -> dict[str, Reading]:
        """Its figures by name; ``by_runs``: each run is one of their samples."""
        if by_runs:
            return {each.name: each for each in _of_runs(self.runs, key)}
        (run,) = self.runs
        cell = run.cells.get(key)
        found = readings(cell) if cell else ()
        return {each.name: _of_repeats(run.letter, each) for each in found}


def read_runs(directories: Sequence[Path]) -> list[Side]:
    """Each of the runs in ``directories`` as a side, the baseline first.

    Raises:
        InputError: see ``read_sides``.
    """
    return read_sides([[each] for each in directories])


def read_sides(groups: Sequence[Sequence[Path]]) -> list[Side]:
    """The runs in directories, side by side, the baseline first.

    Raises:
        InputError: there are not two sides, or too many; one has no run, or the same
            twice; a run has no results, or a file is damaged or of a newer dutperf.
    """
    if not all(groups):
        raise InputError(
            "no run on one side of --", "give dutperf compare BASE... -- NEW..."
        )
    if not 1 < len(groups) <= len(_LETTERS):
        number = len(groups)
        raise InputError(
            f"{number} run{'' if number == 1 else 's'} cannot be compared",
            f"give two to {len(_LETTERS)} results directories, the baseline first",
        )
    return sides_of([[(each, read_source(each)) for each in of] for of in groups])


def sides_of(stored: Sequence[Sequence[tuple[Path, Source]]]) -> list[Side]:
    """The same of what was read already.

    Raises:
        InputError: a side has several runs, and a run is there twice.
    """
    several = any(source.several for of in stored for _, source in of)
    if any(len(of) > 1 for of in stored):
        _refuse_copies([each for of in stored for each in of])
    return [
        Side(
            letter,
            tuple(
                Run(
                    f"{letter}{n}" if len(of) > 1 else letter,
                    directory,
                    source,
                    cells_by_key(source, several=several),
                )
                for n, (directory, source) in enumerate(of, 1)
            ),
        )
        for letter, of in zip(_LETTERS, stored, strict=False)
    ]


def _refuse_copies(stored: Sequence[tuple[Path, Source]]) -> None:
    """A run that counts twice hides how runs scatter."""
    for (one, source), (other, again) in combinations(stored, 2):
        if source.is_copy_of(again):
            raise InputError(f"{one} and {other} are one run", "give each run once")


def _of_repeats(letter: str, found: Reading) -> Reading:
    """Of one run: repeats that depend on those before are no samples."""
    if why_not := found.why_not or found.unsettled:
        return replace(found, samples=(), why_not=f"{letter}: {why_not}")
    by_ranks = f"{letter}: {found.doubt}, compared by ranks"
    return replace(found, notes=(by_ranks,) if found.doubt else ())


def _of_runs(runs: Sequence[Run], key: Key) -> Iterator[Reading]:
    """Without runs that measured nothing there, which the notes tell."""
    left_out: list[str] = []
    measured: dict[str, dict[str, Reading]] = {}
    statistic = stats.median
    nothing: Reading | None = None
    for run in runs:
        cell = run.cells.get(key)
        if cell is None:
            left_out.append(run.why_without(key))
            continue
        if cell.procedure and PROCEDURES[cell.procedure].statistic == "average":
            statistic = stats.mean
        found = {each.name: each for each in readings(cell)}
        if (none := found.get("")) and none.is_missing:
            nothing = nothing or replace(none, why_not=f"{run.letter}: {none.why_not}")
            left_out.append(f"without {run.letter}: {none.why_not}")
        else:
            measured[run.letter] = found
    if nothing and not measured:
        yield nothing
    if len(left_out) > _MOST_NAMED:
        left_out = [f"without {len(left_out)} of {len(runs)} runs"]
    for name in dict.fromkeys(name for found in measured.values() for name in found):
        of = {run: found[name] for run, found in measured.items() if name in found}
        notes = [*left_out, *(f"not in {run}" for run in measured if run not in of)]
        yield _joined(of, statistic, notes)


def _joined(of: dict[str, Reading], statistic: Statistic, notes: list[str]) -> Reading:
    """One sample a run; what is shown is the run in the middle (the lower of two)."""
    for run, each in of.items():
        if each.why_not:
            return replace(each, samples=(), why_not=f"{run}: {each.why_not}")
    pairs = [(Sample.of(each.samples, statistic), each) for each in of.values()]
    ordered = sorted(pairs, key=lambda pair: pair[0].value)
    _, middle = ordered[(len(ordered) - 1) // 2]
    doubts: dict[str, list[str]] = {}
    for run, each in of.items():
        if doubt := each.unsettled or each.doubt:
            doubts.setdefault(doubt, []).append(run)
    told = [f"{', '.join(runs)}: {doubt}" for doubt, runs in doubts.items()]
    samples = tuple(sample for sample, _ in pairs)
    return replace(middle, samples=samples, notes=(*notes, *told))
