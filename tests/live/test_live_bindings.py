"""An lwAFTR of a binding table that is a file, any mapping (RFC 7596), by its lab."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from livetools import (
    Trial,
    crossed_neighbours,
    dutperf,
    headed,
    headed_request,
    measured_in_lab,
    needs_engine,
    odd_frames,
    running_engine,
)
from readers import needs_tshark, tshark
from scapy.all import rdpcap
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6

from dutperf import lab
from dutperf.config.bindings import read_bindings
from dutperf.errors import EngineError
from dutperf.protocol.base import Encapsulation
from dutperf.protocol.methods import PreviewParams
from dutperf.protocol.port_messages import PortSpec
from dutperf.results import CellResult, load_results
from tools.calibrate.truth import Counts
from tools.calibrate.truth import by_result as counts

pytestmark = [*needs_engine, pytest.mark.lab]

LAB = "known-answer"
OFFSET, LENGTH = 4, 6
TUNNEL = {"kind": "ip", "local": "2001:2::1", "remote": "::", "remote_bits": 0}
OPTIONS = ("--ip", "4", "--frame-size", "128")
Entries = dict[tuple[str, int], str]


def entries() -> Entries:
    """By address and PSID a B4: in no order, some of them twice."""
    random = Random(4)  # noqa: S311 - a seed
    places = [(f"198.18.0.{host}", psid) for host in range(2, 42) for psid in range(64)]
    return {
        place: f"2001:db8:{random.randrange(2**16):x}::{random.randrange(9):x}"
        for place in random.sample(places, 2000)
    } | {("198.18.0.2", 0): "2001:db8::1"}


def written(path: Path, table: Entries) -> Path:
    lines = ["ipv4,psid,psid_length,psid_offset,b4"]
    lines += [f"{a},{p},{LENGTH},{OFFSET},{b4}" for (a, p), b4 in table.items()]
    path.write_text("\n".join(lines))
    return path


def told(path: Path, table: Entries | None) -> Path:
    behaviour: dict[str, Any] = {"encapsulation": {"left": TUNNEL}}
    if table:
        file = written(path.with_suffix(".csv"), table)
        behaviour["binding_table"] = {"left": {"file": str(file)}}
    path.write_text(json.dumps(behaviour))
    return path


@contextmanager
def up(tmp_path: Path) -> Iterator[Entries]:
    """The device, and the tester before it, with a table."""
    table = entries()
    try:
        behaviour = str(told(tmp_path / "own.json", table))
        done = dutperf("lab", "up", LAB, "--behaviour", behaviour)
        assert done.returncode == 0, done.stderr
        yield table
    finally:
        lab.down(all_=True)


def found(path: Path, *options: str) -> CellResult:
    (cell,) = measured_in_lab(LAB, path, *OPTIONS, *options).cells
    return cell


def test_an_lwaftr_of_a_table_is_measured_and_told_where_it_sends_to_others(
    tmp_path: Path,
) -> None:
    with up(tmp_path) as table:
        cell = found(tmp_path / "both")
        assert cell.median == 20_000
        assert not [f for f in cell.findings if f.kind == "misdirected"]

        # Each entry has the B4 of another one: whole frames, all to a wrong one.
        places, b4s = list(table), list(table.values())
        others = dict(zip(places, b4s[1:] + b4s[:1], strict=True))
        wrong = {p: b4 for p, b4 in others.items() if b4 != table[p]}
        other = told(tmp_path / "other.json", wrong)
        done = dutperf("lab", "set", str(other))
        assert done.returncode == 0, done.stderr
        (reason,) = found(tmp_path / "wrong", "--direction", "reverse").reasons
        assert reason.code == "nothing_forwarded"
        assert "misdirected on the left port" in reason.message


def test_an_lwaftr_of_a_table_lets_no_frame_in_the_tunnel_of_another_b4_through(
    tmp_path: Path,
) -> None:
    behaviour = json.loads(told(tmp_path / "own.json", entries()).read_text())
    campaign = {
        "name": "spoofed",
        "lab": {"name": LAB, "behaviour": behaviour},
        "procedures": [
            {
                "procedure": "frame-loss",
                "ip": 4,
                "direction": "forward",
                "frame_size": 128,
                "traffic": {"spoofed_percent": 10},
                "load_percent": [100],
                "max_rate_fps": 10_000,
                "repeats": 1,
                "trial_duration_s": 0.2,
                "settle_wait_s": 0.02,
                "residual_wait_s": 0.1,
                "restabilise_wait_s": 0.02,
            }
        ],
    }
    path = tmp_path / "campaign.yaml"
    path.write_text(json.dumps(campaign))
    done = dutperf("run", str(path), "--plain", "--output", str(tmp_path / "run"))
    assert done.returncode in {0, 1}, done.stderr
    (cell,) = load_results(tmp_path / "run").cells
    (beside,) = cell.beside
    assert (beside.sent, beside.received) == (200, 0)


@needs_tshark
def test_tshark_reads_what_b4s_of_a_table_send(tmp_path: Path) -> None:
    path = tmp_path / "frames.pcap"
    with up(tmp_path) as table:
        done = dutperf(
            *("frames", "--lab", LAB, *OPTIONS, "--pcap", str(path), "--count", "200")
        )
    assert done.returncode == 0, done.stderr
    columns = ["frame.protocols", "udp.checksum.status", "_ws.malformed"]
    rows = tshark(path, columns)
    assert {row["udp.checksum.status"] for row in rows} == {"1"}
    assert {row["_ws.malformed"] for row in rows} == {""}
    packets = rdpcap(str(path))
    of_b4s = [packet for packet in packets if IPv6 in packet and UDP in packet]
    assert len(of_b4s) == 200

    def b4_of(address: str, port: int) -> str:
        assert port >> 16 - OFFSET
        psid = port >> 16 - OFFSET - LENGTH & (1 << LENGTH) - 1
        return str(ipaddress.IPv6Address(table[address, psid]))

    for packet in of_b4s:
        assert packet[IPv6].src == b4_of(packet[IP].src, packet[UDP].sport)
    for packet in packets:
        if IPv6 not in packet and UDP in packet:
            assert b4_of(packet[IP].dst, packet[UDP].dport)


B4S = Encapsulation(kind="ip", local="::", local_bits=0, remote="2001:2::1")
LWAFTR = Encapsulation(
    kind="ip", local="2001:2::1", remote="2001:db8::1", remote_bits=0
)
FRAMES = 2000
"""From and to the B4s on the left, crossed: what is for them is in one's tunnel."""


def crossed(path: Path, table: Entries) -> list[PortSpec]:
    rows = read_bindings(written(path, table)).encoded
    left, right = headed("encapsulation", B4S, LWAFTR)
    return [left.model_copy(update={"bindings": rows}), right]


def test_each_frame_is_looked_up_in_the_table_that_the_ports_were_opened_with(
    tmp_path: Path,
) -> None:
    asked = Trial(size=128, fps=40_000)
    trial = headed_request("encapsulation", B4S, LWAFTR, asked)
    keys: list[dict[str, Any]] = [{"src_binding": "own"}, {"dst_binding": True}]
    for way, bound in zip(trial.directions, keys, strict=True):
        way.streams[0] = way.streams[0].model_copy(update=bound)
    own, other = "2001:db8::1", "2001:db8::2"
    with running_engine(tmp_path) as engine:
        for b4s in ([own, own, own], [own, other, own, other], [other, other]):
            table = {("198.18.0.2", psid): b4 for psid, b4 in enumerate(b4s)}
            engine.open_ports(crossed(tmp_path / "table.csv", table))
            engine.set_neighbours(crossed_neighbours())
            result = engine.measure(trial)
            foreign, stale, misdirected, corrupt = odd_frames(result)[0]
            assert odd_frames(result)[1] == (0, 0, 0, 0)
            assert (foreign, stale, corrupt) == (0, 0, 0)
            assert counts(result) == {
                "forward": Counts(FRAMES, FRAMES),
                "reverse": Counts(FRAMES, FRAMES - misdirected, misdirected),
            }
            share = b4s.count(other) / len(b4s)
            assert abs(misdirected - share * FRAMES) < FRAMES / 10

        # No table is left of ports that had one.
        path = tmp_path / "frames.pcap"
        preview = PreviewParams(trial=trial, count=9, path=str(path))
        engine.preview(preview)
        engine.open_ports(headed("encapsulation", B4S, LWAFTR))
        engine.set_neighbours(crossed_neighbours())
        for ask in (lambda: engine.measure(trial), lambda: engine.preview(preview)):
            with pytest.raises(EngineError, match="needs the bindings of the left"):
                ask()
