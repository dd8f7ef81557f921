"""The sides that are compared: a run each, or several runs of one device each.

Of one run the repeats are compared with those of the other. They share what is the same
in a whole run, so only the runs can be told to differ. Of several runs each counts as
one value, the figure that it found: those scatter as runs of one device do.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from dutperf import stats
from dutperf.catalogue import PROCEDURES, Unit
from dutperf.charts.cells import CellView
from dutperf.errors import DutperfError, InputError
from dutperf.procedures.scalability import samples_of
from dutperf.query.reader import Found, LocalPlace
from dutperf.query.rows import moment
from dutperf.report.page import cells_of
from dutperf.report.source import Source, read_source
from dutperf.results import CellResult
from dutperf.results.figures import Figure, cell_figure, figures_of
from dutperf.results.model import comparable
from dutperf.results.rate_results import FindingKind
from dutperf.results.units import whole
from dutperf.stats import Sample, Statistic
from dutperf.tables import DOUBTS, Entry, Verdict
from dutperf.tables.table_model import of_figure

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


# Whether two cells of one name measured the same: if not, no figures are compared.


def another_measure(one: CellResult, other: CellResult) -> str:
    """What makes ``other`` another measure than ``one``; empty: nothing does."""
    before, after = comparable(one.cell), comparable(other.cell)
    for key in before | after:
        if before.get(key) != after.get(key):
            return _words(key, before.get(key), after.get(key))
    if one.load and other.load and one.load.asked != other.load.asked:
        return f"measured at {one.load.asked} and at {other.load.asked}"
    rates = _rate_of(one), _rate_of(other)
    if None not in rates and rates[0] != rates[1]:
        return f"measured at {whole(rates[0] or 0)} and at {whole(rates[1] or 0)} fps"
    return ""


def _words(key: str, old: object, new: object) -> str:
    told = ("not set" if value is None else str(value) for value in (old, new))
    return f"another measure: {key}: {' and '.join(told)}"


def _rate_of(cell: CellResult) -> float | None:
    """The rate that a loss or a burst is of; None: it is of none."""
    if cell.family == "load sweep" and cell.points:
        return max(cell.points, key=lambda point: point.load_percent).load_fps
    return cell.max_load_fps if cell.family == "burst search" else None


# What is stored of a baseline's device, as more runs of the baseline.
#
# A single new run is then compared with all of them: that it is the lowest of 40
# happens by chance in one of 40 series, however runs scatter.


def with_history(
    sides: Sequence[Side], place: Path, notify: Callable[[str], None]
) -> list[Side]:
    """The baseline with the runs at any depth in ``place`` that are of its device.

    Those that began before all runs of the other sides, each once; and of them the
    cells that measured the same as the baseline's.

    Raises:
        InputError: there is no such directory.
    """
    baseline, *others = sides
    earlier = list(_earlier(sides, place, notify))
    if not earlier:
        notify(f"{place} holds no earlier run of the device of {baseline.letter}")
    own = [(run.directory, run.source) for run in baseline.runs]
    rest = [[(run.directory, run.source) for run in side.runs] for side in others]
    joined, *others = sides_of([[*own, *earlier], *rest])
    number = len(own)
    known = replace(joined, runs=joined.runs[:number])
    added = (replace(run, cells=_same(known, run)) for run in joined.runs[number:])
    return [replace(joined, runs=(*known.runs, *added)), *others]


def _earlier(
    sides: Sequence[Side], place: Path, notify: Callable[[str], None]
) -> Iterator[tuple[Path, Source]]:
    baseline, *others = sides
    begun = [moment(run.source.created_at) for side in others for run in side.runs]
    first = min((at for at in begun if at), default=None)
    devices = _devices(baseline.runs[0].source)
    seen = [run.source for side in sides for run in side.runs]
    for found in sorted(LocalPlace(str(place)).runs(notify).values(), key=_path):
        directory = place / found.path
        try:
            source = read_source(directory, trials=False)
        except DutperfError as error:
            notify(f"left out: {error}")
            continue
        at = moment(source.created_at)
        is_earlier = at is not None and first is not None and at < first
        if not is_earlier or _devices(source) != devices:
            continue
        if not any(source.is_copy_of(other) for other in seen):
            seen.append(source)
            yield directory, source


def _path(found: Found) -> str:
    return found.path


def _devices(source: Source) -> list[str]:
    return [each.name for each in source.testbeds]


def _same(known: Side, run: Run) -> dict[Key, CellView]:
    """Cells that the baseline has, too, with a figure of the same measure."""
    return {
        key: cell
        for key, cell in run.cells.items()
        if cell.result
        and any(not each.why_not for each in readings(cell))
        and (measured := known.results(key))
        and not any(another_measure(result, cell.result) for _, result in measured)
    }


# What a cell found, as samples that can be compared; or why there are none.


_NO_LEVEL: Sequence[FindingKind] = ("modes", "unstable")
"""Repeats that scatter: ranks can still be compared."""
_IN_TIME: Sequence[FindingKind] = ("shift", "drift")
"""Repeats that depend on those before: nothing is known of their ranks."""


@dataclass(frozen=True)
class Reading:
    """One figure of a cell, to be compared.

    Attributes:
        cell: of whom.
        figure: None: the run ended in the cell.
        samples: of its repeats; empty if ``why_not`` says why it cannot be compared.
        notes: what to know about it.
    """

    cell: CellView
    figure: Figure | None
    samples: tuple[Sample, ...] = ()
    why_not: str = ""
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Which of several it is; empty: the cell's only one."""
        return self.figure.of if self.figure else ""

    @property
    def unit(self) -> Unit:
        """Of its samples."""
        return self.figure.unit if self.figure else self.cell.unit or "fps"

    @property
    def shown(self) -> Entry:
        """The figure as tables tell it."""
        if self.figure is None or self.figure.absent == "invalid":
            return Verdict(self.cell.state)
        return of_figure(self.figure)

    @property
    def is_missing(self) -> bool:
        """Nothing was measured, or it is not proven."""
        return self.cell.state in ("open", "invalid")

    @property
    def unsettled(self) -> str:
        """In some words why repeats depend on those before, if so."""
        return self._doubt(_IN_TIME)

    @property
    def doubt(self) -> str:
        """In some words why they have no common value, if so."""
        return self._doubt(_NO_LEVEL)

    def _doubt(self, kinds: Sequence[FindingKind]) -> str:
        doubts = self.figure.doubts if self.figure else ()
        return next((DOUBTS[kind] for kind in doubts if kind in kinds), "")


def readings(cell: CellView) -> Iterator[Reading]:
    """Each figure; one of a cell that has none."""
    result = cell.result
    if result is None:
        yield Reading(cell, None, why_not="the run ended in it")
    elif cell.state == "invalid":
        why = f"invalid: {result.reasons[0].message}" if result.reasons else "invalid"
        yield Reading(cell, cell.found, why_not=why)
    else:
        compared = (cell_figure(result),) if result.points else figures_of(result)
        yield from (_reading(cell, figure) for figure in compared)


def _reading(cell: CellView, figure: Figure) -> Reading:
    """Nothing can be said of a figure that another one contradicts."""
    samples, why_not = samples_of(figure)
    if "contradiction" in figure.doubts and not why_not:
        samples, why_not = [], DOUBTS["contradiction"]
    return Reading(cell, figure, tuple(samples), why_not)


# A run that is compared, and their cells by what two runs have in common.


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
