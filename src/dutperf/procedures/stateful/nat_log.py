"""Whether a NAT logs each of its mappings, and as what it is (RFC 6888 4).

Who looks for a subscriber has a public address, a port and a time. So of each mapping
that the responder has seen, the log must name that public end, and nobody else with it:
``log_audit``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import partial

from dutperf import stats
from dutperf.charts.cells import CellView
from dutperf.model.cell import Cell
from dutperf.model.specs import NatLogSpec
from dutperf.procedures.cell_results import of_cell, of_repeats
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.method import Method, OnConnections
from dutperf.procedures.stateful.connection_diagnosis import unexpected_reasons
from dutperf.procedures.stateful.establishing import phase1, stateful_of
from dutperf.procedures.stateful.log_audit import Seen, audited
from dutperf.procedures.stateful.nat_behaviour import mapped_of
from dutperf.procedures.trials import ATTEMPTS, Ask, DeviceTrials, is_final
from dutperf.protocol.result_messages import Reason
from dutperf.results import bounds
from dutperf.results.details import LogAudit, LogVerdict
from dutperf.results.device_log import DeviceLog, packed
from dutperf.results.model import CellResult
from dutperf.results.rate_results import RepeatResult
from dutperf.results.trial_record import TrialRecord
from dutperf.tables.result_tables import ENDING, title
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import (
    NONE,
    Column,
    Columns,
    Table,
    Value,
    count,
    duration,
    heads,
    rows,
)

# Measuring.


_MOST_EXAMPLES = 3
_VERDICTS: dict[LogVerdict, str] = {
    "named": "By one entry, and nobody else with it.",
    "missing": "No entry names it.",
    "wrong": "Its public end is said to be another's, or it to have another.",
    "ambiguous": "Its public end is said to be of others, too.",
    "duplicate": "Named more than once.",
    "late": "Named too late.",
}


def measure_nat_log(runner: DeviceTrials, cell: Cell, limit: MaxRate) -> CellResult:
    """Open connections, and look for each that was seen in the device's log.

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    before, tally = runner.finished, _Tally()
    trouble: list[Reason] = []
    for _ in range(cell.spec_of(NatLogSpec).tests):
        record = _test(runner, cell)
        if not isinstance(record, TrialRecord):
            trouble = record
            break
        tally.add(record)
    told = None if trouble else tally.told()
    known_empty = stateful_of(cell).is_emptied
    repeat = _concluded(told, trouble or tally.untold(known_empty=known_empty))
    repeat = repeat.model_copy(update={"trials": runner.finished - before})
    return CellResult(
        **of_cell(cell, limit),
        **of_repeats([repeat], bounds.overall([repeat])),
        quantity="mappings that the log names, of those that were seen",
        log=told,
    )


def _test(runner: DeviceTrials, cell: Cell) -> TrialRecord | list[Reason]:
    """One that was valid and has a log, or why none was."""
    stateful, spec = stateful_of(cell), cell.spec_of(NatLogSpec)
    shape = partial(phase1, cell=cell, stateful=stateful)
    rate_per_s, within_s = spec.stateful.phase1_rate, spec.log_within_s
    reasons: list[Reason] = []
    for _ in range(ATTEMPTS):
        record = runner.run(Ask(cell, rate_per_s, shape=shape, log_within_s=within_s))
        if elsewhere := unexpected_reasons(record, stateful):
            return elsewhere
        verdict = record.result.verdict
        if verdict.kind != "invalid":
            return record
        reasons = verdict.reasons
        if is_final(reasons):
            break
    return reasons


_NO_LOG = DeviceLog(packed=packed([]), unread=0, untold=["none was stored"])


class _Tally:
    """All tests together; each is held against its own log."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._verdicts: Counter[LogVerdict] = Counter()
        self._examples: dict[LogVerdict, list[str]] = defaultdict(list)
        self._clocks: list[int] = []
        self._untold: dict[str, None] = {}

    def add(self, record: TrialRecord) -> None:
        begin_ns, log = record.result.begin_unix_ns, record.log or _NO_LOG
        table = record.result.table
        arrived = [n for n, told in enumerate(table.told if table else ()) if told]
        seen: dict[Seen, int | None] = {}
        for number, mapped in zip(arrived, mapped_of(record), strict=True):
            after_ns = round(number * 10**9 / record.load_fps)
            sent_ns = None if begin_ns is None else begin_ns + after_ns
            seen.setdefault(Seen(*mapped), sent_ns)
        audit = audited(seen, log.entries)
        for each, (verdict, words) in audit.found.items():
            self._verdicts[verdict] += 1
            examples = self._examples[verdict]
            if verdict != "named" and len(examples) < _MOST_EXAMPLES:
                examples.append(f"{verdict}: {each}: {words} (trial {record.number})")
        self._counts["tests"] += 1
        self._counts["opened"] += record.result.directions[0].streams[0].sent
        self._counts["entries"] += audit.entries
        self._counts["other"] += audit.other
        self._counts["unread"] += log.unread
        self._clocks += audit.clock_ns
        self._untold |= dict.fromkeys(log.untold)

    def told(self) -> LogAudit:
        clocks = sorted(self._clocks)
        return LogAudit(
            **self._counts,
            learned=self._verdicts.total(),
            verdicts={verdict: self._verdicts[verdict] for verdict in _VERDICTS},
            examples=[text for each in _VERDICTS for text in self._examples[each]],
            clock_ns=round(stats.median(clocks)) if clocks else None,
            clock_low_ns=round(stats.percentile(clocks, 1)) if clocks else None,
            clock_high_ns=round(stats.percentile(clocks, 99)) if clocks else None,
        )

    def untold(self, *, known_empty: bool) -> list[Reason]:
        """Why an entry may be missing that the device wrote."""
        words = "entries may be missing that the device wrote"
        whys = [*self._untold, *(() if known_empty else (_OLDER,))]
        return [Reason(code="log_unreadable", message=f"{words}: {w}") for w in whys]


_OLDER = (
    "no hook empties its table, so it may have had mappings before, and logged them "
    "then (hooks: bulk_delete)"
)


def _concluded(told: LogAudit | None, troubles: list[Reason]) -> RepeatResult:
    """What was lost on the way to the tester is no fault of the device's log."""
    if told is None:
        return _invalid(troubles)
    if not told.learned:
        return _invalid([Reason(code="nothing_passed", message="none was seen")])
    value = 100 * told.verdicts["named"] / told.learned
    if told.verdicts["named"] == told.learned:
        return RepeatResult(value=value, verdict="pass", trials=0)
    if troubles and told.verdicts["missing"]:
        return _invalid(troubles)
    counted = [
        f"{number:,} {verdict}"
        for verdict, number in told.verdicts.items()
        if number and verdict != "named"
    ]
    words = [f"of {told.learned:,} mappings {', '.join(counted)}", *told.examples]
    reason = Reason(
        code="log_incomplete",
        message=f"the log is not complete: {'; '.join(words)}",
        hint="open them more slowly (--phase1-rate) to see whether that depends on it",
    )
    return RepeatResult(value=value, verdict="fail", reasons=[reason], trials=0)


def _invalid(reasons: list[Reason]) -> RepeatResult:
    return RepeatResult(value=None, verdict="invalid", reasons=reasons, trials=0)


# Shown.


_NOTE = (
    "Of what the log was read as: what it does not tell (a time, a remote end) is not "
    "asked for. Strange entries are of no mapping that was seen. The clock's "
    "difference has in it how long the device takes to log, and is told, not judged"
)


def _figures(key: str, cells: Sequence[Subject]) -> Table:
    """A row for each NAT."""

    def told(of: Callable[[LogAudit], Value]) -> Callable[[Subject], Value]:
        return lambda cell: (
            of(cell.result.log) if cell.result and cell.result.log else NONE
        )

    def times(verdict: LogVerdict) -> Callable[[Subject], Value]:
        return told(lambda log: count(log.verdicts.get(verdict, 0)))

    columns: Columns[Subject] = (
        (
            Column("traffic", "IP versions, hosts.", spared=6, words=True),
            lambda cell: f"{cell.versions}{cell.at}",
        ),
        (Column("mappings", "That were seen."), told(lambda log: count(log.learned))),
        *((Column(each, words), times(each)) for each, words in _VERDICTS.items()),
        (
            Column("strange", "Entries of no mapping that was seen.", spared=5),
            told(lambda log: count(log.other)),
        ),
        (
            Column("clock", "Median of the log's time less that of the first frame."),
            told(lambda log: duration(log.clock_ns)),
        ),
        *ENDING,
    )
    return Table(
        key=key,
        title=title(cells),
        columns=heads(columns),
        rows=rows(columns, cells, lambda cell: cell.id),
        notes=(_NOTE,),
    )


def _meaning(cell: CellView) -> str:  # noqa: ARG001 - the same for all
    return "Of the mappings that were seen, so many can be found in the log"


METHOD = Method(
    "nat-log",
    OnConnections(measure_nat_log),
    _meaning,
    table=_figures,
)
