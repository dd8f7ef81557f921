"""Several ports on each side, really: rings, the kernel's router, the known answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import several_ports
from livetools import SHORT, counting, dutperf, running_engine
from planning import cell

from dutperf import lab
from dutperf.config import Testbed
from dutperf.lab import orders
from dutperf.lab.state import StateFile
from dutperf.model.traffic import PortPattern
from dutperf.protocol.result_messages import PortReport, TrialResult
from dutperf.results import load_journal, load_results
from dutperf.run.engine_session import open_ports, port_specs, resolve_neighbours
from dutperf.run.trial_request import trial_request

LABS = ("linux-router-2x2", "known-answer-2x2")
FRAMES = 1200
"""Of a direction: each of 4 or 9 paths has a share, whole or nearly."""
_OTHER = {"left": "right", "right": "left"}


def crossed(pairs: int) -> Testbed:
    """Rings: each port is the next hop of the one of its number on the other side."""
    data = several_ports.testbed_data(pairs)
    for number in range(pairs):
        ports = {
            side: [data[side], *data[side].get("more_ports", [])][number]
            for side in _OTHER
        }
        for side, port in ports.items():
            other = ports[_OTHER[side]]
            for version in ("ipv4", "ipv6"):
                port[version] |= {"gateway": other[version]["address"]}
        for port in ports.values():
            port["port"] = {"ring": True}
    return Testbed.model_validate(data)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ports")


def by_ring(path: Path, pairs: int, pattern: PortPattern, **keys: Any) -> TrialResult:  # noqa: ANN401
    """One trial of the cell's own request, without a device."""
    testbed = crossed(pairs)
    of = cell(
        testbed,
        traffic={"port_pattern": pattern},
        lag_limit_ms=5000,
        settle_wait_s=0,
        residual_wait_s=0.2,
        **keys,
    )
    with running_engine(path) as engine:
        open_ports(engine, testbed, lambda _text: None)
        resolve_neighbours(engine, testbed, [of], lambda _text: None)
        return engine.measure(trial_request(testbed, of, FRAMES * 10, 7, 0.1))


class TestRings:
    """Whatever is sent to another number than the sender's own comes in wrong."""

    pytestmark = counting("rings")

    @pytest.mark.parametrize("pairs", [2, 3, 4])
    def test_pairs_lose_nothing(self, directory: Path, pairs: int) -> None:
        result = by_ring(directory, pairs, "pairs")
        assert [lost(result, number) for number in (0, 1)] == [0, 0]
        assert [port.label for port in result.ports] == [
            port.label for port in crossed(pairs).tester_ports
        ]
        assert {port.misdirected for port in result.ports} == {0}

    @pytest.mark.parametrize("ip", [4, 6])
    def test_of_a_mesh_all_but_the_own_numbers_are_misdirected(
        self, directory: Path, ip: int
    ) -> None:
        pairs = 3
        result = by_ring(directory, pairs, "mesh", ip=[ip])
        paths = [(k % pairs, k // pairs) for k in range(pairs**2)]
        taken = [paths[frame % len(paths)] for frame in range(FRAMES)]
        wrong = [sender for sender, receiver in taken if sender != receiver]
        assert [lost(result, number) for number in (0, 1)] == [len(wrong)] * 2
        found = [port.misdirected for port in result.ports]
        assert found == [wrong.count(number) for number in range(pairs)] * 2

    @pytest.mark.parametrize("ipdv", [False, True])
    def test_of_several_shares_too_and_of_one_that_polls_all_their_queues(
        self, directory: Path, *, ipdv: bool
    ) -> None:
        testbed = crossed(2)
        of = cell(
            testbed,
            traffic={"port_pattern": "pairs"},
            lag_limit_ms=5000,
            settle_wait_s=0,
            residual_wait_s=0.2,
        )
        keys = {"device": "crossed", "rx_descriptors": 1024, "tx_descriptors": 1024}
        ports = port_specs(testbed, "af_xdp")
        request = trial_request(testbed, of, FRAMES * 10, 7, 0.1)
        record = request.record.model_copy(update={"ipdv": ipdv})
        with running_engine(directory, memory_mb=1024) as engine:
            engine.open_ports([each.model_copy(update=keys) for each in ports], 2)
            resolve_neighbours(engine, testbed, [of], lambda _text: None)
            asked = request.model_copy(update={"record": record})
            result = engine.measure(asked)
        assert result.shares == (1 if ipdv else 2)
        assert [lost(result, number) for number in (0, 1)] == [0, 0]
        assert {d.streams[0].reordered for d in result.directions} == {0}


def lost(result: TrialResult, direction: int) -> int:
    (stream,) = result.directions[direction].streams
    assert stream.sent == FRAMES
    return stream.lost


@pytest.mark.lab
@pytest.mark.engine
@pytest.mark.parametrize("pattern", ["mesh", "pairs"])
@pytest.mark.parametrize("name", LABS)
def test_a_device_with_two_ports_on_each_side_forwards_all(
    tmp_path: Path, name: str, pattern: str
) -> None:
    _measure(tmp_path / "run", name, pattern)


@pytest.mark.lab
@pytest.mark.engine
def test_after_a_restart_all_of_its_ports_forward_again(tmp_path: Path) -> None:
    name = LABS[0]
    try:
        lab.up(name)
        _measure(tmp_path / "before", name, "mesh")
        orders.restart(StateFile())
        _measure(tmp_path / "after", name, "mesh")
    finally:
        lab.down(all_=True)


def _measure(path: Path, name: str, pattern: str) -> None:
    """Frame loss of both IP versions, both ways: none is lost, all have a part."""
    done = dutperf(
        *(
            "frame-loss",
            "--lab",
            name,
            "--ip",
            "4",
            "--ip",
            "6",
            "--port-pattern",
            pattern,
        ),
        *("--max-rate", "2000", "--load", "100", "--repeats", "1", "--plain"),
        *(*SHORT, "--output", str(path)),
    )
    assert done.returncode in (0, 1), done.stderr
    results = load_results(path).cells
    assert [r.verdict for r in results] == ["pass", "pass"], done.stdout
    assert [f for r in results for f in r.findings if f.kind == "misdirected"] == []
    records = [r for r in load_journal(path).records if r.role == "trial"]
    for record in records:
        sent = [s.sent for d in record.result.directions for s in d.streams]
        shares = [_rise(port) for port in record.result.ports]
        assert [port.label for port in record.result.ports] == [
            "left",
            "left 2",
            "right",
            "right 2",
        ]
        least = min(sent) // 2
        assert all(least <= each for share in shares for each in share)


def _rise(port: PortReport) -> tuple[int, int]:
    """Frames sent and received in the trial; questions of neighbours are among them."""
    before, after = port.before, port.after
    return after.tx_frames - before.tx_frames, after.rx_frames - before.rx_frames
