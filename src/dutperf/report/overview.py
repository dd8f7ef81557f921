"""Several runs on one page: what each found, as bars, and where its report is.

No chart of its own and no script: it is for who has measured a series and looks for
the run to read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dutperf import __version__
from dutperf.errors import InputError
from dutperf.report.cells import CellView
from dutperf.report.page import REPORT, cells_of, closing_of, environment
from dutperf.report.source import Source, read_source
from dutperf.results.storage import write_atomically
from dutperf.visible import visible

OVERVIEW = "overview.html"


@dataclass(frozen=True)
class Bar:
    """One cell; ``share``: of the largest figure of its kind in the run, up to 1.

    None where it has no figure that could be compared.
    """

    cell: CellView
    share: float | None


@dataclass(frozen=True)
class RunView:
    """One run.

    Attributes:
        report: the address of its report, from the page's own directory.
        closing: what its end said.
        kinds: name and bars of each kind of cell that it has.
    """

    source: Source
    report: str
    closing: tuple[str, ...]
    kinds: tuple[tuple[str, tuple[Bar, ...]], ...]


def write_overview(directories: Sequence[Path], path: Path) -> Path:
    """Write the page of the runs in ``directories``, in that order.

    Returns:
        Its path.

    Raises:
        InputError: one of them has no results, or a file is damaged; the page cannot
            be written.
    """
    if not path.parent.is_dir():
        raise InputError(
            f"cannot write {path}: there is no directory {path.parent}",
            "make it, or choose another --output",
        )
    runs = [_run(directory, path.parent) for directory in directories]
    page = (
        environment()
        .get_template("overview.html.j2")
        .render(runs=runs, version=__version__)
    )
    write_atomically(path, visible(page), "the results are not affected")
    return path


def _run(directory: Path, origin: Path) -> RunView:
    source = read_source(directory)
    cells = cells_of(source)
    return RunView(
        source=source,
        report=Path(os.path.relpath(directory / REPORT, origin)).as_posix(),
        closing=tuple(closing_of(source, cells, where="in its report")),
        kinds=tuple(_kinds(cells)),
    )


def _kinds(cells: Sequence[CellView]) -> Iterator[tuple[str, tuple[Bar, ...]]]:
    for name in dict.fromkeys(cell.name for cell in cells):
        own = [cell for cell in cells if cell.name == name]
        figures = [cell.median if cell.measured else None for cell in own]
        most = max((figure for figure in figures if figure), default=None)
        yield (
            name,
            tuple(
                Bar(cell, figure / most if figure is not None and most else None)
                for cell, figure in zip(own, figures, strict=True)
            ),
        )
