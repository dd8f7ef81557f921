"""How one cell reads: its title, badge, figures and parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dutperf.protocol import DirectionName
from dutperf.report.stream_measures import StreamMeasures, by_stream
from dutperf.report.tester import TesterRecord, tester_record
from dutperf.report.text import (
    AT_LEAST,
    MISSING,
    NBSP,
    decimal,
    delay_ns,
    percent,
    plural,
    sentence,
    whole,
)
from dutperf.report.trial_views import SearchPath, full_length, search_paths
from dutperf.results import (
    CellResult,
    Finding,
    GoalResult,
    LoadPoint,
    Media,
    Spread,
    SpreadFigure,
    TimeoutLoss,
    TrialRecord,
    limit_words,
    overall,
    result_word,
    settled_words,
    withdrawn_words,
)
from dutperf.results.connection_results import ports_in
from dutperf.results.damage_words import received_figure
from dutperf.results.units import about

PROCEDURES = {
    "throughput": "Throughput",
    "frame-loss": "Frame loss",
    "connection-rate": "Connection establishment rate",
    "table-capacity": "Connection tracking table capacity",
    "teardown-rate": "Connection tear-down rate",
    "latency": "Latency",
    "ipdv": "Inter-packet delay variation",
    "pdv": "Packet delay variation",
}
DELAYS = ("latency", "pdv", "ipdv")
CONNECTIONS = ("connection-rate", "table-capacity", "teardown-rate")
_DOUBTS: dict[str, str] = {
    "modes": "no single figure",
    "shift": "no single figure",
    "drift": "no settled figure",
    "unstable": "too unstable",
}
_SEARCHES = {"classic": "classic search", "mlrsearch": "MLRsearch"}
_WAYS = {
    "both": "both directions",
    "forward": "forward only",
    "reverse": "reverse only",
}


@dataclass(frozen=True)
class Badge:
    """A verdict in one word; symbol and word tell it without the colour."""

    kind: str
    symbol: str
    label: str


MEASURED = Badge("pass", "✓", result_word("pass"))
FAILED = Badge("fail", "✕", result_word("fail"))
INVALID = Badge("invalid", "!", result_word("invalid"))
OPEN = Badge("open", "…", "not finished")
_BADGES = {"pass": MEASURED, "fail": FAILED, "invalid": INVALID}


@dataclass(frozen=True)
class CurvePoint:
    """One load of a frame loss curve; ``loss_percent`` is null if it is not valid.

    ``of``: what 100 % is, in words.
    """

    load_percent: float
    load_fps: int
    loss_percent: float | None
    repeats: int
    valid: int
    trials: int
    timeouts: tuple[TimeoutLoss, ...] = ()
    directions: Mapping[str, float | None] = field(default_factory=dict)
    of: str = "load"


@dataclass(frozen=True)
class CellView:
    """One cell, finished or not. Rates are per direction."""

    id: str
    place: str
    procedure: str
    ip: str | None
    frame_size: int | None
    sizes: str
    profile: str
    direction: str
    judged: str
    badge: Badge
    result: CellResult | None
    trials: tuple[TrialRecord, ...]
    tester: TesterRecord
    paths: tuple[SearchPath, ...]

    @property
    def measured(self) -> bool:
        """Whether there is a number that may be quoted."""
        return self.badge is MEASURED

    @property
    def stream(self) -> str:
        """IP versions, frame sizes, the traffic profile and the place if named."""
        return f"{self._frames}{self.at}"

    @property
    def _frames(self) -> str:
        profile = f", {self.profile}" if self.profile else ""
        if self.connections is not None:
            up_to = "up to " if self.procedure == "table-capacity" else ""
            profile += f", {up_to}{whole(self.connections)} connections"
            profile += ", validated" if self.validated and not up_to else ""
        return f"{self.versions}, {self.sizes}{profile}"

    @property
    def at(self) -> str:
        """Ends what is told of the cell, if the run has several places."""
        return f", at {self.place}" if self.place else ""

    @property
    def versions(self) -> str:
        """``IPv4``, or left and right: ``IPv6-IPv4``."""
        return f"IPv{self.ip.replace('-', '-IPv')}" if self.ip else "IP"

    @property
    def name(self) -> str:
        """The procedure, and how it differs from that of the RFC: never left out."""
        name = PROCEDURES.get(self.procedure, "Trials")
        return f"{name} ({self.judged})" if self.judged else name

    @property
    def heading(self) -> str:
        """Procedure and stream, where the directions are told beside it."""
        return f"{self.name}, {self.stream}"

    @property
    def title(self) -> str:
        """Procedure, stream, and the direction if there is only one."""
        one_way = f", {self.ways}" if self.direction in ("forward", "reverse") else ""
        return f"{self.name}, {self._frames}{one_way}{self.at}"

    @property
    def line(self) -> str:
        """How a chart names it among cells of its procedure."""
        judged = f", {self.judged}" if self.judged else ""
        return f"{self._frames}, {self.ways}{judged}{self.at}"

    @property
    def measures(self) -> list[StreamMeasures]:
        """Measured delays, stream by stream."""
        return by_stream(self.result) if self.result and self.measured else []

    @property
    def load_fps(self) -> float | None:
        """The load at which delays were measured."""
        return max((trial.load_fps for trial in self.trials), default=None)

    @property
    def ways(self) -> str:
        """Directions in words."""
        return _WAYS.get(self.direction, self.direction)

    @property
    def setting(self) -> str:
        """Directions, and the search if it is another one than usual."""
        search = _SEARCHES.get(self.search)
        return f"{self.ways}, {search}" if search else self.ways

    @property
    def bidirectional(self) -> bool:
        """Whether frames went both ways at once."""
        return self.direction == "both"

    @property
    def median(self) -> float | None:
        """The result, if there is a valid one."""
        return self.result.median if self.result and self.measured else None

    @property
    def rate_fps(self) -> float | None:
        """The throughput, if this is one and it is valid."""
        return self.median if self.procedure == "throughput" else None

    @property
    def is_about_connections(self) -> bool:
        """Whether its result is one of the table of connections (RFC 9693)."""
        return self.procedure in CONNECTIONS

    @property
    def connections(self) -> int | None:
        """How many are opened, if they are."""
        if self.result is None:
            return None
        return _integer(self.result.parameters.get("connections"))

    @property
    def connection_addresses(self) -> str:
        """How many addresses its connections are between; empty: one on each side."""
        told = self.result.parameters if self.result else {}
        source = _integer(told.get("source_addresses")) or 1
        destination = _integer(told.get("destination_addresses")) or 1
        if source * destination == 1:
            return ""
        return f"{whole(source)} to {whole(destination)} addresses"

    @property
    def validated(self) -> bool:
        """Whether each connection had to let a frame back."""
        return bool(self.result and self.result.parameters.get("alpha"))

    @property
    def table_limits(self) -> tuple[str, str, str] | None:
        """Hash size, connections to it, and table size, if its hooks show any."""
        shown = self.result.limits if self.result else None
        if shown is None:
            return None
        buckets, sessions = shown.hash_size, self.connections
        ratio = about(sessions / buckets, 3) if sessions and buckets else MISSING
        return whole(buckets), ratio, whole(shown.table_size)

    @property
    def port_counts(self) -> tuple[str, str]:
        """How many source and destination ports its connections have (RFC 9693 6)."""
        told = self.result.parameters if self.result else {}
        source, destination = (
            ports_in(told.get(key)) for key in ("source_ports", "destination_ports")
        )
        return whole(source), whole(destination)

    @property
    def earlier(self) -> int:
        """Of how many connections of earlier tests the device may have known."""
        told = self.result.earlier if self.result else None
        return told.connections if told else 0

    def parameter(self, key: str) -> str:
        """One of its settings as text."""
        value = self.result.parameters.get(key) if self.result else None
        return MISSING if value is None else str(value)

    @property
    def flows(self) -> int | None:
        """Number of network flows, if that was chosen."""
        return _integer(self.result.parameters.get("flows")) if self.result else None

    @property
    def media(self) -> Media | None:
        """What the medium carries of its frames."""
        return self.result.media if self.result else None

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
    def wire_text(self) -> str:
        """The same; behind a translator directions differ."""
        found = dict.fromkeys(self.at_least + decimal(m) for m in self.wire.values())
        return " / ".join(found) or MISSING

    @property
    def values(self) -> list[float]:
        """What the valid repeats gave."""
        repeats = self.result.repeats if self.result and self.measured else []
        valid = [r.value for r in repeats if r.verdict != "invalid"]
        return [value for value in valid if value is not None]

    @property
    def several(self) -> bool:
        """Whether there is a spread to report."""
        return self.result is not None and len(self.result.repeats) > 1

    @property
    def repeats(self) -> str:
        """N; how many of how many, when some repeats gave nothing."""
        if self.result is None:
            return MISSING
        verdicts = [repeat.verdict for repeat in self.result.repeats]
        total = len(verdicts)
        valid = total - verdicts.count("invalid")
        return str(total) if valid == total else f"{valid} of {total}"

    @property
    def spread(self) -> list[str]:
        """p1, p99, least and most of the valid repeats (RFC 8219 12)."""
        return [
            self._of_spread(name)
            for name in ("percentile_1", "percentile_99", "minimum", "maximum")
        ]

    @property
    def interval(self) -> tuple[str, str]:
        """The ends of the confidence interval of the median."""
        return self._of_spread("interval_lower"), self._of_spread("interval_upper")

    @property
    def dispersion(self) -> str:
        """(p99 - p1) / median, as the papers on siitperf tell it."""
        return percent(self._spread.dispersion_percent if self._spread else None)

    @property
    def _spread(self) -> Spread | None:
        """As stored; of older files that of the repeats."""
        if self.result is None or not self.measured:
            return None
        valid = [r for r in self.result.repeats if r.verdict != "invalid"]
        return self.result.spread or overall(valid).spread

    def _of_spread(self, name: SpreadFigure) -> str:
        if self._spread is None:
            return MISSING
        value, bounds = getattr(self._spread, name), self._spread.lower_bounds
        sign = AT_LEAST if name in bounds else ""
        return MISSING if value is None else f"{sign}{self.text(value)}"

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
    def doubt(self) -> str:
        """In three words why a throughput is not that of all its repeats, if so."""
        if self.procedure != "throughput":
            return ""
        kinds = [finding.kind for finding in self.findings]
        return next((_DOUBTS[kind] for kind in kinds if kind in _DOUBTS), "")

    @property
    def counting_trials(self) -> list[TrialRecord]:
        """Those that its result may rest on: no short ones of a search."""
        return _counting(self.procedure, self.trials)

    @property
    def duration_s(self) -> str:
        """Durations of the cell's trials, in seconds; of a search those that count."""
        found = sorted({trial.request.duration_ns / 1e9 for trial in self.trials})
        if self.procedure == "throughput":
            found = found[-1:]
        return " / ".join(f"{seconds:g}" for seconds in found) or MISSING

    @property
    def full_load_fps(self) -> float | None:
        """What 100 % load means: of a curve's points, else the highest load tried."""
        if self.throughput_fps is not None:
            return self.throughput_fps
        if self.result and self.result.points:
            point = max(self.result.points, key=lambda point: point.load_percent)
            return point.load_fps * 100 / point.load_percent
        return max((trial.load_fps for trial in self.trials), default=None)

    @property
    def throughput_fps(self) -> int | None:
        """What a loss curve lies around, if it is not one from the maximum down."""
        found = self.result.load if self.result else None
        return found.rate_fps if found and self.procedure == "frame-loss" else None

    @property
    def curve(self) -> list[CurvePoint]:
        """The points of a frame loss curve, by rising load."""
        points = self.result.points if self.result else []
        ordered = sorted(points, key=lambda point: point.load_percent)
        of = "load" if self.throughput_fps is None else "of the throughput"
        return [_curve_point(point, of) for point in ordered]

    @property
    def curve_directions(self) -> list[str]:
        """Directions with a loss of their own beside the sum."""
        return list(dict.fromkeys(name for p in self.curve for name in p.directions))

    @property
    def timeout_rows(self) -> list[tuple[str, tuple[TimeoutLoss, ...]]]:
        """Loss over frame timeout of each load, the highest first."""
        return [
            (percent(point.load_percent), point.timeouts)
            for point in reversed(self.curve)
        ]

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
        known = self.result if self.median is not None else None
        return AT_LEAST if known and known.bound else ""

    @property
    def limit(self) -> str:
        """What a lower bound ended at; empty where it is none."""
        if self.result is None or not self.at_least:
            return ""
        return limit_words(self.result.bound_cause)

    @property
    def figure(self) -> str:
        """The median as this cell's unit wants it, and whether it is a lower bound."""
        value = self.median
        return MISSING if value is None else f"{self.at_least}{self.text(value)}"

    @property
    def search(self) -> str:
        """Which search of a throughput it was; empty where that was not stored."""
        return str(self.result.parameters.get("search", "")) if self.result else ""

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
        bounded = [path for path in self.paths if path.bounded]
        return bounded[-1] if bounded else None

    def text(self, value: float | None) -> str:
        """``value`` as this cell's unit wants it, without the unit if it is fps."""
        if self.procedure in DELAYS:
            return delay_ns(value)
        return percent(value) if self.procedure == "frame-loss" else whole(value)


def finished_cell(
    result: CellResult, trials: tuple[TrialRecord, ...], *, several: bool = False
) -> CellView:
    """The view of a cell that has a result, valid or not.

    ``several``: the run has more than one place, so the cell's is told.
    """
    badge = _BADGES[result.verdict]
    # A delay has no median when it is infinite: that is a result, too.
    known = result.median is not None or any(m.count for m in result.measures)
    if badge is MEASURED and not known:
        badge = INVALID
    place = (result.place or "") if several else ""
    return _view(result.id, place, result.procedure, trials, badge, result)


def open_cell(name: str, trials: tuple[TrialRecord, ...]) -> CellView:
    """The view of a cell that the run ended in: it has trials, but no result."""
    known = [procedure for procedure in PROCEDURES if name.startswith(procedure)]
    place = name.partition("@")[2]
    return _view(name, place, known[0] if known else "", trials, OPEN, None)


def _view(
    name: str,
    place: str,
    procedure: str,
    trials: tuple[TrialRecord, ...],
    badge: Badge,
    result: CellResult | None,
) -> CellView:
    parameters = result.parameters if result else {}
    found = {**_stream_of(trials), **parameters}
    return CellView(
        id=name,
        place=place,
        procedure=procedure,
        ip=str(found["ip"]) if found.get("ip") else None,
        frame_size=_integer(found.get("frame_size")),
        sizes=_sizes(found),
        profile=_profile(found),
        direction=str(found.get("direction", "")),
        judged=_judged(parameters, trials, result.goals if result else []),
        badge=badge,
        result=result,
        trials=trials,
        tester=tester_record(_counting(procedure, trials)),
        paths=tuple(
            search_paths(
                trials,
                bounded=not (result and result.goals),
                counting=_counting(procedure, trials),
            )
        ),
    )


def _profile(found: Mapping[str, object]) -> str:
    """The profile's name, and over how many flows it is spread."""
    flows, name = found.get("flows"), str(found.get("traffic") or "")
    if not isinstance(flows, int):
        return name
    # The default profile is called by its flows only.
    own = re.sub(r"-?flows\d+(-by-\w+)?$", "", name)
    by = " of addresses" if found.get("flows_by") == "addresses" else ""
    return ", ".join(part for part in (own, plural(flows, "flow") + by) if part)


def _stream_of(trials: Sequence[TrialRecord]) -> dict[str, str | int]:
    """What the trials themselves say of the cell."""
    if not trials:
        return {}
    directions = trials[0].request.directions
    stream = directions[0].streams[0]
    ways = "both" if len(directions) > 1 else directions[0].name
    return {
        "ip": stream.ip_version,
        "frame_size": stream.frame_sizes[0],
        "direction": ways,
    }


def _judged(
    parameters: Mapping[str, object],
    trials: Sequence[TrialRecord],
    goals: Sequence[GoalResult],
) -> str:
    """What makes the result another one than the RFC's, in words."""
    asked: dict[str, object] = {}
    if trials:
        request = trials[0].request
        asked["frame_timeout_ms"] = (request.frame_timeout_ns or 0) / 1e6
        asked["loss_tolerance_percent"] = request.loss_tolerance_ppb / 1e7
    asked.update(parameters)
    timeout_ms = asked.get("frame_timeout_ms")
    percent_lost = asked.get("loss_tolerance_percent")
    found = ["one tagged frame"] if parameters.get("legacy") else []
    if timeout_ms:
        found.append(f"frames within {timeout_ms:.12g}{NBSP}ms")
    if percent_lost:
        found.append(f"losing up to {percent_lost:.12g}{NBSP}%")
    if parameters.get("verify_trials"):
        found.append(f"losses verified by {parameters['verify_trials']} trials")
    found += [g.name for g in goals[:1] if g.loss_ratio or g.exceed_ratio]
    return ", ".join(found)


def _counting(procedure: str, trials: Sequence[TrialRecord]) -> list[TrialRecord]:
    """Those that the result may rest on."""
    return list(trials) if procedure in CONNECTIONS else full_length(trials)


def _curve_point(point: LoadPoint, of: str) -> CurvePoint:
    valid = sum(repeat.verdict != "invalid" for repeat in point.repeats)
    return CurvePoint(
        load_percent=point.load_percent,
        load_fps=point.load_fps,
        loss_percent=point.loss_percent if valid else None,
        repeats=len(point.repeats),
        valid=valid,
        trials=sum(repeat.trials for repeat in point.repeats),
        timeouts=tuple(point.timeouts),
        directions={d.direction: d.loss_percent for d in point.directions},
        of=of,
    )


def _sizes(found: Mapping[str, object]) -> str:
    """One size, 84/64 behind a translator, or the name of an IMIX."""
    size = _integer(found.get("frame_size"))
    told = str(found.get("frame_sizes", size or "unknown"))
    if size is None and "frame_sizes" in found:
        return told.partition(":")[0]
    number = f"{size:,}" if size and "/" not in told else told.partition(" ")[0]
    return f"{number}{NBSP}bytes"


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _parameter(value: str | float | None) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: MISSING}[value]
    return f"{value:,}" if isinstance(value, int | float) else value
