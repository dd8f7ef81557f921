"""What is safe for the tester: a search on the loop, then many trials that all pass.

A search ends at a rate that passed once. On a machine that is not the tester's alone
the next trial there may not, so the rate is lowered until so many trials in a row pass:
what the tester does each time. Losses on the loop are the links' (in a lab: those of
the device's CPU, which carries them), and limit what can be measured just as well.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dutperf import stats
from dutperf.config import Campaign, Testbed, expand, spec_from
from dutperf.errors import SetupError
from dutperf.model.cell import Cell
from dutperf.procedures.max_rate import max_rate
from dutperf.procedures.searching import NoUseError, outcome
from dutperf.procedures.stateful.establishing import Establishing, fastest, stateful_of
from dutperf.procedures.stateful.phased import trials_of
from dutperf.procedures.tester_limit import with_probed
from dutperf.procedures.trials import Ask, DeviceTrials
from dutperf.protocol.result_messages import DirectionResult, Histogram
from dutperf.results.environment import PortRecord
from dutperf.results.passport import PassportDelay, PassportEntry, PassportLag, Sent
from dutperf.results.trial_record import TrialRecord
from dutperf.search import Outcome, Resolution
from dutperf.search.binary import binary_search

# How long a CPU was busy, as the kernel counts what it was not.


_IDLE = (4, 5)  # idle and iowait, of a CPU's fields in /proc/stat, its name included
_PROC = Path("/proc")


def busy_since_now(cpu: int, proc: Path = _PROC) -> Callable[[], int]:
    """What it returns tells the nanoseconds that ``cpu`` has been busy since."""
    began_ns, idle_ns = time.monotonic_ns(), _idle_ns(cpu, proc)

    def busy_ns() -> int:
        passed_ns = time.monotonic_ns() - began_ns
        return max(0, passed_ns - (_idle_ns(cpu, proc) - idle_ns))

    return busy_ns


def _idle_ns(cpu: int, proc: Path) -> int:
    for line in (proc / "stat").read_text("ascii").splitlines():
        name, *ticks = line.split()
        if name == f"cpu{cpu}":
            idle = sum(int(ticks[place - 1]) for place in _IDLE)
            return idle * 10**9 // os.sysconf("SC_CLK_TCK")
    return 0


_MOST_FPS = 1_000_000_000
_ATTEMPTS = 3
_MAX_TRIALS = 60
_STEP_PERCENT = 95
_MOST_STEPS = 30
_WAIT_MS = 100
"""For the last frames: no device holds them."""
_DELAYS_AT_PERCENT = (10, 50)
"""Of the safe rate; and at that itself, in the trials that prove it."""


@dataclass(frozen=True)
class Thoroughness:
    """How thoroughly: ``trials`` must pass in a row, of ``trial_s`` each."""

    trial_s: float
    trials: int
    delay_trials: int
    resolution: str


FULL = Thoroughness(0.5, 20, 5, "2%")
SHORT = Thoroughness(0.15, 5, 2, "5%")
"""Some seconds: what a run makes by itself."""


_SELF_TEST_MS = 250
"""A quarter of what a query may take (RFC 8219 9.2.1)."""
OPENED_AT_FPS = 50_000
"""Where nobody knows how fast the tester learns connections."""


def cell_of(
    sent: Sent, testbed: Testbed, pace: Thoroughness, opened_at_fps: int = OPENED_AT_FPS
) -> Cell:
    """The frames of ``sent`` on a loop.

    ``opened_at_fps``: how fast connections are opened before they are used.

    Raises:
        InputError: they do not fit the loop.
    """
    most_fps = min(_MOST_FPS, testbed.max_rate_fps or _MOST_FPS)
    keys: dict[str, Any] = {
        "procedure": "connection-rate" if sent.opens else "throughput",
        "ip": [sent.ip],
        "traffic": [sent.traffic],
        "settle_wait_s": 0.0,
        "restabilise_wait_s": 0.0,
        "resolution": pace.resolution,
    }
    if sent.tcp:
        told = sent.tcp.model_dump(include={"until", "object_bytes", "mss"})
        keys |= {"procedure": "tcp-connection-rate", **told}
    elif sent.dns:
        keys |= {"procedure": "dns", "record": "AAAA"}
        keys |= {"frame_timeout_ms": _SELF_TEST_MS}
    elif "imix" not in sent.traffic:
        keys["frame_size"] = sent.frame_sizes
    if sent.connections is not None:
        # Rings have no media that could say what is more than enough.
        asked = {"connections": [sent.connections], "timeout_ms": _WAIT_MS}
        keys |= {"stateful": asked}
        keys["max_rate_fps"] = most_fps
    if not sent.opens:
        keys["direction"] = [sent.direction]
        wait_ms = 2 * _SELF_TEST_MS if sent.dns else _WAIT_MS
        keys |= {"trial_duration_s": pace.trial_s, "residual_wait_s": wait_ms / 1000}
    if sent.connections is not None and not sent.opens:
        keys["stateful"]["phase1_rate"] = min(opened_at_fps, most_fps)
    campaign = Campaign(
        name="passport", testbed=[testbed], procedures=[spec_from(keys, "passport")]
    )
    (cell,) = expand(campaign, testbed)
    return cell


@dataclass
class EntryMeasuring:
    """Makes one entry.

    workers: how many cores send and receive. What one core sends while it does not
        look it does not hold: it stands still altogether.
    device_cpu: where a lab's device would work; None: there is none.
    shared: that one takes in the tester's frames, too, in its block; None: always.
    """

    runner: DeviceTrials
    cell: Cell
    sent: Sent
    pace: Thoroughness
    ports: Sequence[PortRecord]
    workers: int = 1
    device_cpu: int | None = None
    shared: Callable[[], AbstractContextManager[None]] | None = None
    _failed: dict[int, TrialRecord] = field(default_factory=dict, init=False)
    _per_frame_ns: list[float] = field(default_factory=list, init=False)

    def entry(self) -> PassportEntry:
        """Search, prove, and look at the delays.

        Raises:
            EngineError, SetupError: see ``Trials.run``.
        """
        highest_fps = self._highest_fps()
        safe_fps, proof = self._proven(highest_fps)
        failed_at = min(self._failed, default=None)
        # What else the CPU did can only add to it.
        each_ns = min(self._per_frame_ns, default=None)
        return PassportEntry(
            sent=self.sent,
            made_at=datetime.now(UTC).isoformat("T", "seconds"),
            trial_duration_s=self.pace.trial_s,
            trials=len(proof),
            safe_rate_fps=safe_fps,
            highest_rate_fps=highest_fps,
            next_rate_fps=failed_at,
            why_not=_why(self._failed[failed_at]) if failed_at else "",
            lag=_lag(proof),
            delays=[] if safe_fps is None else [*self._delays(safe_fps, proof)],
            held_frames=_held(proof) if self.workers > 1 else None,
            device_ns_per_frame=each_ns,
            device_ns_if_shared=safe_fps and self._if_shared(safe_fps),
        )

    def _if_shared(self, safe_fps: int) -> float | None:
        """At the same rate, which need not be safe then."""
        if self.shared is None:
            return None
        self._per_frame_ns.clear()
        with self.shared():
            for _ in range(self.pace.delay_trials):
                self._watched(safe_fps)
        return min(self._per_frame_ns, default=None)

    def _highest_fps(self) -> int | None:
        limit = with_probed(
            self.runner, self.cell, max_rate(self.cell, self.ports), self.ports
        )
        if self.sent.connections and self.sent.opens:
            limit = fastest(limit, self.sent.connections)
        return binary_search(
            lambda rate_fps, _duration_s: self._outcome(self._run(rate_fps)),
            max_rate_fps=limit.rate_fps,
            duration_s=self.pace.trial_s,
            resolution=Resolution.parse(self.pace.resolution),
            attempts=_ATTEMPTS,
            max_trials=_MAX_TRIALS,
        ).rate_fps

    def _proven(self, highest_fps: int | None) -> tuple[int | None, list[TrialRecord]]:
        """The highest rate at which all trials pass, and these."""
        rate_fps = highest_fps or 0
        for _ in range(_MOST_STEPS):
            if rate_fps < 1:
                break
            self._per_frame_ns.clear()
            proof = list(self._passing(rate_fps))
            if len(proof) == self.pace.trials:
                return rate_fps, proof
            rate_fps = rate_fps * _STEP_PERCENT // 100
        return None, []

    def _passing(self, rate_fps: int) -> Iterator[TrialRecord]:
        """Trials until one does not pass."""
        for _ in range(self.pace.trials):
            record = self._watched(rate_fps)
            if self._outcome(record).verdict != "pass":
                return
            yield record

    def _watched(self, rate_fps: int) -> TrialRecord:
        """A trial, and what the device's CPU did for each of its frames.

        A test with connections is mostly waiting, in which it does other things.
        """
        if self.device_cpu is None or self.sent.connections is not None:
            return self._run(rate_fps)
        busy_ns = busy_since_now(self.device_cpu)
        record = self._run(rate_fps)
        took_ns = busy_ns()
        frames = sum(s.received for d in _directions([record]) for s in d.streams)
        if frames:
            self._per_frame_ns.append(round(took_ns / frames, 1))
        return record

    def _delays(
        self, safe_fps: int, proof: Sequence[TrialRecord]
    ) -> Iterator[PassportDelay]:
        for percent in _DELAYS_AT_PERCENT:
            rate_fps = max(1, safe_fps * percent // 100)
            records = [self._run(rate_fps) for _ in range(self.pace.delay_trials)]
            valid = [r for r in records if r.result.verdict.kind != "invalid"]
            yield from _delay(rate_fps, valid)
        yield from _delay(safe_fps, proof)

    def _run(self, rate_fps: int) -> TrialRecord:
        """A trial; of connections with phase 1 before it, or phase 1 itself."""
        if not self.sent.opens:
            return self._on_connections(rate_fps)
        test = Establishing(self.runner, self.cell, 1)
        try:
            return test.opened(stateful_of(self.cell), rate_fps).last
        except NoUseError:
            told = [reason.message for reason in test.troubles.at(rate_fps)]
            raise SetupError(
                f"no connections without a device: {'; '.join(told[:1])}"
            ) from None

    def _on_connections(self, rate_fps: int) -> TrialRecord:
        """A trial, of connections that were opened: else nobody knows of the rate."""
        asked = Ask(self.cell, rate_fps, duration_s=self.pace.trial_s)
        trials = trials_of(self.cell, self.runner)
        for _ in range(_ATTEMPTS - 1):
            record = trials.run(asked)
            if record.role != "phase1":
                return record
        return trials.run(asked)

    def _outcome(self, record: TrialRecord) -> Outcome:
        found = outcome(record.result)
        if found.verdict != "pass":
            self._failed[record.load_fps] = record
        return found


def _why(record: TrialRecord) -> str:
    verdict = record.result.verdict
    first = verdict.reasons[0].message if verdict.reasons else "no reason"
    return f"{verdict.kind}: {first}"


def _directions(records: Sequence[TrialRecord]) -> list[DirectionResult]:
    return [d for record in records for d in record.result.directions]


def _lag(records: Sequence[TrialRecord]) -> PassportLag | None:
    merged = stats.merged_histogram(d.lag_ns.buckets for d in _directions(records))
    if not merged:
        return None
    longest_ns = max(d.lag_ns.max or 0 for d in _directions(records))
    p50_ns, p99_ns = (
        min(stats.histogram_percentile(merged, p), longest_ns) for p in (50, 99)
    )
    return PassportLag(p50_ns=p50_ns, p99_ns=p99_ns, max_ns=longest_ns)


def _delay(rate_fps: int, records: Sequence[TrialRecord]) -> Iterator[PassportDelay]:
    """Nothing where no frame arrived."""
    found: list[Histogram] = [
        stream.delay_ns for d in _directions(records) for stream in d.streams
    ]
    merged = stats.merged_histogram(each.buckets for each in found)
    if merged:
        yield PassportDelay(
            rate_fps=rate_fps,
            frames=sum(count for _, _, count in merged),
            minimum_ns=min(each.min for each in found if each.min is not None),
            typical_ns=round(stats.histogram_median(merged)),
            worst_ns=stats.histogram_percentile(merged, 999, 1000),
        )


def _held(records: Sequence[TrialRecord]) -> int | None:
    """What arrived in the longest time in which nobody looked: none of it was lost."""
    held = [
        record.load_fps * (d.receive_gap_ns.max or 0) // 10**9
        for record in records
        for d in record.result.directions
    ]
    return max(held, default=None)
