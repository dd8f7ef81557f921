"""A run whose routes a daemon tells: when it is asked to, and what is kept of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from planning import TESTBED, TRANSLATOR, Run, campaign, cell, spec

from dutperf.config import Testbed
from dutperf.config.deviations import of_frames
from dutperf.errors import InputError, SetupError
from dutperf.model.cell import Cell
from dutperf.procedures.events import Notice
from dutperf.protocol.base import Side
from dutperf.protocol.port_messages import PortSpec, PortsResult, Tap
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import load_journal
from dutperf.results.trial_record import RoutingSession
from dutperf.simulation.fake_engine import FakeEngine, step


class Recording(FakeEngine):
    """Writes down what happens in which order."""

    def __init__(self, happened: list[str]) -> None:
        super().__init__(step(50_000))
        self._happened = happened

    def open_ports(self, ports: list[PortSpec], shares: int = 1) -> PortsResult:
        self._happened.append(
            f"open {[port.tap and port.tap.interface for port in ports]}"
        )
        return super().open_ports(ports, shares)

    def measure(self, trial: TrialRequest, *progress: Any) -> TrialResult:  # noqa: ANN401 - as it is
        self._happened.append("trial")
        return super().measure(trial, *progress)


class FakeSpeaker:
    """Its device gives up its neighbour on the left in trials of ``falls``, from 1."""

    def __init__(self, happened: list[str], falls: Sequence[int] = ()) -> None:
        self._happened = happened
        self._falls = falls
        self._trials = 0
        self.cpus: list[int] = []

    @contextmanager
    def __call__(
        self, testbed: Testbed, cells: Sequence[Cell], cpu: int, _notify: object
    ) -> Iterator[FakeSpeaker]:
        assert [each.testbed for each in cells] == [testbed.name] * len(cells)
        self.cpus.append(cpu)
        self._happened.append("speaker there")
        yield self
        self._happened.append("speaker gone")

    @property
    def taps(self) -> Mapping[Side, Tap]:
        return {"right": Tap(network_namespace="/proc/1/ns/net", interface="right")}

    def begin(self) -> None:
        self._happened.append("begin")

    def tell(self, cell: Cell) -> None:
        self._happened.append(f"tell {cell.traffic.routes}")

    def sessions(self) -> list[RoutingSession]:
        self._trials += 1
        fell = self._trials in self._falls
        return [
            RoutingSession(
                port="left",
                ip_version=4,
                protocol="ospf",
                open=not (fell and self._trials % 2),
                falls=int(fell),
            )
        ]


def run(path: Path, falls: Sequence[int] = ()) -> tuple[Run, list[str]]:
    happened: list[str] = []
    it = Run(path, Recording(happened), speaking=FakeSpeaker(happened, falls))
    return it, happened


def throughput(**keys: object) -> Any:  # noqa: ANN401 - a campaign
    return campaign(spec(ip=[4], traffic={"routes": "ospf"}, **keys))


def test_taps_come_first_then_the_daemon_and_each_trial_is_told(tmp_path: Path) -> None:
    it, happened = run(tmp_path / "run")
    it(throughput())
    trials = len(list(load_journal(it.path).records))
    assert happened == [
        "speaker there",
        "open [None, 'right']",
        "begin",
        *["tell ospf", "trial"] * trials,
        "speaker gone",
    ]


def test_the_journal_has_how_the_sessions_stood(tmp_path: Path) -> None:
    it, _ = run(tmp_path / "run", falls=[3, 4])
    it(throughput())
    found = [record.routing[0] for record in load_journal(it.path).records]
    assert [each.falls for each in found][:5] == [0, 0, 1, 1, 0]
    assert [each.open for each in found][:5] == [True, True, False, True, True]


def test_a_result_says_in_which_trials_the_neighbour_was_lost(tmp_path: Path) -> None:
    it, _ = run(tmp_path / "run", falls=[2, 3])
    results = it(throughput())
    (result,) = results.cells
    (finding,) = [each for each in result.findings if each.kind == "routing_fell"]
    trials = list(load_journal(it.path).records)
    least = min(record.load_fps for record in trials[1:3])
    assert finding.message.startswith(
        f"in 2 of {len(trials)} trials (number 2, 3; from {least:,} fps on) the device "
        "gave up the routing daemon"
    )
    assert finding.numbers == {"fell": 2, "trials": len(trials)}


def test_a_result_without_falls_says_nothing(tmp_path: Path) -> None:
    it, _ = run(tmp_path / "run")
    (result,) = it(throughput()).cells
    assert result.findings == []


def test_what_is_taken_from_the_journal_tells_nobody(tmp_path: Path) -> None:
    it, _ = run(tmp_path / "run", falls=[2])
    before = it(throughput())
    (tmp_path / "run" / "results.json").unlink()
    again, happened = run(tmp_path / "run")
    after = again.resume(throughput())
    assert happened == []
    assert after.cells == before.cells


def test_a_device_that_is_no_neighbour_ends_the_run(tmp_path: Path) -> None:
    happened: list[str] = []

    class Alone(FakeSpeaker):
        def tell(self, cell: Cell) -> None:
            raise SetupError(f"no neighbour for {cell.traffic.routes}")

    it = Run(tmp_path / "run", Recording(happened), speaking=Alone(happened))
    with pytest.raises(SetupError, match="no neighbour for ospf"):
        it(throughput())
    assert "trial" not in happened
    assert happened[-2:] == ["begin", "speaker gone"] or happened[-1] == "begin"
    assert not any("defect" in e.text for e in it.events if isinstance(e, Notice))


@pytest.mark.parametrize("protocol", ["ospf", "bgp"])
def test_the_update_before_each_trial_is_no_deviation(protocol: str) -> None:
    told = cell(
        ip=[4], traffic={"routes": protocol, "networks": 256}, settle_wait_s=5.0
    )
    found = {each.rfc for each in of_frames(told)}
    assert not found & {"RFC 2544 13", "RFC 2544 C.2.3"}
    soon = cell(ip=[4], traffic={"routes": protocol}, settle_wait_s=2.0)
    assert "RFC 2544 C.2.3" in {each.rfc for each in of_frames(soon)}


@pytest.mark.parametrize("protocol", ["ospf", "bgp"])
def test_translators_and_stateful_tests_are_refused(protocol: str) -> None:
    with pytest.raises(InputError, match="frames are translated"):
        cell(TRANSLATOR, ip=["6-4"], traffic={"routes": protocol})


def test_bgp_needs_the_neighbours_address_and_ospf_does_not() -> None:
    data = TESTBED.model_dump(exclude_none=True)
    data["left"]["ipv4"].pop("gateway")
    data["left"]["next_hop_mac"] = "02:00:00:00:00:09"
    testbed = Testbed.model_validate(data)
    with pytest.raises(InputError, match=r"on the left: left\.ipv4\.gateway"):
        cell(testbed, ip=[4], traffic={"routes": "bgp"})
    assert cell(testbed, ip=[4], traffic={"routes": "ospf"}).traffic.routes == "ospf"
    assert cell(testbed, ip=[6], traffic={"routes": "bgp"}).traffic.routes == "bgp"
