"""Puts the page together: stored files in, one HTML file out."""

from __future__ import annotations

import base64
import gzip
import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

from dutperf import __version__
from dutperf.catalogue import PROCEDURES
from dutperf.charts import text
from dutperf.charts.cells import (
    BADGES,
    CellView,
    finished_cell,
    open_cell,
    quantities,
)
from dutperf.charts.chart import TEMPLATE, Chart, Figure
from dutperf.charts.connection_views import connection_views
from dutperf.charts.loss_charts import frame_loss_chart, loss_around_chart
from dutperf.charts.rate_charts import frame_rate_chart, maxima, search_chart
from dutperf.charts.repeat_charts import (
    growth_charts,
    rate_repeats_chart,
    repeats_chart,
    sweep_charts,
)
from dutperf.charts.text import STYLE
from dutperf.charts.trial_views import (
    ROLES,
    damaged,
    loss,
    offered,
    reasons,
    totals,
    totals_by_stream,
    verdict,
    verdict_on,
)
from dutperf.errors import InputError
from dutperf.procedures.measurements import METHODS, result_tables, share_chart, tables
from dutperf.procedures.method import Panel
from dutperf.procedures.requirements import judged
from dutperf.procedures.side_by_side import side_by_side
from dutperf.report.source import Source, read_source
from dutperf.report.summary import cards_of, headline
from dutperf.report.timing import cell_timeout_chart, timings_of
from dutperf.report.trust import environment_rows, in_a_sentence, trust_rows
from dutperf.results import HookRun, TrialRecord, Words, closing
from dutperf.results.storage import write_atomically
from dutperf.standards import Deviation
from dutperf.tables import Column, Verdict
from dutperf.tables.question_tables import Answer, answers
from dutperf.tables.rate_tables import rate_rows
from dutperf.tables.scalability_tables import growths, swept
from dutperf.tables.table_model import delay
from dutperf.visible import visible

# What the testbed's hooks did and printed around each trial.


MOST_RUNS = 300
"""A long campaign's counters would make the page slow; the journal has them all."""
MOST_CHARACTERS = 2000


class HookView(NamedTuple):
    """One hook of one trial; ``output`` is the beginning of what it printed."""

    trial: int
    run: HookRun

    @property
    def command(self) -> str:
        """As one would type it."""
        return shlex.join(self.run.command)

    @property
    def output(self) -> str:
        """The beginning of what it printed."""
        text = self.run.output.rstrip()
        cut = len(text) > MOST_CHARACTERS
        return f"{text[:MOST_CHARACTERS]}\n..." if cut else text


@dataclass(frozen=True)
class HookViews:
    """The hooks to show; ``left_out`` of those that succeeded are not."""

    shown: tuple[HookView, ...]
    left_out: int


def hook_views(trials: Sequence[TrialRecord]) -> HookViews:
    """Hooks that failed or said something; if those are too many, the former only."""
    runs = [HookView(trial.number, run) for trial in trials for run in trial.hooks]
    telling = [view for view in runs if view.output or not view.run.succeeded]
    if len(telling) <= MOST_RUNS:
        return HookViews(tuple(telling), 0)
    failed = tuple(view for view in telling if not view.run.succeeded)[:MOST_RUNS]
    return HookViews(failed, len(telling) - len(failed))


# What a page carries for its script, compressed: plotly.js, and the figures.
#
# A browser unpacks it by itself (``DecompressionStream``). Base64 has no character that
# could end the element it stands in.


def packed(text: str) -> Markup:
    """``text`` as gzip in base64; the same text always gives the same."""
    data = gzip.compress(text.encode("utf-8"), compresslevel=6, mtime=0)
    return Markup(base64.b64encode(data).decode("ascii"))  # noqa: S704 - base64


@cache
def plotly_script() -> str:
    """plotly.js itself: a page must work without a network, for years (ADR 20)."""
    file = files("dutperf.report") / "vendor" / "plotly-basic.min.js"
    return file.read_text("utf-8")


@cache
def packed_plotly() -> Markup:
    """The same, packed once for all pages of a process."""
    return packed(plotly_script())


# Which columns of a table stand below each other, as a page is only so wide.


_HEAD_WIDTH = 13
"""Characters of a line; one that is longer would make its column wider than figures."""
Stack = list[tuple[int, Column]]
"""Columns that share one, with their places in the table."""


def stacked(columns: Sequence[Column]) -> list[Stack]:
    """All columns in their order; what may stand below another one does."""
    found: list[Stack] = []
    for place, column in enumerate(columns):
        if column.below and found:
            found[-1].append((place, column))
        else:
            found.append([(place, column)])
    return found


def head_lines(stack: Stack) -> Iterator[str]:
    """Names and units, the first with a capital letter."""
    for place, (_, column) in enumerate(stack):
        for line, part in enumerate(column.head(STYLE)):
            first = place == line == 0
            told = part[:1].upper() + part[1:] if first else part
            yield from wrap(told, _HEAD_WIDTH, break_long_words=False)


REPORT = "report.html"
_LEVELS = {"text": "plain text"}
_MANY = 3
"""So many cells may have a panel each; of more the reader chooses one."""
_PARTS = (
    ("glance", "Summary"),
    ("questions", ""),
    ("summary", "Results"),
    ("rates", "Rates"),
    ("losses", "Frame loss"),
    *reversed(  # named by the first of the procedures that share one
        {
            method.section.id: PROCEDURES[method.name].title
            for method in reversed(list(METHODS.values()))
            if method.section
        }.items()
    ),
    ("delays", "Delays"),
    ("connections", "Connections"),
    ("transports", "UDP and TCP"),
    ("shares", "Shares of queries"),
    ("phases", "Phase 1"),
    ("scalability", "Scalability"),
    ("sweeps", "Sweeps"),
    ("searches", "Searches"),
    ("timing", "Timeline"),
    ("tester", "Tester"),
    ("deviations", "Deviations"),
    ("environment", "Environment"),
    ("reproduce", "Reproduce"),
    ("trials", "Trials"),
    ("hooks", "Hooks"),
    ("glossary", "Glossary"),
)
"""The sections and their names in the contents; what has nothing to say is left out.

Each question has a section of its own, with the number as its name there.
"""


@dataclass(frozen=True)
class DeviationView:
    """One deviation and the cells it concerns; ``cells`` is empty for all.

    All cells of a procedure are named together if there are many.
    """

    deviation: Deviation
    cells: tuple[str, ...]

    @property
    def level(self) -> str:
        """How the RFC says it."""
        level = self.deviation.level
        return text.MISSING if level is None else _LEVELS.get(level, level)


@dataclass(frozen=True)
class QuestionPage:
    """The answer to one question, and what its devices are."""

    answer: Answer
    source: Source

    @property
    def devices(self) -> list[tuple[str, str]]:
        """Name, and what forwards there, of those that are told apart."""
        return [
            (each.name, each.forwards)
            for each in self.source.testbeds
            if each.name in self.answer.devices and each.forwards
        ]


def write_report(directory: Path) -> Path:
    """Write report.html from the other files in ``directory``.

    Returns:
        Its path.

    Raises:
        InputError: there is nothing to report on, or a file is damaged.
        SetupError: the report cannot be written.
    """
    source = read_source(directory)
    path = directory / REPORT
    write_atomically(path, render(source), "the results are not affected")
    return path


def render(source: Source) -> str:
    """The whole page as HTML."""
    cells = cells_of(source)
    searches = {
        cell.id: search_chart(cell, number)
        for number, cell in enumerate(cells, 1)
        if cell.trials and cell.is_searched
    }
    repeats = _by_cell(cells, repeats_chart)
    rate_repeats = _by_cell(cells, rate_repeats_chart)
    timeouts = _by_cell(cells, cell_timeout_chart)
    table_of_rates = rate_rows(cells)
    rates = frame_rate_chart(cells)
    losses, losses_around = frame_loss_chart(cells), loss_around_chart(cells)
    growth = growth_charts(growths(source.scalability, cells))
    sweeps = sweep_charts(swept(source.sweeps, cells))
    stateful = connection_views(cells)
    panels = panels_of(cells)
    timings = timings_of(cells)
    shares = share_chart(cells)
    curves = (rates, losses, losses_around, shares)
    charts = [*searches.values(), *(chart for chart in curves if chart)]
    charts += [*repeats.values(), *rate_repeats.values(), *timeouts.values()]
    charts += [chart for _, chart in (*growth, *sweeps) if chart]
    charts += [chart for view in stateful for chart in view.charts]
    charts += [c for views in panels.values() for view in views for c in view.charts]
    charts += [c for timing in timings for trial in timing.trials for c in trial.charts]
    figures = {chart.id: chart.figure for chart in charts}
    drawn: Figure = {"figures": figures, "template": TEMPLATE}
    template = _of_reports().get_template("report.html.j2")
    page = template.render(
        **glance_of(source, cells, more="below"),
        throughput=[c for c in cells if c.family == "rate search" and c.unit == "fps"],
        frame_loss=[c for c in cells if c.family == "load sweep"],
        delays=[c for c in cells if c.family == "fixed load"],
        questions=[QuestionPage(each, source) for each in answers(cells)],
        results=list(result_tables(cells)),
        tables={t.key: t for t in tables(cells, source.scalability, source.sweeps)},
        repeats=repeats,
        rate_repeats=rate_repeats,
        timeouts=timeouts,
        searches=searches,
        rates=rates,
        losses=losses,
        losses_around=losses_around,
        shares=shares,
        growth=growth,
        sweeps=sweeps,
        stateful=stateful,
        panels=panels,
        timings=timings,
        media=list(maxima(table_of_rates)),
        deviations=deviations_of(cells),
        environments=[
            (each, environment_rows(each.environment)) for each in source.testbeds
        ],
        hooks=hook_views(source.trials),
        tester_sentence=verdict_on([cell.tester for cell in cells]),
        figures=packed(json.dumps(drawn, separators=(",", ":"))),
        plotly=packed_plotly(),
        parts=_PARTS,
    )
    return visible(page)


def glance_of(source: Source, cells: list[CellView], *, more: str) -> dict[str, Any]:
    """What the first screen is made of, and the page of paper, too.

    ``more``: where to find it.
    """
    trust, told = trust_rows(source, cells, more), closing_of(source, cells, where=more)
    return {
        "source": source,
        "campaign": source.campaign,
        "cells": cells,
        "beside": side_by_side(cells),
        "style": STYLE,
        "cards": cards_of([c for c in cells if not (c.spec and c.spec.question)]),
        "trust": trust,
        "light": in_a_sentence(trust, cells),
        "required": judged(source.campaign.requirements, source.cells),
        "closing": [said for said in told if said not in {row.words for row in trust}],
        "version": __version__,
    }


def closing_of(source: Source, cells: list[CellView], *, where: str) -> list[str]:
    """What the end of the run said, but for the figures: each cell has a card.

    ``where``: to find the list of deviations.
    """
    titles = {cell.id: cell.title for cell in cells}
    words = Words(where=where, titles=titles, figures=False)
    told = closing(source.cells, words=words)
    return [text.sentence(said) for said in told]


def cells_of(source: Source) -> list[CellView]:
    """All cells: those with a result, then those the run ended in."""
    finished = [
        finished_cell(c, source.trials_of(c.id), several=source.several)
        for c in source.cells
    ]
    open_cells = [
        open_cell(first, source.trials_of(first.cell), several=source.several)
        for first in source.open_cells()
    ]
    return finished + open_cells


def panels_of(cells: Sequence[CellView]) -> dict[str, list[Panel]]:
    """Those of the sections that procedures have of their own, by the section's id."""
    found: dict[str, list[Panel]] = {}
    for cell in cells:
        section = METHODS[cell.procedure].section if cell.procedure else None
        if section:
            found.setdefault(section.id, []).append(section.panel(cell))
    return found


def _by_cell(
    cells: list[CellView], draw: Callable[[CellView, int], Chart | None]
) -> dict[str, Chart]:
    """The charts of the cells that have one, by the cell's id."""
    drawn = {cell.id: draw(cell, number) for number, cell in enumerate(cells, 1)}
    return {name: chart for name, chart in drawn.items() if chart}


def deviations_of(cells: list[CellView]) -> list[DeviationView]:
    """Each different deviation once, with the cells it concerns."""
    found: dict[Deviation, list[CellView]] = {}
    with_result = [cell for cell in cells if cell.result]
    for cell in with_result:
        for deviation in cell.result.deviations if cell.result else []:
            found.setdefault(deviation, []).append(cell)
    return [
        DeviationView(deviation, tuple(_concerned(concerned, with_result)))
        for deviation, concerned in found.items()
    ]


def _concerned(concerned: list[CellView], cells: list[CellView]) -> Iterator[str]:
    if len(concerned) == len(cells):
        return
    for name in dict.fromkeys(cell.name for cell in concerned):
        of_name = [cell for cell in concerned if cell.name == name]
        everyone = sum(cell.name == name for cell in cells)
        if len(of_name) == everyone > 2:
            yield f"{name}: all {everyone} test cases"
        else:
            yield from (cell.title for cell in of_name)


@cache
def _of_reports() -> jinja2.Environment:
    """Compiled once: that takes longer than a small report."""
    return environment()


def environment() -> jinja2.Environment:
    """Where the pages' templates are, and what they may use."""
    found = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [
                jinja2.PackageLoader("dutperf.report"),
                jinja2.PackageLoader("dutperf.procedures", "."),
            ]
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals["badges"] = BADGES
    found.globals["many"] = _MANY
    found.tests["verdict"] = lambda entry: isinstance(entry, Verdict)
    found.filters.update(
        decimal=text.decimal,
        delay=text.delay_ns,
        damaged=damaged,
        duration=text.duration_ns,
        head_lines=head_lines,
        headline=headline,
        loss=loss,
        moment=text.moment,
        offered=offered,
        percent=text.percent,
        plural=text.plural,
        quantities=lambda result: quantities([result]).items(),
        reasons=reasons,
        shown=text.shown,
        stacked=stacked,
        role=lambda trial: ROLES[trial.role],
        told_delay=lambda value: text.shown(delay(value)),
        totals=totals,
        totals_by_stream=totals_by_stream,
        verdict=verdict,
        whole=text.whole,
    )
    return found


# Several runs on one page: what each found, as bars, and where its report is.
#
# No chart of its own and no script: it is for who has measured a series and looks for
# the run to read.


OVERVIEW = "overview.html"


@dataclass(frozen=True)
class Bar:
    """One cell; ``share``: of the largest figure on its scale, up to 1.

    None where it has no figure that could be compared.
    """

    cell: CellView
    share: float | None


Scales = Mapping[tuple[str, str], float]
"""The largest figure of each family and unit: what it is drawn to."""


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
    sources = [read_source(directory) for directory in directories]
    found = [cells_of(source) for source in sources]
    scales = scales_of([cell for cells in found for cell in cells])
    page = (
        environment()
        .get_template("overview.html.j2")
        .render(
            runs=[
                RunView(
                    source=source,
                    report=Path(
                        os.path.relpath(directory / REPORT, path.parent)
                    ).as_posix(),
                    closing=tuple(closing_of(source, cells, where="in its report")),
                    kinds=tuple(_kinds(cells, scales)),
                )
                for directory, source, cells in zip(
                    directories, sources, found, strict=True
                )
            ],
            version=__version__,
        )
    )
    write_atomically(path, visible(page), "the results are not affected")
    return path


def scales_of(cells: Sequence[CellView]) -> Scales:
    """One for all that has the same unit, whichever run it is of."""
    scales: dict[tuple[str, str], float] = {}
    for cell in cells:
        key = (cell.family, cell.unit)
        scales[key] = max(scales.get(key, 0.0), cell.median or 0.0)
    return scales


def bars_of(cells: Sequence[CellView], scales: Scales) -> tuple[Bar, ...]:
    """One for each of ``cells``."""
    return tuple(_bar(cell, scales[cell.family, cell.unit]) for cell in cells)


def _bar(cell: CellView, most: float) -> Bar:
    return Bar(cell, cell.median / most if cell.median is not None and most else None)


def _kinds(
    cells: Sequence[CellView], scales: Scales
) -> Iterator[tuple[str, tuple[Bar, ...]]]:
    for name in dict.fromkeys(cell.name for cell in cells):
        yield name, bars_of([cell for cell in cells if cell.name == name], scales)
