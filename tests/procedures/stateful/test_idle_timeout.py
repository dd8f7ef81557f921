"""How long simulated gateways keep what nobody uses."""

from __future__ import annotations

from typing import Literal

import pytest
from gateways import SimulatedHooks, nat44
from planning import Recording, cell

from dutperf.errors import InputError
from dutperf.model.frames import IpVersions
from dutperf.model.specs import IdleTimeoutSpec
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.measurements import tables
from dutperf.procedures.stateful.idle_timeout import least_of, measure_idle_timeout
from dutperf.results import CellResult, ResultsFile
from dutperf.simulation.fake_engine import FakeEngine, SimulatedNat, perfect
from dutperf.tables import subjects

State = Literal["udp", "established", "half-open"]
STATES: tuple[State, ...] = ("udp", "established", "half-open")
S = 10**9


def measured(
    nat: SimulatedNat, state: State = "udp", hold_s: int = 100, **more: object
) -> tuple[CellResult, Recording]:
    recording = Recording(
        FakeEngine(perfect(), nat=nat),
        testbed=nat44("bulk_delete"),
        hooks=SimulatedHooks(nat),
    )
    keys = {"connections": 1000, **more}
    asked = cell(procedure="idle-timeout", state=state, hold_s=hold_s, stateful=keys)
    result = measure_idle_timeout(recording.runner, asked, MaxRate(10**6, "load"))
    return result, recording


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("timeout_s", [1.55, 30, 99.5])
def test_the_timeout_is_found_to_the_distance_of_the_uses(
    state: State, timeout_s: float
) -> None:
    nat = SimulatedNat(timeout_ns=int(timeout_s * S))
    result, recording = measured(nat, state)
    assert (result.verdict, result.bound, result.unit) == ("pass", None, "ns")
    assert result.median is not None
    assert timeout_s - 0.1 <= result.median / S < timeout_s
    assert len(recording.records) == 2  # one trial tells all


@pytest.mark.parametrize("state", STATES)
def test_what_outlives_the_longest_wait_is_a_lower_bound(state: State) -> None:
    result, _ = measured(SimulatedNat(timeout_ns=200 * S), state)
    assert (result.verdict, result.bound, result.bound_cause) == (
        "pass",
        "lower",
        "kept",
    )
    assert result.median is not None
    assert 99 < result.median / S < 101


@pytest.mark.parametrize(
    ("timeout_s", "hold_s", "said"),
    [
        (60, 200, "not met"),
        (119, 200, "not met"),
        (119.95, 200, "cannot tell"),  # the next one was idle for 120 s and more
        (130, 200, "met"),
        (200, 100, "cannot tell"),  # of 100 s all work
        (0.001, 100, "cannot tell"),
    ],
)
def test_whether_the_rfcs_minimum_is_met(
    timeout_s: float, hold_s: int, said: str
) -> None:
    nat = SimulatedNat(timeout_ns=int(timeout_s * S))
    result, _ = measured(nat, hold_s=hold_s, connections=10 * hold_s)
    whole = ResultsFile(
        procedure="idle-timeout",
        name="idle",
        created_at="2026-01-02T03:04:05+00:00",
        complete=True,
        cells=[result],
        trials=[],
    )
    table, *_ = tables(list(subjects(whole)), [])
    place = [column.name for column in table.columns].index("requirement")
    assert table.rows[0].entries[place] == said


def test_a_device_that_forgets_at_once_has_no_timeout_to_tell() -> None:
    result, _ = measured(SimulatedNat(timeout_ns=S // 1000))
    assert (result.verdict, result.median) == ("fail", 0)
    assert "not even after" in result.reasons[0].message


def test_what_is_lost_between_those_that_work_is_no_timeout() -> None:
    """The oldest fell out of a table that was too small."""
    nat = SimulatedNat(table_size=600, eviction="oldest", timeout_ns=50 * S)
    result, _ = measured(nat)
    assert (result.verdict, result.median) == ("invalid", None)
    assert "400 connections do not work" in result.reasons[0].message


def test_what_did_not_open_says_nothing() -> None:
    result, recording = measured(SimulatedNat(table_size=600))
    assert (result.verdict, result.median) == ("invalid", None)
    assert "not all connections opened" in result.reasons[0].message
    assert len(recording.records) == 1


def test_fewer_than_one_use_a_second_are_refused() -> None:
    with pytest.raises(InputError, match="cannot be used at even distances"):
        cell(procedure="idle-timeout", hold_s=100, stateful={"connections": 99})


@pytest.mark.parametrize(
    ("ip", "state", "told"),
    [
        (4, "udp", ("RFC 4787 REQ-5", 120)),
        (4, "established", ("RFC 5382 REQ-5", 7440)),
        (4, "half-open", ("RFC 5382 REQ-5", 240)),
        ("6-4", "established", ("RFC 6146 4", 7440)),
    ],
)
def test_the_rfcs_minimum_stands_beside_it(
    ip: IpVersions, state: State, told: tuple[str, int]
) -> None:
    spec = IdleTimeoutSpec(procedure="idle-timeout", ip=[ip], state=state)
    assert tuple(least_of(spec)) == told
