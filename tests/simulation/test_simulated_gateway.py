"""The simulated gateway: what phases 1 and 2 and a validation see of it."""

from __future__ import annotations

from typing import Any

import pytest

from dutperf.errors import EngineError
from dutperf.protocol.methods import ERROR_STATE
from dutperf.protocol.result_messages import StreamResult, TrialResult
from dutperf.protocol.stream_parts import TableResult
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.simulation.fake_engine import FakeEngine, SimulatedNat, perfect, step

MS = 1_000_000
N = 1000
Json = dict[str, Any]
EXPECTED = {"first": "198.19.0.1", "last": "198.19.0.4"}


def stream(identity: int, **keys: object) -> Json:
    return {
        "id": identity,
        "ip_version": 4,
        "frame_sizes": [64],
        "received_frame_sizes": [64],
        "src_ip": "10.0.0.2",
        "dst_ip": "198.19.0.2",
        "next_hop": "10.0.0.1",
        **keys,
    }


def initiator(order: str, count: int = N) -> Json:
    ports = {"field": "src_port", "width": 16, "min": 1024, "max": 1023 + 10 * N}
    return stream(
        0,
        vary=[{**ports, "mode": "enumerate"}],
        tuples={"source": "generated", "count": count, "order": order},
    )


def responder(order: str, count: int = N) -> Json:
    return stream(1, tuples={"source": "learned", "count": count, "order": order})


def trial(
    forward: Json | None = None, reverse: Json | None = None, **keys: object
) -> TrialRequest:
    """One second, unless said otherwise."""
    rate_fps = keys.pop("rate_fps", N)
    sides = {"forward": forward, "reverse": reverse}
    return TrialRequest.model_validate(
        {
            "trial_id": 1,
            "duration_ns": 1000 * MS,
            "settle_ns": 0,
            "residual_wait_ns": 500 * MS,
            "record": {"survival_blocks": 4, "series_interval_ns": 500 * MS},
            "directions": [
                {"name": name, "rate_fps": rate_fps, "streams": [side]}
                for name, side in sides.items()
                if side
            ],
            **keys,
        }
    )


def phase1(rate_fps: int = N, count: int = N, **learn: object) -> TrialRequest:
    """``count`` connections at a rate."""
    return trial(
        initiator("once", count),
        rate_fps=rate_fps,
        duration_ns=10**9 * count // rate_fps,
        learn={"direction": "forward", "ip_version": 4, "entries": count, **learn},
    )


def validation(rate_fps: int = N, count: int = N, order: str = "once") -> TrialRequest:
    return trial(
        None,
        responder(order, count),
        rate_fps=rate_fps,
        duration_ns=10**9 * count // rate_fps,
    )


def phase2(rate_fps: int = N) -> TrialRequest:
    keep = {"direction": "forward", "ip_version": 4, "entries": N, "keep": True}
    return trial(
        initiator("random"), responder("random"), rate_fps=rate_fps, learn=keep
    )


def only(result: TrialResult) -> StreamResult:
    (direction,) = result.directions
    (found,) = direction.streams
    return found


def table_of(result: TrialResult) -> TableResult:
    assert result.table is not None
    return result.table


def survivors(engine: FakeEngine, count: int = N) -> list[int]:
    """Numbers of the connections that answer a validation."""
    survival = only(engine.measure(validation(count=count))).survival
    assert survival is not None
    assert survival.more_ranges == 0
    lost = {k for first, n in survival.lost_ranges for k in range(first, first + n)}
    assert count - len(lost) == sum(survival.received)
    return [k for k in range(count) if k not in lost]


def test_what_phase_1_taught_is_sent_back_by_all_of_it() -> None:
    engine = FakeEngine(perfect(), nat=SimulatedNat())
    table = table_of(engine.measure(phase1()))
    assert (table.filled, table.learned, table.changed) == (N, N, 0)
    assert (table.bytes_per_entry, table.memory_bytes) == (12, 12 * N)
    assert survivors(engine) == list(range(N))


def test_a_device_without_connections_forwards_learned_frames() -> None:
    engine = FakeEngine(perfect())
    assert engine.measure(phase1()).verdict.kind == "pass"
    assert engine.measure(phase2()).verdict.kind == "pass"
    assert survivors(engine) == list(range(N))


@pytest.mark.parametrize("rate_fps", [400, 500])
def test_connections_are_opened_up_to_the_rate(rate_fps: int) -> None:
    engine = FakeEngine(perfect(), nat=SimulatedNat(connection_rate_fps=500))
    assert engine.measure(phase1(rate_fps)).verdict.kind == "pass"


@pytest.mark.parametrize("rate_fps", [502, 625, 1000])
def test_connections_above_the_rate_are_lost_evenly(rate_fps: int) -> None:
    engine = FakeEngine(perfect(), nat=SimulatedNat(connection_rate_fps=500))
    result = engine.measure(phase1(rate_fps))
    arrived = only(result)
    assert result.verdict.kind == "fail"
    assert arrived.received == pytest.approx(N * 500 / rate_fps, abs=2)
    assert arrived.survival is not None
    assert max(arrived.survival.received) - min(arrived.survival.received) <= 2
    assert table_of(result).filled == arrived.received
    assert sum(arrived.series.received) == arrived.received
    assert arrived.loss_runs.count == len(arrived.survival.lost_ranges)


def test_known_connections_take_no_time_to_open() -> None:
    engine = FakeEngine(perfect(), nat=SimulatedNat(connection_rate_fps=500))
    engine.measure(phase1(500))
    assert engine.measure(phase1(1000)).verdict.kind == "pass"


def test_a_full_table_refuses() -> None:
    engine = FakeEngine(perfect(), nat=SimulatedNat(table_size=600))
    assert only(engine.measure(phase1())).received == 600
    result = engine.measure(validation())
    assert table_of(result).unlearned_sent == 400
    assert only(result).received == 600
    assert survivors(engine) == list(range(600))


def test_a_full_table_forgets_whom_it_used_longest_ago() -> None:
    engine = FakeEngine(perfect(), nat=SimulatedNat(table_size=600, eviction="oldest"))
    assert only(engine.measure(phase1())).received == N
    assert survivors(engine) == list(range(400, N))


def test_a_full_table_forgets_chunks() -> None:
    nat = SimulatedNat(table_size=600, eviction="chunk", chunk=250)
    engine = FakeEngine(perfect(), nat=nat)
    assert only(engine.measure(phase1())).received == N
    assert survivors(engine) == list(range(500, N))


def test_a_full_table_forgets_anybody() -> None:
    engine = FakeEngine(perfect(), nat=SimulatedNat(table_size=600, eviction="random"))
    engine.measure(phase1())
    found = survivors(engine)
    assert len(found) == 600
    blocks = [sum(k // 250 == block for k in found) for block in range(4)]
    assert 0 < blocks[0] < blocks[3]
    assert blocks != [0, 100, 250, 250]


def test_connections_expire() -> None:
    nat = SimulatedNat(timeout_ns=1800 * MS)
    engine = FakeEngine(perfect(), nat=nat)
    engine.measure(phase1())
    assert nat.table_count() == N
    # Frame k is sent at k ms, and asked for 1.5 s later: nobody is too old.
    assert engine.measure(validation()).verdict.kind == "pass"
    nat.wait(900 * MS)
    # Now each is asked 2.4 s after its last frame.
    assert nat.table_count() < N
    assert survivors(engine) == []


def test_expired_connections_make_room_and_come_back_with_another_mapping() -> None:
    nat = SimulatedNat(table_size=N, timeout_ns=3000 * MS)
    engine = FakeEngine(perfect(), nat=nat)
    engine.measure(phase1())
    nat.wait(5000 * MS)
    keep = phase1(keep=True)
    table = table_of(engine.measure(keep))
    assert (table.changed, table.filled) == (N, N)
    assert survivors(engine) == list(range(N))


def test_phase_2_runs_both_ways_and_refreshes() -> None:
    nat = SimulatedNat(timeout_ns=10_000 * MS)
    engine = FakeEngine(step(2 * N), nat=nat)
    engine.measure(phase1())
    result = engine.measure(phase2(2 * N))
    assert result.verdict.kind == "pass"
    assert [d.streams[0].received for d in result.directions] == [2 * N, 2 * N]
    assert (table_of(result).learned, table_of(result).changed) == (2 * N, 0)
    assert table_of(result).since_learning_ns == 1500 * MS
    assert nat.table_count() == N


def test_phase_2_loses_what_the_device_cannot_serve() -> None:
    engine = FakeEngine(step(N), nat=SimulatedNat())
    engine.measure(phase1())
    result = engine.measure(phase2(2 * N))
    assert [d.streams[0].lost for d in result.directions] == [N, N]


def test_steady_traffic_ends_as_when_every_frame_is_looked_at() -> None:
    """One unknown connection makes the device look at each frame."""
    ends = []
    for extra in (0, 1):
        nat = SimulatedNat(timeout_ns=60_000 * MS)
        engine = FakeEngine(perfect(), nat=nat)
        engine.measure(phase1())
        keep = {"direction": "forward", "ip_version": 4, "entries": N, "keep": True}
        request = trial(
            initiator("random", N + extra), responder("random"), learn=keep, seed=2
        )
        result = engine.measure(request)
        nat.wait(58_000 * MS)
        ends.append((result.verdict.kind, nat.table_count()))
    assert ends[0][0] == ends[1][0] == "pass"
    assert ends[0][1] == pytest.approx(ends[1][1], abs=40)


def test_the_start_waits_for_its_time_after_phase_1() -> None:
    engine = FakeEngine(perfect(), nat=SimulatedNat())
    engine.measure(phase1())
    request = validation().model_copy(update={"not_before_ns": 7000 * MS})
    assert table_of(engine.measure(request)).since_learning_ns == 7000 * MS


def test_addresses_out_of_the_expected_range_are_told() -> None:
    nat = SimulatedNat(public_ip="198.19.0.9")
    engine = FakeEngine(perfect(), nat=nat)
    table = table_of(engine.measure(phase1(expected=EXPECTED)))
    assert (table.unexpected, table.unexpected_example) == (N, "198.19.0.9")
    nat.public_ip = "198.19.0.4"
    table = table_of(engine.measure(phase1(expected=EXPECTED)))
    assert (table.unexpected, table.unexpected_example) == (0, None)


def test_deleting_takes_time_by_the_number_of_connections() -> None:
    nat = SimulatedNat(delete_rate_fps=N, command_ns=20 * MS)
    engine = FakeEngine(perfect(), nat=nat)
    assert nat.clear() == 20 * MS
    engine.measure(phase1())
    assert nat.clear() == 1020 * MS
    assert nat.table_count() == 0
    assert survivors(engine) == []


def test_a_collapsed_device_forwards_nothing_until_it_is_restarted() -> None:
    nat = SimulatedNat(collapses_at=500)
    engine = FakeEngine(perfect(), nat=nat)
    assert only(engine.measure(phase1())).received == 500
    assert not nat.is_alive
    nat.clear()
    assert only(engine.measure(phase1())).received == 0
    nat.restart()
    assert only(engine.measure(phase1(count=400))).received == 400


KEEP = {"direction": "forward", "ip_version": 4, "keep": True}


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (validation(count=N + 1), "1001 is more than the table's 1000 entries"),
        (
            trial(initiator("random"), learn={**KEEP, "entries": N - 1}),
            "the table has 1000 entries of IPv4, learned forward",
        ),
    ],
)
def test_what_the_table_cannot_do_is_refused(
    request_: TrialRequest, words: str
) -> None:
    engine = FakeEngine(perfect())
    engine.measure(phase1())
    with pytest.raises(EngineError, match=words) as refusal:
        engine.measure(request_)
    assert refusal.value.rpc_code == ERROR_STATE


@pytest.mark.parametrize(
    "request_",
    [
        validation(),
        trial(initiator("random"), learn={**KEEP, "entries": N}),
        trial(initiator("random"), not_before_ns=1),
    ],
)
def test_without_a_table_nothing_of_it_can_be_used(request_: TrialRequest) -> None:
    engine = FakeEngine(perfect())
    engine.measure(phase1())
    engine.drop_table()
    with pytest.raises(EngineError, match="there is no table") as refusal:
        engine.measure(request_)
    assert refusal.value.rpc_code == ERROR_STATE
    assert "phase 1" in refusal.value.hint
