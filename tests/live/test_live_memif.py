"""The engine against the known-answer device over shared memory.

The device loses and duplicates exactly what it is told and gives account of it, so
there are three independent sources for every number: the engine, the device, and
arithmetic.
"""

from __future__ import annotations

import random
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from livetools import (
    BOTH,
    DEVICE,
    MS,
    NO_ODD_FRAMES,
    STALLS,
    RefDut,
    Trial,
    codes,
    counting,
    crossed_neighbours,
    measured_once,
    odd_frames,
    raw_engine,
    ref_dut,
    running_engine,
)

from dutperf.engine.client import Engine
from dutperf.lab.refdut_socket import Behaviour, TrialAccount
from dutperf.protocol.base import DirectionName, IpVersion
from dutperf.protocol.port_messages import PortsOpenParams, PortSpec
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.trial_messages import TrialProgress
from tools.calibrate.truth import Counts, by_account
from tools.calibrate.truth import by_result as counts

pytestmark = counting(DEVICE)

FRAMES = 2003
"""Per direction: a prime, so no k divides it."""
TRIAL = Trial(fps=FRAMES * 10, ms=100, extra={"residual_wait_ns": 300 * MS})
"""It waits for frames that a device has which others keep from running."""
Ways = Literal["forward", "reverse", "both"]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with running_engine(tmp_path_factory.mktemp("memif")) as it:
        yield it


@pytest.fixture
def place() -> Iterator[Path]:
    """A short path: a socket's has at most 107 characters."""
    with tempfile.TemporaryDirectory(prefix="dutperf") as directory:
        yield Path(directory)


@pytest.fixture(scope="module")
def device() -> Iterator[RefDut]:
    """One that does as it is told until the next test tells it something else."""
    with (
        tempfile.TemporaryDirectory(prefix="dutperf") as directory,
        ref_dut(Path(directory)) as it,
    ):
        yield it


def through(
    device: RefDut, engine: Engine, behaviour: Behaviour, trial: Trial = TRIAL
) -> tuple[TrialResult, TrialAccount]:
    """One trial through newly opened ports; the result, and the device's account."""
    device.client.configure(behaviour)
    ports = engine.open_ports(device.ports()).ports
    assert all(port.link_up for port in ports)
    found = engine.set_neighbours(crossed_neighbours()).neighbours
    assert all(n.mac for n in found)
    result = engine.measure(trial.request())
    return result, device.account()


def dropping(k: int, *ways: DirectionName) -> Behaviour:
    return {way: {"rules": [{"every": k, "do": "drop"}]} for way in ways}


def doubling(k: int) -> Behaviour:
    return {"forward": {"rules": [{"every": k, "do": "duplicate"}]}}


def losing(k: int) -> Counts:
    return Counts(FRAMES, FRAMES - FRAMES // k, lost=FRAMES // k)


def test_a_device_that_loses_nothing_passes(engine: Engine, place: Path) -> None:
    with ref_dut(place) as device:
        result, account = through(device, engine, {})
    assert codes(result) <= STALLS
    assert counts(result) == by_account(account)
    assert counts(result) == dict.fromkeys(BOTH, Counts(FRAMES, FRAMES))
    assert odd_frames(result) == NO_ODD_FRAMES


@pytest.mark.parametrize("ways", ["forward", "reverse", "both"])
@pytest.mark.parametrize("k", [2, 3, 7, 100, 1001])
def test_every_kth_frame_lost_is_found(
    engine: Engine, device: RefDut, k: int, ways: Ways
) -> None:
    names = [name for name in BOTH if ways in (name, "both")]
    result, account = through(device, engine, dropping(k, *names))
    expected = {
        name: losing(k) if name in names else Counts(FRAMES, FRAMES) for name in BOTH
    }
    assert counts(result) == by_account(account) == expected
    assert (result.verdict.kind, codes(result)) == ("fail", {"frames_lost"})
    assert {c.failures for d in account.directions.values() for c in d.classes} == {0}


@pytest.mark.parametrize("k", [1, 2, 3, 7, 100, 1001])
def test_every_kth_frame_twice_is_found(engine: Engine, device: RefDut, k: int) -> None:
    result, account = through(device, engine, doubling(k))
    assert counts(result) == by_account(account)
    assert counts(result)["forward"] == Counts(FRAMES, FRAMES, duplicate=FRAMES // k)
    assert (result.verdict.kind, codes(result)) == ("fail", {"duplicates"})


def test_duplicates_never_make_up_for_losses(engine: Engine, device: RefDut) -> None:
    """Half of the frames lost, the other half twice: as many arrive as were sent."""
    trial = Trial(fps=20_000, ms=100)
    rules = [{"every": 2, "do": "drop"}, {"do": "duplicate"}]
    behaviour = {"forward": {"rules": rules}}
    result, account = through(device, engine, behaviour, trial)
    forward = counts(result)["forward"]
    assert counts(result) == by_account(account)
    assert forward.received + forward.duplicate == forward.sent == 2000
    assert result.verdict.kind == "fail"
    assert codes(result) == {"frames_lost", "duplicates"}


@pytest.mark.parametrize(("ip", "size"), [(4, 64), (4, 1518), (6, 84), (6, 1517)])
def test_losses_are_the_same_for_all_frames(
    engine: Engine, device: RefDut, ip: IpVersion, size: int
) -> None:
    trial = Trial(ip=ip, size=size, fps=FRAMES * 10, ms=100)
    result, account = through(device, engine, dropping(7, "forward"), trial)
    assert counts(result) == by_account(account)
    assert counts(result)["forward"] == losing(7)
    assert odd_frames(result) == NO_ODD_FRAMES


def test_every_trial_of_a_series_has_an_account_of_its_own(
    engine: Engine, place: Path
) -> None:
    with ref_dut(place, dropping(100, "forward")) as device:
        engine.open_ports(device.ports())
        engine.set_neighbours(crossed_neighbours())
        series = [measured_once(engine, TRIAL.request(n)) for n in range(1, 11)]
        report = device.client.report()
    assert all(odd_frames(result) == NO_ODD_FRAMES for result in series)
    assert [t.trial_id for t in report.trials] == list(range(3, 11)), "the last eight"
    kept = [by_account(trial) for trial in report.trials]
    assert kept == [counts(result) for result in series[2:]]


def test_a_trial_id_that_is_used_again_begins_a_new_account(
    engine: Engine, place: Path
) -> None:
    with ref_dut(place, dropping(100, "forward")) as device:
        engine.open_ports(device.ports())
        engine.set_neighbours(crossed_neighbours())
        results = [measured_once(engine, TRIAL.request(7)) for _ in range(3)]
        report = device.client.report()
    assert [by_account(t) for t in report.trials] == [counts(r) for r in results]


def killed_in_mid_trial(engine: Engine, place: Path) -> TrialResult:
    """Of a trial that its device does not live to see the end of."""
    with ref_dut(place) as device:
        engine.open_ports(device.ports())
        engine.set_neighbours(crossed_neighbours())

        def kill(_progress: TrialProgress) -> None:
            device.kill()

        # It ends with the device; long, as who kills that may have to wait for a CPU.
        doomed = Trial(fps=100_000, ms=20_000, extra={"lag_limit_ns": 10 * MS})
        return measured_once(engine, doomed.request(), kill)


def test_a_device_that_dies_in_mid_trial_spoils_the_trial_only(
    engine: Engine, place: Path
) -> None:
    result = killed_in_mid_trial(engine, place)
    assert result.verdict.kind in {"invalid", "fail"}
    assert codes(result) & {"link_changed", "link_down", "sender_behind", "frames_lost"}
    with ref_dut(place) as another:
        result, account = through(another, engine, {})
    assert counts(result) == by_account(account)
    assert result.verdict.kind == "pass"


def test_devices_that_die_in_mid_trial_do_the_engine_no_harm(
    engine: Engine, place: Path
) -> None:
    """Their memory is gone with them, at any moment of a receive or transmit call."""
    for _ in range(6):
        result = killed_in_mid_trial(engine, place)
        assert result.verdict.kind in {"invalid", "fail"}


def test_a_device_that_is_not_there_is_a_link_that_is_down(
    engine: Engine, place: Path
) -> None:
    with ref_dut(place) as device:
        ports = device.ports()
        engine.open_ports(ports)
        engine.set_neighbours(crossed_neighbours(timeout_ms=100))
        device.kill()
        result = engine.measure(Trial().request())
    assert result.verdict.kind == "invalid"
    assert {"link_down", "neighbour_missing"} <= codes(result)
    assert counts(result) == dict.fromkeys(BOTH, Counts(0, 0))


def test_testers_that_are_killed_do_the_device_no_harm(
    engine: Engine, place: Path
) -> None:
    frames = Trial(size=1518, fps=100_000, ms=5000)
    with ref_dut(place) as device:
        ports = {"ports": [port.model_dump() for port in device.ports()]}
        for _ in range(3):
            # In a session of its own the device does not outrank it.
            with raw_engine(place, start_new_session=True) as doomed:
                assert doomed.call("ports.open", ports).error is None
                hops = doomed.call("neighbours.set", crossed_neighbours().model_dump())
                assert hops.error is None
                doomed.send("trial.run", frames.request(2).model_dump())
                doomed.await_frames()
                doomed.process.kill()
                doomed.process.wait(10)
        engine.open_ports(device.ports())
        engine.set_neighbours(crossed_neighbours())
        result = engine.measure(TRIAL.request())
        assert counts(result) == by_account(device.account())
        assert result.verdict.kind == "pass"
        assert device.process.poll() is None


def test_clients_that_come_and_go_do_a_server_no_harm(place: Path) -> None:
    """Also those that connect while its ports are closed and opened again."""
    paths = [str(place / side) for side in ("left", "right")]
    ports = [
        PortSpec(name="left", driver="memif", device=paths[0], memif_role="server"),
        PortSpec(name="right", driver="memif", device=paths[1], memif_role="server"),
    ]
    params = PortsOpenParams(ports=ports, link_timeout_ns=MS).model_dump()
    ended = threading.Event()
    clients = [
        threading.Thread(target=_come_and_go, args=(paths, n, ended)) for n in (1, 2)
    ]
    with raw_engine(place) as engine:
        for client in clients:
            client.start()
        try:
            for _ in range(30):
                answer = engine.call("ports.open", params)
                assert answer.error is None or "link" in answer.error.message
        finally:
            ended.set()
            for client in clients:
                client.join()
        assert engine.process.poll() is None


def _come_and_go(paths: list[str], seed: int, ended: threading.Event) -> None:
    """Some say nothing, some nonsense; none stays for longer than 2 ms."""
    draw = random.Random(seed)  # noqa: S311 - which client comes next
    while not ended.is_set():
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            try:
                client.connect(draw.choice(paths))
                if draw.random() < 0.5:
                    client.send(bytes(64))
            except OSError:
                pass  # it is not there just now, or has hung up
            time.sleep(draw.random() * 0.002)


def test_memif_unmaps_with_the_devices_function(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which waits for the forwarding loop; the dynamic linker tells whose is used."""
    monkeypatch.setenv("LD_DEBUG", "bindings")
    monkeypatch.setenv("LD_DEBUG_OUTPUT", str(place / "bindings"))
    monkeypatch.setenv("LD_BIND_NOW", "1")
    with ref_dut(place) as device:
        said = (place / f"bindings.{device.process.pid}").read_text().splitlines()
    (line,) = [t for t in said if "net_memif" in t and "symbol `munmap'" in t]
    assert "dutperf-refdut" in line.partition(" to ")[2]
