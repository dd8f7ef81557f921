"""Many hosts and networks, and a translator: the real engine, no static neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from livetools import (
    BOTH,
    ENDS,
    GATEWAYS,
    MS,
    NO_ODD_FRAMES,
    PATIENT_NS,
    inside,
    lab_ports,
    needs_engine,
    odd_frames,
    running_engine,
)

from dutperf import lab
from dutperf.engine.client import Engine
from dutperf.protocol.base import IpVersion
from dutperf.protocol.port_messages import (
    AddressRange,
    NeighboursParams,
    PortNeighbours,
)
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.stream_messages import (
    DirectionRequest,
    FieldVariation,
    StreamRequest,
)
from dutperf.protocol.trial_messages import TrialRequest
from tools.calibrate.truth import by_result as counts

pytestmark = needs_engine

HOSTS = 1000
NETWORKS = 256
FPS = 2000
TRIAL_MS = 1000
"""Each host has two frames, each network eight."""
SIZES: dict[IpVersion, int] = {4: 64, 6: 84}
HOST_SHIFT: dict[IpVersion, int] = {4: 0, 6: 16}
"""Bits below the host's: paper 003 varies bits 96-111 of an IPv6 address."""


@contextmanager
def engine_in(name: str, directory: Path, own: NeighboursParams) -> Iterator[Engine]:
    """An engine in a lab of its own, with neighbours as given."""
    with (
        lab.session(name),
        running_engine(directory, namespace="tester") as engine,
    ):
        engine.open_ports(lab_ports("af_packet"))
        found = engine.set_neighbours(own).neighbours
        assert all(neighbour.mac for neighbour in found)
        yield engine


def neighbours(version: IpVersion, hosts: int = 1) -> NeighboursParams:
    """The tester is ``hosts`` hosts on each side; the next hop is the router."""
    shift = HOST_SHIFT[version]
    left, right = (
        [AddressRange(first=end, count=hosts, shift=shift)] for end in ENDS[version]
    )
    left_hop, right_hop = ([hop] for hop in GATEWAYS[version])
    return NeighboursParams(
        ports=[
            PortNeighbours(port="left", own=left, resolve=left_hop),
            PortNeighbours(port="right", own=right, resolve=right_hop),
        ]
    )


def stream(
    number: int,
    src: str,
    dst: str,
    hop: str,
    *,
    vary: list[FieldVariation] | None = None,
    received: int = 0,
) -> StreamRequest:
    version: IpVersion = 6 if ":" in src else 4
    return StreamRequest(
        id=number,
        ip_version=version,
        frame_sizes=[SIZES[version]],
        received_frame_sizes=[received or SIZES[version]],
        src_ip=src,
        dst_ip=dst,
        next_hop=hop,
        vary=vary or [],
    )


def run(
    engine: Engine,
    forward: StreamRequest,
    reverse: StreamRequest,
    *,
    verify_checksums: bool = True,
) -> TrialResult:
    return engine.measure(
        TrialRequest(
            trial_id=1,
            duration_ns=TRIAL_MS * MS,
            settle_ns=5 * MS,
            residual_wait_ns=200 * MS,
            lag_limit_ns=PATIENT_NS,
            verify_checksums=verify_checksums,
            directions=[
                DirectionRequest(name="forward", rate_fps=FPS, streams=[forward]),
                DirectionRequest(name="reverse", rate_fps=FPS, streams=[reverse]),
            ],
        )
    )


def routed(
    engine: Engine, version: IpVersion, vary: list[FieldVariation]
) -> TrialResult:
    """A trial through the router, both directions alike."""
    (left, right), (left_hop, right_hop) = ENDS[version], GATEWAYS[version]
    return run(
        engine,
        stream(0, left, right, left_hop, vary=vary),
        stream(1, right, left, right_hop, vary=vary),
    )


def assert_nothing_lost(result: TrialResult) -> None:
    sent = FPS * TRIAL_MS // 1000
    for name in BOTH:
        found = counts(result)[name]
        assert (found.sent, found.received, found.lost) == (sent, sent, 0)
    assert odd_frames(result) == NO_ODD_FRAMES


def host_variation(version: IpVersion) -> list[FieldVariation]:
    """HOSTS addresses on each side, every one of them soon."""
    first = 2 if version == 4 else 0
    place = {"offset": 128 - 32 if version == 6 else 16, "width": 16}
    span = {"min": first, "max": first + HOSTS - 1, "mode": "increasing"}
    return [
        FieldVariation.model_validate({"field": field, **place, **span})
        for field in ("src_ip", "dst_ip")
    ]


def resolved(version: IpVersion, side: str) -> int:
    """Neighbours that the DUT knows there."""
    shown = inside("dut", "ip", f"-{version}", "neigh", "show", "dev", side)
    return sum("lladdr" in line for line in shown.splitlines())


@pytest.mark.parametrize("version", [4, 6])
def test_a_thousand_hosts_on_each_side_are_resolved_without_loss(
    tmp_path: Path, version: IpVersion
) -> None:
    own = neighbours(version, HOSTS)
    with engine_in("linux-router-hosts", tmp_path, own) as engine:
        result = routed(engine, version, host_variation(version))
        known = [resolved(version, side) for side in ("left", "right")]
    assert_nothing_lost(result)
    assert min(known) >= HOSTS


@pytest.mark.parametrize("version", [4, 6])
def test_a_thousand_addresses_pass_the_router_of_many_networks(
    tmp_path: Path, version: IpVersion
) -> None:
    own = neighbours(version, HOSTS)
    with engine_in("linux-router", tmp_path, own) as engine:
        result = routed(engine, version, host_variation(version))
    assert_nothing_lost(result)


@pytest.mark.parametrize("version", [4, 6])
def test_256_networks_pass_by_their_routes(tmp_path: Path, version: IpVersion) -> None:
    networks = FieldVariation(
        field="dst_ip",
        offset=16 if version == 4 else 56,
        width=8,
        min=0,
        max=NETWORKS - 1,
    )
    with engine_in("linux-router", tmp_path, neighbours(version)) as engine:
        result = routed(engine, version, [networks])
        known = [resolved(version, side) for side in ("left", "right")]
    assert_nothing_lost(result)
    assert max(known) <= 2, "the tester's address, and the one it asks from"


def test_translated_frames_pass_both_ways(tmp_path: Path) -> None:
    own = NeighboursParams(
        ports=[
            PortNeighbours(
                port="left",
                own=[AddressRange(first="2001:2::2")],
                resolve=["2001:2::1"],
            ),
            PortNeighbours(
                port="right",
                own=[AddressRange(first="198.19.0.2")],
                resolve=["198.19.0.1"],
            ),
        ]
    )
    ends = ("2001:2::2", "2001:2:0:1000::2"), ("198.19.0.2", "198.18.0.2")
    with engine_in("tayga-siit", tmp_path, own) as engine:
        result = run(
            engine,
            stream(0, *ends[0], "2001:2::1", received=64),
            stream(1, *ends[1], "198.19.0.1", received=84),
            # One in 65,535 would fail: see the lab's description.
            verify_checksums=False,
        )
    assert_nothing_lost(result)
