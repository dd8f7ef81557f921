from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from planning import TESTBED, cell

from dutperf.config import Testbed
from dutperf.engine import process
from dutperf.errors import EngineError, InputError, SetupError
from dutperf.protocol.port_messages import PortSpec, PortsResult
from dutperf.run import engine_session
from dutperf.simulation.fake_engine import FakeEngine, perfect

BOTH = [cell(ip=[4]), cell(ip=[6])]


def with_ports(left: dict[str, Any], right: dict[str, Any]) -> Testbed:
    data = TESTBED.model_dump(exclude_none=True)
    data["left"]["port"], data["right"]["port"] = left, right
    return Testbed.model_validate(data)


def test_auto_takes_af_xdp_where_it_works_and_says_so() -> None:
    notices: list[str] = []
    ports = engine_session.open_ports(FakeEngine(perfect()), TESTBED, notices.append)
    assert [port.driver for port in ports.ports] == ["af_xdp", "af_xdp"]
    assert "af_xdp" in notices[0]


def test_auto_falls_back_to_af_packet_for_both_and_says_why() -> None:
    notices: list[str] = []
    engine = FakeEngine(perfect(), refused={"af_xdp"})
    ports = engine_session.open_ports(engine, TESTBED, notices.append)
    assert [port.driver for port in ports.ports] == ["af_packet", "af_packet"]
    assert "af_packet" in notices[0]
    assert "af_xdp does not work on left" in notices[0]


def test_each_port_has_a_name_of_its_own_on_the_machine(tmp_path: Path) -> None:
    for namespace in ("one", "other"):
        (tmp_path / namespace).write_text("")
    named = [
        engine_session.port_names(
            TESTBED.model_copy(update={"namespace": name}), tmp_path
        )
        for name in ("one", "other", None)
    ]
    keys = [key for names in named for key in names]
    assert len(set(keys)) == 6
    assert list(named[0].values()) == [
        "interface left in namespace one",
        "interface right in namespace one",
    ]
    mixed = with_ports({"pci": "0000:01:00.0"}, {"memif": "/run/m.sock", "id": 3})
    assert list(engine_session.port_names(mixed).values()) == [
        "PCI port 0000:01:00.0",
        "memif /run/m.sock, interface 3, client",
    ]
    assert engine_session.port_names(with_ports({"ring": True}, {"ring": True})) == {}


def test_a_chosen_driver_is_never_replaced() -> None:
    chosen = {"interface": "left", "driver": "af_xdp"}
    testbed = with_ports(chosen, chosen | {"interface": "right"})
    with pytest.raises(EngineError, match="af_xdp does not work"):
        engine_session.open_ports(
            FakeEngine(perfect(), refused={"af_xdp"}), testbed, print
        )


def test_other_refusals_of_af_xdp_are_not_hidden() -> None:
    class Broken(FakeEngine):
        def open_ports(self, ports: list[PortSpec], shares: int = 1) -> PortsResult:
            raise EngineError(f"defect of {len(ports)}, {shares}", rpc_code=-32603)

    with pytest.raises(EngineError, match="defect"):
        engine_session.open_ports(Broken(perfect()), TESTBED, print)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (
            {"pci": "0000:03:00.0"},
            {"pci": "0000:03:00.1", "mtu": 9000},
            [("pci", "0000:03:00.0", None, 1500), ("pci", "0000:03:00.1", None, 9000)],
        ),
        (
            {"memif": "/run/a.sock"},
            {"memif": "/run/b.sock", "mac": "02:00:00:00:00:99"},
            [
                ("memif", "/run/a.sock", "02:00:00:00:00:01", 1500),
                ("memif", "/run/b.sock", "02:00:00:00:00:99", 1500),
            ],
        ),
        (
            {"ring": True},
            {"ring": True},
            [
                ("ring", "", "02:00:00:00:00:01", 1500),
                ("ring", "", "02:00:00:00:00:02", 1500),
            ],
        ),
    ],
)
def test_ports_become_what_the_engine_opens(
    left: dict[str, Any], right: dict[str, Any], expected: list[tuple[object, ...]]
) -> None:
    specs = engine_session.port_specs(with_ports(left, right), "af_xdp")
    assert [(s.driver, s.device, s.mac, s.mtu) for s in specs] == expected
    assert [s.name for s in specs] == ["left", "right"]


def test_the_engine_is_told_how_long_rings_in_shared_memory_are() -> None:
    longer = {"memif": "/run/a.sock", "ring_frames": 16384}
    specs = engine_session.port_specs(
        with_ports(longer, {"memif": "/run/b.sock"}), "af_xdp"
    )
    assert [spec.memif_ring_frames for spec in specs] == [16384, 4096]


def test_ports_answer_for_all_addresses_and_look_for_the_gateways_needed() -> None:
    left, right = engine_session.neighbours(TESTBED, [cell(ip=[6])]).ports
    assert [r.first for r in left.own] == ["198.18.0.2", "2001:2::2"]
    assert left.resolve == ["2001:2::1"]
    assert right.resolve == ["2001:2:0:1::1"]


@pytest.mark.parametrize(
    ("silent", "told"),
    [
        ("198.19.0.1", r"right: the next hop 198\.19\.0\.1 does not answer ARP"),
        ("2001:2::1", r"left: the next hop 2001:2::1 does not answer neighbour disc"),
    ],
)
def test_a_silent_next_hop_names_side_address_interface_and_what_to_check(
    silent: str, told: str
) -> None:
    engine = FakeEngine(perfect(), silent={silent})
    with pytest.raises(SetupError, match=told) as caught:
        engine_session.resolve_neighbours(engine, TESTBED, BOTH, print)
    side = "right" if silent.startswith("198") else "left"
    assert f"on {side} (asked from" in caught.value.message
    assert "device under test" in caught.value.hint


def test_a_link_that_is_down_is_told_in_place_of_the_silence_behind_it() -> None:
    engine = FakeEngine(perfect(), silent={"198.19.0.1"}, down={"right"})
    engine.open_ports(engine_session.port_specs(TESTBED, "af_packet"))
    with pytest.raises(SetupError, match=r"right: the link of .* is down") as caught:
        engine_session.resolve_neighbours(engine, TESTBED, BOTH, print)
    assert "ip link set" in caught.value.hint


def test_the_start_tells_how_long_the_next_hops_took() -> None:
    notices: list[str] = []
    engine_session.resolve_neighbours(
        FakeEngine(perfect()), TESTBED, [cell()], notices.append
    )
    [notice] = notices
    assert "198.18.0.1 on the left answered in 0.0 ms" in notice
    assert "198.19.0.1 on the right answered in 0.0 ms" in notice


def test_hosts_are_answered_for_after_the_sides_own_addresses() -> None:
    several = cell(ip=[6], traffic={"addresses": 1000})
    left, _ = engine_session.neighbours(TESTBED, [several, cell(ip=[4])]).ports
    assert [(r.first, r.count, r.shift) for r in left.own] == [
        ("198.18.0.2", 1, 0),
        ("2001:2::2", 1, 0),
        ("2001:2::2", 1000, 16),
    ]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    monkeypatch.setattr(process, "find_engine", lambda: "engine")
    return monkeypatch


def test_an_engine_is_not_started_before_its_cpus_are_checked(
    machine: pytest.MonkeyPatch,
) -> None:
    machine.setattr(engine_session, "start_engine", pytest.fail)
    testbed = TESTBED.model_copy(update={"cores": [7]})
    with pytest.raises(InputError, match="testbed key cores: CPU 7"):
        engine_session.prepare_engine(testbed, print)


def test_missing_huge_pages_are_a_notice(machine: pytest.MonkeyPatch) -> None:
    machine.setattr(
        engine_session, "choose_hugepages", lambda *_a, **_k: (False, "slower")
    )
    machine.setattr(engine_session, "check_interfaces", lambda _testbed: None)
    notices: list[str] = []
    engine_session.prepare_engine(TESTBED, notices.append)
    assert notices == ["slower"]


def test_the_main_thread_sleeps_on_the_configured_cpu_or_a_spare_one(
    machine: pytest.MonkeyPatch,
) -> None:
    machine.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 2})
    assert engine_session.main_core(TESTBED) == 1
    assert engine_session.main_core(TESTBED.model_copy(update={"main_core": 2})) == 2


def test_an_interface_elsewhere_is_found_and_the_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "blue").touch()
    (tmp_path / "green").touch()
    ours = {(None, "left"), ("green", "right")}
    with pytest.raises(SetupError, match="interface right does not exist here") as told:
        engine_session.check_interfaces(TESTBED, tmp_path, lambda *at: at in ours)
    assert "in network namespace green" in told.value.hint
    assert "'namespace: green'" in told.value.hint
    with pytest.raises(SetupError, match="interface left") as told:
        engine_session.check_interfaces(TESTBED, tmp_path, lambda *_at: False)
    assert "'namespace: NAME'" in told.value.hint
    inside = TESTBED.model_copy(update={"namespace": "green"})
    with pytest.raises(SetupError, match="does not exist in namespace green"):
        engine_session.check_interfaces(inside, tmp_path, lambda at, _name: at is None)
    engine_session.check_interfaces(TESTBED, tmp_path, lambda *_at: True)
