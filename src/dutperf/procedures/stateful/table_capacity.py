"""Capacity of the connection tracking table, from outside only (RFC 9693 4.9).

The search is ``search.binary``; each of its tests is that of ``establishing``, with a
prefix of the same enumeration of four-tuples. A device that collapses is brought back
by its hooks; it has come back when it holds what it held before. At the end more
connections are opened than the table holds, to see who survives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial

from dutperf.model.cell import Cell
from dutperf.model.procedure_keys import SearchedKeys
from dutperf.model.stateful_keys import Stateful
from dutperf.procedures.cell_results import of_cell, of_repeats
from dutperf.procedures.conclusions import bound_deviations
from dutperf.procedures.events import Notice
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.method import Method, OnConnections
from dutperf.procedures.searching import NoUseError
from dutperf.procedures.stateful.connection_rate import (
    SLOW_PER_S,
    numbers_beyond,
    probe_eviction,
)
from dutperf.procedures.stateful.establishing import (
    Establishing,
    expired,
    fastest,
    stateful_of,
)
from dutperf.procedures.trials import ATTEMPTS, DeviceTrials, is_final, no_rate_helps
from dutperf.protocol.result_messages import Reason, TrialResult, VerdictKind
from dutperf.results import bounds
from dutperf.results.details import Capacity, Eviction, TableLimits
from dutperf.results.details import CapacityStep as StepRecord
from dutperf.results.model import CellResult
from dutperf.results.rate_results import Derived, RepeatResult
from dutperf.results.trial_record import HookRun, TrialRecord
from dutperf.search import Outcome, Resolution, attempted
from dutperf.search.binary import (
    CapacityResult,
    CapacityStep,
    CollapsedError,
    Establish,
    OnCapacityStep,
    capacity_search,
)
from dutperf.tables.connection_tables import connection_table, step_table
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import Table

# Whether a device still works after a trial, and whether it was brought back.


def has_collapsed(result: TrialResult, hooks: Sequence[HookRun]) -> bool:
    """Whether no frame came back, or the device said that it does not work.

    A trial that tells nothing does not tell that either (RFC 9693 4.9).
    """
    if any(run.moment == "is_alive" and not run.succeeded for run in hooks):
        return True
    streams = [stream for each in result.directions for stream in each.streams]
    sent = any(stream.sent for stream in streams)
    returned = any(stream.received for stream in streams)
    return result.verdict.kind == "fail" and sent and not returned


def collapsed(record: TrialRecord) -> bool:
    """``has_collapsed``, of a trial whose record is there: asked before the revival."""
    revived = [n for n, run in enumerate(record.hooks) if run.moment == "restart"]
    before = record.hooks[: revived[0]] if revived else record.hooks
    return has_collapsed(record.result, before)


def came_back(record: TrialRecord) -> bool:
    """Whether the hooks brought it back, as far as they can tell."""
    moments = [run.moment for run in record.hooks]
    if "restart" not in moments:
        return False
    after = record.hooks[moments.index("restart") :]
    return all(run.succeeded for run in after)


def measure_table_capacity(
    runner: DeviceTrials,
    cell: Cell,
    limit: MaxRate,
    quantity: str = "capacity of the connection tracking table (RFC 9693 4.9)",
) -> CellResult:
    """Search ``cell.repeats`` times; the result is the median (RFC 9693 6).

    ``quantity``: what that is.

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    searches: list[_Search] = []
    for repeat in range(1, cell.repeats + 1):
        searches.append(_Search(runner, cell, repeat, limit))
        if no_rate_helps(searches[-1].told.reasons):
            break
    eviction = _eviction(searches[-1])
    repeats = [search.told for search in searches]
    of_all = bounds.overall(repeats)
    return CellResult(
        **of_cell(cell, limit, bound_deviations(cell, of_all)),
        **of_repeats(repeats, of_all),
        quantity=quantity,
        derived=_subscribers(stateful_of(cell), of_all),
        capacity=[search.record for search in searches],
        eviction=eviction,
    )


def _subscribers(stateful: Stateful, found: bounds.Overall) -> list[Derived]:
    """Hosts all of whose connections are held: in this order one after the other."""
    each = stateful.connections_per_host
    if stateful.order != "increasing" or each is None or found.median is None:
        return []
    return [
        Derived(
            name="subscribers",
            meaning=f"Hosts of which all {each:,} connections are held at once.",
            value=found.median // each,
            unit="hosts",
            bound=found.bound,
        )
    ]


def search_of(
    cell: Cell, establish: Establish, max_rate_per_s: int, on_step: OnCapacityStep
) -> CapacityResult:
    """The search that the cell asks for, with whatever establishes."""
    stateful = stateful_of(cell)
    first = stateful.first or 1
    return capacity_search(
        establish,
        first=first,
        most=stateful.connections,
        max_rate_per_s=min(max_rate_per_s, fastest_per_s(first)),
        rate_resolution=Resolution.parse(cell.spec_of(SearchedKeys).resolution),
        error=stateful.error,
        beta=Fraction(str(stateful.beta)),
        gamma=Fraction(str(stateful.gamma)),
        attempts=ATTEMPTS,
        on_step=on_step,
    )


class _Search:
    """One repeat: the search, and what it says."""

    def __init__(
        self, runner: DeviceTrials, cell: Cell, repeat: int, limit: MaxRate
    ) -> None:
        self.stateful = stateful_of(cell)
        self.tests = Establishing(runner, cell, repeat, may_collapse=True)
        self._runner = runner
        self._held: Callable[[], Outcome] | None = None
        """The last test that the device passed."""
        self._steps: list[CapacityStep] = []
        try:
            self.found = search_of(cell, self._establish, limit.rate_fps, self._on_step)
        except NoUseError:
            self.found = given_up(self._steps)
        self.told = self._told()

    def _told(self) -> RepeatResult:
        """As it is stored; what is measured after it does not count."""
        verdict, reasons = self._conclusion()
        value, ending = self.found.connections, self.found.ending
        open_end = value is not None and ending not in ("found", "nothing_held")
        return RepeatResult(
            value=0 if value is None and verdict == "fail" else value,
            verdict=verdict,
            bound="lower" if open_end else None,
            bound_cause="set" if ending == "most_held" else None,
            reasons=reasons,
            trials=self.tests.trials,
        )

    @property
    def record(self) -> Capacity:
        """Its steps and how it ended."""
        found = self.found
        return Capacity(
            connections=found.connections,
            beyond=found.beyond,
            rate_per_s=found.rate_per_s,
            error=self.stateful.error,
            ending=found.ending,
            words=_words(found, self.stateful),
            steps=[StepRecord(**vars(step)) for step in found.steps],
        )

    def _establish(self, connections: int, rate_per_s: int) -> Outcome:
        """One test.

        Raises:
            CollapsedError: the device did not stand it.
            NoUseError: see ``Establishing.establish``.
        """
        outcome = self._test(connections, rate_per_s)
        if outcome.verdict == "pass":
            self._held = partial(self._test_once, connections, rate_per_s)
        return outcome

    def _test(self, connections: int, rate_per_s: int) -> Outcome:
        outcome = self._test_once(connections, rate_per_s)
        last = self.tests.last
        if last is None or not collapsed(last.last):
            return outcome
        raise CollapsedError(for_good=not (came_back(last.last) and self._works()))

    def _test_once(self, connections: int, rate_per_s: int) -> Outcome:
        stateful = self.stateful.with_connections(connections)
        return self.tests.establish(stateful, rate_per_s)

    def _works(self) -> bool:
        """Whether it holds what it held before."""
        if self._held is None:
            return True
        tests = (self._held() for _ in range(ATTEMPTS))
        outcomes = attempted(tests, lambda tried: tried[-1].verdict == "invalid")
        return outcomes[-1].verdict == "pass"

    def _on_step(self, step: CapacityStep) -> None:
        """Tell whoever watches."""
        self._steps.append(step)
        if not self._runner.replaying:
            self._runner.on_event(Notice(step_words(step)))

    def _conclusion(self) -> tuple[VerdictKind, list[Reason]]:
        if self.tests.expired:
            return "invalid", [expired(self.stateful)]
        troubles = self.tests.troubles.at(self.found.spoilt_per_s)
        match self.found.ending:
            case "found":
                return "pass", self._collapse
            case "most_held":
                text = f"it holds as many as may be tried, {self.found.connections:,}"
                return "pass", [Reason(code="max_rate", message=text, hint=_MORE)]
            case "nothing_held":
                text = f"not even {self.stateful.first:,} connections are held"
                return "fail", [
                    *self._collapse,
                    Reason(code="nothing_passed", message=text, hint=_FEWER),
                    *self.tests.failed_otherwise,
                ]
            case "collapsed":
                text = "the device collapsed and did not come back; the bounds stand"
                return "invalid", [
                    Reason(code="device_collapsed", message=text, hint=_RESTART)
                ]
            case "unstable" if is_final(troubles):
                return "invalid", troubles
            case "unstable":
                text = "tests stayed invalid when they were repeated; the bounds stand"
                return "invalid", [
                    Reason(code="unstable", message=text, hint=_SEE),
                    *troubles,
                ]

    @property
    def _collapse(self) -> list[Reason]:
        steps = self.found.steps
        return [_COLLAPSED] if any(s.held == "collapsed" for s in steps) else []


_COLLAPSED = Reason(
    code="device_collapsed",
    message="the device collapsed with more connections than it holds, and was brought "
    "back by its hooks",
)
_MORE = "raise --connections; with more source or destination ports if need be"
_FEWER = (
    "give a --first that is surely held; are there enough public ports, and does a "
    "hook empty the table before each test (hooks: bulk_delete)?"
)
_RESTART = "give the testbed hooks restart and is_alive that bring it back and ask it"
_SEE = "see the trials' reasons; keep other work off the tester's CPUs"


def fastest_per_s(connections: int) -> int:
    """The rate at which so many take the shortest trial there is."""
    return fastest(MaxRate(10**12, "set"), connections).rate_fps


def step_words(step: CapacityStep) -> str:
    """What was found of one number of connections."""
    rate = "" if step.rate_per_s is None else f" at {step.rate_per_s:,}/s"
    held = {
        "held": f"held{rate}",
        "too_slow": f"not held at {step.least_per_s:,}/s or more",
        "full": "not held, as by a full table: as many are missing at a lower rate",
        "collapsed": "the device collapsed",
        "unstable": "tests stayed invalid",
    }[step.held]
    return f"{step.connections:,} connections: {held}"


def _words(found: CapacityResult, stateful: Stateful) -> str:
    held = "nothing is known to be held"
    if found.connections is not None:
        held = f"{found.connections:,} are held"
    rate = "" if found.rate_per_s is None else f" at {found.rate_per_s:,}/s"
    beyond = "" if found.beyond is None else f", {found.beyond:,} are not"
    return {
        "found": f"{held}{rate}{beyond} (error {stateful.error:,})",
        "nothing_held": f"not even {stateful.first or 1:,} are held",
        "most_held": f"{held}{rate}, as many as may be tried",
        "unstable": f"{held}{rate}{beyond}; tests of other numbers told nothing",
        "collapsed": f"{held}{rate}{beyond}; the device did not come back",
    }[found.ending]


def given_up(steps: list[CapacityStep]) -> CapacityResult:
    """What was proven when no other test would tell anything."""
    held = [step for step in steps if step.held == "held"]
    beyond = [
        s.connections for s in steps if s.held in ("too_slow", "full", "collapsed")
    ]
    last = held[-1] if held else None
    return CapacityResult(
        last.connections if last else None,
        min(beyond, default=None),
        last.rate_per_s if last else None,
        "unstable",
        steps,
    )


def _eviction(search: _Search) -> Eviction | None:
    """By the survivors of more connections than are held; None if that is not known.

    At half of the rate, so that none is lost to it.
    """
    found, stateful = search.found, search.stateful
    first = stateful.first or 1
    if any(step.held == "collapsed" for step in found.steps):
        return None
    if found.ending == "nothing_held":
        rate_per_s = max(SLOW_PER_S, first // _LONGEST_S)
        return probe_eviction(search.tests, stateful, [first], rate_per_s)
    if found.ending != "found" or found.connections is None:
        return None
    numbers = numbers_beyond(found.connections, stateful.connections)
    rate_per_s = max(1, (found.rate_per_s or 1) // 2)
    return probe_eviction(search.tests, stateful, numbers, rate_per_s)


_LONGEST_S = 10


# What a stateful device's own hooks show of its table, for RFC 9693 6.


_NAMES = {
    "table_size": "nf_conntrack_max|table_size",
    "hash_size": "nf_conntrack_buckets|hash_size|hashsize",
}


def shown_limits(records: Iterable[TrialRecord]) -> TableLimits | None:
    """From lines like ``net.netfilter.nf_conntrack_max = 1000000``; the last counts.

    Any hook may print ``table_size = N`` and ``hash_size = N`` of its device.
    """
    found: dict[str, int] = {}
    for record in records:
        for run in record.hooks:
            for key, names in _NAMES.items():
                lines = re.findall(rf"(?:{names})\s*[:=]\s*([0-9]+)", run.output)
                if lines:
                    found[key] = int(lines[-1])
    return TableLimits(**found) if found else None


def beside_limits(result: CellResult, records: Iterable[TrialRecord]) -> CellResult:
    """``result`` of a stateful cell with what its own trials' hooks showed."""
    if result.cell.stateful is None:
        return result
    own = (record for record in records if record.cell == result.id)
    return result.model_copy(update={"limits": shown_limits(own)})


def capacity_tables(cell: Subject) -> Iterator[Table]:
    """The steps of its search."""
    if cell.result and cell.result.capacity:
        yield step_table(cell)


METHOD = Method(
    "table-capacity",
    OnConnections(measure_table_capacity),
    lambda _: "Connections held in the table at once",
    connection_table,
    capacity_tables,
)
