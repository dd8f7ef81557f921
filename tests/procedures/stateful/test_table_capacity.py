"""The capacity of simulated gateways, who survives in them, and what spoils it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from gateways import ClearedEngine, SimulatedHooks, nat44
from planning import Recording, Run, cell, doubling, spec_with, spoilt

from dutperf.config import Campaign
from dutperf.engine.client import ProgressCallback, ignore_progress
from dutperf.errors import InputError
from dutperf.procedures.events import Notice
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.stateful.table_capacity import (
    given_up,
    measure_table_capacity,
    search_of,
    step_words,
)
from dutperf.protocol.result_messages import Reason, ReasonCode, TrialResult, Verdict
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import CellResult
from dutperf.search import Outcome
from dutperf.search.binary import CapacityResult, CapacityStep, Held
from dutperf.simulation.fake_engine import FakeEngine, SimulatedNat, perfect
from dutperf.simulation.simulated_gateway import Eviction

SIZE = 700
MAX = MaxRate(50_000, "set")
HOOKS = ("bulk_delete", "restart", "is_alive")


def measured(
    nat: SimulatedNat,
    *hooks: str,
    engine: FakeEngine | None = None,
    repeats: int = 1,
    limit: MaxRate = MAX,
    traffic: Mapping[str, object] | None = None,
    **stateful: object,
) -> tuple[CellResult, Recording]:
    recording = Recording(
        engine or FakeEngine(perfect(), nat=nat),
        testbed=nat44(*(hooks or HOOKS)),
        hooks=SimulatedHooks(nat),
    )
    keys = {"first": 100, "connections": 3000, "alpha": 1, **stateful}
    asked = cell(
        procedure="table-capacity",
        resolution="50",
        repeats=repeats,
        traffic=traffic or {},
        stateful=keys,
    )
    return measure_table_capacity(recording.runner, asked, limit), recording


POLICIES: list[tuple[Eviction, int, str, str | None]] = [
    ("refuse", 1, "keeps_first", None),
    ("oldest", 1, "keeps_last", "one_by_one"),
    ("chunk", 50, "keeps_last", "chunks"),
    ("random", 1, "random", None),
]


@pytest.mark.parametrize(("eviction", "chunk", "policy", "oldest"), POLICIES)
def test_the_capacity_is_exact_and_the_eviction_policy_has_its_name(
    eviction: Eviction, chunk: int, policy: str, oldest: str | None
) -> None:
    nat = SimulatedNat(table_size=SIZE, eviction=eviction, chunk=chunk)
    result, _ = measured(nat)
    assert (result.verdict, result.median, result.unit) == ("pass", SIZE, "connections")
    assert result.eviction is not None
    assert (result.eviction.policy, result.eviction.oldest) == (policy, oldest)
    kept = [picture.survived for picture in result.eviction.pictures]
    assert max(kept) <= SIZE
    assert [p.connections for p in result.eviction.pictures] == [1050, 1050 + 349]


def hosted(order: str = "increasing", size: int | None = SIZE) -> CellResult:
    """Of 100 hosts with 30 connections each."""
    result, _ = measured(
        SimulatedNat(table_size=size),
        traffic={"addresses": {"left": {"hosts": 100}}},
        order=order,
        source_ports="10000-10009",
        destination_ports="80-82",
    )
    return result


@pytest.mark.parametrize(("size", "bound"), [(SIZE, None), (None, "lower")])
def test_subscribers_are_the_hosts_of_whom_all_connections_are_held(
    size: int | None, bound: str | None
) -> None:
    (told,) = hosted(size=size).derived
    assert (told.name, told.unit, told.bound) == ("subscribers", "hosts", bound)
    assert told.value == (SIZE if size else 3000) // 30
    assert "all 30 connections" in told.meaning


def test_in_any_other_order_nobody_knows_whose_connections_are_held() -> None:
    assert hosted("random").derived == []
    assert measured(SimulatedNat(table_size=SIZE), order="increasing")[0].derived == []


def test_the_search_is_stored_step_by_step() -> None:
    result, recording = measured(SimulatedNat(table_size=SIZE), error=50)
    assert result.quantity == "capacity of the connection tracking table (RFC 9693 4.9)"
    (found,) = result.capacity
    assert found.ending == "found"
    assert found.connections is not None
    assert found.beyond is not None
    assert found.connections <= SIZE < found.beyond <= found.connections + 50
    assert found.rate_per_s == MAX.rate_fps
    assert [s.connections for s in found.steps][:4] == [100, 200, 400, 800]
    assert {s.held for s in found.steps} == {"held", "full"}
    assert f"{found.connections:,} are held at 50,000/s" in found.words
    assert result.reasons == []  # it never collapsed
    notices = [e.text for e in recording.events if isinstance(e, Notice)]
    assert "400 connections: held at 50,000/s" in notices
    assert len(notices) == len(found.steps)
    assert result.repeats[0].trials < len(recording.records)  # without the survivors


def test_a_validation_that_told_nothing_is_no_picture_of_who_survives() -> None:
    """Of the survivors of more than it holds: both phases are made again."""
    nat = SimulatedNat(table_size=SIZE)
    calm, before = measured(nat)
    spoilt_one = ClearedEngine(nat, spoilt("receiver_overflow", len(before.records)))
    result, recording = measured(nat, engine=spoilt_one)
    assert recording.records[-3].result.verdict.kind == "invalid"
    assert len(recording.records) == len(before.records) + 2
    assert result.eviction == calm.eviction


def test_each_number_of_connections_is_a_prefix_of_the_same_ones() -> None:
    _, recording = measured(SimulatedNat(table_size=SIZE))
    opened = [r.request for r in recording.records if r.request.learn]
    ranges = {str(request.directions[0].streams[0].vary) for request in opened}
    assert len(ranges) == 1
    assert len({request.learn.entries for request in opened if request.learn}) > 5


def test_a_refused_connection_is_lost_whatever_came_back_for_it() -> None:
    """Its entry was never learned: the validation sends a frame that fits nothing."""
    result, recording = measured(SimulatedNat(table_size=SIZE))
    assert result.eviction is not None
    picture = result.eviction.pictures[-1]
    assert (picture.opened, picture.survived, picture.border) == (SIZE, SIZE, SIZE)
    assert picture.lost_ranges == [(SIZE, picture.connections - SIZE)]
    assert sum(picture.blocks) == SIZE
    table = recording.records[-1].result.table
    assert table is not None
    assert table.unlearned_sent == picture.connections - SIZE


def test_many_small_gaps_are_told_by_blocks() -> None:
    """More ranges of lost connections than a trial tells."""
    nat = SimulatedNat(table_size=30_000, eviction="random")
    result, _ = measured(
        nat, connections=60_000, first=30_000, error=10_000, source_ports="1-60000"
    )
    assert result.eviction is not None
    assert result.eviction.policy == "random"
    assert len(result.eviction.pictures[-1].lost_ranges) <= 100


def test_a_device_that_collapses_is_brought_back_and_the_search_goes_on() -> None:
    result, recording = measured(SimulatedNat(collapses_at=SIZE), error=20)
    assert result.verdict == "pass"
    assert result.median is not None
    assert SIZE - 20 <= result.median <= SIZE
    assert [r.code for r in result.reasons] == ["device_collapsed"]
    assert result.eviction is None
    moments = [run.moment for r in recording.records for run in r.hooks]
    held = [step.held for step in result.capacity[0].steps]
    assert moments.count("restart") == held.count("collapsed") > 0


def test_a_device_that_does_not_come_back_leaves_what_it_held() -> None:
    """It can only be emptied, which is not enough."""
    result, _ = measured(SimulatedNat(collapses_at=SIZE), "bulk_delete", "is_alive")
    assert (result.verdict, result.median) == ("invalid", 400)
    assert result.capacity[0].ending == "collapsed"
    assert result.capacity[0].beyond == 800
    (reason,) = result.reasons
    assert (
        reason.message == "the device collapsed and did not come back; the bounds stand"
    )
    assert "restart" in reason.hint


class Worn(SimulatedNat):
    """Works again after a collapse, but holds hardly anything."""

    def restart(self) -> None:
        super().restart()
        self._table_size = 10


def test_a_device_that_holds_less_than_before_has_not_come_back() -> None:
    result, recording = measured(Worn(collapses_at=SIZE))
    assert (result.verdict, result.median) == ("invalid", 400)
    assert result.capacity[0].ending == "collapsed"
    assert result.capacity[0].words == (
        "400 are held at 50,000/s, 800 are not; the device did not come back"
    )
    last = recording.records[-1].request
    assert last.learn is not None
    assert last.learn.entries == 400  # as many as before, at the same rate
    assert recording.records[-1].load_fps == MAX.rate_fps


def test_what_it_holds_is_asked_again_when_the_answer_is_invalid() -> None:
    nat = SimulatedNat(collapses_at=SIZE)
    _, calm = measured(nat)
    revived = next(
        number
        for number, record in enumerate(calm.records, 1)
        if any(run.moment == "restart" for run in record.hooks)
    )
    nat = SimulatedNat(collapses_at=SIZE)
    again = FakeEngine(
        perfect(), nat=nat, troubles=spoilt("receiver_overflow", revived + 1)
    )
    result, _ = measured(nat, engine=again)
    assert (result.verdict, result.median) == ("pass", SIZE)


def test_a_device_that_cannot_be_asked_again_has_not_come_back() -> None:
    """Revived after its first collapse; then all that would tell is invalid."""
    nat = SimulatedNat(collapses_at=SIZE)
    revived = 7  # 100, 200 and 400 in both phases, then 800
    silent = FakeEngine(
        perfect(),
        nat=nat,
        troubles=spoilt("receiver_overflow", *range(revived + 1, 100)),
    )
    result, recording = measured(nat, engine=silent)
    assert recording.records[revived - 1].hooks[-1].succeeded
    assert len(recording.records) == revived + 3
    assert (result.verdict, result.median) == ("invalid", 400)
    assert result.capacity[0].ending == "collapsed"


def test_a_device_that_collapses_at_once_was_never_seen_to_hold_anything() -> None:
    result, recording = measured(SimulatedNat(collapses_at=90))
    assert (result.verdict, result.median) == ("fail", 0)
    assert result.capacity[0].ending == "nothing_held"
    assert recording.records[0].hooks[-1].moment == "is_alive"
    assert result.eviction is None


def test_a_collapse_is_noticed_without_being_asked_for() -> None:
    result, _ = measured(SimulatedNat(collapses_at=SIZE), "bulk_delete", "restart")
    assert (result.verdict, result.median) == ("pass", SIZE)


def test_a_first_number_that_is_not_held_is_a_result_with_survivors() -> None:
    result, _ = measured(SimulatedNat(table_size=90))
    assert (result.verdict, result.median) == ("fail", 0)
    assert result.reasons[0].message == "not even 100 connections are held"
    assert "--first" in result.reasons[0].hint
    assert result.capacity[0].words == "not even 100 are held"
    assert result.eviction is not None
    assert result.eviction.policy == "keeps_first"


def test_a_table_is_not_called_full_for_frames_that_arrived_twice() -> None:
    nat = SimulatedNat(table_size=SIZE)
    result, _ = measured(nat, engine=doubling(FakeEngine(perfect(), nat=nat)))
    assert (result.verdict, result.median) == ("fail", 0)
    assert [step.held for step in result.capacity[0].steps] == ["too_slow"]
    assert [r.code for r in result.reasons] == ["nothing_passed", "duplicates"]


def test_a_device_that_collapsed_at_its_first_number_is_said_to_have() -> None:
    result, _ = measured(SimulatedNat(collapses_at=90))
    assert [r.code for r in result.reasons] == ["device_collapsed", "nothing_passed"]


def test_a_table_that_holds_all_there_are_is_said_to_hold_at_least_so_many() -> None:
    result, _ = measured(SimulatedNat(), connections=1000)
    assert (result.verdict, result.median) == ("pass", 1000)
    assert result.reasons[0].code == "max_rate"
    assert (result.bound, result.bound_cause) == ("lower", "set")
    assert result.eviction is None
    assert "--connections" in result.reasons[0].hint
    assert "a lower bound: " in result.deviations[-1].actual


def test_trials_that_stay_invalid_leave_the_bounds_that_were_proven() -> None:
    nat = SimulatedNat(table_size=SIZE)
    spoilt_late = ClearedEngine(nat, spoilt("receiver_overflow", *range(8, 100)))
    result, _ = measured(nat, engine=spoilt_late)
    assert (result.verdict, result.median) == ("invalid", 400)
    assert result.capacity[0].ending == "unstable"
    assert result.capacity[0].beyond is None
    assert result.capacity[0].words == (
        "400 are held at 50,000/s; tests of other numbers told nothing"
    )
    first = result.reasons[0]
    assert first.code == "unstable"
    assert (
        first.message
        == "tests stayed invalid when they were repeated; the bounds stand"
    )
    assert "the trials' reasons" in first.hint


class Spoilt(ClearedEngine):
    """With more than 100 connections, above a rate; and once at each rate below."""

    def measure(
        self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        result = super().measure(trial, on_progress)
        (rate_per_s,) = (direction.rate_fps for direction in trial.directions)
        before = [each.directions[0].rate_fps for each in self.trials[:-1]]
        code: ReasonCode | None = None
        if rate_per_s > 45_000:
            more = trial.learn and trial.learn.entries > 100
            code = "receiver_overflow" if more else None
        elif rate_per_s not in before:
            code = "receiver_lag"
        if code is None:
            return result
        reasons = [Reason(code=code, message="it was")]
        verdict = Verdict(kind="invalid", reasons=reasons)
        return result.model_copy(update={"verdict": verdict})


def test_what_spoilt_the_rate_that_was_missing_is_told() -> None:
    """And not what spoilt one test of a lower rate, which passed."""
    nat = SimulatedNat(table_size=SIZE)
    result, _ = measured(nat, engine=Spoilt(nat), beta=0.9)
    assert (result.verdict, result.median) == ("invalid", 100)
    codes = [reason.code for reason in result.reasons]
    assert codes == ["unstable", "receiver_overflow"]


def test_a_hook_that_fails_ends_the_search_with_what_was_proven() -> None:
    nat = SimulatedNat(table_size=SIZE)
    broken = ClearedEngine(nat, spoilt("link_down", *range(9, 100)))
    result, recording = measured(nat, engine=broken, repeats=3)
    assert (result.verdict, result.median) == ("invalid", 400)
    assert len(result.repeats) == 1
    assert len(recording.records) == 11


def test_a_search_whose_first_test_told_nothing_has_no_value() -> None:
    nat = SimulatedNat(table_size=SIZE)
    broken = ClearedEngine(nat, spoilt("link_down", *range(1, 100)))
    result, _ = measured(nat, engine=broken)
    assert (result.verdict, result.median, result.bound) == ("invalid", None, None)
    assert result.repeats[0].value is None
    assert result.capacity[0].ending == "unstable"
    assert result.capacity[0].words == (
        "nothing is known to be held; tests of other numbers told nothing"
    )


def test_what_was_proven_of_a_search_that_was_given_up_is_a_lower_bound() -> None:
    nat = SimulatedNat(table_size=SIZE)
    broken = ClearedEngine(nat, spoilt("link_down", *range(10, 200)))
    result, _ = measured(nat, engine=broken)
    (found,) = result.capacity
    assert (found.connections, found.beyond) == (400, 800)
    assert found.rate_per_s == MAX.rate_fps
    assert (result.repeats[0].bound, result.bound) == ("lower", "lower")


@pytest.mark.parametrize("held", ["too_slow", "full", "collapsed"])
def test_a_search_that_was_given_up_knows_the_least_number_that_was_not_held(
    held: Held,
) -> None:
    steps = [
        CapacityStep("first", 100, 900, 1, "held", 2),
        CapacityStep("doubling", 200, 800, 90, "held", 2),
        CapacityStep("doubling", 400, None, 80, held, 2),
        CapacityStep("bisection", 300, None, 400, held, 2),
        CapacityStep("bisection", 250, None, 400, "unstable", 2),
    ]
    found = given_up(steps)
    assert found == CapacityResult(200, 300, 800, "unstable", steps)
    assert given_up([]) == CapacityResult(None, None, None, "unstable", [])


@pytest.mark.parametrize(
    ("held", "told"),
    [
        ("held", "held at 900/s"),
        ("too_slow", "not held at 1,080/s or more"),
        ("full", "not held, as by a full table: as many are missing at a lower rate"),
        ("collapsed", "the device collapsed"),
        ("unstable", "tests stayed invalid"),
    ],
)
def test_each_number_of_connections_is_told_with_what_became_of_it(
    held: Held, told: str
) -> None:
    rate = 900 if held == "held" else None
    words = step_words(CapacityStep("doubling", 4000, rate, 1080, held, 2))
    assert words == f"4,000 connections: {told}"


def test_a_device_that_does_not_translate_has_no_capacity() -> None:
    """No other test would tell more: that alone is the reason."""
    result, recording = measured(SimulatedNat(public_ip="10.0.0.2"))
    assert (result.verdict, result.median) == ("invalid", None)
    assert [reason.code for reason in result.reasons] == ["not_translated"]
    assert len(recording.records) == 1


def test_repeats_give_a_median_and_their_spread() -> None:
    result, _ = measured(SimulatedNat(table_size=SIZE), repeats=2)
    assert (result.median, len(result.repeats)) == (SIZE, 2)
    assert result.spread is not None


def test_the_search_keeps_to_the_error_and_shares_that_were_asked_for() -> None:
    """Of a device that is half as fast with twice as many connections."""

    def rate_beyond(**stateful: object) -> CapacityResult:
        keys = {"first": 100, "connections": 800, "error": 100, **stateful}
        asked = cell(procedure="table-capacity", resolution="1", stateful=keys)

        def establish(connections: int, rate_per_s: int) -> Outcome:
            fast_enough = rate_per_s <= 100_000 // connections
            return Outcome("pass" if fast_enough else "fail")

        return search_of(asked, establish, 1000, lambda _step: None)

    assert rate_beyond().ending == "most_held"
    strict = rate_beyond(beta=0.6, gamma=0.55)
    assert (strict.connections, strict.beyond) == (100, 200)
    halfway = rate_beyond(beta=0.6, gamma=0.55, error=20)
    assert (halfway.connections, halfway.beyond) == (187, 200)
    early = rate_beyond(beta=0.6, gamma=0.9, error=20)
    assert (early.connections, early.beyond) == (100, 112)


@pytest.mark.parametrize(("rate_per_s", "half"), [(50_000, 25_000), (3, 1), (1, 1)])
def test_who_survives_is_asked_at_half_of_the_rate(rate_per_s: int, half: int) -> None:
    limit = MaxRate(rate_per_s, "set")
    result, recording = measured(SimulatedNat(table_size=120), limit=limit)
    surveyed = recording.records[result.repeats[0].trials :]
    assert {r.load_fps for r in surveyed if r.request.learn} == {half}


def test_connections_that_would_expire_are_not_opened() -> None:
    slow = SimulatedNat(connection_rate_fps=40, timeout_ns=2 * 10**9)
    result, _ = measured(slow, dut_timeout_s=2, first=300)
    assert result.reasons[0].code == "connections_expire"


CAPACITY = Campaign(
    name="capacity",
    testbed=[nat44()],
    procedures=[
        spec_with(
            {
                "procedure": "table-capacity",
                "max_rate_fps": 50_000,
                "stateful": {"first": 100, "connections": 3000, "error": 50},
            }
        )
    ],
)


def test_a_run_that_ended_before_it_asked_who_survives_opens_them_again(
    tmp_path: Path,
) -> None:
    """Phase 1 fails there, for the table refuses some; the rest were opened."""

    def run(name: str, end: int = 0) -> Run:
        nat = SimulatedNat(table_size=SIZE)
        engine = ClearedEngine(nat, {end: KeyboardInterrupt()} if end else None)
        return Run(tmp_path / name, engine, testbed=nat44())

    whole = run("whole")(CAPACITY)
    first, back = whole.trials[-2:]
    assert (first.result.verdict.kind, back.result.verdict.kind) == ("fail", "fail")
    with pytest.raises(KeyboardInterrupt):
        run("ended", len(whole.trials))(CAPACITY)
    resumed = run("ended").resume(CAPACITY)
    assert resumed.cells[0].eviction == whole.cells[0].eviction


def test_a_resumed_run_asks_for_the_same_trials_through_a_collapse(
    tmp_path: Path,
) -> None:
    engine = ClearedEngine(SimulatedNat(table_size=SIZE))
    first = Run(tmp_path / "run", engine, testbed=nat44())
    results = first(CAPACITY)
    again = Run(tmp_path / "run", engine, testbed=nat44())
    before = len(engine.trials)
    assert again.resume(CAPACITY).cells == results.cells
    assert len(engine.trials) == before


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"connections": 10}, "stateful.first: is missing"),
        ({"connections": 10, "first": 11}, "first: 11 is more than may be tried, 10"),
        ({"connections": 10, "first": 1, "beta": 1}, "must be below 1, not 1"),
        ({"connections": 10, "first": 1, "error": 0}, "must be at least 1, not 0"),
        ({"connections": 10, "first": 1, "expiry": True}, "it is of teardown-rate"),
        ({"connections": [10, 10], "first": 1}, "must not list 10 twice"),
        (
            {"connections": 11, "first": 1, "source_ports": "1-10"}
            | {"destination_ports": "80-80"},
            "11 are more than the 10 combinations",
        ),
    ],
)
def test_what_does_not_fit_is_refused(keys: dict[str, object], told: str) -> None:
    with pytest.raises((InputError, ValueError), match=told):
        cell(procedure="table-capacity", stateful=keys)
