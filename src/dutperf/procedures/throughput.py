"""Throughput (RFC 2544 26.1, 8219 7.1): the fastest rate at which no frame is lost.

How it is searched is the cell's choice (``searching``). The DUT is blamed for lost
frames only: a trial that the tester spoilt is repeated, and when the tester cannot do
better, the result is what was proven: a lower bound. With a frame timeout or a
tolerated loss the result is another one, and is called so. Where damaged frames alone
limit it, a second figure tells how fast the device is but for them (``damage``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dutperf import stats
from dutperf.charts.cells import CellView
from dutperf.charts.text import shown, whole
from dutperf.model.cell import Cell
from dutperf.procedures import cpu_contention
from dutperf.procedures.cell_results import of_cell, of_repeats
from dutperf.procedures.conclusions import (
    bound_deviations,
    goal_results,
    rate_findings,
    repeat_result,
    settlement,
)
from dutperf.procedures.events import Notice
from dutperf.procedures.loss_criterion import (
    loss_percent,
    missing_but_damaged,
    throughput_quantity,
    timeout_losses,
)
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.method import Method, OnStreams
from dutperf.procedures.searching import (
    AskedTrial,
    Evidence,
    NoUseError,
    SearchTrials,
    Troubles,
    invalid_outcome,
    repeats_of,
    strategy_of,
)
from dutperf.procedures.trials import (
    ATTEMPTS,
    Ask,
    Trials,
    fails_beside_loss,
    is_hopeless,
    no_rate_helps,
)
from dutperf.protocol.base import DirectionName
from dutperf.protocol.result_messages import (
    Damage,
    DirectionResult,
    StreamResult,
    TrialResult,
    VerdictKind,
)
from dutperf.results.bounds import overall, valued
from dutperf.results.model import CellResult
from dutperf.results.rate_results import (
    DamagedFrames,
    DamageFigure,
    RepeatResult,
    Withdrawal,
)
from dutperf.results.trial_record import TrialRecord
from dutperf.results.words import withdrawn_words
from dutperf.search import Outcome, SearchResult
from dutperf.search.strategies import Found, Strategy
from dutperf.standards import Deviation
from dutperf.tables.table_model import derived

# How fast a device is but for the frames that it damages: another search, once.
#
# A damaged frame counts as lost. A device that spoils one frame in 65,535 then has a
# throughput that says how long one waits for such a frame, and nothing of its speed. So
# when damage alone kept the lowest rate that failed from passing, the same search is
# made again with another judgement: damaged frames count as received. What it finds is
# another measure (``docs/damaged-frames.md``).
#
# Searches are pure, so this one asks for the trials of the first one until the
# judgement makes a difference: those are taken, not measured again. It may measure as
# many as the first one took; then what passed is a lower bound. None of them ends
# early.


_FORGIVEN = {"frames_lost", "frames_late"}
"""A trial that failed for anything else fails whatever was damaged."""


def limited_by_damage(cell: Cell, found: Found, trials: SearchTrials) -> bool:
    """Whether the lowest rate that failed would have passed but for damaged frames."""
    result = found.result
    if result.conclusion not in ("found", "nothing_passed"):
        return False
    lowest = [
        judged_whole(asked.record, _tolerated(cell))
        for asked in trials.valid_in_full(result.upper_fps)
        if asked.record.result.verdict.kind == "fail"
    ]
    return bool(lowest) and "fail" not in lowest


def judged_whole(
    record: TrialRecord, tolerated: float | None = None
) -> VerdictKind | None:
    """A trial's verdict if damaged frames count as received; None: unknown.

    That of a trial which ended early because of them is. What is lost beside them may
    be lost for want of the device's CPU, or in the shadow of a tester's stall: invalid.
    Of older journals, in which frames are not damaged in any known way, the verdict
    stays.

    Args:
        record: of the trial.
        tolerated: share of the frames that may be lost; None: as the request says.
    """
    result, request = record.result, record.request
    if result.verdict.kind != "fail":
        return result.verdict.kind
    if any(reason.code not in _FORGIVEN for reason in result.verdict.reasons):
        return "fail"
    if not any(s.damaged and s.damaged.total for s in _streams(result)):
        return "fail"
    ppb = request.loss_tolerance_ppb
    if tolerated is not None:
        ppb = max(ppb, round(tolerated * 10**9))
    if not _all_within(result, ppb):
        return "invalid" if _excused(record, ppb) else "fail"
    return None if result.ended_early else "pass"


def search_without_damage(
    runner: Trials, cell: Cell, limit: MaxRate, first: SearchTrials, repeat: int
) -> DamageFigure:
    """Make the second search, after repeat ``repeat``, of which ``first`` has all.

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    trials = _Trials(runner, cell, repeat, first.asked, most=first.count)
    search = strategy_of(cell, limit.rate_fps, limit.begin_fps)
    try:
        found = search(trials.measure, first.on_step).result
    except (NoUseError, _EnoughError):
        found = SearchResult(trials.passed_fps, None, "unstable", [])
    told = repeat_result(
        found,
        cell,
        limit,
        trials.troubles.evidence(found.upper_fps),
        trials.measured,
    )
    # Enough of them is no doubt about those that passed, and ends the search by itself.
    enough = trials.exhausted and told.value is not None
    return DamageFigure(
        value=told.value,
        verdict="pass" if enough else told.verdict,
        bound=told.bound,
        bound_cause=None if enough else told.bound_cause,
        reasons=[] if told.verdict == "pass" or enough else told.reasons,
        exhausted=trials.exhausted,
        trials=trials.measured,
        reused=trials.reused,
        # Where nothing was damaged up to that rate, it was above.
        frames=damaged_frames(trials.seen, found.rate_fps)
        or damaged_frames((asked.record for asked in first.asked), None),
    )


def damaged_frames(
    records: Iterable[TrialRecord], up_to_fps: int | None
) -> list[DamagedFrames]:
    """What became of each direction's frames up to that rate; None: at all rates."""
    found: dict[DirectionName, DamagedFrames] = {}
    for record in records:
        if up_to_fps is not None and record.load_fps > up_to_fps:
            continue
        for direction in record.result.directions:
            name, streams = direction.name, direction.streams
            so_far = found.get(name, DamagedFrames(direction=name, sent=0))
            found[name] = DamagedFrames(
                direction=name,
                sent=so_far.sent + sum(stream.sent for stream in streams),
                damaged=sum((s.damaged or Damage() for s in streams), so_far.damaged),
            )
    return [frames for frames in found.values() if frames.damaged.total]


class _EnoughError(Exception):
    """As many trials were measured as may be."""


@dataclass(frozen=True)
class _Key:
    rate_fps: int
    duration_s: float


class _Trials:
    """What the second search calls: trials of the first one, then its own."""

    def __init__(
        self,
        runner: Trials,
        cell: Cell,
        repeat: int,
        asked: Sequence[AskedTrial],
        *,
        most: int,
    ) -> None:
        self.seen: list[TrialRecord] = []
        self.passed_fps: int | None = None
        self.troubles = Troubles()
        self.exhausted = False
        self.measured = 0
        self.reused = 0
        self._runner = runner
        self._cell = cell
        self._repeat = repeat
        self._most = most
        self._tolerated = _tolerated(cell)
        self._invalid: Counter[_Key] = Counter()
        self._known: dict[_Key, list[TrialRecord]] = {}
        for each in asked:
            if self._judged(each.record) in ("pass", "fail"):
                key = _Key(each.rate_fps, each.duration_s)
                self._known.setdefault(key, []).append(each.record)

    def measure(self, rate_fps: int, duration_s: float) -> Outcome:
        """Take one, or run one.

        Raises:
            NoUseError: more of them would be as invalid.
            _EnoughError: no more may be measured.
            EngineError, SetupError: see ``Trials.run``.
        """
        key = _Key(rate_fps, duration_s)
        known = self._known.get(key)
        if known:
            self.reused += 1
            record = known.pop(0)
        else:
            record = self._run(rate_fps, duration_s)
        verdict = self._judged(record)
        if verdict == "invalid":
            self._invalid[key] += 1
            excused = record.result.verdict.kind == "fail"
            # As the runner does: when repeating has not helped, it counts.
            if excused and self._invalid[key] >= ATTEMPTS:
                verdict = "fail"
        if verdict == "invalid" or verdict is None:
            return invalid_outcome(record.result)
        self.seen.append(record)
        if verdict == "pass" and duration_s >= self._cell.spec.trial_duration_s:
            self.passed_fps = max(rate_fps, self.passed_fps or 0)
        if verdict == "fail" and fails_beside_loss(record.result.verdict):
            return Outcome(verdict, loss_ratio=1.0)
        lost = loss_percent(record.result, damaged_is_lost=False)
        return Outcome(verdict, loss_ratio=lost / 100)

    def _run(self, rate_fps: int, duration_s: float) -> TrialRecord:
        if self.measured == self._most:
            self.exhausted = True
            raise _EnoughError
        self.measured += 1
        record = self._runner.run(
            Ask(
                self._cell,
                rate_fps,
                repeat=self._repeat,
                duration_s=duration_s,
                role="damage",
            )
        )
        self.troubles.note(rate_fps, record.result.verdict)
        if is_hopeless(record):
            raise NoUseError
        return record

    def _judged(self, record: TrialRecord) -> VerdictKind | None:
        return judged_whole(record, self._tolerated)


def _tolerated(cell: Cell) -> float | None:
    """What the first goal of MLRsearch lets a trial lose, where there is one."""
    goals = cell.spec.loss_criterion.goals
    return goals[0].loss_percent / 100 if goals else None


def _excused(record: TrialRecord, ppb: int) -> bool:
    """Whether what is missing beside may be for want of CPU, or the tester's doing."""
    cpu = record.device_cpu
    if cpu and cpu_contention.explains_absent(cpu, record.request, record.result):
        return True
    return _all_within(record.result, ppb, in_the_light=True)


def _all_within(result: TrialResult, ppb: int, *, in_the_light: bool = False) -> bool:
    """Whether no direction misses more than its share but for damaged frames.

    ``in_the_light``: what was sent in the shadow of a tester's stall left out.
    """
    return all(
        (missing_but_damaged(each) - (_in_shadow(each) if in_the_light else 0)) * 10**9
        <= ppb * sum(stream.intended for stream in each.streams)
        for each in result.directions
    )


def _in_shadow(direction: DirectionResult) -> int:
    return sum(s.lost_in_shadow + s.late_in_shadow for s in direction.streams)


def _streams(result: TrialResult) -> list[StreamResult]:
    return [stream for each in result.directions for stream in each.streams]


def measure_throughput(runner: Trials, cell: Cell, limit: MaxRate) -> CellResult:
    """Search as often as the cell says; the result is the median (RFC 8219 12).

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    search = strategy_of(cell, limit.rate_fps, limit.begin_fps)
    measured = _search_until_enough(runner, cell, limit, search)
    return _cell_result(cell, limit, measured)


class _Searched(NamedTuple):
    """One repeat: what its search found, and what the trials of that say.

    ``passed``: the last one that counts at the rate that was found.
    """

    found: Found
    evidence: Evidence
    passed: TrialResult | None
    trials: int

    def told(self, cell: Cell, limit: MaxRate) -> RepeatResult:
        """As it is stored."""
        return repeat_result(self.found.result, cell, limit, self.evidence, self.trials)


class _Measured(NamedTuple):
    """The repeats that count, and what was measured or withdrawn beside."""

    searched: list[_Searched]
    damage: DamageFigure | None
    withdrawn: Withdrawal | None


def _search_until_enough(
    runner: Trials, cell: Cell, limit: MaxRate, search: Strategy
) -> _Measured:
    searched: list[_Searched] = []
    damage: DamageFigure | None = None
    withdrawn: Withdrawal | None = None
    number = 0
    while not _enough(cell, [each.told(cell, limit) for each in searched]):
        number += 1
        trials = SearchTrials(runner, cell, number)
        found = _search(search, trials)
        evidence = trials.evidence(found.result.upper_fps)
        passed = trials.at(found.result.rate_fps)
        searched.append(_Searched(found, evidence, passed, trials.count))
        # A repeat that contradicts others has two trials: too few to search with.
        searchable = damage is None and not found.withdrawn
        if searchable and limited_by_damage(cell, found, trials):
            damage = search_without_damage(runner, cell, limit, trials, number)
        if found.withdrawn:
            kept = len(searched) - found.withdrawn
            withdrawn = _withdrawal(number, searched[kept:])
            del searched[kept:]
            runner.on_event(Notice(f"{cell.id}: {withdrawn_words(withdrawn)}"))
    return _Measured(searched, damage, withdrawn)


def _cell_result(cell: Cell, limit: MaxRate, measured: _Measured) -> CellResult:
    searched = measured.searched
    repeats = [each.told(cell, limit) for each in searched]
    goals = [
        goal
        for each in searched
        for goal in goal_results(each.found.goals, cell, limit, each.evidence)
    ]
    of_all = overall(repeats, repeats_of(cell, limit.rate_fps).interval)
    return CellResult(
        **of_cell(cell, limit, bound_deviations(cell, of_all)),
        **of_repeats(repeats, of_all, judged=goals),
        quantity=throughput_quantity(cell),
        timeouts=timeout_losses(cell, [each.passed for each in searched]),
        damage=measured.damage,
        settled=settlement(cell, repeats),
        withdrawn=measured.withdrawn,
        goals=goals,
        findings=rate_findings(cell, repeats),
    )


def _search(search: Strategy, trials: SearchTrials) -> Found:
    try:
        return search(trials.measure, trials.on_step)
    except NoUseError:
        return Found(SearchResult(trials.passed_fps, None, "unstable", []))


def _withdrawal(last: int, repeats: Sequence[_Searched]) -> Withdrawal:
    return Withdrawal(
        repeats=list(range(last - len(repeats) + 1, last + 1)),
        trials=sum(repeat.trials for repeat in repeats),
    )


def _enough(cell: Cell, repeats: Sequence[RepeatResult]) -> bool:
    """An invalid repeat spoils the result: then ``auto`` has no reason to go on."""
    if repeats and no_rate_helps(repeats[-1].reasons):
        return True
    if cell.auto and any(r.verdict == "invalid" for r in repeats):
        return len(repeats) >= stats.LOOKS[0]
    if not cell.auto:
        return len(repeats) >= cell.repeats
    return repeats_of(cell).enough(*valued(repeats))


def _meaning(cell: CellView) -> str:
    said = f"Forwarded without loss{cell.each_way}"
    if cell.judged:
        said = f"Forwarded{cell.each_way}, {cell.judged}"
    if cell.burst_frames:
        every = shown(derived(cell.derived.get("burst interval"), unit=True))
        said += f", a burst of {whole(cell.burst_frames)} frames every {every}"
    return said


def measure_multicast(runner: Trials, cell: Cell, limit: MaxRate) -> CellResult:
    """The same; nobody joins the group, so the device must know where it goes."""
    rule = "interfaces that answer IGMP queries during the test"
    actual = "they do not: the device forwards the group as it is configured"
    found = measure_throughput(runner, cell, limit)
    silent = Deviation("RFC 3918 3.1.1", rule, actual, "SHOULD")
    return found.model_copy(update={"deviations": [*found.deviations, silent]})


METHOD = Method("throughput", OnStreams(measure_throughput), _meaning)
MULTICAST = Method("multicast-throughput", OnStreams(measure_multicast), _meaning)
