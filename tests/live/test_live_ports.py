"""Ports that cannot be opened or go away: a reason each time, and the engine lives."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from labtools import LAB_GROUP, tolerant
from livetools import (
    BOTH,
    DRIVERS,
    GATEWAYS,
    MACS,
    MS,
    Trial,
    codes,
    counting,
    crossed_neighbours,
    inside,
    kept_lab,
    lab_engine,
    lab_neighbours,
    lab_ports,
    open_rings,
    raw_engine,
    ring_ports,
    running_engine,
    to_nobody,
    vhost,
    virtio_user,
)

from dutperf.engine.client import Engine
from dutperf.errors import EngineError
from dutperf.programs import find_engine
from dutperf.protocol.base import Driver, Side
from dutperf.protocol.methods import ERROR_ENVIRONMENT, ERROR_INVALID_PARAMS
from dutperf.protocol.port_messages import PortSpec
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.trial_messages import TrialProgress
from tools.calibrate.truth import Counts
from tools.calibrate.truth import by_result as counts

pytestmark = counting(LAB_GROUP)

NOBODY = 65534
REFUSED: dict[str, tuple[Driver, str, str]] = {
    "af_packet without interface": ("af_packet", "nosuch0", "does not exist"),
    "af_xdp without interface": ("af_xdp", "nosuch0", "does not exist"),
    "a PCI address of nothing": ("pci", "0000:ff:1f.7", "vfio-pci"),
    "a PCI address that is none": ("pci", "bus 1", "vfio-pci"),
    "a virtual device of no driver": ("vdev", "net_nosuch0", "DPDK's guide"),
    "a virtual device told nonsense": ("vdev", "net_memif,role=x", "DPDK's guide"),
    "a memif without directory": ("memif", "/nosuch/socket", "other side"),
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with running_engine(tmp_path_factory.mktemp("ports")) as it:
        yield it


@pytest.fixture(scope="module")
def _lab() -> Iterator[None]:
    with kept_lab():
        yield


@contextlib.contextmanager
def namespace_with_a_wire(queues: int) -> Iterator[str]:
    """One whose interfaces left and right are its ends, and spread frames to queues."""
    name = f"queues-{os.getpid()}"
    each = f"numrxqueues {queues} numtxqueues {queues}"
    wire = f"link add left {each} type veth peer name right {each}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        inside(name, "ip", *wire.split())
        for side in MACS:
            inside(name, "ip", "link", "set", side, "up")
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


@pytest.fixture
def two_queues() -> Iterator[str]:
    with namespace_with_a_wire(2) as name:
        yield name


@pytest.fixture
def wire() -> Iterator[str]:
    with namespace_with_a_wire(1) as name:
        yield name


def test_an_interface_of_which_one_queue_would_be_read_is_refused(
    tmp_path: Path, two_queues: str
) -> None:
    """What came by the others would be taken for lost by the device."""
    with running_engine(tmp_path, namespace=two_queues) as engine:
        ports = [PortSpec(name=s, driver="af_xdp", device=s) for s in MACS]
        error = refusal(engine, ports)
        assert "2 receive queues" in error.message
        assert "ethtool -L left combined 1" in error.hint
        assert error.rpc_code == ERROR_ENVIRONMENT  # driver: auto then takes this one
        opened = engine.open_ports(
            [PortSpec(name=s, driver="af_packet", device=s) for s in MACS]
        )
        assert [port.driver for port in opened.ports] == ["af_packet"] * 2


def test_a_packet_socket_is_no_fanout_group(tmp_path: Path, wire: str) -> None:
    """DPDK's driver asks for one: each frame received would be hashed."""
    with running_engine(tmp_path, namespace=wire) as engine:
        engine.open_ports(lab_ports("af_packet"))
        sockets = inside(wire, "ss", "--packet", "--extended", "--no-header")
    assert "left" in sockets
    assert "fanout" not in sockets


def test_af_xdp_has_as_many_frames_in_flight_as_it_is_asked_for(
    tmp_path: Path, wire: str
) -> None:
    """DPDK's driver would have 2,048, whatever it is asked for."""
    left, right = lab_ports("af_xdp")
    with running_engine(tmp_path, namespace=wire) as engine:
        right = right.model_copy(update={"in_flight_frames": 8192})
        opened = engine.open_ports([left, right]).ports
    assert [port.in_flight_frames for port in opened] == [16384, 8192]


@pytest.mark.parametrize("driver", DRIVERS)
def test_an_interface_takes_frames_for_any_mac_while_it_is_a_port(
    tmp_path: Path, wire: str, driver: Driver
) -> None:
    def promiscuity() -> int:
        shown = inside(wire, "ip", "-j", "-d", "link", "show", "left")
        return int(json.loads(shown)[0]["promiscuity"])

    with running_engine(tmp_path, namespace=wire) as engine:
        found = [promiscuity()]
        for each in (driver, "af_packet"):  # AF_XDP opens once
            engine.open_ports(lab_ports(each))
            found.append(promiscuity())
        open_rings(engine)
        found.append(promiscuity())
    assert found == [0, 1, 1, 0]


in_lab = [*tolerant, pytest.mark.usefixtures("_lab")]


def pair(driver: Driver, device: str) -> list[PortSpec]:
    return [PortSpec(name=side, driver=driver, device=device) for side in MACS]


def refusal(engine: Engine, ports: list[PortSpec]) -> EngineError:
    with pytest.raises(EngineError) as caught:
        engine.open_ports(ports)
    return caught.value


@pytest.mark.parametrize("what", REFUSED)
def test_a_device_that_is_not_there_is_refused_with_a_remedy(
    engine: Engine, what: str
) -> None:
    driver, device, remedy = REFUSED[what]
    error = refusal(engine, pair(driver, device))
    assert error.rpc_code == ERROR_ENVIRONMENT
    assert "port left" in error.message
    assert device in error.message
    assert remedy in error.hint


@pytest.mark.parametrize("what", REFUSED)
def test_ports_open_after_a_refusal(engine: Engine, what: str) -> None:
    driver, device, _ = REFUSED[what]
    refusal(engine, pair(driver, device))
    open_rings(engine)
    result = engine.measure(Trial().request())
    assert counts(result) == dict.fromkeys(BOTH, Counts(500, 500))


def test_a_ring_on_one_side_only_is_refused(engine: Engine) -> None:
    left, _ = ring_ports()
    error = refusal(engine, [left, *pair("af_packet", "lo")[1:]])
    assert error.rpc_code == ERROR_INVALID_PARAMS


def test_many_refusals_use_nothing_up(engine: Engine) -> None:
    for _ in range(20):
        refusal(engine, pair("af_packet", "nosuch0"))
    open_rings(engine)
    assert engine.measure(Trial().request()).verdict.kind == "pass"


def copied_to(directory: Path) -> str:
    """The engine's program where any user may run it."""
    directory.chmod(0o755)
    return str(shutil.copy(find_engine(), directory))


def test_without_root_the_hint_is_to_be_root(tmp_path: Path) -> None:
    with (
        tempfile.TemporaryDirectory() as everybodys,
        raw_engine(
            tmp_path, program=copied_to(Path(everybodys)), user=NOBODY, group=NOBODY
        ) as engine,
    ):
        answer = engine.call("engine.hello")
        if answer.error is None:
            ports = {"ports": [p.model_dump() for p in pair("af_packet", "lo")]}
            answer = engine.call("ports.open", ports)
    assert answer.error is not None
    assert answer.error.code == ERROR_ENVIRONMENT
    assert "root" in answer.error.data.hint


def trial_on_lab(engine: Engine) -> dict[str, Counts]:
    found = engine.set_neighbours(lab_neighbours()).neighbours
    assert all(n.mac for n in found)
    return counts(engine.measure(Trial(fps=2000, hops=GATEWAYS).request()))


class TestInTheLab:
    pytestmark = in_lab

    def test_the_drivers_may_follow_each_other(self, tmp_path: Path) -> None:
        # DPDK does not open AF_XDP twice on one interface in one process.
        drivers: tuple[Driver, ...] = ("af_packet", "af_packet", "af_xdp", "af_packet")
        with running_engine(tmp_path, namespace="tester") as engine:
            for driver in drivers:
                engine.open_ports(lab_ports(driver))
                assert trial_on_lab(engine) == dict.fromkeys(BOTH, Counts(100, 100))

    def test_af_packet_works_after_af_xdp_was_refused(self, tmp_path: Path) -> None:
        with running_engine(tmp_path, namespace="tester") as engine:
            left, right = lab_ports("af_xdp")
            missing = right.model_copy(update={"device": "nosuch0"})
            assert "right" in refusal(engine, [left, missing]).message
            engine.open_ports(lab_ports("af_packet"))
            assert trial_on_lab(engine) == dict.fromkeys(BOTH, Counts(100, 100))

    def test_an_interface_that_is_taken_is_refused_until_it_is_free(
        self, tmp_path: Path
    ) -> None:
        with lab_engine(tmp_path, "af_xdp"):
            with running_engine(tmp_path, namespace="tester") as second:
                error = refusal(second, lab_ports("af_xdp"))
            assert error.rpc_code == ERROR_ENVIRONMENT
            assert "left" in error.message
        with lab_engine(tmp_path, "af_xdp") as third:
            assert trial_on_lab(third) == dict.fromkeys(BOTH, Counts(100, 100))

    def test_af_packet_works_after_af_xdp_was_refused_half_way(
        self, tmp_path: Path
    ) -> None:
        """The memory for frames was there already, the socket was refused."""
        with running_engine(tmp_path, namespace="tester") as engine:
            with lab_engine(tmp_path, "af_xdp"):
                assert "left" in refusal(engine, lab_ports("af_xdp")).message
            engine.open_ports(lab_ports("af_packet"))
            assert trial_on_lab(engine) == dict.fromkeys(BOTH, Counts(100, 100))

    @pytest.mark.parametrize("driver", DRIVERS)
    def test_a_link_that_is_down_is_named(self, tmp_path: Path, driver: Driver) -> None:
        with lab_engine(tmp_path, driver) as engine:
            engine.set_neighbours(lab_neighbours(timeout_ms=200))
            set_link("dut", "left", "down")
            try:
                states = [port.link_up for port in engine.port_status().ports]
                result = engine.measure(Trial(hops=GATEWAYS).request())
            finally:
                set_link("dut", "left", "up")
        assert states == [False, True]
        assert result.verdict.kind == "invalid"
        assert codes(result) == {"link_down", "neighbour_missing"}
        assert counts(result) == dict.fromkeys(BOTH, Counts(0, 0))

    @pytest.mark.parametrize("driver", DRIVERS)
    def test_a_link_that_goes_down_in_mid_trial_makes_it_invalid(
        self, tmp_path: Path, driver: Driver
    ) -> None:
        trial = Trial(fps=1000, ms=60_000, hops=GATEWAYS)
        with lab_engine(tmp_path, driver) as engine:

            def cut(_progress: TrialProgress) -> None:
                set_link("dut", "right", "down")
                engine.stop()

            try:
                request = trial.request().model_copy(update={"lag_limit_ns": 10 * MS})
                result = engine.measure(request, cut)
            finally:
                set_link("dut", "right", "up")
        assert result.verdict.kind == "invalid"
        assert "link_changed" in codes(result)

    @pytest.mark.parametrize("driver", DRIVERS)
    def test_a_link_that_flaps_in_mid_trial_is_noticed_though_it_is_up_again(
        self, tmp_path: Path, driver: Driver
    ) -> None:
        trial = Trial(fps=1000, ms=60_000, hops=GATEWAYS)
        with lab_engine(tmp_path, driver) as engine:

            def flap(_progress: TrialProgress) -> None:
                set_link("dut", "right", "down")
                set_link("dut", "right", "up")
                engine.stop()

            result = engine.measure(trial.request(), flap)
            assert all(port.link_up for port in engine.port_status().ports)
        assert result.verdict.kind == "invalid"
        assert "link_changed" in codes(result)

    @pytest.mark.parametrize("driver", DRIVERS)
    def test_a_link_that_was_down_measures_again(
        self, tmp_path: Path, driver: Driver
    ) -> None:
        with lab_engine(tmp_path, driver) as engine:
            set_link("dut", "left", "down")
            set_link("dut", "left", "up")
            assert trial_on_lab(engine) == dict.fromkeys(BOTH, Counts(100, 100))


def set_link(namespace: str, interface: str, state: str) -> None:
    inside(namespace, "ip", "link", "set", interface, state)
    if state == "up":
        restore_ipv6()


def restore_ipv6() -> None:
    """An interface that goes down loses its IPv6 addresses: give them back."""
    for side, prefix in (("left", "2001:2::1/64"), ("right", "2001:2:0:8000::1/64")):
        for address in (prefix, "fe80::1/64"):
            inside("dut", "ip", "addr", "replace", address, "dev", side, "nodad")


def test_any_virtual_device_of_dpdk_is_a_port(engine: Engine, tmp_path: Path) -> None:
    """Memif by its DPDK name at one end, and as a port of ours at the other."""
    socket = tmp_path / "socket"
    arguments = f"role=server,id=7,socket={socket},socket-abstract=no"
    left = PortSpec(name="left", driver="vdev", device=f"net_memif,{arguments}")
    right = PortSpec(
        name="right",
        driver="memif",
        device=str(socket),
        memif_id=7,
    )
    macs = {side: {"mac": mac} for side, mac in MACS.items()}
    engine.open_ports(
        [port.model_copy(update=macs[port.name]) for port in (left, right)]
    )
    engine.set_neighbours(crossed_neighbours())
    result = engine.measure(Trial(fps=20_000).request())
    assert counts(result) == {way: Counts(1000, 1000) for way in BOTH}


def test_more_queues_than_a_device_has_are_refused(engine: Engine) -> None:
    ports = [port.model_copy(update={"rx_queues": 2}) for port in ring_ports()]
    with pytest.raises(EngineError, match="and the device has at most 1"):
        engine.open_ports(ports)


def opening(*ports: PortSpec) -> dict[str, Any]:
    return {"ports": [port.model_dump() for port in ports]}


NOWHERE: dict[Side, PortSpec] = {s: PortSpec(name=s, driver="null") for s in MACS}


def test_buffers_outlive_the_ports_that_hold_them(tmp_path: Path) -> None:
    """virtio-user copies no frame: what it has sent is its own until it is closed."""
    ports = opening(vhost(tmp_path), virtio_user(tmp_path))
    with raw_engine(tmp_path) as engine:
        for _ in range(2):  # a second time while it is open, and at the end
            assert engine.call("ports.open", ports).error is None
            request = to_nobody(Trial().request()).model_dump(mode="json")
            answer = engine.call("trial.run", request)
            result = TrialResult.model_validate(answer.result)
            assert counts(result) == dict.fromkeys(BOTH, Counts(500, 500))
        engine.socket.close()
        assert engine.process.wait(10) == 0


def test_a_device_whose_socket_closes_does_not_end_the_engine(tmp_path: Path) -> None:
    """virtio-user writes to the other end of its socket while it is closed."""
    with raw_engine(tmp_path) as device, raw_engine(tmp_path) as engine:
        ports = opening(vhost(tmp_path), NOWHERE["right"])
        assert device.call("ports.open", ports).error is None
        ports = opening(NOWHERE["left"], virtio_user(tmp_path))
        assert engine.call("ports.open", ports).error is None
        device.process.kill()
        device.process.wait(10)
        engine.open_rings()
        engine.socket.close()
        assert engine.process.wait(60) == 0
