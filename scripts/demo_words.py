"""What make demo found, in some lines: the figures, what they mean, what to do next.

    python scripts/demo_words.py DIRECTORY

Made of the stored results of examples/demo.yaml: a router behind 100 filters, and the
same one behind 400, each with IPv4 and IPv6. What is a bound, or has no figure, is told
as such.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from dutperf.cli.summary import STYLE
from dutperf.procedures.side_by_side import side_by_side
from dutperf.results import ResultsFile, load_results
from dutperf.results.figures import Figure, figures_of
from dutperf.tables import Subject, subjects
from dutperf.tables.table_model import Value, of_figure

ROUTER = "linux-firewall-100"
VERSIONS = {"4": "IPv4", "6": "IPv6"}
LIKELY_NOISE_PERCENT = 10


def words(results: ResultsFile, directory: Path) -> Iterator[str]:
    """A line each; none where what it is about was not measured."""
    cells = list(subjects(results))
    rates = {key: cell for key, cell in _of(cells, "throughput") if cell.measured}
    if told := list(_cost(cells)):
        yield f"300 more filters: {', '.join(told)}"
    yield from _in_doubt(rates)
    yield from _delays(cells)
    yield (
        "trust: each rate was really offered, and what the tester itself may have "
        "lost is not in it; >= is a lower bound; short trials are exploratory, not "
        "results by RFC 2544"
    )
    yield (
        f"next: open {directory}/report.html; by the RFC, in hours: dutperf "
        "throughput --lab linux-router --standard; your own device: docs/real-nics.md"
    )


def _cost(cells: list[Subject]) -> Iterator[str]:
    """What the filters cost; nothing of a bound, and of what noise may be."""
    found = side_by_side(cells)
    for group in found.groups if found else ():
        difference = group.bars[-1].difference
        if (
            difference
            and difference.is_seen
            and abs(difference.percent) > LIKELY_NOISE_PERCENT
        ):
            yield f"{group.label} {difference.words(STYLE)}".strip()


def _of(
    cells: list[Subject], procedure: str
) -> Iterator[tuple[tuple[str, str], Subject]]:
    """By device and IP version."""
    for cell in cells:
        if cell.procedure == procedure and cell.cell:
            yield (cell.testbed, VERSIONS[str(cell.cell.ip)]), cell


def _in_doubt(rates: dict[tuple[str, str], Subject]) -> Iterator[str]:
    """Which figures are none to quote, and what to do."""
    told = [" ".join(key) for key, cell in rates.items() if cell.doubt]
    if told:
        yield (
            f"doubt: of {', '.join(told)} nothing can be concluded: repeats, or the "
            "loss curve, say otherwise; was the machine busy? see dutperf doctor, and "
            "run it again"
        )


def _delays(cells: list[Subject]) -> Iterator[str]:
    told = []
    for (device, version), cell in _of(cells, "latency"):
        if device != ROUTER or cell.result is None:
            continue
        figures = {
            f.name: f for f in figures_of(cell.result) if f.direction == "forward"
        }
        if {"TL", "WCL"} <= figures.keys():
            half, most = (_within(figures[name]) for name in ("TL", "WCL"))
            told.append(
                f"{version} half of the frames within {half}, "
                f"999 of 1,000 within {most}"
            )
    if told:
        yield f"delay: at half of that rate, through {ROUTER}: {'; '.join(told)}"


def _within(figure: Figure) -> str:
    """Also an upper bound is a time within which they came; or from where to where."""
    told = of_figure(figure)
    known = replace(told, bound=None) if isinstance(told, Value) else told
    return known.text(STYLE)


def main() -> None:
    """Print them; the report's path is the last line."""
    directory = Path(sys.argv[1])
    for line in words(load_results(directory), directory):
        print(line)
    print(directory / "report.html")


if __name__ == "__main__":
    main()
