"""What the device's own account says that the tester should have found.

Its counts are held against those of each trial. Figures follow from what it did: a
queue is full when the first frame is dropped, so of an overloaded trial the account
tells how fast the device really was: what it took, less what waited, by the time in
which it came. From that follows, as in docs/known-answer.md, what a trial of that
length, or a burst, or so many connections, should be lossless up to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dutperf import stats
from dutperf.lab.refdut_socket import (
    ClassAccount,
    DirectionAccount,
    Durations,
    NatAccount,
    TrialAccount,
)
from dutperf.protocol.base import DirectionName
from dutperf.protocol.result_messages import DirectionResult, TrialResult
from dutperf.results import TrialRecord
from tools.calibrate.model import Figure, Point

Buckets = Sequence[tuple[int, int, int]]
_S = 1_000_000_000
_BUCKETS = 1000
"""Values of one bucket of a histogram differ by a thousandth at most."""
_CLOCK_SHARE = 1e-3
"""How far two clocks of one machine may be apart, whatever calibrated the one."""
_READING_NS = 5000
"""Between two readings of clocks, where nothing comes in between."""
_DIRECTIONS: tuple[DirectionName, DirectionName] = ("forward", "reverse")


@dataclass(frozen=True)
class Witnessed:
    """``account`` is None where the device had none to give."""

    record: TrialRecord
    account: TrialAccount | None
    nat: NatAccount | None = None


Truth = Callable[[Point, Sequence[Witnessed]], float | None]
"""Of the trials of one repeat; None: the account does not tell."""


@dataclass(frozen=True)
class Counts:
    """One direction's frames; ``received`` are distinct ones."""

    sent: int
    received: int
    lost: int = 0
    duplicate: int = 0
    reordered: int = 0


def by_result(result: TrialResult) -> dict[str, Counts]:
    """Direction -> what the tester counted, of all its streams."""
    return {
        direction.name: Counts(
            sent=sum(s.sent for s in direction.streams),
            received=sum(s.received for s in direction.streams),
            lost=sum(s.lost for s in direction.streams),
            duplicate=sum(s.duplicate for s in direction.streams),
            reordered=sum(s.reordered for s in direction.streams),
        )
        for direction in result.directions
    }


def by_account(trial: TrialAccount) -> dict[str, Counts]:
    """What the tester must have counted, if the device speaks the truth.

    A corrupted frame is lost and not received, original or copy.
    """
    return {
        name: _by_class(*direction.classes)
        for name, direction in trial.directions.items()
        if any(c.seen for c in direction.classes)
    }


def contradictions(witnessed: Witnessed) -> Iterator[str]:
    """Where the tester's counts of a trial are not those of the device, in words.

    Frames that found the device's ring full never came in: they are sent and lost, and
    in no account.
    """
    if witnessed.account is None:
        return
    told = by_account(witnessed.account)
    for direction in witnessed.record.result.directions:
        counted = by_result(witnessed.record.result)[direction.name]
        known = told.get(direction.name, Counts(0, 0))
        truth = Counts(
            sent=known.sent + direction.ring_full,
            received=known.received,
            lost=known.lost + direction.ring_full,
            duplicate=known.duplicate,
            reordered=known.reordered,
        )
        for name in ("sent", "received", "lost", "duplicate", "reordered"):
            mine, its = getattr(counted, name), getattr(truth, name)
            if mine != its:
                yield (
                    f"trial {witnessed.record.number}, {direction.name}: {name} "
                    f"{mine:,}, by the device {its:,}"
                )
    for words in _by_witness(witnessed.record.result, witnessed.account):
        yield f"trial {witnessed.record.number}, {words}"


def _by_witness(result: TrialResult, account: TrialAccount) -> Iterator[str]:
    """Where what both sides share is wrong, by what the device reads without it.

    Clock, histograms, checksums and tags are the same code in tester and device: a
    mistake in them cancels in all other comparisons. Here each delay of the tester's
    has to be as long as the frame was in the device by the kernel's clock.
    """
    for direction in result.directions:
        told = account.directions[direction.name]
        read = told.readings
        for count, what in (
            (read.unreadable, "are no plain UDP packets"),
            (read.wrong_sums, "have wrong checksums"),
            (read.other_tags, "have another tag than was read"),
        ):
            if count:
                total = read.read + read.unreadable
                yield f"{direction.name}: {count:,} of {total:,} frames read {what}"
        for own in told.classes:
            by = own.witnessed
            if by.frames != own.left:
                yield f"{direction.name}: {own.left:,} left, {by.frames:,} were timed"
            least_ns = own.residence_ns.min or 0
            if by.frames and not _agree(by.least_ns, least_ns):
                yield (
                    f"{direction.name}: least residence {least_ns:,} ns, by the "
                    f"kernel's clock {by.least_ns:,} ns"
                )
        yield from _shorter_delays(direction, told)


def _agree(witnessed_ns: int, ns: int) -> bool:
    """The other clock is read first and last: its time may be longer, by a reading."""
    apart_ns = ns * _CLOCK_SHARE
    return ns - apart_ns <= witnessed_ns <= ns + apart_ns + _READING_NS


def _shorter_delays(
    direction: DirectionResult, told: DirectionAccount
) -> Iterator[str]:
    """No frame arrives sooner than it leaves the device; where all of them arrived."""
    delays = [s.delay_ns for s in direction.streams if s.delay_ns.count]
    times = [c.witnessed for c in told.classes]
    frames = sum(by.frames for by in times)
    copies = any(c.copies_left for c in told.classes)
    if not frames or copies or frames != sum(delay.count for delay in delays):
        return
    most_ns = sum(high * n for delay in delays for _, high, n in delay.buckets)
    kept_ns = sum(by.sum_ns for by in times)
    if most_ns < kept_ns * (1 - _CLOCK_SHARE) - frames * _READING_NS:
        yield (
            f"{direction.name}: delays of {most_ns / frames:,.0f} ns on average, and "
            f"frames were in the device for {kept_ns / frames:,.0f} ns"
        )


def _by_class(*classes: ClassAccount) -> Counts:
    """The sum over ``classes``."""
    intact = [c.left - sum(c.corrupted_left.values()) for c in classes]
    copies = [c.copies_left - sum(c.corrupted_copies_left.values()) for c in classes]
    sent = sum(c.seen for c in classes)
    return Counts(
        sent=sent,
        received=sum(intact),
        lost=sent - sum(intact),
        duplicate=sum(copies),
        reordered=sum(c.out_of_order for c in classes),
    )


def served_per_s(
    trials: Iterable[TrialAccount], direction: DirectionName, queue_frames: int
) -> float | None:
    """How fast the device was in the best of ``trials`` in which it was overloaded.

    It serves by its clock, never faster; others that have its CPU can only slow it.
    Of a trial that ended soon a single frame is too much of all.
    """
    told = list(trials)
    enough_ns = max((trial.lasted_ns for trial in told), default=0) / 2
    rates = []
    for trial in told:
        foreground = trial.directions[direction].foreground
        served = foreground.left - queue_frames - 1
        overloaded = foreground.dropped_by_queue or foreground.dropped_by_nat
        if overloaded and served > 0 and trial.lasted_ns >= max(enough_ns, 1):
            rates.append(served * _S / trial.lasted_ns)
    return max(rates, default=None)


def throughput(point: Point, trials: Sequence[Witnessed]) -> float | None:
    """Of the slower direction, by overloads; or the highest load that left whole.

    Near what its CPU can do a device is slower in an overload than before it. Without
    an overload nobody knows how much more it could have done.
    """
    by_overloads = _by_overloads(point, trials)
    return by_overloads and max([by_overloads, *_left_whole(trials)])


def _left_whole(trials: Sequence[Witnessed]) -> Iterator[float]:
    """Loads of which the device saw every frame in time and let every one go."""
    for trial in trials:
        request, account = trial.record.request, trial.account
        if account is None or not account.lasted_ns:
            continue
        whole = []
        for asked in request.directions:
            foreground = account.directions[asked.name].foreground
            frames = request.frames(asked)
            if foreground.left == foreground.seen == frames:
                whole.append((frames - 1) * _S / account.lasted_ns)
        if len(whole) == len(request.directions):
            yield min(*whole, *(asked.rate_fps for asked in request.directions))


def _by_overloads(point: Point, trials: Sequence[Witnessed]) -> float | None:
    told = _accounts(trials)
    found = []
    for direction in _DIRECTIONS:
        rate = served_per_s(told, direction, point.queue_frames)
        if rate is not None:
            duration_ns = trials[-1].record.request.duration_ns
            found.append(rate + (point.queue_frames + 1) * _S / duration_ns)
    return min(found, default=None)


def connection_rate(point: Point, trials: Sequence[Witnessed]) -> float | None:
    """C frames at r per second: r C / (r - s) are lost from when the queue is full."""
    rate = served_per_s(_accounts(trials), "forward", point.queue_frames)
    if rate is None:
        return None
    return rate / (1 - (point.queue_frames + 1) / point.connections)


def capacity(_point: Point, trials: Sequence[Witnessed]) -> float | None:
    """The most that its table ever held, if it has refused one more."""
    held = [trial.nat.connections for trial in trials if trial.nat]
    refused = any(trial.nat.refused for trial in trials if trial.nat)
    return max(held) if held and refused else None


def burst(_point: Point, trials: Sequence[Witnessed]) -> float | None:
    """As many frames as came before the first that the full queue dropped."""
    first = [
        account.forward.losses[0].first
        for account in _accounts(trials)
        if account.forward.losses
    ]
    return stats.median(first) if first else None


def lost(_point: Point, trials: Sequence[Witnessed]) -> float | None:
    """Frames that the device dropped, in both directions."""
    told = _accounts(trials[-1:])
    if not told:
        return None
    classes = [c for d in told[0].directions.values() for c in d.classes]
    return sum(c.seen - c.left for c in classes)


def typical_latency(_point: Point, trials: Sequence[Witnessed]) -> float | None:
    """Median of all frames' residence times, a random sample of which is tagged."""
    residence = _residence(trials)
    return stats.histogram_median(residence.buckets) if residence else None


def delay_variation(_point: Point, trials: Sequence[Witnessed]) -> float | None:
    """As RFC 8219 7.3.1 has it, of residence times."""
    residence = _residence(trials)
    if residence is None or residence.min is None:
        return None
    high = stats.histogram_percentile(residence.buckets, 999, 1000)
    return high - residence.min


def latency_error_ns(
    trials: Sequence[Witnessed], handover_ns: int
) -> tuple[float, float]:
    """Least and largest error of a median that both sides' own errors account for.

    A frame's delay is what the device kept it for, what the tester states it may have
    added (its send call and the gap between its polls), and how long the frame may have
    waited until the device looked. All but a hundredth of the frames have at most the
    99th percentile of each, so the sum's median is at most these three together and the
    device's 53rd percentile; the same holds of any other share.

    ``handover_ns``: until one CPU sees what another has written, which is in nobody's
    stamps; on its way through the device a frame is handed over twice.
    """
    ranges = (_error_ns(trials, 500, apart) for apart in (1, 10, 50, 100))
    least, most = _narrowest(ranges)
    return least, most + 2 * handover_ns


def variation_error_ns(
    trials: Sequence[Witnessed], handover_ns: int
) -> tuple[float, float]:
    """The same of D99.9 - Dmin; the smallest may be late by what is usual."""
    ranges = (_error_ns(trials, 999, apart) for apart in (0.05, 0.1, 0.25))
    least, most = _narrowest(ranges)
    usual = sum(_at(part, 500) for part in _added(trials)) + 2 * handover_ns
    return least - usual, most + 2 * handover_ns


TRUTHS: Mapping[Figure, Truth] = {
    "throughput": throughput,
    "TL": typical_latency,
    "PDV": delay_variation,
    "lost": lost,
    "connection rate": connection_rate,
    "capacity": capacity,
    "burst": burst,
}


def _accounts(trials: Sequence[Witnessed]) -> list[TrialAccount]:
    return [trial.account for trial in trials if trial.account]


def _residence(trials: Sequence[Witnessed]) -> Durations | None:
    told = _accounts(trials[-1:])
    if not told:
        return None
    residence = told[0].forward.foreground.residence_ns
    return residence if residence.count else None


def _narrowest(ranges: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Each holds, so both the highest lower end and the lowest upper end do."""
    least, most = zip(*ranges, strict=True)
    return max(least), min(most)


def _error_ns(
    trials: Sequence[Witnessed], per_mille: int, apart: float
) -> tuple[float, float]:
    """Of the percentile ``per_mille``; ``apart``: so many per mille for each part."""
    residence, added = _residence(trials), _added(trials)
    if residence is None:
        return 0.0, 0.0
    own = _accounts(trials[-1:])[0].forward.own_error_ns.buckets
    here = _at(residence.buckets, per_mille)
    further = min(1000, per_mille + len(added) * apart)
    most = _at(residence.buckets, further) - here
    most += sum(_at(part, 1000 - apart) for part in added)
    least = _at(residence.buckets, per_mille - apart) - here - _at(own, 1000 - apart)
    rounding = here / _BUCKETS
    return least - rounding, most + rounding


def _added(trials: Sequence[Witnessed]) -> list[Buckets]:
    """What a delay has beside the device's residence time: histograms."""
    told = _accounts(trials[-1:])
    if not told:
        return []
    direction = trials[-1].record.result.directions[0]
    parts = (direction.send_call_ns, direction.receive_gap_ns)
    device = told[0].forward.poll_gap_ns
    return [part.buckets for part in (*parts, device) if part.count]


def _at(buckets: Buckets, per_mille: float) -> int:
    if not buckets:
        return 0
    return stats.histogram_percentile(buckets, round(per_mille * 100), 100_000)
