"""The rate at which a simulated gateway opens connections, and what spoils it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from gateways import NAT44, ClearedEngine, SimulatedHooks, nat44
from planning import Recording, cell, doubling, spoilt

from dutperf.config import Testbed
from dutperf.config.testbed import Hook
from dutperf.engine.client import ProgressCallback, ignore_progress
from dutperf.errors import InputError, SetupError
from dutperf.procedures.events import IntervalNarrowed
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.searching import NoUseError
from dutperf.procedures.stateful.connection_rate import measure_connection_rate
from dutperf.procedures.stateful.establishing import (
    SHORTEST_NS,
    Establishing,
    Opened,
    fastest,
    forgotten_in_shadow,
    stateful_of,
)
from dutperf.protocol.result_messages import (
    Reason,
    ReasonCode,
    Shadow,
    TrialResult,
    Verdict,
)
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import CellResult, HookRun
from dutperf.results.trial_record import HookMoment
from dutperf.run.engine_session import neighbours
from dutperf.simulation.fake_engine import (
    FakeEngine,
    SimulatedNat,
    fixed,
    perfect,
)

N = 1000
SECOND = 10**9
MAX = MaxRate(100_000, "set")


def measured(
    engine: FakeEngine,
    limit: MaxRate = MAX,
    repeats: int = 1,
    testbed: Testbed = NAT44,
    **stateful: object,
) -> tuple[CellResult, Recording]:
    recording = Recording(engine, testbed=testbed)
    asked = cell(
        testbed,
        procedure="connection-rate",
        resolution="10",
        repeats=repeats,
        stateful={"connections": N, **stateful},
    )
    return measure_connection_rate(recording.runner, asked, limit), recording


@pytest.mark.parametrize("rate", [111, 777, 50_000])
def test_the_rate_is_found_within_the_resolution(rate: int) -> None:
    result, _ = measured(ClearedEngine(SimulatedNat(connection_rate_fps=rate)))
    assert (result.verdict, result.unit) == ("pass", "connections/s")
    assert result.median is not None
    assert abs(rate - result.median) <= max(10, 0.01 * rate)
    assert "1,000 connections (RFC 9693 4.5)" in result.quantity


def test_phase_1_sends_each_four_tuple_once_and_nobody_answers() -> None:
    _, recording = measured(ClearedEngine(SimulatedNat()))
    request = recording.records[0].request
    (direction,) = request.directions
    (stream,) = direction.streams
    assert direction.name == "forward"
    assert request.frames(direction) == N
    assert [(v.field, v.mode) for v in stream.vary] == [
        ("src_port", "enumerate"),
        ("dst_port", "enumerate"),
    ]
    assert stream.enumeration_order == "random"
    assert request.learn is not None
    assert (request.learn.entries, request.learn.direction) == (N, "forward")
    assert request.residual_wait_ns == 500_000_000


def test_both_ports_answer_for_all_hosts_and_each_connection_is_validated() -> None:
    asked = cell(
        procedure="connection-rate",
        resolution="10",
        stateful={"connections": N, "source_ports": "1-63", "alpha": 0.8},
        traffic={"addresses": 4},
    )
    ranges = [
        [(own.first, own.count) for own in port.own if own.count > 1]
        for port in neighbours(NAT44, [asked]).ports
    ]
    assert ranges == [[("10.0.0.2", 4)], [("198.19.0.2", 4)]]
    recording = Recording(ClearedEngine(SimulatedNat()), testbed=NAT44)
    result = measure_connection_rate(recording.runner, asked, MAX)
    assert result.verdict == "pass"
    (back,) = recording.records[1].request.directions
    (stream,) = back.streams
    assert (back.name, stream.vary) == ("reverse", [])


def test_a_validated_rate_has_a_frame_back_for_each_connection_at_alpha() -> None:
    nat = SimulatedNat(connection_rate_fps=5000)
    result, recording = measured(ClearedEngine(nat), alpha=0.5)
    assert result.median is not None
    assert 4980 <= result.median <= 5010
    assert result.quantity.startswith("validated ")
    passed = [r for r in recording.records if r.load_fps == result.median]
    back = recording.records[recording.records.index(passed[-1]) + 1]
    assert back.load_fps == int(result.median * 0.5)
    (direction,) = back.request.directions
    (stream,) = direction.streams
    assert direction.name == "reverse"
    assert (stream.tuples and stream.tuples.order) == "increasing"
    assert back.request.frames(direction) == N


def test_connections_that_do_not_fit_pass_only_where_nobody_validates() -> None:
    """A table that drops the oldest forwards every frame of phase 1."""

    def nat() -> SimulatedNat:
        return SimulatedNat(table_size=N - 1, eviction="oldest")

    blind, _ = measured(ClearedEngine(nat()))
    assert (blind.verdict, blind.median) == ("pass", MAX.rate_fps)
    result, _ = measured(ClearedEngine(nat()), alpha=1)
    assert (result.verdict, result.median) == ("fail", 0)
    assert "large enough" in result.reasons[0].hint
    assert result.eviction is not None
    assert (result.eviction.policy, blind.eviction) == ("keeps_last", None)


@pytest.mark.parametrize("code", ["receiver_overflow", "link_down"])
def test_who_survives_is_not_told_where_no_test_tells(code: ReasonCode) -> None:
    def nat() -> SimulatedNat:
        return SimulatedNat(table_size=N - 1, eviction="oldest")

    calm, _ = measured(ClearedEngine(nat()), alpha=1)
    searched = calm.repeats[0].trials
    troubles = spoilt(code, *range(searched + 1, 500))
    result, _ = measured(ClearedEngine(nat(), troubles), alpha=1)
    assert (result.verdict, result.median, result.eviction) == ("fail", 0, None)


def test_who_survives_is_not_asked_where_nobody_validates() -> None:
    result, _ = measured(ClearedEngine(SimulatedNat(table_size=N - 1)))
    assert (result.verdict, result.median, result.eviction) == ("fail", 0, None)


def test_a_device_that_is_not_emptied_knows_the_connections_of_the_test_before() -> (
    None
):
    """Then nothing is opened: why the hooks must clear the table."""
    nat = SimulatedNat(connection_rate_fps=5000)
    result, _ = measured(FakeEngine(perfect(), nat=nat))
    assert result.median != pytest.approx(5000, rel=0.01)


def test_the_median_of_the_repeats_is_told_with_their_spread() -> None:
    nat = SimulatedNat(connection_rate_fps=5000)
    result, recording = measured(ClearedEngine(nat), repeats=5, alpha=1)
    assert len(result.repeats) == 5
    assert result.spread is not None
    of_repeats = Counter(record.repeat for record in recording.records)
    assert [of_repeats[n] for n in range(1, 6)] == [r.trials for r in result.repeats]


def test_an_invalid_phase_is_measured_again() -> None:
    nat = SimulatedNat(connection_rate_fps=5000)
    spoilt_first = ClearedEngine(nat, spoilt("receiver_overflow", 1))
    result, recording = measured(spoilt_first)
    assert result.verdict == "pass"
    assert recording.records[1].attempt == 2


class Stalling(ClearedEngine):
    """Of its first test: a stall in phase 1, and connections that do not work."""

    def __init__(
        self,
        forgotten: list[tuple[int, int]],
        *shadows: Shadow,
        codes: tuple[ReasonCode, ...] = ("frames_lost",),
    ) -> None:
        super().__init__(SimulatedNat())
        self._reasons = [Reason(code=code, message="some") for code in codes]
        self._forgotten = forgotten
        self._shadows = list(shadows)
        self._trials = 0

    def measure(
        self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        result = super().measure(trial, on_progress)
        (direction,) = result.directions
        self._trials += 1
        if self._trials == 1:
            direction = direction.model_copy(update={"shadows": self._shadows})
        if self._trials != 2:
            return result.model_copy(update={"directions": [direction]})
        (stream,) = direction.streams
        assert stream.survival
        lost = {"lost_ranges": self._forgotten}
        told = {"survival": stream.survival.model_copy(update=lost)}
        direction = direction.model_copy(
            update={"streams": [stream.model_copy(update=told)]}
        )
        verdict = Verdict(kind="fail", reasons=self._reasons)
        return result.model_copy(update={"directions": [direction], "verdict": verdict})


def shadow(first: int, last: int, frames: int | None, **keys: object) -> Shadow:
    """Over those connections of a phase 1 at ``MAX``."""
    span = {"begin_ns": first * 10_000, "end_ns": last * 10_000}
    kind = {"of": "sender", "may_lose": True, "frames": frames}
    return Shadow.model_validate(span | kind | keys)


@pytest.mark.parametrize(
    ("forgotten", "shadows"),
    [
        ([(338, 24)], [shadow(300, 400, 50)]),
        ([(338, 24)], [shadow(338, 361, 24)]),
        ([(10, 1), (399, 1)], [shadow(0, 20, 1), shadow(390, 400, None)]),
        ([(990, 10)], [shadow(900, 0, 10, end_ns=None)]),
        ([(338, 24)], [shadow(339, 360, 24)]),  # one more at each end
        ([(990, 10)], [shadow(991, 0, 10, end_ns=None)]),
        ([(0, 1)], [shadow(0, 20, 1)]),  # the first of all
        ([(0, 1)], [shadow(0, 0, 1, end_ns=None)]),
    ],
)
def test_connections_that_only_a_stall_of_the_tester_cost_are_opened_again(
    forgotten: list[tuple[int, int]], shadows: list[Shadow]
) -> None:
    """A device forgot what came at once after the tester's stall, and nothing else."""
    result, recording = measured(Stalling(forgotten, *shadows), alpha=1)
    assert (result.verdict, result.median) == ("pass", MAX.rate_fps)
    assert [r.load_fps for r in recording.records] == [MAX.rate_fps] * 4


@pytest.mark.parametrize(
    ("forgotten", "shadows"),
    [
        ([(338, 24)], []),
        ([(338, 24)], [shadow(300, 400, 23)]),  # more than left at once
        ([(338, 24)], [shadow(345, 400, 50)]),  # some of them before it
        ([(338, 24)], [shadow(300, 355, 50)]),  # ... after it
        ([(338, 24)], [shadow(340, 400, 50)]),  # the first of them two before it
        ([(338, 24)], [shadow(300, 359, 50)]),  # the last of them two after it
        ([(990, 10)], [shadow(992, 0, 10, end_ns=None)]),
        ([], [shadow(300, 400, 50)]),  # it is not known which
        ([(338, 24), (800, 1)], [shadow(300, 400, 50)]),  # one elsewhere
        ([(338, 24)], [shadow(300, 400, 50, may_lose=False)]),
    ],
)
def test_connections_that_a_stall_does_not_explain_are_the_devices(
    forgotten: list[tuple[int, int]], shadows: list[Shadow]
) -> None:
    _, recording = measured(Stalling(forgotten, *shadows), alpha=1)
    assert recording.records[2].load_fps < MAX.rate_fps


def test_a_stall_explains_only_what_is_told_of_each_connection() -> None:
    burst = shadow(300, 400, 50)
    _, recording = measured(Stalling([(338, 24)], burst), alpha=1)
    first, back = recording.records[:2]
    reason = forgotten_in_shadow(Opened(first, back))
    assert reason is not None
    assert reason.code == "sender_burst"
    assert "24 connections do not work" in reason.message
    assert "worth repeating" in reason.hint
    (direction,) = back.result.directions
    (stream,) = direction.streams
    assert stream.survival is not None
    for survival in (None, stream.survival.model_copy(update={"more_ranges": 1})):
        streams = [stream.model_copy(update={"survival": survival})]
        directions = [direction.model_copy(update={"streams": streams})]
        result = back.result.model_copy(update={"directions": directions})
        other = back.model_copy(update={"result": result})
        assert forgotten_in_shadow(Opened(first, other)) is None


def test_the_shortest_trial_limits_the_rate_only_where_it_is_exceeded() -> None:
    most = N * SECOND // SHORTEST_NS
    slower = MaxRate(most, "media", line_rate=True)
    assert fastest(slower, N) is slower
    found = fastest(MaxRate(most + 1, "media", line_rate=True), N)
    assert (found.rate_fps, found.kind, found.line_rate) == (most, "tester", False)
    assert found.detail == "the rate at which 1,000 connections take the shortest trial"


def test_a_stall_excuses_no_duplicates() -> None:
    burst = shadow(300, 400, 50)
    engine = Stalling([(338, 24)], burst, codes=("frames_lost", "duplicates"))
    _, recording = measured(engine, alpha=1)
    assert recording.records[2].load_fps < MAX.rate_fps


def test_of_connections_that_are_answered_twice_none_is_said_to_be_lost() -> None:
    result, _ = measured(doubling(ClearedEngine(SimulatedNat())))
    assert (result.verdict, result.median) == ("fail", 0)
    first, *others = result.reasons
    assert first.message == "tests failed at every rate that was tried"
    assert [reason.code for reason in others] == ["duplicates"]


def test_what_fails_a_validation_though_nothing_is_lost_is_told() -> None:
    engine = doubling(ClearedEngine(SimulatedNat()), lambda trial: not trial.learn)
    result, _ = measured(engine, alpha=1)
    codes = [reason.code for reason in result.reasons]
    assert codes == ["nothing_passed", "duplicates"]


def test_what_the_tester_cannot_offer_is_a_lower_bound() -> None:
    engine = ClearedEngine(SimulatedNat(), tester_limit_fps=30_000)
    result, _ = measured(engine)
    assert (result.verdict, result.bound_cause) == ("pass", "tester")
    assert [reason.code for reason in result.reasons] == ["sender_behind"]
    assert result.deviations[-1].rfc == "RFC 9693 4.5"


@pytest.mark.parametrize("code", ["sender_burst", "receiver_lag"])
def test_stalls_above_what_was_opened_leave_a_lower_bound(code: ReasonCode) -> None:
    """Two tests tell something; the next ones never."""
    nat = SimulatedNat(connection_rate_fps=MAX.rate_fps // 2 + 100)
    result, recording = measured(ClearedEngine(nat, spoilt(code, *range(3, 200))))
    kinds = [record.result.verdict.kind for record in recording.records]
    assert kinds[:2] == ["fail", "pass"]
    passed = recording.records[1].load_fps
    assert (result.verdict, result.median) == ("pass", passed)
    assert (result.bound, result.bound_cause) == ("lower", "disturbed")
    assert "disturbed" in result.deviations[-1].actual


@pytest.mark.parametrize(
    ("above", "below", "told"),
    [
        ("receiver_overflow", "sender_burst", ("invalid", None)),
        ("sender_burst", "receiver_overflow", ("pass", "disturbed")),
    ],
)
def test_what_spoilt_the_rate_above_is_told_and_not_what_spoilt_a_later_test(
    above: ReasonCode, below: ReasonCode, told: tuple[str, str | None]
) -> None:
    """The maximum is never tested; what spoils one test of half of it has passed."""
    troubles = spoilt(above, 1, 2, 3) | spoilt(below, 4)
    result, recording = measured(ClearedEngine(SimulatedNat(), troubles))
    assert recording.loads_fps[3:5] == [MAX.rate_fps // 2] * 2
    assert (result.verdict, result.bound_cause) == told
    codes = [reason.code for reason in result.reasons]
    assert codes == ["unstable", *([above] if told[0] == "invalid" else [])]


def test_a_tester_that_something_stopped_is_not_itself_the_bound() -> None:
    """Flow control, above what was opened."""
    nat = SimulatedNat(connection_rate_fps=MAX.rate_fps // 2 + 100)
    stopped = ClearedEngine(nat, spoilt("held_back", *range(3, 200)))
    result, recording = measured(stopped)
    assert (result.verdict, result.median) == ("pass", recording.loads_fps[1])
    assert (result.bound, result.bound_cause) == ("lower", "held_back")
    assert [reason.code for reason in result.reasons] == ["held_back"]


def test_what_passed_before_no_other_test_would_tell_anything_is_kept() -> None:
    """The search goes down, up from what passed, and then the link is lost."""
    nat = SimulatedNat(connection_rate_fps=MAX.rate_fps // 2 + 100)
    result, recording = measured(
        ClearedEngine(nat, spoilt("link_down", *range(3, 200))), repeats=3
    )
    passed = recording.records[1].load_fps
    assert recording.records[1].result.verdict.kind == "pass"
    assert (result.verdict, result.median, result.bound) == ("invalid", passed, "lower")
    assert (len(result.repeats), result.repeats[0].trials) == (1, 5)


def test_the_interval_that_is_left_is_told_while_it_narrows() -> None:
    nat = SimulatedNat(connection_rate_fps=5000)
    result, recording = measured(ClearedEngine(nat))
    told = [e for e in recording.events if isinstance(e, IntervalNarrowed)]
    assert told[-1].lower_fps == result.median
    assert 0 < told[-1].upper_fps - told[-1].lower_fps <= 10
    widths = [each.upper_fps - each.lower_fps for each in told]
    assert widths == sorted(widths, reverse=True)


def test_what_else_spoils_every_test_is_no_bound() -> None:
    nat = SimulatedNat(connection_rate_fps=MAX.rate_fps // 2 + 100)
    troubles = spoilt("receiver_overflow", *range(3, 200))
    result, _ = measured(ClearedEngine(nat, troubles))
    assert (result.verdict, result.bound_cause) == ("invalid", None)


@pytest.mark.parametrize(
    ("limit", "cause"), [(MAX, "set"), (MaxRate(10**9, "media"), "tester")]
)
def test_the_highest_rate_there_is_passes(limit: MaxRate, cause: str) -> None:
    """A thousand connections cannot be opened faster than in the shortest trial."""
    result, _ = measured(ClearedEngine(SimulatedNat(), delays=fixed(0)), limit)
    assert (result.verdict, result.bound, result.bound_cause) == (
        ("pass", "lower", cause)
    )


class SlowCount(SimulatedHooks):
    """Counts for three seconds, from the call ``begins`` on."""

    def __init__(self, nat: SimulatedNat, begins: int = 1) -> None:
        super().__init__(nat)
        self._begins = begins

    def __call__(self, hooks: Sequence[Hook], moment: HookMoment) -> list[HookRun]:
        if moment == "table_count" and self.done.count(moment) + 1 >= self._begins:
            self.nat.wait(3 * SECOND)
        return super().__call__(hooks, moment)


def counted(
    hooks: SlowCount, timeout_s: float, troubles: dict[int, ReasonCode] | None = None
) -> CellResult:
    """Of a device that is told to keep connections so long."""
    testbed = nat44("bulk_delete", "table_count")
    engine = FakeEngine(perfect(), nat=hooks.nat, troubles=troubles)
    recording = Recording(engine, testbed=testbed, hooks=hooks)
    keys = {"connections": N, "alpha": 0.8, "dut_timeout_s": timeout_s}
    asked = cell(testbed, procedure="connection-rate", resolution="2%", stateful=keys)
    return measure_connection_rate(recording.runner, asked, MaxRate(2000, "set"))


def test_the_time_that_hooks_take_counts_against_the_devices_timeout() -> None:
    nat = SimulatedNat(connection_rate_fps=900, timeout_ns=4 * SECOND)
    result = counted(SlowCount(nat), 4)
    assert result.verdict == "invalid"
    assert result.reasons[0].code == "connections_expire"
    nat.timeout_ns = 8 * SECOND
    assert abs((counted(SlowCount(nat), 8).median or 0) - 900) <= 18


@pytest.mark.parametrize(("wait_s", "lives_s"), [(0, 3), (3, 6)])
def test_a_test_must_end_before_the_device_forgets_connections(
    wait_s: int, lives_s: int
) -> None:
    """A second and half a second's wait in either phase, and what hooks took."""
    nat = SimulatedNat()
    testbed = nat44("bulk_delete", "table_count")
    hooks = SlowCount(nat, begins=1 if wait_s else 100)
    engine = FakeEngine(perfect(), nat=nat)
    recording = Recording(engine, testbed=testbed, hooks=hooks)
    for timeout_s, lasts in ((lives_s, False), (lives_s + 0.001, True)):
        keys = {"connections": N, "alpha": 1, "dut_timeout_s": timeout_s}
        asked = cell(testbed, procedure="connection-rate", stateful=keys)
        tests = Establishing(recording.runner, asked, 1)
        tests.both(stateful_of(asked), N)  # tells how long hooks take
        if lasts:
            assert tests.establish(stateful_of(asked), N).verdict == "pass"
        else:
            with pytest.raises(NoUseError):
                tests.establish(stateful_of(asked), N)
        assert tests.expired is not lasts


def test_a_test_that_hooks_make_too_long_says_nothing_of_its_rate() -> None:
    """The device has forgotten all connections when they are validated."""
    nat = SimulatedNat(timeout_ns=4 * SECOND)
    testbed = nat44("bulk_delete", "table_count")
    engine = FakeEngine(perfect(), nat=nat)
    recording = Recording(engine, testbed=testbed, hooks=SlowCount(nat))
    keys = {"connections": N, "alpha": 1, "dut_timeout_s": 4}
    asked = cell(testbed, procedure="connection-rate", stateful=keys)
    tests = Establishing(recording.runner, asked, 1)
    with pytest.raises(NoUseError):
        tests.establish(stateful_of(asked), N)
    assert tests.expired
    kinds = [record.result.verdict.kind for record in recording.records]
    assert kinds == ["pass", "fail"]


@pytest.mark.parametrize("may_collapse", [False, True])
def test_who_collapses_between_the_phases_is_brought_back_if_it_may(
    may_collapse: bool,
) -> None:
    class Fatal(SimulatedHooks):
        def __call__(self, hooks: Sequence[Hook], moment: HookMoment) -> list[HookRun]:
            self.nat.is_alive &= moment != "table_count"
            return super().__call__(hooks, moment)

    nat = SimulatedNat()
    testbed = nat44("bulk_delete", "table_count", "restart")
    hooks = Fatal(nat)
    recording = Recording(FakeEngine(perfect(), nat=nat), testbed=testbed, hooks=hooks)
    keys = {"connections": N, "alpha": 1}
    asked = cell(testbed, procedure="connection-rate", stateful=keys)
    tests = Establishing(recording.runner, asked, 1, may_collapse=may_collapse)
    assert tests.both(stateful_of(asked), N).last.result.verdict.kind == "fail"
    assert hooks.done.count("restart") == may_collapse


def test_a_device_that_collapses_at_a_rate_is_not_brought_back() -> None:
    nat = SimulatedNat(collapses_at=N // 2)
    testbed = nat44("bulk_delete", "restart", "is_alive")
    hooks = SimulatedHooks(nat)
    recording = Recording(FakeEngine(perfect(), nat=nat), testbed=testbed, hooks=hooks)
    asked = cell(testbed, procedure="connection-rate", stateful={"connections": N})
    with pytest.raises(SetupError):
        measure_connection_rate(recording.runner, asked, MAX)
    assert "restart" not in hooks.done


@pytest.mark.parametrize(("rate_per_s", "back_per_s"), [(1000, 300), (3, 1), (1, 1)])
def test_a_validation_sends_a_frame_a_second_at_least(
    rate_per_s: int, back_per_s: int
) -> None:
    asked = cell(
        NAT44, procedure="connection-rate", stateful={"connections": 2, "alpha": 0.3}
    )
    recording = Recording(ClearedEngine(SimulatedNat()), testbed=NAT44)
    tests = Establishing(recording.runner, asked, 1)
    assert tests.establish(stateful_of(asked), rate_per_s).verdict == "pass"
    assert recording.loads_fps == [rate_per_s, back_per_s]


def test_a_search_that_ends_at_the_devices_timeout_is_not_bounded_by_a_stall() -> None:
    """One spoils the first test of what is opened, and then counting is slow."""
    nat = SimulatedNat(connection_rate_fps=1900, timeout_ns=5 * SECOND)
    result = counted(SlowCount(nat, begins=2), 5, spoilt("sender_burst", 4))
    assert (result.verdict, result.median) == ("invalid", 1500)
    assert [reason.code for reason in result.reasons] == ["connections_expire"]
    assert (result.bound, result.bound_cause) == ("lower", None)


def test_tests_that_outlast_the_devices_timeout_are_not_made() -> None:
    nat = SimulatedNat(connection_rate_fps=50, timeout_ns=2 * 10**9)
    result, recording = measured(ClearedEngine(nat), dut_timeout_s=2)
    assert result.verdict == "invalid"
    assert result.reasons[0].code == "connections_expire"
    longest = max(r.request.duration_ns for r in recording.records)
    assert longest < 2 * 10**9


def test_hooks_clear_the_table_once_for_both_phases() -> None:
    hooks = {"before_trial": [{"command": ["true"]}]}
    testbed = Testbed.model_validate(
        NAT44.model_dump(exclude_none=True) | {"hooks": hooks}
    )
    recording = Recording(ClearedEngine(SimulatedNat()), testbed=testbed)
    asked = cell(procedure="connection-rate", stateful={"connections": N, "alpha": 1})
    measure_connection_rate(recording.runner, asked, MAX)
    phases = [
        [run.moment for run in record.hooks].count("before_trial")
        for record in recording.records
    ]
    assert phases == [1, 0]


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"procedure": "connection-rate"}, "stateful: is missing"),
        ({"stateful": {"connections": 5}}, "phase1_rate: is missing"),
        (
            {
                "procedure": "connection-rate",
                "stateful": {
                    "connections": 11,
                    "source_ports": "1-10",
                    "destination_ports": "80-80",
                },
            },
            "11 are more than the 10 combinations",
        ),
        (
            {
                "procedure": "connection-rate",
                "stateful": {"connections": 4_000_000_000},
            },
            "more than source_ports",
        ),
        (
            {
                "procedure": "connection-rate",
                "stateful": {"connections": 5},
                "traffic": {"networks": 256},
            },
            "networks: must be left out",
        ),
        (
            {
                "procedure": "connection-rate",
                "stateful": {"connections": 5},
                "direction": "reverse",
            },
            "direction: unknown key",
        ),
    ],
)
def test_what_does_not_fit_is_refused(keys: dict[str, object], told: str) -> None:
    with pytest.raises((InputError, ValueError), match=told):
        cell(**keys)


def test_a_device_that_does_not_translate_is_no_gateway() -> None:
    """The responder sees the initiator's own address: all else would pass."""
    nat = SimulatedNat(public_ip="10.0.0.2")
    result, recording = measured(ClearedEngine(nat))
    assert result.verdict == "invalid"
    assert [reason.code for reason in result.reasons] == ["not_translated"]
    assert "10.0.0.2" in result.reasons[0].message
    assert len(recording.records) == 1


def test_a_stateful_firewall_is_measured_where_the_testbed_says_so() -> None:
    nat = SimulatedNat(public_ip="10.0.0.2")
    firewall = NAT44.model_copy(update={"translates": False})
    result, _ = measured(ClearedEngine(nat), testbed=firewall)
    assert result.verdict == "pass"
    assert [d.level for d in result.deviations if d.rfc == "RFC 9693 3"] == [
        "definition"
    ]


def test_other_public_addresses_than_expected_are_told_at_once() -> None:
    nat = SimulatedNat(public_ip="203.0.113.7")
    result, recording = measured(ClearedEngine(nat), public_addresses="198.19.0.1")
    assert result.verdict == "invalid"
    assert [reason.code for reason in result.reasons] == ["unexpected_address"]
    assert "203.0.113.7" in result.reasons[0].message
    assert len(recording.records) == 1
