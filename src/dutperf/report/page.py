"""Puts the page together: stored files in, one HTML file out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jinja2

from dutperf import __version__
from dutperf.report import text
from dutperf.report.cells import (
    BADGES,
    SEARCHED,
    CellView,
    finished_cell,
    open_cell,
)
from dutperf.report.chart import TEMPLATE, Chart, Figure
from dutperf.report.charts import frame_rate_chart, search_chart
from dutperf.report.connection_views import connection_views
from dutperf.report.environment_rows import environment_rows
from dutperf.report.glance import cards_of
from dutperf.report.growthcharts import growth_charts
from dutperf.report.headline import headline
from dutperf.report.hook_outputs import hook_views
from dutperf.report.losscharts import frame_loss_chart, loss_around_chart
from dutperf.report.outage_views import outage_views
from dutperf.report.packed import packed, packed_plotly
from dutperf.report.rates import maxima
from dutperf.report.recovery_views import recovery_views
from dutperf.report.repeatcharts import rate_repeats_chart, repeats_chart
from dutperf.report.source import Source, read_source
from dutperf.report.stacking import head_lines, stacked
from dutperf.report.stream_measures import quantities
from dutperf.report.tester import verdict_on
from dutperf.report.timeoutcharts import cell_timeout_chart
from dutperf.report.timing import timings_of
from dutperf.report.trial_views import (
    ROLES,
    damaged,
    loss,
    offered,
    reasons,
    totals,
    totals_by_stream,
    verdict,
)
from dutperf.report.trust import trust_rows
from dutperf.results import Words, closing
from dutperf.results.storage import write_atomically
from dutperf.standards import Deviation
from dutperf.tables import DELAYS, Verdict, result_tables, tables
from dutperf.tables.media_tables import rate_rows
from dutperf.tables.scalability_tables import growths
from dutperf.visible import visible

REPORT = "report.html"
_LEVELS = {"text": "plain text"}
_MANY = 3
"""So many cells may have a panel each; of more the reader chooses one."""
_PARTS = (
    ("glance", "Glance"),
    ("summary", "Results"),
    ("rates", "Rates"),
    ("losses", "Frame loss"),
    ("recovery", "System recovery"),
    ("outage", "Outage"),
    ("delays", "Delays"),
    ("connections", "Connections"),
    ("phases", "Phase 1"),
    ("scalability", "Scalability"),
    ("searches", "Searches"),
    ("timing", "In time"),
    ("tester", "Tester"),
    ("deviations", "Deviations"),
    ("environment", "Environment"),
    ("reproduce", "Again"),
    ("trials", "Trials"),
    ("hooks", "Hooks"),
    ("glossary", "Glossary"),
)
"""The sections and their names in the contents; what has nothing to say is left out."""


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
        if cell.trials and cell.procedure in SEARCHED
    }
    repeats = _by_cell(cells, repeats_chart)
    rate_repeats = _by_cell(cells, rate_repeats_chart)
    timeouts = _by_cell(cells, cell_timeout_chart)
    table_of_rates = rate_rows(cells)
    rates = frame_rate_chart(cells)
    losses, losses_around = frame_loss_chart(cells), loss_around_chart(cells)
    growth = growth_charts(growths(source.scalability, cells))
    stateful = connection_views(cells)
    recoveries, outages = recovery_views(cells), outage_views(cells)
    timings = timings_of(cells)
    curves = (rates, losses, losses_around)
    charts = [*searches.values(), *(chart for chart in curves if chart)]
    charts += [*repeats.values(), *rate_repeats.values(), *timeouts.values()]
    charts += [chart for _, chart in growth if chart]
    charts += [chart for view in stateful for chart in view.charts]
    charts += [chart for view in recoveries for chart in view.charts]
    charts += [chart for view in outages for chart in view.charts]
    charts += [c for timing in timings for trial in timing.trials for c in trial.charts]
    trust, told = trust_rows(source, cells), closing_of(source, cells, where="below")
    figures = {chart.id: chart.figure for chart in charts}
    drawn: Figure = {"figures": figures, "template": TEMPLATE}
    template = _of_reports().get_template("report.html.j2")
    page = template.render(
        source=source,
        cells=cells,
        cards=cards_of(cells),
        trust=trust,
        closing=[said for said in told if said not in {row.words for row in trust}],
        throughput=[c for c in cells if c.procedure == "throughput"],
        frame_loss=[c for c in cells if c.procedure == "frame-loss"],
        delays=[c for c in cells if c.procedure in DELAYS],
        results=list(result_tables(cells)),
        tables={t.key: t for t in tables(cells, source.scalability)},
        repeats=repeats,
        rate_repeats=rate_repeats,
        timeouts=timeouts,
        searches=searches,
        rates=rates,
        losses=losses,
        losses_around=losses_around,
        growth=growth,
        stateful=stateful,
        recoveries=recoveries,
        outages=outages,
        timings=timings,
        media=list(maxima(table_of_rates)),
        deviations=deviations_of(cells),
        environments=[
            (each, environment_rows(each.environment)) for each in source.testbeds
        ],
        hooks=hook_views(source.trials),
        tester_sentence=verdict_on([cell.tester for cell in cells]),
        campaign=source.campaign,
        figures=packed(json.dumps(drawn, separators=(",", ":"))),
        plotly=packed_plotly(),
        parts=_PARTS,
        version=__version__,
    )
    return visible(page)


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
            yield f"{name}: all {everyone} cells"
        else:
            yield from (cell.title for cell in of_name)


@cache
def _of_reports() -> jinja2.Environment:
    """Compiled once: that takes longer than a small report."""
    return environment()


def environment() -> jinja2.Environment:
    """Where the pages' templates are, and what they may use."""
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("dutperf.report"),
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
        totals=totals,
        totals_by_stream=totals_by_stream,
        verdict=verdict,
        whole=text.whole,
    )
    return found
