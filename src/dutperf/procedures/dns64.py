"""How fast a DNS server resolves (RFC 8219 9.2), by the search of the throughput.

A trial's frames are queries, each about a name of its own, which nobody has asked for
before, or, of a share, about one that the server has in its cache. It passes if each is
answered in time by the AAAA that its name has to have. The tester is the authority,
too, so it tells what the server asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from dutperf.charts.cells import CellView
from dutperf.charts.chart import (
    BOUND_SYMBOL,
    HOVER_END,
    Chart,
    Trace,
    layout,
    line_trace,
)
from dutperf.charts.text import whole
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.model.rate_specs import Dns64Spec, DnsSpec, QueryKeys
from dutperf.procedures.events import OnEvent
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.method import Method, OnStreams
from dutperf.procedures.throughput import measure_throughput
from dutperf.procedures.trials import ATTEMPTS, Ask, Shape, Trials, best_and_next
from dutperf.protocol.result_messages import DnsResult
from dutperf.protocol.trial_messages import CachedNames, TrialRequest
from dutperf.results.model import CellResult
from dutperf.results.rate_results import SpreadFigure
from dutperf.results.server_counts import server_counts
from dutperf.results.trial_record import TrialRecord
from dutperf.search import attempted
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import (
    Column,
    Columns,
    Entry,
    Row,
    Table,
    count,
    heads,
    rows,
)

_FILLING_FPS = 1000


class _WithCache:
    """Trials, before which the device is asked for names that are to be in its cache.

    Before the first, and after each that says that some were not there: a cache forgets
    what is old, and a lab that is made anew has none. They are those of one more trial,
    at a rate that any server stands.
    """

    def __init__(self, runner: Trials, cell: Cell, limit: MaxRate) -> None:
        self._runner = runner
        self._cell = cell
        self._spec = cell.spec_of(QueryKeys)
        _check_ids(self._spec, limit)
        self._rate_fps = min(_FILLING_FPS, limit.rate_fps)
        self._cached: CachedNames | None = None
        self._filling = 0
        """How many trials were for the cache."""

    @property
    def on_event(self) -> OnEvent:
        return self._runner.on_event

    @property
    def finished(self) -> int:
        """Of the others: a repeat says how many it took."""
        return self._runner.finished - self._filling

    def run(self, ask: Ask) -> TrialRecord:
        """See ``Trials.run``."""
        if self._cached is None:
            self._cached = self._filled(ask.repeat)
        record = self._runner.run(replace(ask, shape=_asking(cached=self._cached)))
        if any(r.code == "answers_not_cached" for r in record.result.verdict.reasons):
            self._cached = None
        return record

    def _filled(self, repeat: int) -> CachedNames:
        """What it is asked for: of the last attempt, if none gets all answers."""
        count = self._spec.cached_names
        ask = Ask(
            self._cell,
            self._rate_fps,
            repeat=repeat,
            duration_s=(count + 0.5) / self._rate_fps,
            shape=_asking(fills=True),
            role="cache",
        )
        tried = attempted(
            (self._runner.run(ask) for _ in range(ATTEMPTS)), _is_not_whole
        )
        self._filling += len(tried)
        asked = tried[-1].request.dns
        return CachedNames(
            names=asked.names if asked else 0,
            count=count,
            percent=self._spec.cached_percent[0],
        )


def _check_ids(spec: QueryKeys, limit: MaxRate) -> None:
    """The id of a query says which time it is that its name is asked for."""
    most = spec.cached_names << 16
    if limit.rate_fps * spec.trial_duration_s > most:
        raise InputError(
            f"cached_names: {spec.cached_names:,} names are asked for in at most "
            f"{most:,} queries, and a trial at {limit.words}, {limit.rate_fps:,} a "
            "second, has more",
            "take more cached_names, or a lower maximum rate",
        )


def _asking(**keys: object) -> Shape:
    def shaped(request: TrialRequest) -> TrialRequest:
        dns = request.dns and request.dns.model_copy(update=dict(keys))
        return request.model_copy(update={"dns": dns})

    return shaped


def _is_not_whole(tried: Sequence[TrialRecord]) -> bool:
    return tried[-1].result.verdict.kind != "pass"


def measure_dns64(runner: Trials, cell: Cell, limit: MaxRate) -> CellResult:
    """The search of the throughput, of queries.

    Raises:
        EngineError, SetupError: see ``Trials.run``.
        InputError: there are too few cached names for the maximum rate.
    """
    if cell.spec_of(QueryKeys).cached_percent[0]:
        runner = _WithCache(runner, cell, limit)
    return measure_throughput(runner, cell, limit)


def _meaning_of_plain(cell: CellView) -> str:
    if not isinstance(cell.spec, DnsSpec):
        return ""
    (cached, _), record = cell.spec.shares[0], cell.spec.record
    if not cached:
        return f"Each query for the {record} of another name; none cached"
    names = whole(cell.spec.cached_names)
    return f"{cached} % of the queries about {names} cached names; for their {record}"


def _meaning(cell: CellView) -> str:
    if not isinstance(cell.spec, Dns64Spec):
        return ""
    cached, aaaa = cell.spec.shares[0]
    have = f"{aaaa} % of them with" if aaaa else "without"
    if not cached:
        return f"Each query about another name, {have} an AAAA; none cached"
    names = whole(cell.spec.cached_names)
    return f"{cached} % of the queries about {names} cached names; {have} an AAAA"


# RFC 8219 9.2: medians and percentiles over both shares, as table and as graph.


_Shares = dict[tuple[int, int], Subject]
"""Cells, by the share of cached names and that of names with an AAAA."""


def _by_shares(cells: Sequence[Subject]) -> dict[str, _Shares]:
    """By IP versions, testbed and criterion, where there are several."""
    found: dict[str, _Shares] = {}
    for cell in cells:
        if isinstance(cell.spec, Dns64Spec):
            key = " ".join(filter(None, (cell.versions + cell.at, cell.criterion)))
            found.setdefault(key, {})[cell.spec.shares[0]] = cell
    return {key: of for key, of in found.items() if len(of) > 1}


def share_table(cells: Sequence[Subject]) -> Table | None:
    """A row for each share of cached names, a column for each of those with an AAAA.

    None: there are no two shares of either.
    """
    several = _by_shares(cells)
    if not several:
        return None
    shares = sorted({aaaa for of in several.values() for _, aaaa in of})
    columns = (
        Column("clients and authority", "IP versions, and the testbed.", words=True),
        Column("cached", "Queries about names that the server had.", "% of queries"),
        Column("figure", "Of the repeats.", words=True),
        *(
            Column(f"{aaaa} % with an AAAA", "Of all names.", "queries/s")
            for aaaa in shares
        ),
    )
    lines = [
        Row("", (key, str(cached), name, *entries))
        for key, of in several.items()
        for cached in sorted({cached for cached, _ in of})
        for name, entries in _figures([of.get((cached, aaaa)) for aaaa in shares])
    ]
    return Table(
        key="shares",
        title="Queries by cached names and by names with an AAAA (RFC 8219 9.2)",
        columns=columns,
        rows=tuple(lines),
        notes=tuple(_notes(several)),
    )


def _notes(several: Mapping[str, _Shares]) -> Iterator[str]:
    every = [pair for of in several.values() for pair in of.items()]
    if any(cached == 100 for (cached, _), _ in every):
        yield "of names that are all cached it does not matter what they have"
    for (cached, aaaa), cell in every:
        if cell.judged != cell.criterion:
            yield f"{cached} % cached, {aaaa} % with an AAAA: {cell.judged}"


def share_chart(cells: Sequence[Subject]) -> Chart | None:
    """Medians over the share of cached names, a line for each of those with an AAAA.

    Over the latter where there are more of them. The bars are the percentiles. None:
    nothing was measured at two shares.
    """
    several = _by_shares(cells)
    every = {share for of in several.values() for share in of}
    values = [sorted({share[axis] for share in every}) for axis in (0, 1)]
    over = 0 if len(values[0]) >= len(values[1]) else 1
    found: dict[str, dict[int, Subject]] = {}
    for key, of in several.items():
        for held in values[1 - over]:
            name = f"{held} % {('cached', 'with an AAAA')[1 - over]}"
            found[f"{key}, {name}" if len(several) > 1 else name] = {
                share[over]: cell
                for share, cell in of.items()
                if cell.rate_fps is not None
                # Of names that are all cached it does not matter what they have.
                and (share[1 - over] == held or (over == 0 and share[0] == 100))
            }
    if not any(len(line) > 1 for line in found.values()):
        return None
    lines = [_share_line(*each) for each in enumerate(found.items())]
    figure = layout(
        ("queries about cached names, %", "names with an AAAA, %")[over],
        "queries/s",
        {"range": [-3, 103], "tickvals": values[over]},
        {"rangemode": "tozero", "tickformat": ",d"},
    )
    return Chart("shares-chart", "Queries a second over both shares", lines, figure)


def _reach(cell: Subject, end: SpreadFigure) -> float:
    """From the median; 0: there is no such percentile."""
    value = cell.of_spread(end).exact
    return 0.0 if value is None else abs(value - (cell.rate_fps or 0.0))


def _share_line(index: int, line: tuple[str, dict[int, Subject]]) -> Trace:
    name, cells = line
    shares = sorted(cells)
    medians = [cells[share].rate_fps or 0.0 for share in shares]
    trace = line_trace(index, name, [float(share) for share in shares], [*medians])
    bounds = [cells[share].is_bound for share in shares]
    if any(bounds):
        usual = trace["marker"]["symbol"]
        symbols = [BOUND_SYMBOL if bound else usual for bound in bounds]
        trace["marker"] |= {"symbol": symbols}
    if any(cells[share].several for share in shares):
        trace["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": [_reach(cells[share], "percentile_99") for share in shares],
            "arrayminus": [_reach(cells[share], "percentile_1") for share in shares],
            "color": trace["line"]["color"],
            "thickness": 1.5,
            "width": 5,
        }
    trace["hovertemplate"] = f"{name}, %{{x}} %: %{{y:,d}} queries/s" + HOVER_END
    return trace


_OF_REPEATS: Mapping[str, SpreadFigure] = {
    "1st %ile": "percentile_1",
    "99th %ile": "percentile_99",
}


def _figures(
    of_share: Sequence[Subject | None],
) -> Iterator[tuple[str, list[Entry]]]:
    """The median of each; where there are repeats, their percentiles."""
    yield "median", [cell.figure if cell else "" for cell in of_share]
    if any(cell and cell.several for cell in of_share):
        for name, of in _OF_REPEATS.items():
            yield name, [cell.of_spread(of) if cell else "" for cell in of_share]


_Told = tuple[TrialRecord, DnsResult]


def _wrong(line: _Told) -> str:
    replies = line[1].replies.model_dump()
    told = [
        f"{whole(number)} {name.replace('_', ' ')}"
        for name, number in replies.items()
        if number and name != "valid"
    ]
    return ", ".join(told) or "none"


def _of_server(line: _Told) -> str:
    counts = server_counts(line[0].hooks)
    if counts is None:
        return ""
    cached = counts.queries - counts.looked_up
    return f"{whole(counts.queries)}, {whole(cached)} from its cache"


_COLUMNS: Columns[_Told] = (
    (Column("trial", "Its number."), lambda line: count(line[0].number)),
    (
        Column("rate", "Of queries.", "queries/s"),
        lambda line: count(line[0].load_fps),
    ),
    (
        Column("sent", "Each about another name."),
        lambda line: count(line[0].result.directions[0].streams[0].sent),
    ),
    (
        Column("answered", "Validly, in time or not.", tone="strong"),
        lambda line: count(line[0].result.directions[0].streams[0].received),
    ),
    (
        Column("from its cache", "Of names that it had."),
        lambda line: count(line[1].valid_cached),
    ),
    (Column("other answers", "And what they were.", words=True), _wrong),
    (
        Column("AAAA asked for", "Of the authority: names."),
        lambda line: count(line[1].asked_aaaa.names),
    ),
    (
        Column("A asked for", "Likewise."),
        lambda line: count(line[1].asked_a.names),
    ),
    (
        Column("asked again", "Of both, for names that were asked for before."),
        lambda line: count(line[1].asked_aaaa.again + line[1].asked_a.again),
    ),
    (
        Column("of other trials", "Questions about their names: still worked on."),
        lambda line: count(line[1].unknown_queries),
    ),
    (
        Column("the server counted", "Queries, where a hook reads them.", words=True),
        _of_server,
    ),
)


def _tables(cell: Subject) -> Iterator[Table]:
    told = [(t, t.result.dns) for t in best_and_next(cell.trials) if t.result.dns]
    yield Table(
        key=f"queries-{cell.id}",
        title=f"{cell.id}: queries at the highest rate that passed, and at the next",
        columns=heads(_COLUMNS),
        rows=rows(_COLUMNS, told),
        detail=True,
    )


METHOD = Method("dns64", OnStreams(measure_dns64), _meaning, tables=_tables)
PLAIN = Method("dns", OnStreams(measure_dns64), _meaning_of_plain, tables=_tables)
