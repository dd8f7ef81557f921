"""What the device counts after phase 1, beside what the tester believes."""

from __future__ import annotations

import pytest
from gateways import SimulatedHooks, nat44
from planning import Recording, cell

from dutperf.procedures.events import Notice
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.stateful.connection_diagnosis import agrees
from dutperf.procedures.stateful.connection_rate import measure_connection_rate
from dutperf.simulation.fake_engine import FakeEngine, SimulatedNat, perfect

N = 1000
ALL = ("bulk_delete", "table_count")


def measured(nat: SimulatedNat, *hooks: str) -> Recording:
    recording = Recording(
        FakeEngine(perfect(), nat=nat), testbed=nat44(*hooks), hooks=SimulatedHooks(nat)
    )
    asked = cell(
        procedure="connection-rate", resolution="100", stateful={"connections": N}
    )
    measure_connection_rate(recording.runner, asked, MaxRate(5000, "set"))
    return recording


def notices(recording: Recording) -> list[str]:
    return [event.text for event in recording.events if isinstance(event, Notice)]


def test_a_device_that_counts_as_many_is_believed_in_silence() -> None:
    recording = measured(SimulatedNat(connection_rate_fps=2000), *ALL)
    passed = [r for r in recording.records if r.result.verdict.kind == "pass"]
    assert passed
    for record in passed:
        counts = [h.output for h in record.hooks if h.moment == "table_count"]
        assert counts == [f"connections: {N}"]
    assert notices(recording) == []


def test_one_that_forwards_more_than_it_remembers_is_told_of_once() -> None:
    nat = SimulatedNat(table_size=600, eviction="oldest", connection_rate_fps=2000)
    recording = measured(nat, *ALL)
    assert len(recording.records) > 2
    (text,) = notices(recording)
    assert "1,000 connections were opened, but the device counts 600" in text


def test_a_table_that_was_not_empty_is_told_of() -> None:
    nat = SimulatedNat()
    hooks = SimulatedHooks(nat)
    recording = Recording(
        FakeEngine(perfect(), nat=nat), testbed=nat44("table_count"), hooks=hooks
    )
    for connections in (N, N // 2):
        asked = cell(
            procedure="connection-rate",
            resolution="100",
            stateful={"connections": connections},
        )
        measure_connection_rate(recording.runner, asked, MaxRate(5000, "set"))
    (text,) = notices(recording)
    assert "counts 1,000 connections, of which this test opened 500" in text


def test_without_the_hook_nothing_is_asked() -> None:
    recording = measured(SimulatedNat(), "bulk_delete")
    moments = {run.moment for record in recording.records for run in record.hooks}
    assert moments == {"bulk_delete"}
    assert notices(recording) == []


@pytest.mark.parametrize(
    ("counted", "same"), [(990, True), (989, False), (1010, True), (1011, False)]
)
def test_a_hundredth_is_forgiven(counted: int, same: bool) -> None:
    assert agrees(counted, 1000) is same
