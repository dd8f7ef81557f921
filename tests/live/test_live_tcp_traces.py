"""TCP connections on the wire, on both sides of a gateway, as tshark reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from livetools import captured_in_lab, dutperf, needs_engine
from readers import needs_tshark, tshark

from dutperf import lab
from dutperf.results import load_journal

pytestmark = [*needs_engine, needs_tshark, pytest.mark.lab]

LABS = {"nft-nat44": ("--ip", "4"), "nft-nat66": ("--ip", "6"), "tayga-nat64": ()}
QUICK = ("--settle-wait", "0.1", "--restabilise-wait", "0", "--max-rate", "500")
WHOLE = ["tcp.checksum.status", "_ws.malformed", "tcp.flags", "tcp.stream"]


@pytest.fixture(params=LABS)
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    name: str = request.param
    assert lab.running() == [], "a lab is up: take it down before these tests"
    try:
        assert dutperf("lab", "up", name).returncode == 0
        yield name
    finally:
        lab.down(all_=True)


def seen(file: Path, *columns: str) -> list[dict[str, str]]:
    """Each segment, whose checksum holds."""
    rows = tshark(file, [*WHOLE, "ip.checksum.status", *columns])
    assert {row["tcp.checksum.status"] for row in rows} == {"1"}
    assert {row["ip.checksum.status"] for row in rows} in ({"1"}, {""})
    assert {row["_ws.malformed"] for row in rows} == {""}
    return rows


def test_whole_exchanges_are_good_tcp(tmp_path: Path, name: str) -> None:
    """Eight segments and two more of the response, and nothing odd about any."""
    run = tmp_path / "run"
    command = ("tcp-connection-rate", "--lab", name, *LABS[name], *QUICK)
    told = ("--object-bytes", "4000", "--trial-duration", "0.2")
    with captured_in_lab(tmp_path, "tcp") as files:
        done = dutperf(*command, *told, "--output", str(run))
    assert done.returncode == 0, done.stderr
    wanted: Counter[str] = Counter()
    to_nobody = 0
    for record in load_journal(run).records:
        assert record.result.tcp
        wanted.update({s.name: s.received for s in record.result.tcp.segments})
        if record.role == "probe":
            to_nobody += record.result.tcp.segments[0].sent
    for side, file in files.items():
        rows = seen(file, "tcp.analysis.flags", "tcp.payload", "tcp.options.mss_val")
        assert {row["tcp.analysis.flags"] for row in rows} == {""}
        kinds = Counter(int(row["tcp.flags"], 16) for row in rows)
        kinds[0x02] -= to_nobody if side == "left" else 0
        assert kinds.total() == sum(wanted.values())
        assert kinds[0x02] == wanted["syn"]
        assert kinds[0x12] == wanted["syn_ack"]
        assert kinds[0x11] == wanted["fin"] + wanted["fin_ack"]
        assert wanted["response"] == 3 * wanted["request"]
        texts = [bytes.fromhex(row["tcp.payload"]) for row in rows]
        asked = sum(text.startswith(b"GET /") for text in texts)
        answered = sum(text.startswith(b"HTTP/1.1 200 OK") for text in texts)
        assert (asked, answered) == (wanted["request"], wanted["request"])
        assert {row["tcp.options.mss_val"] for row in rows} == {"", "1440"}


def test_data_of_open_connections_is_whole(tmp_path: Path, name: str) -> None:
    """What it acknowledges has been sent, and it lies in the window."""
    run = tmp_path / "run"
    command = ("throughput", "--lab", name, *LABS[name], *QUICK)
    opened = ("--connections", "50", "--phase1-rate", "500", "--transport", "tcp")
    with captured_in_lab(tmp_path, "tcp") as files:
        done = dutperf(
            *(*command, *opened, "--trial-duration", "0.2", "--output", str(run))
        )
    assert done.returncode == 0, done.stderr
    for file in files.values():
        rows = seen(file, "tcp.analysis.flags", "tcp.seq", "tcp.ack", "tcp.len")
        data = [row for row in rows if int(row["tcp.len"]) > 0]
        assert len({row["tcp.stream"] for row in data}) == 50
        assert {row["tcp.ack"] for row in data} == {"1"}
        assert all(int(row["tcp.seq"]) + int(row["tcp.len"]) < 65_531 for row in data)
