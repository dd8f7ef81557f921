"""Trials at a load that is given: each repeat is one trial that the tester vouches for.

What the DUT loses meanwhile does not fail a repeat: RFC 8219 wants delays at the
throughput, where every other trial may lose a frame. It is counted and said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from itertools import chain

from dutperf import stats
from dutperf.config.deviations import other_load
from dutperf.config.rate_sources import check_load
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.model.loads import RateReference
from dutperf.procedures.cell_results import of_cell
from dutperf.procedures.events import OnEvent
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.searching import outcome
from dutperf.procedures.trials import (
    ATTEMPTS,
    PATIENT_ATTEMPTS,
    Ask,
    Trials,
    comes_and_goes,
    could_not_offer,
    is_final,
    no_rate_helps,
)
from dutperf.protocol.result_messages import Reason, StreamResult, TrialResult
from dutperf.results.bounds import valued
from dutperf.results.details import FrameCount
from dutperf.results.model import CellResult, is_by_the_book
from dutperf.results.rate_results import BoundCause, Load
from dutperf.results.trial_record import TrialRecord
from dutperf.search import attempted, tells_nothing
from dutperf.standards import Deviation


@dataclass(frozen=True)
class Repeat:
    """One repeat; ``result`` is null when all its trials were invalid."""

    result: TrialResult | None
    trials: int
    reasons: list[Reason]


def run_repeats(
    runner: Trials,
    ask: Ask,
    hopeless: Callable[[Sequence[Reason]], bool],
    tried: Sequence[TrialResult] = (),
) -> list[Repeat]:
    """Measure as often as the cell says; invalid trials are run again.

    Args:
        runner: runs the trials.
        ask: for the trial.
        hopeless: whether a repeat that stayed invalid for these reasons is the last.
        tried: the first trials of the first repeat, where they were run already.

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    repeats: list[Repeat] = []
    for number in range(1, ask.cell.repeats + 1):
        asked = replace(ask, repeat=number, attempts=PATIENT_ATTEMPTS)
        more = (runner.run(asked).result for _ in range(PATIENT_ATTEMPTS))
        repeats.append(_repeat(attempted(chain(tried, more), _may_try_again)))
        tried = ()
        if hopeless(repeats[-1].reasons):
            break
    return repeats


@dataclass
class Recorded:
    """Trials whose records are kept: they tell what was done, or read, meanwhile."""

    runner: Trials

    def __post_init__(self) -> None:
        self._records: list[TrialRecord] = []

    @property
    def on_event(self) -> OnEvent:
        """The runner's."""
        return self.runner.on_event

    @property
    def finished(self) -> int:
        """The runner's."""
        return self.runner.finished

    def run(self, ask: Ask) -> TrialRecord:
        """See ``Trials``."""
        self._records.append(self.runner.run(ask))
        return self._records[-1]

    def of(self, repeats: Sequence[Repeat]) -> list[TrialRecord]:
        """The last trial of each repeat."""
        ends = [0]
        for repeat in repeats:
            ends.append(ends[-1] + repeat.trials)
        return [self._records[end - 1] for end in ends[1:]]


def _repeat(tried: Sequence[TrialResult]) -> Repeat:
    last = tried[-1]
    if last.verdict.kind == "invalid":
        return Repeat(None, len(tried), last.verdict.reasons)
    return Repeat(last, len(tried), [])


def same_each_time(reasons: Sequence[Reason]) -> bool:
    """What the tester could not offer time after time it will not offer later."""
    return could_not_offer(reasons) or no_rate_helps(reasons)


def _may_try_again(tried: Sequence[TrialResult]) -> bool:
    """Whether a load is tried once more after these trials.

    What the tester cannot offer, as trials that agree say, it will not offer then.
    """
    verdict = tried[-1].verdict
    if verdict.kind != "invalid" or is_final(verdict.reasons):
        return False
    if len(tried) < ATTEMPTS:
        return True
    told = [outcome(result) for result in tried]
    return comes_and_goes(verdict.reasons) and tells_nothing(told, 0, PATIENT_ATTEMPTS)


def valid_results(repeats: Iterable[Repeat]) -> list[TrialResult]:
    """The trials that count."""
    return [repeat.result for repeat in repeats if repeat.result]


def frame_counts(results: Sequence[TrialResult]) -> list[FrameCount]:
    """Frames of each direction and stream, over all ``results``."""
    found: dict[tuple[str, int], FrameCount] = {}
    for result in results:
        for direction in result.directions:
            for stream in direction.streams:
                counted = FrameCount(
                    direction=direction.name,
                    stream=stream.name,
                    **{key: getattr(stream, key) for key in _COUNTED},
                )
                before = found.get((direction.name, stream.id))
                found[direction.name, stream.id] = _sum(counted, before)
    return list(found.values())


def remarks(results: Sequence[TrialResult]) -> list[Reason]:
    """What a user should know of trials that count nevertheless."""
    found = []
    for count in frame_counts(results):
        where = f"{count.direction} {count.stream}"
        if count.lost:
            found.append(
                Reason(
                    code="frames_lost",
                    message=f"{where}: {count.lost:,} of {count.sent:,} frames were "
                    f"lost{_in_trials(results, count, 'lost')}",
                    hint="delays are those of the frames that arrived; lower the rate "
                    "for a load without loss",
                )
            )
        if count.negative_delays:
            found.append(
                Reason(
                    code="clock_unstable",
                    message=f"{where}: {count.negative_delays:,} frames arrived before "
                    "they left, by the tester's clocks; they have no delay",
                    hint="the clocks of the tester's cores are not in step: use cores "
                    "of one socket, and an invariant TSC",
                )
            )
    return found


_COUNTED = ("sent", "received", "lost", "late", "negative_delays")


def _sum(count: FrameCount, before: FrameCount | None) -> FrameCount:
    if before is None:
        return count
    sums = {key: getattr(count, key) + getattr(before, key) for key in _COUNTED}
    return count.model_copy(update=sums)


def _in_trials(results: Sequence[TrialResult], count: FrameCount, key: str) -> str:
    with_any = sum(
        any(getattr(stream, key) for stream in _streams(result, count))
        for result in results
    )
    return f", in {with_any} of {len(results)} trials"


def _streams(result: TrialResult, count: FrameCount) -> list[StreamResult]:
    return [
        stream
        for direction in result.directions
        for stream in direction.streams
        if (direction.name, stream.name) == (count.direction, count.stream)
    ]


# The load of latency, PDV and IPDV: as given, or the throughput found before.
#
# A frame loss curve lies around that throughput, or goes down from the maximum rate.
#
# What was found is a function of the earlier cell's result, so a run that is resumed
# comes to the same load.


def found_load(
    cell: Cell, limit: MaxRate, done: Iterable[CellResult]
) -> MaxRate | CellResult:
    """The load of ``cell``, if it is one that was to be found; else ``limit``.

    Where what was found is not the load itself, ``limit`` is the most there may be; if
    it is not known then, ``limit`` alone, which says so.

    Or, when it cannot be measured, its result: invalid, without a trial.
    """
    asked = cell.spec.rate_reference
    if asked is None:
        return limit
    source = next(r for r in done if r.id == cell.throughput_cell)
    if source.verdict != "pass" or not source.median:
        if cell.spec.reference_use in ("full load", "correction"):
            return replace(limit, shortfall=unknown(source, "throughput"))
        return unmeasured(cell, limit, _no_throughput(source))
    load = _load(asked, source)
    if load.rate_fps < 1:
        return unmeasured(cell, limit, _too_low(load))
    if cell.spec.reference_use != "load":
        return replace(load, most=limit)
    try:
        check_load(cell.with_keys(rate_fps=load.rate_fps))
    except InputError as error:
        return unmeasured(cell, limit, _does_not_fit(load, error))
    return load


_MOST: dict[BoundCause, str] = {
    "tester": "as much as the tester could offer",
    "disturbed": "as much as the tester could offer undisturbed",
    "held_back": "as much as what stopped the tester let through",
    "set": "as much as the search was allowed to ask for",
    "nominal": "as much as the virtual link names",
    "short_tests": "as much as the tests proved",
    "kept": "as much as was tried",
}


def load_deviations(cell: Cell, load: MaxRate) -> list[Deviation]:
    """That the load is not the throughput of the standard, if it is not."""
    if (
        not load.shortfall
        or not cell.spec.rate_reference
        or not cell.spec.rate_reference.plain
    ):
        return []
    return [other_load(cell, f"at {load.rate_fps:,} fps, {load.shortfall}")]


def load_words(load: MaxRate) -> str:
    """For the name of a result: ``468,113 fps per direction``, and where it is from."""
    found = f"{load.words}, " if load.kind == "found" else ""
    return f"{found}{load.rate_fps:,} fps per direction"


def load_record(cell: Cell, load: MaxRate) -> Load:
    """The load as it is stored with the result."""
    return Load(
        rate_fps=load.rate_fps,
        asked=str(cell.spec.rate_reference or cell.spec.given_rate_fps),
        cell=cell.throughput_cell,
        words=load.words,
    )


def _load(asked: RateReference, source: CellResult) -> MaxRate:
    values, at_least = valued(source.repeats)
    statistic: stats.Statistic = stats.median
    kind = "median"
    if asked.percentile is not None:
        statistic = partial(stats.percentile, numerator=asked.percentile)
        kind = f"{_ordinal(asked.percentile)} percentile"
    found_fps, is_bound = stats.estimate(statistic, values, at_least)
    count = f"{len(values)} repeats" if len(values) > 1 else "one repeat"
    of = count if len(values) == 1 and kind == "median" else f"{kind} of {count}"
    capped = _capped(source) if is_bound else ""
    plain = is_by_the_book(source)
    name = "throughput" if plain else source.quantity
    told = f", {capped}" if capped else ""
    share = _share(asked.share_percent, found_fps)
    return MaxRate(
        asked.of(found_fps),
        "found",
        f"{share}the {name} found: {of}{told}",
        capped if plain else f"the {name}",
    )


def _capped(source: CellResult) -> str:
    """The device may do more than was asked of it."""
    causes = [repeat.bound_cause for repeat in source.repeats if repeat.bound_cause]
    return _MOST[causes[0]] if causes else ""


def _share(percent: Decimal, found_fps: float) -> str:
    return "" if percent == 100 else f"{percent:f} % of {found_fps:,.0f} fps, "


def _ordinal(number: int) -> str:
    tens, ones = divmod(number, 10)
    endings = {1: "st", 2: "nd", 3: "rd"} if tens != 1 else {}
    return f"{number}{endings.get(ones, 'th')}"


def unmeasured(cell: Cell, limit: MaxRate, *reasons: Reason) -> CellResult:
    """The result of a cell of which nothing was sent, or nothing came back."""
    rate = cell.spec.rate_reference or cell.spec.given_rate_fps
    at = f" at {rate}" if rate else ""
    told = of_cell(cell, limit)
    if rate:
        told["parameters"]["rate_fps"] = str(rate)
    return CellResult(
        **told,
        quantity=f"{cell.procedure}{at}: not measured",
        median=None,
        repeats=[],
        verdict="invalid",
        reasons=list(reasons),
    )


def unknown(source: CellResult, what: str) -> str:
    """Why ``what`` a cell was to find is not there."""
    why = {
        "fail": "is 0: no rate that was tried passed",
        "invalid": "is not known: its test case is invalid",
        "pass": "is not known: its test case has no result",
    }[source.verdict]
    return f"the {what} of {source.id} {why}"


def _no_throughput(source: CellResult) -> Reason:
    told = unknown(source, "throughput")
    hint = f"see why in {source.id}; or give a rate in frames per second"
    return _not_sent(f": {told}", hint)


def _too_low(load: MaxRate) -> Reason:
    told = f": {load.words}: below 1 frame per second"
    return _not_sent(told, "take a larger share of the throughput")


def _does_not_fit(load: MaxRate, error: InputError) -> Reason:
    return _not_sent(f" at {load_words(load)}: {error.message}", error.hint)


def _not_sent(why: str, hint: str) -> Reason:
    return Reason(code="no_throughput", message=f"nothing was sent{why}", hint=hint)
