"""What is stored of a baseline's device, as more runs of the baseline.

A single new run is then compared with all of them: that it is the lowest of 40 happens
by chance in one of 40 series, however runs scatter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from dutperf.comparison.measures import another_measure
from dutperf.comparison.readings import readings
from dutperf.comparison.runs import Key, Run
from dutperf.comparison.sides import Side, sides_of
from dutperf.errors import DutperfError
from dutperf.query.index.places import Found, LocalPlace
from dutperf.query.runs import moment
from dutperf.report.cells import CellView
from dutperf.report.source import Source, read_source


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
