"""What one trial, or several, say: rates, counts, and the search they belong to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from dutperf.catalogue import PROCEDURES
from dutperf.charts.text import duration_ns, percent, plural, whole
from dutperf.protocol.result_messages import (
    Damage,
    DirectionResult,
    Histogram,
    PortReport,
    ReasonCode,
    ShareReport,
    StreamResult,
)
from dutperf.results import TrialRecord
from dutperf.results.device_words import icmp_counts, inspected
from dutperf.results.trial_record import TrialRole
from dutperf.results.words import RECEIVED, kinds_words
from dutperf.stats import histogram_percentile, merged_histogram
from dutperf.tables import full_length

ROLES: dict[TrialRole, str] = {
    "trial": "",
    "first_frames": "first frames: does the device forward?",
    "probe": "probe: what the ports can offer",
    "phase1": "phase 1",
    "validation": "validation",
    "damage": RECEIVED,
    "cache": "names for the server's cache",
}
"""What a trial was for, where it is not one of the cell's own."""


@dataclass(frozen=True)
class SearchStep:
    """One trial of a search, what it tried, and the bounds before it.

    These are rates or bursts, per direction. ``counts``: it is no short one, that only
    shows where to look.
    """

    position: int
    trial: TrialRecord
    tried: int
    lower: int
    upper: int
    counts: bool = True


@dataclass(frozen=True)
class SearchPath:
    """One repeat of a search, with the bounds it ended with.

    ``bounded`` is false where trials have no bounds in common: short ones that only
    show where to look, and those of several goals.
    """

    repeat: int
    steps: tuple[SearchStep, ...]
    lower: int
    upper: int
    bounded: bool = True


@dataclass(frozen=True)
class Totals:
    """Frames of one trial, all directions together."""

    sent: int
    received: int
    lost: int
    late: int
    duplicate: int

    @property
    def gone(self) -> int:
        """What results count as lost: late frames, too, where there is a timeout."""
        return self.lost + self.late

    @property
    def loss_percent(self) -> float | None:
        """RFC 2544 26.3: lost in percent of what was sent, late ones among them."""
        return self.gone * 100 / self.sent if self.sent else None

    @property
    def word(self) -> str:
        """What these frames are."""
        return "lost or late" if self.late else "lost"


_WORTH_TELLING = 3
"""Frames lost in a row: two are not rare where many are lost."""


def is_burst(trial: TrialRecord) -> bool:
    """Whether its search varies how many frames are sent, and not how fast."""
    return bool(trial.procedure and PROCEDURES[trial.procedure].varied == "burst")


def tried_in(trial: TrialRecord) -> int:
    """Frames per second, or frames of a burst, per direction: what is searched for."""
    if is_burst(trial):
        return trial.request.frames(trial.request.directions[0])
    return trial.load_fps


def search_paths(
    trials: Sequence[TrialRecord],
    *,
    bounded: bool = True,
    counting: Sequence[TrialRecord] | None = None,
) -> list[SearchPath]:
    """The bounds of each repeat, told from its verdicts; explorations are apart.

    A pass raises the lower bound, a fail lowers the upper one, unless the same rate is
    tried once more; an invalid trial says nothing about the DUT and moves neither.
    ``counting``: those that are no explorations; None: the longest.
    """
    paths: list[SearchPath] = []
    position = 0
    known = full_length(trials) if counting is None else counting
    counts = {trial.number for trial in known}

    def kind(trial: TrialRecord) -> tuple[int, bool, int]:
        # A search for a burst that could not be offered begins anew at a lower rate.
        rate_fps = trial.load_fps if is_burst(trial) else 0
        return trial.repeat, trial.number in counts or not bounded, rate_fps

    for (repeat, full, _), group in groupby(trials, kind):
        path = _search_path(
            repeat, list(group), position, counts, bounded=bounded and full
        )
        position += len(path.steps)
        paths.append(path)
    return paths


def _search_path(
    repeat: int,
    trials: list[TrialRecord],
    before: int,
    counts: Collection[int],
    *,
    bounded: bool,
) -> SearchPath:
    values = [tried_in(trial) for trial in trials]
    lower, upper = 0, max(values)
    steps = []
    for index, (trial, value) in enumerate(zip(trials, values, strict=True)):
        position = before + index + 1
        steps.append(
            SearchStep(position, trial, value, lower, upper, trial.number in counts)
        )
        again = values[index + 1 : index + 2] == [value]
        if trial.result.verdict.kind == "pass":
            lower = max(lower, value)
        elif trial.result.verdict.kind == "fail" and not again:
            upper = min(upper, value)
    return SearchPath(repeat, tuple(steps), lower, upper, bounded)


def totals(trial: TrialRecord) -> Totals:
    """Frames of all streams of ``trial``."""
    return _totals(_streams(trial.result.directions))


def totals_by_stream(trial: TrialRecord) -> list[tuple[str, Totals]]:
    """Frames of the foreground and of the background; empty if there is only one."""
    streams = list(_streams(trial.result.directions))
    names = dict.fromkeys(stream.name for stream in streams)
    if len(names) == 1:
        return []
    return [(name, _totals(s for s in streams if s.name == name)) for name in names]


def damaged(trial: TrialRecord) -> str:
    """How many frames arrived damaged, and how; empty: none."""
    streams = list(_streams(trial.result.directions))
    count = sum(stream.corrupt for stream in streams)
    kinds = kinds_words(sum((s.damaged or Damage() for s in streams), Damage()))
    return kinds or (whole(count) if count else "")


def _totals(streams: Iterable[StreamResult]) -> Totals:
    streams = list(streams)
    return Totals(
        sent=sum(stream.sent for stream in streams),
        received=sum(stream.received for stream in streams),
        lost=sum(stream.lost for stream in streams),
        late=sum(stream.late for stream in streams),
        duplicate=sum(stream.duplicate for stream in streams),
    )


def _streams(directions: Iterable[DirectionResult]) -> Iterable[StreamResult]:
    return (stream for direction in directions for stream in direction.streams)


def offered(trial: TrialRecord) -> str:
    """Offered load per direction; both when they differ by a frame per second."""
    rates = [whole(d.offered_rate_fps) for d in trial.result.directions]
    return " / ".join(dict.fromkeys(rates))


def loss(trial: TrialRecord) -> str:
    """``none`` or the number of lost and late frames and their share.

    Of a trial that failed also whether they left in the light: not while the DUT may
    have suffered from a stall of the tester.
    """
    frames = totals(trial)
    if frames.gone == 0:
        return "none"
    parts = ", ".join(
        f"{name} {percent(of_stream.loss_percent)}"
        for name, of_stream in totals_by_stream(trial)
    )
    share = percent(frames.loss_percent) + (f"; {parts}" if parts else "")
    late = f", {whole(frames.late)} of them late" if frames.late else ""
    beside = f"{late}{_in_a_row(trial)}{_in_light(trial)}"
    return f"{plural(frames.gone, 'frame')} ({share}){beside}"


def _in_a_row(trial: TrialRecord) -> str:
    """The longest interruption: frames of a stream, and how long they were due."""
    runs = [s.longest_loss for s in _streams(trial.result.directions) if s.longest_loss]
    longest = max(runs, key=lambda run: run.frames, default=None)
    if longest is None or longest.frames < _WORTH_TELLING:
        return ""
    if longest.end_ns is None:
        return f", the last {whole(longest.frames)} in a row"
    took = duration_ns(longest.end_ns - longest.begin_ns)
    return f", {whole(longest.frames)} of them in a row for {took}"


def _in_light(trial: TrialRecord) -> str:
    """Nothing of trials whose journal does not tell of shadows."""
    directions = trial.result.directions
    told = all("shadows" in direction.model_fields_set for direction in directions)
    if not told or trial.result.verdict.kind != "fail":
        return ""
    shaded = sum(s.lost_in_shadow for d in directions for s in d.streams)
    if shaded == 0:
        return ", all outside recovery windows"
    return f", {whole(totals(trial).lost - shaded)} of them outside recovery windows"


def verdict(trial: TrialRecord) -> str:
    """The trial's, in a word; empty where it says nothing: of a probe."""
    return "" if trial.role == "probe" else trial.result.verdict.kind


def reasons(trial: TrialRecord) -> str:
    """Why the verdict is what it is; of a probe, why there is none."""
    if trial.role == "probe":
        return "its frames have a MAC address that no host has: all are lost"
    told = [reason.message for reason in trial.result.verdict.reasons]
    if trial.result.ended_early:
        sending_ns = max(d.sending_ns for d in trial.result.directions)
        told.append(f"ended early, after {duration_ns(sending_ns)}")
    return "; ".join(told)


# Whether the tester itself was measured: pacing lag, its own drops, strange frames.


_PORT_DROPS = ("rx_missed", "rx_nombuf", "tx_errors")
_KERNEL_DROPS = ("interface_drops", "send_drops")
"""Below the port: frames of others may be among them."""
_STRANGE = ("foreign", "stale", "misdirected", "other_vlan", "corrupt")


@dataclass(frozen=True)
class Lag:
    """How late frames left, in nanoseconds behind their schedule."""

    p50_ns: int
    p99_ns: int
    max_ns: int


@dataclass(frozen=True)
class ShareView:
    """What one of several shares of a direction's work did in all these trials."""

    name: str
    sent: int
    max_lag_ns: int
    port_full_ns: int
    received: int
    longest_gap_ns: int


@dataclass(frozen=True)
class TesterRecord:
    """The tester during the trials that one result rests on."""

    trials: int
    lag: Lag | None
    stalls: int
    longest_stall_ns: int | None
    lost_in_shadow: int
    tx_full: int
    drops: dict[str, int]
    strange: dict[str, int]
    icmp: dict[str, int]
    damaged: int
    device_drops: dict[str, int]
    pauses: dict[str, int]
    inspected: int
    altered: dict[str, int]
    shares: tuple[ShareView, ...]
    handed_over: int
    invalid: int
    invalid_reasons: dict[ReasonCode, int]

    @property
    def dropped(self) -> int:
        """Frames the tester itself lost."""
        return sum(self.drops.values())


def tester_record(trials: Sequence[TrialRecord]) -> TesterRecord:
    """Sum up the trials of one cell.

    A result rests on all valid ones: a search on those that failed, too.
    """
    used = [trial for trial in trials if trial.result.verdict.kind != "invalid"]
    invalid = [trial for trial in trials if trial.result.verdict.kind == "invalid"]
    lossy = [trial for trial in used if trial.result.verdict.kind == "fail"]
    directions = [d for trial in used for d in trial.result.directions]
    stalls = [stall for direction in directions for stall in direction.stalls]
    streams = inspected(trials)
    ports = [port for trial in used for port in trial.result.ports]
    # Both directions may give the same reason; it is one trial all the same.
    reasons = [
        code
        for trial in invalid
        for code in dict.fromkeys(r.code for r in trial.result.verdict.reasons)
    ]
    return TesterRecord(
        trials=len(used),
        lag=lag_of(direction.lag_ns for direction in directions),
        stalls=len(stalls),
        longest_stall_ns=max((stall.max_lag_ns for stall in stalls), default=None),
        lost_in_shadow=sum(s.lost_in_shadow for d in directions for s in d.streams),
        tx_full=sum(direction.tx_full for direction in directions),
        drops={name: sum(_rise(p, name) for p in ports) for name in _PORT_DROPS}
        | {"not_taken_over": sum(p.not_taken_over for p in ports)}
        | _kernel_drops(lossy),
        strange={name: sum(getattr(p, name) for p in ports) for name in _STRANGE},
        icmp=icmp_counts(message for p in ports for message in p.icmp),
        damaged=sum(_rise(p, "rx_errors") + p.damaged_on_wire for p in ports),
        device_drops=_device_drops(
            t for t in trials if t.result.verdict.kind != "invalid"
        ),
        pauses=_pauses(trials),
        inspected=sum(stream.frames for stream in streams),
        altered=dict(sum((Counter(stream.altered) for stream in streams), Counter())),
        shares=tuple(_shares(directions)),
        handed_over=sum(p.handed_over for p in ports),
        invalid=len(invalid),
        invalid_reasons=dict(Counter(reasons)),
    )


def _shares(directions: Iterable[DirectionResult]) -> Iterator[ShareView]:
    """Of each direction, by their numbers; none where its work was not split."""
    found: dict[str, list[ShareReport]] = {}
    for direction in directions:
        for number, report in enumerate(direction.by_share, start=1):
            name = f"{direction.name}, share {number} of {len(direction.by_share)}"
            found.setdefault(name, []).append(report)
    for name, reports in found.items():
        yield ShareView(
            name,
            sent=sum(each.sent for each in reports),
            max_lag_ns=max(each.max_lag_ns for each in reports),
            port_full_ns=sum(each.port_full_ns for each in reports),
            received=sum(each.received for each in reports),
            longest_gap_ns=max(each.longest_gap_ns for each in reports),
        )


def _kernel_drops(lossy: Sequence[TrialRecord]) -> dict[str, int]:
    """Below the ports, in trials that lost frames: else they were no test frames."""
    drops = {
        name: sum(getattr(p, name) for t in lossy for p in t.result.ports)
        for name in _KERNEL_DROPS
    }
    queues = sum(trial.result.input_queue_drops for trial in lossy)
    return drops | {"input_queue_drops": queues}


def _device_drops(trials: Iterable[TrialRecord]) -> dict[str, int]:
    """Where a lab's device dropped frames, in words, and how many; those it knows."""
    found: Counter[str] = Counter()
    for drops in (trial.device_drops for trial in trials):
        if drops is None:
            continue
        found["input queue"] += drops.input_queue
        for side, counters in drops.interfaces.items():
            for name, count in counters.items():
                found[f"{side} {name}"] += count
    return {where: count for where, count in found.items() if count}


def _pauses(trials: Iterable[TrialRecord]) -> dict[str, int]:
    """Pause frames by port and counter, of those that rose; also of invalid trials."""
    found: Counter[str] = Counter()
    for port in (port for trial in trials for port in trial.result.ports):
        before = {each.name: each.count for each in port.before.pauses}
        for each in port.after.pauses:
            rise = each.count - before.get(each.name, 0)
            found[f"{port.label} {each.name}"] += max(rise, 0)
    return {where: count for where, count in found.items() if count}


def lag_of(histograms: Iterable[Histogram]) -> Lag | None:
    """Percentiles over all frames of all ``histograms``; None if there are none."""
    found = list(histograms)
    largest = max((each.max or 0 for each in found), default=0)
    buckets = merged_histogram(each.buckets for each in found)
    if not buckets:
        return None
    # A bucket's upper end may lie beyond the largest value really seen.
    p50, p99 = (min(histogram_percentile(buckets, p), largest) for p in (50, 99))
    return Lag(p50, p99, largest)


def _rise(port: PortReport, counter: str) -> int:
    before, after = getattr(port.before, counter), getattr(port.after, counter)
    return int(after) - int(before)


def verdict_on(records: Sequence[TesterRecord]) -> str:
    """One sentence on all cells: did the tester stay out of its own way."""
    trials = sum(record.trials for record in records)
    if trials == 0:
        return "No trial was valid, so nothing is known about the tester's share."
    lags = [record.lag.max_ns for record in records if record.lag]
    worst = f" Its largest pacing lag was {duration_ns(max(lags))}." if lags else ""
    dropped = sum(record.dropped for record in records)
    if dropped:
        return (
            f"The tester's own ports dropped {plural(dropped, 'frame')} in the trials "
            f"counted below: these results may be the tester's.{worst}"
        )
    return (
        f"In the {plural(trials, 'trial')} behind these results the tester's own ports "
        f"dropped no frame.{worst}"
    )
