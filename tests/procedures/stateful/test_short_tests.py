"""Tests of connections too short to prove the rate that they passed."""

from __future__ import annotations

import pytest
from gateways import NAT44, ClearedEngine
from planning import Recording, cell

from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.stateful.connection_rate import measure_connection_rate
from dutperf.results import CellResult
from dutperf.simulation.fake_engine import SimulatedNat, fixed

RATE, QUEUE = 20_000, 390


def measured(connections: int, resolution: str = "1%") -> CellResult:
    """Of a device that opens RATE a second and lets QUEUE frames wait."""
    nat = SimulatedNat(connection_rate_fps=RATE, waiting=QUEUE)
    asked = cell(
        NAT44,
        procedure="connection-rate",
        resolution=resolution,
        stateful={"connections": connections},
    )
    recording = Recording(ClearedEngine(nat), testbed=NAT44)
    return measure_connection_rate(recording.runner, asked, MaxRate(100_000, "set"))


@pytest.mark.parametrize("connections", [1000, 2000, 2900])
def test_a_queue_raises_no_result(connections: int) -> None:
    """C a second with Q waiting pass N connections at C / (1 - Q / N)."""
    result = measured(connections)
    assert (result.verdict, result.bound_cause) == ("pass", "short_tests")
    assert result.median == pytest.approx(RATE, rel=0.01)
    (reason,) = [r for r in result.reasons if r.code == "short_tests"]
    enough = int(reason.hint.split()[1].replace(",", ""))
    longer = measured(enough)
    assert (longer.bound, longer.reasons) == (None, [])
    assert longer.median == pytest.approx(RATE, rel=0.021)


def test_less_than_the_resolution_is_nothing_to_tell() -> None:
    result = measured(2900, "20%")
    assert (result.bound, result.reasons) == (None, [])


@pytest.mark.parametrize("delay_ms", [262, 20])
def test_a_pass_proves_no_more_than_was_opened_until_the_last_frame_came(
    delay_ms: int,
) -> None:
    """4,000 connections at 28,750/s take 139 ms; the last one came 262 ms later."""
    rate = 28_750
    nat = SimulatedNat(connection_rate_fps=rate)
    engine = ClearedEngine(nat, delays=fixed(delay_ms * 10**6))
    asked = cell(
        NAT44,
        procedure="connection-rate",
        resolution="5%",
        stateful={"connections": 4000},
    )
    recording = Recording(engine, testbed=NAT44)
    limit = MaxRate(100_000, "set")
    result = measure_connection_rate(recording.runner, asked, limit)
    assert (result.bound, result.bound_cause) == ("lower", "short_tests")
    found = max(
        r.load_fps for r in recording.records if r.result.verdict.kind == "pass"
    )
    opened = 4000 / (4000 / found + delay_ms / 1000)
    assert result.median == pytest.approx(opened, abs=1)
    (reason,) = [r for r in result.reasons if "too short a test" in r.message]
    assert f"{found:,}/s passed" in reason.message
    enough = int(reason.hint.split()[1].replace(",", ""))
    assert enough / (enough / found + delay_ms / 1000) >= 0.949 * found


def test_a_delay_of_less_than_the_resolution_leaves_the_result() -> None:
    nat = SimulatedNat(connection_rate_fps=1000)
    engine = ClearedEngine(nat, delays=fixed(9 * 10**6))
    asked = cell(
        NAT44,
        procedure="connection-rate",
        resolution="1%",
        stateful={"connections": 1000},
    )
    recording = Recording(engine, testbed=NAT44)
    limit = MaxRate(100_000, "set")
    result = measure_connection_rate(recording.runner, asked, limit)
    assert result.median == pytest.approx(1000, rel=0.01)
    assert result.bound is None
