"""A whole stateful session, frame by frame, as tshark sees it on both sides of a NAT64.

The session of Lencse (2023), "Design and implementation of a software tester for
benchmarking stateful NATxy gateways", 6.1, Figs. 9 and 10, ten times as fast: N = 5
frames of which 4 are translated, M = 4, then 5 frames in each direction. Different are
the translator (TAYGA and nftables, so another prefix and other public ports), the
place of the background frame in a group of five, and that phase 2 draws from the ports
of phase 1 (RFC 9693 4.7).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from livetools import (
    MS,
    PATIENT_NS,
    captured_in_lab,
    lab_ports,
    needs_engine,
    running_engine,
)
from readers import needs_tshark, tshark

from dutperf import lab
from dutperf.protocol.port_messages import NeighboursParams
from dutperf.protocol.trial_messages import TrialRequest

pytestmark = [
    *needs_engine,
    needs_tshark,
    pytest.mark.skipif(shutil.which("tayga") is None, reason="needs Debian's tayga"),
]

CLIENT, GATEWAY = "2001:2::2", "2001:2::1"
EMBEDDED = "2001:2:0:6464::c613:2"  # 198.19.0.2
SERVER, PUBLIC = "198.19.0.2", "198.19.0.1"
NATIVE, NATIVE_GATEWAY = "2001:2:0:8000::2", "2001:2:0:8000::1"
SIDES = ("left", "right")
Json = dict[str, Any]
Frame = tuple[str, str, int, int]
"""Source and destination address, source and destination port."""


def _stream(identity: int, version: int, hop: str, *ends: str, **keys: object) -> Json:
    return {
        "id": identity,
        "ip_version": version,
        "frame_sizes": [84 if version == 6 else 64],
        "received_frame_sizes": [84],
        "src_ip": ends[0],
        "dst_ip": ends[1],
        "next_hop": hop,
        **keys,
    }


def _random_ports() -> list[Json]:
    return [
        {"field": "src_port", "width": 16, "min": 1024, "max": 65535, "mode": "random"},
        {"field": "dst_port", "width": 16, "min": 1, "max": 49151, "mode": "random"},
    ]


def _direction(name: str, foreground: Json, background: Json) -> Json:
    background |= {"name": "background", "vary": _random_ports()}
    return {
        "name": name,
        "rate_fps": 50,
        "streams": [foreground, background],
        "mix": {"foreground": 4, "of": 5},
    }


def _forward(order: str) -> Json:
    ports = {"field": "src_port", "width": 16, "min": 10_000, "max": 10_003}
    foreground = _stream(
        0,
        6,
        GATEWAY,
        CLIENT,
        EMBEDDED,
        received_frame_sizes=[64],
        dst_port=80,
        enumeration_order="increasing",
        vary=[{**ports, "mode": "enumerate"}],
        tuples={"source": "generated", "count": 4, "order": order},
    )
    return _direction("forward", foreground, _stream(1, 6, GATEWAY, CLIENT, NATIVE))


def _reverse() -> Json:
    tuples = {"source": "learned", "count": 4, "order": "random"}
    foreground = _stream(2, 4, PUBLIC, SERVER, PUBLIC, tuples=tuples)
    return _direction(
        "reverse", foreground, _stream(3, 6, NATIVE_GATEWAY, NATIVE, CLIENT)
    )


def _trial(identity: int, *directions: Json, **keys: object) -> TrialRequest:
    return TrialRequest.model_validate(
        {
            "trial_id": identity,
            "duration_ns": 100 * MS,
            "settle_ns": 10 * MS,
            "residual_wait_ns": 200 * MS,
            "lag_limit_ns": PATIENT_NS,
            "directions": list(directions),
            **keys,
        }
    )


def _learn(*, keep: bool) -> Json:
    return {"direction": "forward", "ip_version": 4, "entries": 4, "keep": keep}


def _neighbours() -> NeighboursParams:
    own = {"left": [CLIENT], "right": [SERVER, NATIVE]}
    hops = {"left": [GATEWAY], "right": [PUBLIC, NATIVE_GATEWAY]}
    return NeighboursParams.model_validate(
        {
            "timeout_ns": 3000 * MS,
            "ports": [
                {
                    "port": side,
                    "own": [{"first": address} for address in own[side]],
                    "resolve": hops[side],
                }
                for side in SIDES
            ],
        }
    )


def _frames(path: Path) -> list[Frame]:
    columns = ["ipv6.src", "ip.src", "ipv6.dst", "ip.dst", "udp.srcport", "udp.dstport"]
    columns += ["udp.checksum.status"]
    rows = [tuple(row.values()) for row in tshark(path, columns)]
    assert all(row[6] == "1" for row in rows), "a checksum is wrong"
    return [(r[0] or r[1], r[2] or r[3], int(r[4]), int(r[5])) for r in rows]


@pytest.fixture(scope="module")
def session(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, list[Frame]]]:
    """The frames of the session on both sides of the gateway, in order."""
    directory = tmp_path_factory.mktemp("session")
    assert lab.running() == [], "a lab is up: take it down before these tests"
    lab.up("tayga-nat64")
    try:
        with (
            running_engine(directory, namespace="tester") as engine,
            captured_in_lab(directory, "udp") as files,
        ):
            engine.open_ports(lab_ports("af_packet"))
            found = engine.set_neighbours(_neighbours()).neighbours
            assert all(neighbour.mac for neighbour in found)
            first = engine.measure(
                _trial(1, _forward("once"), learn=_learn(keep=False))
            )
            second = engine.measure(
                _trial(
                    2,
                    _forward("random"),
                    _reverse(),
                    learn=_learn(keep=True),
                    not_before_ns=500 * MS,
                )
            )
            assert first.verdict.kind == second.verdict.kind == "pass"
            assert first.table is not None
            assert (first.table.filled, first.table.entries) == (4, 4)
        yield {side: _frames(file) for side, file in files.items()}
    finally:
        lab.down(all_=True)


def _sent_by(frames: list[Frame], *sources: str) -> list[Frame]:
    return [frame for frame in frames if frame[0] in sources]


def test_phase_1_enumerates_ports_and_leaves_the_background_alone(
    session: dict[str, list[Frame]],
) -> None:
    left, right = session["left"][:5], session["right"][:5]
    background = [frame for frame in left if frame[1] == NATIVE]
    assert len(background) == 1
    assert [f for f in left if f[1] != NATIVE] == [
        (CLIENT, EMBEDDED, 10_000 + k, 80) for k in range(4)
    ]
    assert [f for f in right if f[1] == NATIVE] == background
    translated = [f for f in right if f[1] != NATIVE]
    assert [f[:2] + f[3:] for f in translated] == [(PUBLIC, SERVER, 80)] * 4
    assert len({f[2] for f in translated}) == 4


def _mapped(session: dict[str, list[Frame]]) -> dict[int, int]:
    """Public port -> the client's port, by the order in phase 1."""
    public = [f[2] for f in session["right"][:5] if f[1] == SERVER]
    return {port: 10_000 + k for k, port in enumerate(public)}


def test_phase_2_sends_from_the_same_tuples(session: dict[str, list[Frame]]) -> None:
    left = _sent_by(session["left"][5:], CLIENT)
    right = _sent_by(session["right"][5:], PUBLIC, CLIENT)
    assert len(left) == len(right) == 5
    mapped = _mapped(session)
    for before, after in zip(left, right, strict=True):
        if before[1] == NATIVE:
            assert after == before
        else:
            assert before[:2] + before[3:] == (CLIENT, EMBEDDED, 80)
            assert after[:2] + after[3:] == (PUBLIC, SERVER, 80)
            assert mapped[after[2]] == before[2]


def test_the_responder_answers_with_what_it_learned(
    session: dict[str, list[Frame]],
) -> None:
    right = _sent_by(session["right"][5:], SERVER, NATIVE)
    left = _sent_by(session["left"][5:], EMBEDDED, NATIVE)
    assert len(left) == len(right) == 5
    mapped = _mapped(session)
    for before, after in zip(right, left, strict=True):
        if before[0] == NATIVE:
            assert before[1] == CLIENT
            assert after == before
        else:
            assert before[:3] == (SERVER, PUBLIC, 80)
            assert after == (EMBEDDED, CLIENT, 80, mapped[before[3]])
