"""A run on one sheet of paper, and pages as PDF.

The sheet has the report's own parts: what was asked, the answer and its picture, under
which conditions, and how far to trust it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from dutperf.charts.cells import CellView
from dutperf.charts.text import moment, plural, shown
from dutperf.errors import SetupError
from dutperf.report.page import (
    bars_of,
    cells_of,
    environment,
    glance_of,
    scales_of,
)
from dutperf.report.source import Source, read_source
from dutperf.results.storage import write_atomically
from dutperf.visible import visible

BRIEF = "brief.html"
_MOST = 6
"""Bars, cards, lines of a card and values of a condition: what is more is the
report's."""
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PATIENCE_S = 120


def write_brief(directory: Path) -> Path:
    """Write brief.html from the other files in ``directory``, one A4 page.

    Returns:
        Its path.

    Raises:
        InputError: there is nothing to report on, or a file is damaged.
        SetupError: the page cannot be written.
    """
    source = read_source(directory)
    cells = cells_of(source)
    first = next((cell.name for cell in cells), "")
    own = [cell for cell in cells if cell.name == first]
    page = (
        environment()
        .get_template("brief.html.j2")
        .render(
            **glance_of(source, cells, more="in the report"),
            questions=list(_questions(cells)),
            bars=bars_of(own[:_MOST], scales_of(own)),
            left_out=len(own[_MOST:]),
            conditions=list(_conditions(source, cells)),
            most=_MOST,
        )
    )
    path = directory / BRIEF
    write_atomically(path, visible(page), "the results are not affected")
    return path


def _questions(cells: Sequence[CellView]) -> Iterator[tuple[str, str]]:
    """What each procedure finds; of cells that the run ended in nothing is known."""
    known = {cell.procedure: cell.known for cell in cells}
    yield from ((each.title, each.finds) for each in known.values() if each)


def _conditions(source: Source, cells: Sequence[CellView]) -> Iterator[tuple[str, str]]:
    """Name and words of each, without those that nobody stored."""
    devices = [each.words for each in source.testbeds if each.words]
    told = {
        "Device": _listed(devices),
        "Testbed": _listed(_machines(source)),
        "Frames": _listed([cell.frames for cell in cells]),
        "Directions": _listed([cell.ways for cell in cells]),
        "Trials": _listed(_trials(cells)),
        "Standards": _listed(_standards(cells)),
        "Measured": f"{moment(source.created_at)}, dutperf {source.written_by}",
    }
    yield from ((name, words) for name, words in told.items() if words)


def _machines(source: Source) -> Iterator[str]:
    for each in source.testbeds:
        if known := each.environment:
            drivers = " and ".join(dict.fromkeys(port.driver for port in known.ports))
            virtual = ", virtual machine" if known.hypervisor else ""
            yield (
                f"{known.cpu_model}, {known.cpus_total} CPUs{virtual}; {known.os}, "
                f"kernel {known.kernel}; ports by {drivers}"
            )


def _trials(cells: Sequence[CellView]) -> Iterator[str]:
    """How long each procedure's were, and how often at most."""
    for name in dict.fromkeys(cell.name for cell in cells):
        own = [cell for cell in cells if cell.name == name]
        lengths = dict.fromkeys(shown(c.duration_s) for c in own if c.duration_s.digits)
        length = f"{' / '.join(lengths)} s, " if lengths else ""
        yield f"{name}: {length}{plural(max(map(_repeats, own)), 'repeat')}"


def _repeats(cell: CellView) -> int:
    if cell.result is None:
        return 0
    points = (len(point.repeats) for point in cell.result.points)
    return max(len(cell.result.repeats), *points, 0)


def _standards(cells: Sequence[CellView]) -> Iterator[str]:
    for cell in cells:
        if cell.known:
            rfc, section = next(iter(cell.known.sections.items()))
            yield f"{rfc} {section}"


def _listed(words: Iterator[str] | Sequence[str]) -> str:
    """Each once, and of many how many more there are."""
    told = list(dict.fromkeys(words))
    more = [f"{len(told) - _MOST} more"] if len(told) > _MOST else []
    return "; ".join([*told[:_MOST], *more])


def print_pdf(page: Path) -> Path:
    """Print ``page`` by a browser without a window, as PDF beside it.

    Raises:
        SetupError: there is no browser, or it failed.
    """
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        raise SetupError(
            "a PDF is printed by Chromium, and none is on the PATH",
            f"install it (Debian: apt install chromium), or print {page} by a browser",
        )
    pdf = page.with_suffix(".pdf")
    with tempfile.TemporaryDirectory() as own:
        printed = Path(own) / "page.pdf"
        # Chromium has no sandbox for root; what it opens is a page of ours.
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        words = [
            *(browser, "--headless", "--disable-gpu", *sandbox),
            *(f"--user-data-dir={own}/profile", "--no-first-run"),
            *("--no-pdf-header-footer", "--virtual-time-budget=20000"),
            *(f"--print-to-pdf={printed}", page.resolve().as_uri()),
        ]
        try:
            subprocess.run(words, check=True, capture_output=True, timeout=_PATIENCE_S)
        except (OSError, subprocess.SubprocessError) as error:
            raise SetupError(
                f"{browser} could not print {page}: {error}",
                "open the page in a browser, and print it there",
            ) from error
        write_atomically(
            pdf, "", "the results are not affected", more=[printed.read_bytes()]
        )
    return pdf
