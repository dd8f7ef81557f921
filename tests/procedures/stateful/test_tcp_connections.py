"""TCP connections that stay, through simulated gateways whose truth is known."""

from __future__ import annotations

import itertools

import pytest
from gateways import SimulatedHooks, nat44
from planning import Recording, cell

from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.measurements import METHODS
from dutperf.procedures.method import OnConnections
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import CellResult
from dutperf.simulation.fake_engine import FakeEngine, SimulatedNat, perfect, step
from dutperf.simulation.simulated_gateway import Eviction

MAX = MaxRate(50_000, "set")
HELD = {"first": 100, "connections": 3000, "alpha": 1}
USED = {"connections": 1000, "phase1_rate": 2000}


def measured(
    procedure: str, engine: FakeEngine, nat: SimulatedNat, **stateful: object
) -> tuple[CellResult, list[TrialRequest]]:
    recording = Recording(
        engine, testbed=nat44("bulk_delete"), hooks=SimulatedHooks(nat)
    )
    asked = cell(procedure=procedure, resolution="50", repeats=1, stateful=stateful)
    method = METHODS[asked.procedure].trials
    assert isinstance(method, OnConnections)
    result = method.measure(recording.runner, asked, MAX)
    return result, [record.request for record in recording.records]


def steps(request: TrialRequest) -> tuple[str, str]:
    assert request.tcp is not None
    return request.tcp.begin, request.tcp.until


@pytest.mark.parametrize(
    ("procedure", "opening", "using", "words"),
    [
        ("tcp-capacity", ("syn", "opened"), ("request", "answered"), "concurrent TCP"),
        ("tcp-half-open", ("syn", "half_open"), ("ack", "opened"), "half-open TCP"),
    ],
)
@pytest.mark.parametrize(
    ("eviction", "policy"), [("refuse", "keeps_first"), ("oldest", "keeps_last")]
)
def test_as_many_are_found_as_the_table_holds(
    procedure: str,
    opening: tuple[str, str],
    using: tuple[str, str],
    words: str,
    eviction: Eviction,
    policy: str,
) -> None:
    """Also if the table takes every SYN, and forgets others for it."""
    nat = SimulatedNat(table_size=700, eviction=eviction)
    engine = FakeEngine(perfect(), nat=nat)
    result, requests = measured(procedure, engine, nat, **HELD)
    assert (result.verdict, result.median, result.unit) == ("pass", 700, "connections")
    assert words in result.quantity
    assert result.eviction is not None
    assert result.eviction.policy == policy
    assert {steps(request) for request in requests} == {opening, using}
    for one, other in itertools.pairwise(requests):
        if steps(other) == using:
            assert other.tcp is not None
            assert other.tcp.opened_by == one.trial_id
            streams = [r.directions[0].streams[0] for r in (one, other)]
            assert len({str((s.vary, s.enumeration_order)) for s in streams}) == 1
            assert one.frames(one.directions[0]) == other.frames(other.directions[0])


@pytest.mark.parametrize(
    ("procedure", "using"),
    [
        ("tcp-request-rate", ("request", "answered")),
        ("tcp-teardown-rate", ("fin", "closed")),
    ],
)
def test_the_rate_is_that_of_uses_however_slowly_connections_open(
    procedure: str, using: tuple[str, str]
) -> None:
    nat = SimulatedNat(connection_rate_fps=3000)
    engine = FakeEngine(step(9000), nat=nat)
    result, requests = measured(procedure, engine, nat, **USED)
    assert result.verdict == "pass"
    assert result.median is not None
    assert 8950 <= result.median <= 9000
    rates = {
        begins: {r.directions[0].rate_fps for r in requests if steps(r)[0] == begins}
        for begins in ("syn", using[0])
    }
    assert rates["syn"] == {2000}
    assert len(rates[using[0]]) > 5


def test_where_connections_do_not_open_nothing_is_said_of_their_use() -> None:
    nat = SimulatedNat(connection_rate_fps=1000)
    engine = FakeEngine(perfect(), nat=nat)
    result, requests = measured("tcp-teardown-rate", engine, nat, **USED)
    assert (result.verdict, result.median) == ("invalid", None)
    assert {steps(request)[0] for request in requests} == {"syn"}
    told = str(result.reasons)
    assert "not all connections opened at 2,000/s" in told
    assert "lower --phase1-rate" in told
