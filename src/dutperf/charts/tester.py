"""Whether the tester itself was measured: pacing lag, its own drops, strange frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dutperf.charts.text import duration_ns, plural
from dutperf.protocol.result_messages import Histogram, PortReport, ReasonCode
from dutperf.results import TrialRecord
from dutperf.results.device_words import icmp_counts, inspected
from dutperf.stats import histogram_percentile, merged_histogram

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
        invalid=len(invalid),
        invalid_reasons=dict(Counter(reasons)),
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
