"""How one cell reads: its title, badge, figures and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dutperf.charts.text import AT_LEAST, MISSING, NBSP, sentence, shown, whole
from dutperf.charts.trial_views import (
    SearchPath,
    TesterRecord,
    search_paths,
    tester_record,
)
from dutperf.results import (
    CellResult,
    Finding,
    GoalResult,
    LoadPoint,
    Measure,
    TrialRecord,
    limit_words,
    settled_words,
    withdrawn_words,
)
from dutperf.results.words import beside_sentence, management_sentence, received_figure
from dutperf.tables import State, Subject, state_word

# Measured delays of a cell: every quantity of every stream, with its repeats.


@dataclass(frozen=True)
class StreamMeasures:
    """All quantities of one stream, in the order of the procedure."""

    direction: str
    stream: str
    measures: tuple[Measure, ...]

    def named(self, several: bool) -> str:
        """The direction, and the stream where there are ``several``."""
        return f"{self.direction}, {self.stream}" if several else self.direction


def by_stream(result: CellResult) -> list[StreamMeasures]:
    """The measures of a cell, those of each stream together."""
    found: dict[tuple[str, str], list[Measure]] = {}
    for measure in result.measures:
        place = (measure.direction, measure.stream)
        found.setdefault(place, []).append(measure)
    return [StreamMeasures(*place, tuple(of)) for place, of in found.items()]


def quantities(results: Sequence[CellResult]) -> dict[str, str]:
    """Names of all quantities, and what each of them is."""
    return {m.name: m.quantity for result in results for m in result.measures}


@dataclass(frozen=True)
class Badge:
    """A verdict in one word; symbol and word tell it without the colour."""

    kind: str
    symbol: str
    label: str


MEASURED = Badge("pass", "✓", state_word("pass"))
UNSTABLE = Badge("unstable", "~", state_word("unstable"))
DOUBTFUL = Badge("doubtful", "?", state_word("doubtful"))
FAILED = Badge("fail", "✕", state_word("fail"))
INVALID = Badge("invalid", "!", state_word("invalid"))
OPEN = Badge("open", "…", state_word("open"))
BADGES: dict[State, Badge] = {
    "pass": MEASURED,
    "unstable": UNSTABLE,
    "doubtful": DOUBTFUL,
    "fail": FAILED,
    "invalid": INVALID,
    "open": OPEN,
}


@dataclass(frozen=True)
class CellView(Subject):
    """One cell with what the report has beside tables of it."""

    @property
    def badge(self) -> Badge:
        """Its verdict; of an unstable one with its range."""
        badge = BADGES[self.state]
        if badge is not UNSTABLE:
            return badge
        return replace(badge, label=f"{badge.label}: {self.range_words}")

    @property
    def range_words(self) -> str:
        """From the least of its repeats to the most, with their unit."""
        has_unit = self.unit not in ("ns", "percent", "")
        return f"{self.figure_text}{NBSP}{self.unit}" if has_unit else self.figure_text

    @cached_property
    def tester(self) -> TesterRecord:
        """What the tester did in the trials that count."""
        return tester_record(self.counting_trials)

    @property
    def is_searched(self) -> bool:
        """Whether its trials are a search for one rate or burst."""
        return bool(self.known and self.known.varied)

    @cached_property
    def paths(self) -> tuple[SearchPath, ...]:
        """The search of each repeat."""
        bounded = not (self.result and self.result.goals)
        counting = self.counting_trials
        return tuple(search_paths(self.trials, bounded=bounded, counting=counting))

    @property
    def each_way(self) -> str:
        """Where frames went both ways at once, that a rate is that of each."""
        return " in each direction" if self.bidirectional else ""

    @property
    def heading(self) -> str:
        """Procedure and stream, where the directions are told beside it."""
        return f"{self.name}, {self.stream}"

    @property
    def line(self) -> str:
        """How a chart names it among cells of its procedure."""
        judged = f", {self.judged}" if self.judged else ""
        return f"{self.frames}, {self.ways}{judged}{self.at}"

    @property
    def measures(self) -> list[StreamMeasures]:
        """Measured delays, stream by stream."""
        return by_stream(self.result) if self.result and self.measured else []

    @property
    def earlier(self) -> int:
        """Of how many connections of earlier tests the device may have known."""
        told = self.result.earlier if self.result else None
        return told.connections if told else 0

    @property
    def values(self) -> list[float]:
        """What the valid repeats gave."""
        repeats = self.result.repeats if self.result and self.measured else []
        valid = [r.value for r in repeats if r.verdict != "invalid"]
        return [value for value in valid if value is not None]

    @property
    def conformance(self) -> str:
        """Which RFC's result it may be called, and how far."""
        said = self.result.conformance if self.result else None
        return sentence(said.statement) if said else ""

    @property
    def findings(self) -> list[Finding]:
        """What speaks against one figure for all repeats."""
        return self.result.findings if self.result and self.measured else []

    @property
    def came_beside(self) -> list[str]:
        """What came of frames and queries beside the stream; empty: there were none."""
        if not self.result or not self.measured:
            return []
        told = beside_sentence(self.result), management_sentence(self.result)
        return [sentence for sentence in told if sentence]

    @property
    def passport(self) -> str:
        """What share of the tester's own safe rate the result used; empty: unknown."""
        use = self.result.passport if self.result and self.measured else None
        if use is None or use.share_percent is None or use.safe_rate_fps is None:
            return ""
        return (
            f"Tester: {use.share_percent:.0f} % of {whole(use.safe_rate_fps)} fps, "
            "its own limit"
        )

    @property
    def curve(self) -> list[LoadPoint]:
        """The points of a frame loss curve, by rising load."""
        points = self.result.points if self.result else []
        return sorted(points, key=lambda point: point.load_percent)

    @property
    def of_load(self) -> str:
        """What 100 % of such a load is, in words."""
        return "load" if self.throughput_fps is None else "of the throughput"

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """Everything that was asked for, as text."""
        pairs = self.result.parameters.items() if self.result else ()
        return [(name.replace("_", " "), _parameter(value)) for name, value in pairs]

    @property
    def reasons(self) -> list[tuple[str, str]]:
        """Why it is not measured: what happened, and, once, what to do."""
        if self.result is None:
            return []
        of_repeats = [r for repeat in self.result.repeats for r in repeat.reasons]
        found = self.result.reasons or of_repeats
        pairs = list(dict.fromkeys((reason.message, reason.hint) for reason in found))
        later = [{hint for _, hint in pairs[i:]} for i in range(1, len(pairs) + 1)]
        return [
            (message, "" if hint in after else hint)
            for (message, hint), after in zip(pairs, later, strict=True)
        ]

    @property
    def at_least(self) -> str:
        """Before all figures of the result if it is a lower bound."""
        return AT_LEAST if self.is_bound else ""

    @property
    def limit(self) -> str:
        """What a lower bound ended at; empty where it is none."""
        if self.result is None or not self.at_least:
            return ""
        return limit_words(self.result.bound_cause)

    @property
    def figure_text(self) -> str:
        """The median as this cell's unit wants it; of a doubtful one its range."""
        return shown(self.figure)

    @property
    def goals(self) -> list[GoalResult]:
        """Those of MLRsearch, the first of which gives the throughput."""
        return self.result.goals if self.result else []

    @property
    def received_figure(self) -> str:
        """What a throughput would be with damaged frames counted as received."""
        return received_figure(self.result, AT_LEAST) if self.result else ""

    @property
    def settled(self) -> str:
        """How it ended where repeats went on until the median was settled."""
        return settled_words(self.result) if self.result else ""

    @property
    def withdrawn(self) -> str:
        """Which repeats do not count, and why."""
        return withdrawn_words(self.result.withdrawn) if self.result else ""

    @property
    def explored(self) -> bool:
        """Whether short trials came before those that count."""
        return any(path.bounded for path in self.paths) and not all(
            path.bounded for path in self.paths
        )

    @property
    def bounds(self) -> SearchPath | None:
        """Where the last search ended, if it had bounds."""
        if not self.is_searched:
            return None
        bounded = [path for path in self.paths if path.bounded]
        return bounded[-1] if bounded else None


def finished_cell(
    result: CellResult, trials: tuple[TrialRecord, ...], *, several: bool = False
) -> CellView:
    """The view of a cell that has a result, valid or not.

    ``several``: the run has more than one testbed, so the cell's is told.
    """
    testbed = (result.place or "") if several else ""
    return CellView(result.id, testbed, result.procedure, result, trials)


def open_cell(
    first: TrialRecord, trials: tuple[TrialRecord, ...], *, several: bool = False
) -> CellView:
    """The view of a cell that the run ended in: it has trials, but no result.

    ``first`` is the first of all that were run for it; ``several`` as above.
    """
    testbed = (first.place or "") if several else ""
    return CellView(first.cell, testbed, first.procedure or "", None, trials)


def _parameter(value: str | float | None) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: MISSING}[value]
    return f"{value:,}" if isinstance(value, int | float) else value
