"""What a table or chart is about: one cell, finished or not, in the field's words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from dutperf.catalogue import PROCEDURES, Family, Procedure, ProcedureName, Unit
from dutperf.model.cell import Cell
from dutperf.model.rate_specs import QueryKeys, RateSearchKeys
from dutperf.model.specs import ProcedureSpec
from dutperf.model.stateful_keys import Stateful
from dutperf.model.traffic import Traffic
from dutperf.protocol.base import DirectionName
from dutperf.protocol.stream_messages import DirectionRequest
from dutperf.results import (
    CellResult,
    LoadPoint,
    Media,
    ResultsFile,
    Spread,
    SpreadFigure,
    TrialRecord,
)
from dutperf.results.figures import (
    Figure,
    cell_figure,
    criterion_words,
    judged_words,
    state_of,
)
from dutperf.results.rate_results import Derived, FindingKind
from dutperf.results.units import whole
from dutperf.tables.table_model import (
    NONE,
    Span,
    State,
    Value,
    count,
    number,
    of_figure,
    of_spread,
    percent,
)

COUNTED = ("connections", "burst search")
"""Families whose trials last as long as a number of connections or frames takes."""
DOUBTS: dict[FindingKind, str] = {
    "contradiction": "contradicted",
    "modes": "no single figure",
    "shift": "no single figure",
    "drift": "no stable figure",
    "unstable": "too unstable",
}
"""Kinds of findings that leave no figure for all repeats, in three words."""
_SEARCHES = {"classic": "classic search", "mlrsearch": "MLRsearch"}
_WAYS = {
    "both": "both directions",
    "forward": "forward only",
    "reverse": "reverse only",
}


@dataclass(frozen=True)
class Subject:
    """One cell: its result, or that it has none, and its own trials.

    ``testbed`` is empty where the run has only one; ``procedure`` where it is not
    known. Rates are per direction.
    """

    id: str
    testbed: str
    procedure: ProcedureName | Literal[""]
    result: CellResult | None
    trials: tuple[TrialRecord, ...]

    @cached_property
    def found(self) -> Figure | None:
        """What stands for the whole of it; None if the run ended in it."""
        return cell_figure(self.result) if self.result else None

    @property
    def state(self) -> State:
        """The verdict on it."""
        return state_of(self.result) if self.result else "open"

    @property
    def measured(self) -> bool:
        """Whether there are figures; of one in doubt only its range may be quoted."""
        return self.state in ("pass", "unstable", "doubtful")

    @property
    def cell(self) -> Cell | None:
        """What was measured; None if the run ended in it."""
        return self.result.cell if self.result else None

    @property
    def spec(self) -> ProcedureSpec | None:
        """Of its procedure, the same way."""
        return self.cell.spec if self.cell else None

    @property
    def traffic(self) -> Traffic | None:
        """What was in its frames, the same way."""
        return self.cell.traffic if self.cell else None

    @property
    def opened(self) -> Stateful | None:
        """The connections that it is about, if it is about any."""
        return self.cell.stateful if self.cell else None

    @property
    def settings(self) -> Mapping[str, object]:
        """What was asked for and found for it, to be read; empty if the run ended."""
        return self.result.parameters if self.result else {}

    @property
    def _first(self) -> DirectionRequest | None:
        """Of an unfinished cell the first direction that its trials sent."""
        return self.trials[0].request.directions[0] if self.trials else None

    @property
    def frame_size(self) -> int | None:
        """The one that was given; of a mix none."""
        if self.cell:
            return None if self.cell.imix else self.cell.frame_sizes[0]
        return self._first.streams[0].frame_sizes[0] if self._first else None

    @property
    def sizes(self) -> str:
        """One size, 84/64 behind a translator, or the name of an IMIX."""
        size = self.frame_size
        if size is None:
            return self.cell.traffic.sizes_name if self.cell else "unknown bytes"
        told = str(self.settings.get("frame_sizes", size))
        return f"{told.partition(' ')[0] if '/' in told else f'{size:,}'} bytes"

    @property
    def profile(self) -> str:
        """The traffic profile's name, over how many flows, or its place in a sweep."""
        if self.traffic is None:
            return ""
        sweep = self.cell.spec.sweep if self.cell else None
        if sweep is None or not sweep.is_of_traffic:
            return self.traffic.words
        told = (sweep.without(self.traffic).words, sweep.words(sweep.number))
        return ", ".join(filter(None, told))

    @property
    def beside(self) -> str:
        """``1 % broadcast frames``, if such are beside the stream."""
        beside = self.traffic and self.traffic.beside
        return beside.words if beside else ""

    def beside_percent(self, kind: str) -> float | None:
        """How many of the frames are of ``kind``, as broadcast, beside the stream."""
        beside = self.traffic and self.traffic.beside
        return beside.percent if beside and beside.kind == kind else None

    @property
    def burst_frames(self) -> int | None:
        """Frames of a burst, if the load is in bursts (RFC 2544 21)."""
        return self.traffic.burst_frames if self.traffic else None

    @property
    def flows(self) -> int | None:
        """Number of network flows, if that was chosen."""
        return self.traffic.flows if self.traffic else None

    @property
    def direction(self) -> str:
        """Both, forward or reverse; empty: not known."""
        if self.cell:
            return self.cell.direction
        if self._first is None:
            return ""
        several = len(self.trials[0].request.directions) > 1
        return "both" if several else self._first.name

    @property
    def ways(self) -> str:
        """Directions in words."""
        return _WAYS.get(self.direction, self.direction)

    @property
    def bidirectional(self) -> bool:
        """Whether frames went both ways at once."""
        return self.direction == "both"

    @property
    def search(self) -> str:
        """Which search of a throughput it was; empty: it is none."""
        return self.spec.search if isinstance(self.spec, RateSearchKeys) else ""

    @property
    def setting(self) -> str:
        """Directions, and the search if it is another one than usual."""
        search = _SEARCHES.get(self.search)
        return f"{self.ways}, {search}" if search else self.ways

    @property
    def versions(self) -> str:
        """``IPv4``, or left and right: ``IPv6-IPv4``."""
        if self.cell:
            return f"IPv{str(self.cell.ip).replace('-', '-IPv')}"
        return f"IPv{self._first.streams[0].ip_version}" if self._first else "IP"

    @property
    def judged(self) -> str:
        """What makes the result another one than the RFC's, in words."""
        if self.result:
            return judged_words(self.result)
        if not self.trials:
            return ""
        request = self.trials[0].request
        timeout_ms = (request.frame_timeout_ns or 0) / 1e6
        return ", ".join(criterion_words(timeout_ms, request.loss_tolerance_ppb / 1e7))

    @property
    def criterion(self) -> str:
        """The same as asked for: how often losses were verified is what came of it."""
        if not self.result:
            return self.judged
        return judged_words(self.result.model_copy(update={"verified_by": None}))

    @property
    def frames(self) -> str:
        """IP versions, frame sizes, the traffic profile, connections, and queries."""
        told = (self.versions, self.sizes, self.profile, self._opened_or_asked)
        return ", ".join(part for part in told if part)

    @property
    def _opened_or_asked(self) -> str:
        return self._connections_words or self._queries_words

    @property
    def _queries_words(self) -> str:
        """``60 % cached, 50 % with an AAAA``; empty: neither, or no queries."""
        if not isinstance(self.spec, QueryKeys):
            return ""
        cached, aaaa = self.spec.shares[0]
        told = {f"{cached} % cached": cached, f"{aaaa} % with an AAAA": aaaa}
        return ", ".join(words for words, percent in told.items() if percent)

    @property
    def _connections_words(self) -> str:
        """``8,000 TCP connections``; empty: none are opened."""
        if self.connections is None:
            return ""
        up_to = "up to " if self.unit == "connections" else ""
        is_tcp = self.opened is not None and self.opened.transport == "tcp"
        kind = "TCP connections" if is_tcp else "connections"
        validated = ", validated" if self.validated and not up_to else ""
        return f"{up_to}{whole(self.connections)} {kind}{validated}"

    @property
    def at(self) -> str:
        """Ends what is told of the cell, if the run has several testbeds."""
        return f", at {self.testbed}" if self.testbed else ""

    @property
    def stream(self) -> str:
        """Its frames, and the testbed if named."""
        return f"{self.frames}{self.at}"

    @property
    def series(self) -> str:
        """What is the same for all frame sizes of a series."""
        on = self._opened_or_asked
        parts = (self.versions, self.ways, self.profile, on, self.judged)
        return f"{', '.join(part for part in parts if part)}{self.at}"

    @property
    def name(self) -> str:
        """The procedure, and how it differs from that of the RFC: never left out."""
        name = self.known.title if self.known else "Trials"
        return f"{name} ({self.judged})" if self.judged else name

    @property
    def title(self) -> str:
        """Procedure, stream, and the direction if there is only one."""
        one_way = f", {self.ways}" if self.direction in ("forward", "reverse") else ""
        return f"{self.name}, {self.frames}{one_way}{self.at}"

    @property
    def connections(self) -> int | None:
        """How many are opened, if they are."""
        return self.opened.connections if self.opened else None

    @property
    def validated(self) -> bool:
        """Whether each connection had to let a frame back."""
        return bool(self.opened and self.opened.alpha)

    @property
    def several(self) -> bool:
        """Whether there is a spread to report."""
        return self.result is not None and len(self.result.repeats) > 1

    @property
    def valid_repeats(self) -> Value:
        """N; how many of how many, when some repeats gave nothing."""
        if self.result is None:
            return NONE
        verdicts = [repeat.verdict for repeat in self.result.repeats]
        total = len(verdicts)
        valid = total - verdicts.count("invalid")
        return count(total) if valid == total else Value(f"{valid} of {total}")

    @property
    def trial_count(self) -> int:
        """That its repeats took."""
        if self.result is None:
            return len(self.trials)
        points = [repeat for point in self.result.points for repeat in point.repeats]
        return sum(repeat.trials for repeat in points or self.result.repeats)

    @property
    def median(self) -> float | None:
        """The result, if there is a valid one."""
        return self.result.median if self.result and self.measured else None

    @property
    def figure(self) -> Value | Span:
        """The same as its unit wants it; of a doubtful one from least to most."""
        return of_figure(self.found) if self.found and self.measured else NONE

    @property
    def within_ns(self) -> float | None:
        """How much longer a time may be than is told, at most."""
        return self.result.within_ns if self.result else None

    @property
    def derived(self) -> dict[str, Derived]:
        """What the RFC wants to be calculated of the result, by name."""
        known = self.result.derived if self.result and self.measured else []
        return {each.name: each for each in known}

    @property
    def is_bound(self) -> bool:
        """Whether all figures of the result are lower bounds."""
        known = self.result if self.median is not None else None
        return bool(known and known.bound)

    @property
    def known(self) -> Procedure | None:
        """What the catalogue says of its procedure; None: the run has not told it."""
        return PROCEDURES[self.procedure] if self.procedure else None

    @property
    def family(self) -> Family | Literal[""]:
        """Of its procedure; empty where that is not known."""
        return self.known.family if self.known else ""

    @property
    def unit(self) -> Unit | Literal[""]:
        """Of its figures."""
        return self.known.unit if self.known else ""

    @property
    def statistic(self) -> str:
        """What its repeats are summed up by."""
        return self.known.statistic if self.known else "median"

    @property
    def searches(self) -> bool:
        """Whether its trials are a search for one rate or burst."""
        return self.family in ("rate search", "burst search")

    @property
    def searched(self) -> float | None:
        """The result of a search for a rate or a burst, if it is valid."""
        return self.median if self.searches else None

    @property
    def rate_fps(self) -> float | None:
        """The throughput, if this is one and its repeats agree on it."""
        return self.median if self.family == "rate search" and not self.doubt else None

    @property
    def sum_fps(self) -> float | None:
        """Throughput of all directions together."""
        if self.rate_fps is None:
            return None
        return self.rate_fps * (2 if self.bidirectional else 1)

    @property
    def wire(self) -> dict[DirectionName, float]:
        """Throughput in Mbit/s on the wire, of each direction; empty: not measured."""
        if self.rate_fps is None or self.result is None:
            return {}
        return {each.direction: each.mbps for each in self.result.wire}

    @property
    def media(self) -> Media | None:
        """What the medium carries of its frames."""
        return self.result.media if self.result else None

    @property
    def spread(self) -> Spread | None:
        """As stored; of one that is none, of its repeats."""
        return self.found.spread if self.found else None

    def of_spread(self, name: SpreadFigure) -> Value:
        """One figure of all repeats, in the cell's unit; one has no percentiles."""
        spread = self.spread
        if spread is None or (spread.count == 1 and name.startswith("percentile")):
            return NONE
        return of_spread(spread, name, self.unit)

    @property
    def dispersion(self) -> Value:
        """(p99 - p1) / median, as the papers on siitperf tell it."""
        return percent(self.spread.dispersion_percent if self.spread else None, None, 3)

    @property
    def doubt(self) -> str:
        """In three words why its first figure is not that of all repeats, if so."""
        doubts = self.found.doubts if self.found else ()
        return DOUBTS[doubts[0]] if doubts else ""

    @property
    def counting_trials(self) -> list[TrialRecord]:
        """Those that its result may rest on: no short ones of a search."""
        if self.family in COUNTED:
            return list(self.trials)
        return full_length(self.trials)

    @property
    def duration_s(self) -> Value:
        """Durations of the cell's trials, in seconds; of a search those that count.

        None where they follow from a number.
        """
        if self.family in COUNTED:
            return NONE
        found = sorted({trial.request.duration_ns / 1e9 for trial in self.trials})
        if self.family == "rate search":
            found = found[-1:]
        if not found:
            return number(getattr(self.spec, "trial_duration_s", None))
        return Value(" / ".join(f"{seconds:g}" for seconds in found))

    @property
    def load_fps(self) -> float | None:
        """The load at which delays were measured."""
        if self.result and self.result.load:
            return self.result.load.rate_fps
        return max((trial.load_fps for trial in self.trials), default=None)

    @property
    def throughput_fps(self) -> int | None:
        """What a loss curve lies around, if it is not one from the maximum down."""
        found = self.result.load if self.result else None
        return found.rate_fps if found and self.family == "load sweep" else None

    @property
    def most_load_fps(self) -> float | None:
        """The load of the result: of a curve the highest that has a loss."""
        points = self.result.points if self.result else []
        told = [point for point in points if point.loss_percent is not None] or points
        highest_fps = max((point.load_fps for point in told), default=None)
        return self.full_load_fps if highest_fps is None else highest_fps

    @property
    def full_load_fps(self) -> float | None:
        """What 100 % load means: of a curve's points, else the highest load tried.

        Bursts are all at one rate in the end.
        """
        if self.family == "burst search" and self.trials:
            return self.trials[-1].load_fps
        if self.throughput_fps is not None:
            return self.throughput_fps
        points: Sequence[LoadPoint] = self.result.points if self.result else ()
        if points:
            point = max(points, key=lambda point: point.load_percent)
            return point.load_fps * 100 / point.load_percent
        return max((trial.load_fps for trial in self.trials), default=None)


def full_length(trials: Sequence[TrialRecord]) -> list[TrialRecord]:
    """Those of the longest duration: short ones explore, and no result rests on them.

    Not of trials whose duration follows from a number.
    """
    longest_ns = max((trial.request.duration_ns for trial in trials), default=0)
    return [trial for trial in trials if trial.request.duration_ns == longest_ns]


def several_testbeds(results: ResultsFile) -> bool:
    """Whether it must be told where a cell was measured."""
    testbeds = {cell.place for cell in results.cells}
    return len(testbeds | {cell.place for cell in results.not_measured}) > 1


def subjects(results: ResultsFile) -> Iterator[Subject]:
    """The cells that have a result, with their own trials."""
    several = several_testbeds(results)
    of_cell = trials_by_cell(results.trials)
    for cell in results.cells:
        testbed = (cell.place or "") if several else ""
        own = of_cell.get(cell.id, ())
        yield Subject(cell.id, testbed, cell.procedure, cell, tuple(own))


def trials_by_cell(trials: Iterable[TrialRecord]) -> dict[str, list[TrialRecord]]:
    """Without those that only prepare or check others."""
    found: dict[str, list[TrialRecord]] = {}
    for trial in trials:
        if trial.role == "trial":
            found.setdefault(trial.cell, []).append(trial)
    return found
