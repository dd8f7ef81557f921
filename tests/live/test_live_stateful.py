"""Stateful trials with the real engine, through a gateway whose table is known.

Connection k is frame k of phase 1. What the tester believes of each connection is
compared with what the known-answer gateway was told to do, by number.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from livetools import (
    DEVICE,
    ENDS,
    GATEWAYS,
    MACS,
    MS,
    PATIENT_NS,
    RefDut,
    counting,
    lab_neighbours,
    measured_once,
    ref_dut,
    running_engine,
)

from dutperf.engine.client import Engine
from dutperf.errors import EngineError
from dutperf.protocol.base import IpVersion
from dutperf.protocol.methods import ERROR_ENVIRONMENT, ERROR_STATE
from dutperf.protocol.result_messages import StreamResult, TrialResult
from dutperf.protocol.stream_parts import TableResult
from dutperf.protocol.trial_messages import TrialRequest

pytestmark = counting(DEVICE)

N = 1000
ROUTING = {side: [pair[i] for pair in GATEWAYS.values()] for i, side in enumerate(MACS)}
PUBLIC = {4: "198.19.0.100", 6: "2001:2:0:8000::100"}
PREFIX = "64:ff9b::/96"
EMBEDDED = "64:ff9b::c613:2"  # 198.19.0.2
Json = dict[str, Any]


class Gateway:
    """The engine, and the device between its ports."""

    def __init__(self, engine: Engine, device: RefDut) -> None:
        self.engine = engine
        self._device = device
        self._trials = 0

    def become(
        self, kind: str = "nat44", entries: int = 10 * N, **table: object
    ) -> None:
        """A gateway with an empty table."""
        outside: IpVersion = 6 if kind == "nat66" else 4
        nat: Json = {
            "kind": kind,
            "inside": "left",
            "public": {"first_address": PUBLIC[outside], "addresses": 1},
            "table": {"entries": entries, **table},
        }
        if kind == "nat64":
            nat["prefix"] = PREFIX
        self._device.client.configure({"routing": ROUTING, "nat": nat})

    @property
    def connections(self) -> int:
        """How many its table holds."""
        nat = self._device.client.report().nat
        assert nat is not None
        return nat.connections

    def measure(
        self, forward: Json | None = None, reverse: Json | None = None, **keys: object
    ) -> TrialResult:
        """One trial, 50 ms long; one that a stall spoilt is run again."""
        return self.engine.measure(self._trial(forward, reverse, keys))

    def measure_once(self, forward: Json, **keys: object) -> TrialResult:
        """The same, whatever the machine does."""
        return measured_once(self.engine, self._trial(forward, None, keys))

    def _trial(
        self, forward: Json | None, reverse: Json | None, keys: Json
    ) -> TrialRequest:
        self._trials += 1
        sides = {"forward": forward, "reverse": reverse}
        request = {
            "trial_id": self._trials,
            "duration_ns": 50 * MS,
            "settle_ns": 2 * MS,
            "residual_wait_ns": 50 * MS,
            "lag_limit_ns": PATIENT_NS,
            "record": {"survival_blocks": 4},
            "directions": [
                {"name": name, "rate_fps": 20 * N, "streams": [side]}
                for name, side in sides.items()
                if side
            ],
            **keys,
        }
        return TrialRequest.model_validate(request)

    def phase1(self, kind: str = "nat44", **learn: object) -> TrialResult:
        """N connections; the table is a new one."""
        return self.measure(initiator("once", kind), learn=learned(kind, **learn))


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with (
        tempfile.TemporaryDirectory(prefix="dutperf") as short,
        ref_dut(Path(short)) as device,
        running_engine(tmp_path_factory.mktemp("stateful")) as engine,
    ):
        engine.open_ports(device.ports())
        gateway = Gateway(engine, device)
        gateway.become()
        engine.set_neighbours(lab_neighbours())
        yield gateway


def learned(kind: str = "nat44", **keys: object) -> Json:
    version = 6 if kind == "nat66" else 4
    return {"direction": "forward", "ip_version": version, "entries": N, **keys}


def initiator(order: str, kind: str = "nat44") -> Json:
    left, right = ENDS[4 if kind == "nat44" else 6]
    size = 64 if kind == "nat44" else 84
    ports = {"field": "src_port", "width": 16, "min": 1024, "max": 1023 + 40}
    more = {"field": "dst_port", "width": 16, "min": 80, "max": 79 + N // 40}
    return {
        "id": 0,
        "ip_version": 4 if kind == "nat44" else 6,
        "frame_sizes": [size],
        "received_frame_sizes": [64 if kind == "nat64" else size],
        "src_ip": left,
        "dst_ip": EMBEDDED if kind == "nat64" else right,
        "next_hop": GATEWAYS[4 if kind == "nat44" else 6][0],
        "vary": [{**ports, "mode": "enumerate"}, {**more, "mode": "enumerate"}],
        "tuples": {"source": "generated", "count": N, "order": order},
    }


def responder(order: str, kind: str = "nat44", count: int = N) -> Json:
    _, right = ENDS[6 if kind == "nat66" else 4]
    size = 84 if kind == "nat66" else 64
    return {
        "id": 1,
        "ip_version": 6 if kind == "nat66" else 4,
        "frame_sizes": [size],
        "received_frame_sizes": [84 if kind == "nat64" else size],
        "src_ip": right,
        # Where no connection can be: not learned, not back.
        "dst_ip": PUBLIC[6 if kind == "nat66" else 4],
        "dst_port": 0,
        "next_hop": GATEWAYS[6 if kind == "nat66" else 4][1],
        "tuples": {"source": "learned", "count": count, "order": order},
    }


def only(result: TrialResult) -> StreamResult:
    (direction,) = result.directions
    (stream,) = direction.streams
    return stream


def table_of(result: TrialResult) -> TableResult:
    assert result.table is not None
    return result.table


def survivors(result: TrialResult) -> list[int]:
    """Numbers of the frames that arrived, by the ranges of those that did not."""
    stream = only(result)
    survival = stream.survival
    assert survival is not None
    assert survival.more_ranges == 0
    lost = {k for first, n in survival.lost_ranges for k in range(first, first + n)}
    found = [k for k in range(stream.sent) if k not in lost]
    size = survival.block_frames
    blocks = [0] * len(survival.received)
    for k in found:
        blocks[k // size] += 1
    assert survival.received == blocks
    return found


@pytest.mark.parametrize("kind", ["nat44", "nat64", "nat66"])
def test_what_phase_1_opened_lets_frames_back(gateway: Gateway, kind: str) -> None:
    gateway.become(kind)
    first = gateway.phase1(kind)
    assert first.verdict.kind == "pass", first.verdict.reasons
    table = table_of(first)
    assert (table.filled, table.learned, table.changed) == (N, N, 0)
    assert table.bytes_per_entry == (36 if kind == "nat66" else 12)
    assert gateway.connections == N
    back = gateway.measure(None, responder("increasing", kind))
    assert back.verdict.kind == "pass", back.verdict.reasons
    both = gateway.measure(
        initiator("random", kind),
        responder("random", kind),
        learn=learned(kind, keep=True),
    )
    assert both.verdict.kind == "pass", both.verdict.reasons
    assert (table_of(both).changed, table_of(both).unlearned_sent) == (0, 0)
    assert gateway.connections == N


@pytest.mark.parametrize("order", ["first", "increasing", "decreasing", "shuffled"])
def test_each_order_of_the_responder_passes(gateway: Gateway, order: str) -> None:
    gateway.become()
    gateway.phase1()
    assert gateway.measure(None, responder(order)).verdict.kind == "pass"


@pytest.mark.parametrize(("kind", "none"), [("nat64", "0.0.0.0"), ("nat66", "::")])  # noqa: S104
def test_a_responder_needs_no_addresses_of_its_own(
    gateway: Gateway, kind: str, none: str
) -> None:
    """Its frames have learned ones; siitperf's files may leave its own out."""
    gateway.become(kind)
    gateway.phase1(kind)
    back = responder("increasing", kind) | {"src_ip": none, "dst_ip": none}
    result = gateway.measure(None, back)
    assert result.verdict.kind == "pass", result.verdict.reasons


def test_a_refusing_table_keeps_the_first(gateway: Gateway) -> None:
    gateway.become(entries=600, eviction="refuse")
    first = gateway.phase1()
    assert survivors(first) == list(range(600))
    assert table_of(first).filled == 600
    back = gateway.measure(None, responder("increasing"))
    assert survivors(back) == list(range(600))
    assert table_of(back).unlearned_sent == 400
    backwards = gateway.measure(None, responder("decreasing"))
    assert survivors(backwards) == list(range(400, N))


def test_a_table_that_forgets_the_oldest_keeps_the_last(gateway: Gateway) -> None:
    gateway.become(entries=600, eviction="least_recently_used")
    assert gateway.phase1().verdict.kind == "pass"
    back = gateway.measure(None, responder("increasing"))
    assert survivors(back) == list(range(400, N))
    assert table_of(back).unlearned_sent == 0


def test_new_mappings_are_learned_anew(gateway: Gateway) -> None:
    gateway.become()
    gateway.phase1()
    gateway.become()  # forgets all; mappings come in the order of the frames
    # Run again after a stall, it would find what it had itself learned.
    again = gateway.measure_once(initiator("shuffled"), learn=learned(keep=True))
    assert table_of(again).changed > 0
    assert table_of(again).filled == N
    assert gateway.measure(None, responder("increasing")).verdict.kind == "pass"


def test_public_addresses_are_compared_with_the_expected_ones(gateway: Gateway) -> None:
    gateway.become()
    right = gateway.phase1(expected={"first": PUBLIC[4], "last": PUBLIC[4]})
    assert table_of(right).unexpected == 0
    gateway.become()
    wrong = gateway.phase1(expected={"first": "198.19.0.1", "last": "198.19.0.9"})
    assert table_of(wrong).unexpected == N
    assert table_of(wrong).unexpected_example == PUBLIC[4]


def test_phase_2_begins_when_it_is_due(gateway: Gateway) -> None:
    gateway.become()
    gateway.phase1()
    due_ns = 700 * MS
    result = gateway.measure(None, responder("random"), not_before_ns=due_ns)
    assert table_of(result).since_learning_ns >= due_ns - 1000  # rounding
    assert result.verdict.kind == "pass"


def test_frames_that_carry_tuples_are_right_to_the_checksum(gateway: Gateway) -> None:
    gateway.become()
    gateway.phase1()
    gateway.measure(None, responder("random"))
    result = gateway.measure(None, responder("random", count=1))
    assert all(port.corrupt == 0 for port in result.ports)
    assert result.verdict.kind == "pass"


def refusal(
    gateway: Gateway,
    code: int,
    forward: Json | None,
    reverse: Json | None = None,
    **keys: object,
) -> str:
    with pytest.raises(EngineError) as caught:
        gateway.measure(forward, reverse, **keys)
    assert caught.value.rpc_code == code
    return str(caught.value)


def test_a_table_must_be_learned_first(gateway: Gateway) -> None:
    gateway.engine.drop_table()
    back = responder("random")
    assert "no table" in refusal(gateway, ERROR_STATE, None, back)
    assert "no table" in refusal(
        gateway, ERROR_STATE, initiator("random"), learn=learned(keep=True)
    )
    assert "no table" in refusal(
        gateway, ERROR_STATE, initiator("once"), not_before_ns=MS
    )


def test_a_table_must_fit(gateway: Gateway) -> None:
    gateway.become()
    gateway.phase1()
    assert f"table's {N} entries" in refusal(
        gateway, ERROR_STATE, None, responder("random", count=N + 1)
    )
    assert "IPv4" in refusal(gateway, ERROR_STATE, None, responder("random", "nat66"))
    few = {**learned(), "entries": N // 2, "keep": True}
    assert f"has {N} entries" in refusal(
        gateway, ERROR_STATE, initiator("random"), learn=few
    )
    assert gateway.measure(None, responder("random")).verdict.kind == "pass"


def test_a_table_larger_than_memory_is_refused_with_the_sum(gateway: Gateway) -> None:
    entries = 2**37
    vary = [
        {"field": field, "width": width, "min": 0, "max": 2**width - 1}
        for field, width in (("src_port", 16), ("dst_port", 16), ("src_ip", 5))
    ]
    vast = initiator("once") | {"vary": [{**v, "mode": "enumerate"} for v in vary]}
    vast["tuples"] = {"source": "generated", "count": entries, "order": "once"}
    message = refusal(
        gateway,
        ERROR_ENVIRONMENT,
        vast,
        learn=learned(entries=entries),
        duration_ns=10**9 * entries // 10**9,
        directions=[{"name": "forward", "rate_fps": 10**9, "streams": [vast]}],
        record={"tracking_mb": 64},
    )
    assert f"{entries} four-tuples needs {entries * 12 >> 20} MiB" in message
