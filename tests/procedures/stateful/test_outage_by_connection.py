"""What an interruption does to each connection, held against a gateway's set truth."""

from __future__ import annotations

import json
from typing import Any

import pytest
from gateways import NAT44, ClearedEngine, Interrupted
from planning import Recording, cell

from dutperf.errors import InputError
from dutperf.evidence.accounting import check_trials
from dutperf.procedures.max_rate import MaxRate
from dutperf.results import CellResult
from dutperf.results.details import ConnectionOutage, ConnectionTenth
from dutperf.run.local_executor import measure_cell
from dutperf.simulation.fake_engine import SimulatedNat
from oracle import Compared, Source, compare_cell, derived_cell

MS = 1_000_000
N = 100
TURN_MS = 100
KEYS: dict[str, object] = {
    "procedure": "outage",
    "rate_fps": 1000,
    "trial_duration_s": 3,
    "trigger_after_s": 1,
    "repeats": 1,
    "by_connection": True,
    "stateful": {"connections": N, "phase1_rate": 5001, "timeout_ms": 50},
}


def measured(nat: SimulatedNat, **keys: object) -> CellResult:
    """What the oracle finds, too."""
    asked = cell(NAT44, **KEYS | keys)
    recording = Recording(ClearedEngine(nat), testbed=NAT44)
    result = measure_cell(recording.runner, asked, MaxRate(1000, "load"))
    plain = json.loads(result.model_dump_json())
    trials = [json.loads(record.model_dump_json()) for record in recording.records]
    again = Compared()
    compare_cell(plain, derived_cell(Source(plain, trials, [], {})), again)
    assert [*again.differ, *check_trials(trials)] == []
    return result


def found(result: CellResult) -> dict[str, ConnectionOutage]:
    assert result.outage
    return {
        direction.direction: each
        for direction in result.outage.directions
        for each in direction.by_connection or []
        if each
    }


def test_one_connection_that_dies_is_caught_and_named() -> None:
    result = measured(Interrupted(lambda number, ms: number == 37 and ms >= 1200))
    assert set(found(result)) == {"forward", "reverse"}
    for each in found(result).values():
        assert (each.connections, each.whole, each.back) == (N, N - 1, 0)
        assert (each.died, each.unclear) == (1, 0)
        assert [lost.connection for lost in each.named] == [37]
        assert each.named[0].begin_ns == (1200 + 37) * MS
        assert each.tenths[3] == ConnectionTenth(connections=10, back=0, open=1)
        assert max(each.out) == 1
    messages = [r.message for r in result.reasons if r.code == "connections_lost"]
    assert len(messages) == 2
    assert all("1 of 100 connections" in text for text in messages)
    assert all("connection 37" in text for text in messages)


def test_all_are_out_for_three_turns_and_one_for_longer() -> None:
    result = measured(
        Interrupted(lambda number, ms: 1200 <= ms < (2000 if number == 73 else 1500))
    )
    for each in found(result).values():
        assert each.turn_ns == TURN_MS * MS
        assert (each.back, each.died, each.unclear, each.whole) == (N, 0, 0, 0)
        assert (each.median_ns, each.longest_ns) == (300 * MS, 800 * MS)
        assert each.last_back_ns == (2000 + 73) * MS
        assert max(each.out) == N
        assert each.out[0] == each.out[-1] == 0
    assert not [r for r in result.reasons if r.code == "connections_lost"]


def test_one_direction_may_die_alone() -> None:
    """The responder's frames find no mapping; the initiator's make a new one."""

    class OneWay(Interrupted):
        def carry(self, *args: Any, **keys: Any) -> tuple[bytearray, bytearray]:  # noqa: ANN401
            outbound, inbound = super().carry(*args, **keys)
            return bytearray(b"\1" * len(outbound)), inbound

    both = found(measured(OneWay(lambda number, ms: number < 20 and ms >= 1000)))
    assert both["forward"].died == 0
    assert both["reverse"].died == 20
    assert [tenth.open for tenth in both["reverse"].tenths] == [10, 10] + 8 * [0]


def test_whether_one_died_of_which_the_last_frame_is_missing_nobody_can_tell() -> None:
    result = measured(Interrupted(lambda number, ms: number == 5 and ms >= 2900))
    for each in found(result).values():
        assert (each.died, each.unclear) == (0, 1)
        assert each.named == []
    assert any("nobody can tell" in reason.message for reason in result.reasons)


def test_mappings_that_change_are_counted_where_they_are_learned() -> None:
    """A table that forgets between two turns gives a new mapping in each."""
    forgetful = SimulatedNat(timeout_ns=60 * MS)
    (each,) = found(measured(forgetful, direction="forward")).values()
    assert each.moved == 30 * N
    assert (each.whole, each.died) == (N, 0)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"stateful": None}, "open some"),
        ({"direction": "reverse"}, "must not be reverse with by_connection"),
        ({"trial_duration_s": 86400, "rate_fps": 10**6}, "a bit for each frame"),
        ({"rate_fps": 90}, "a turn of all connections takes 1.11 s"),
        ({"trial_duration_s": 1.2}, "3 have to come after it"),
        (
            {"traffic": {"burst_frames": 10}},
            "leave load_shape and burst_frames out",
        ),
    ],
)
def test_what_could_not_be_told_is_refused(keys: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        cell(NAT44, **{k: v for k, v in (KEYS | keys).items() if v is not None})
