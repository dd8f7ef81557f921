"""ARP and neighbour discovery of the real engine: asked, answered, and unanswered."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from labtools import LAB_GROUP
from livetools import (
    BOTH,
    DRIVERS,
    ENDS,
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
    measured_once,
    ring_ports,
    running_engine,
)
from scapy.layers.inet6 import ICMPv6ND_NA, ICMPv6NDOptDstLLAddr, IPv6
from scapy.layers.l2 import ARP, Ether

from dutperf.engine.client import Engine
from dutperf.protocol.base import Driver, IpVersion
from dutperf.protocol.port_messages import (
    AddressRange,
    NeighboursParams,
    PortNeighbours,
)
from dutperf.protocol.trial_messages import TrialProgress
from tools.calibrate.truth import Counts
from tools.calibrate.truth import by_result as counts

pytestmark = counting(LAB_GROUP)

LEFT_4, RIGHT_4 = ENDS[4]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with running_engine(tmp_path_factory.mktemp("neighbours")) as it:
        it.open_ports(ring_ports())
        yield it


def resolve(
    engine: Engine, *targets: str, first: str = RIGHT_4, count: int = 1
) -> list[str | None]:
    """The MACs of ``targets``; the right has ``count`` addresses from ``first``."""
    own = [AddressRange(first=end) for end, _ in ENDS.values()]
    ports = [
        PortNeighbours(port="left", own=own, resolve=list(targets)),
        PortNeighbours(
            port="right", own=[AddressRange(first=first, count=count)], resolve=[]
        ),
    ]
    params = NeighboursParams(ports=ports, timeout_ns=250 * MS)
    return [n.mac for n in engine.set_neighbours(params).neighbours]


def test_each_side_resolves_the_other(engine: Engine) -> None:
    found = engine.set_neighbours(crossed_neighbours()).neighbours
    by_left = {("left", right): MACS["right"] for _, right in ENDS.values()}
    by_right = {("right", left): MACS["left"] for left, _ in ENDS.values()}
    assert {(n.port, n.ip): n.mac for n in found} == by_left | by_right


@pytest.mark.parametrize(
    ("first", "last", "beyond"),
    [
        ("198.19.0.2", "198.19.0.9", "198.19.0.10"),
        ("198.19.0.250", "198.19.1.1", "198.19.1.2"),
        ("2001:2:0:8000::fffe", "2001:2:0:8000::1:5", "2001:2:0:8000::1:6"),
    ],
)
def test_a_port_answers_for_exactly_its_addresses(
    engine: Engine, first: str, last: str, beyond: str
) -> None:
    found = resolve(engine, first, last, beyond, first=first, count=8)
    assert found == [MACS["right"], MACS["right"], None]


def test_earlier_settings_are_forgotten(engine: Engine) -> None:
    assert resolve(engine, RIGHT_4) == [MACS["right"]]
    assert resolve(engine, RIGHT_4, first="198.19.0.77") == [None]


@pytest.mark.parametrize("ip", [4, 6])
def test_an_unresolved_next_hop_makes_the_trial_invalid_and_nothing_is_sent(
    engine: Engine, ip: IpVersion
) -> None:
    missing = ENDS[ip][1]
    assert resolve(engine, missing, first="198.19.0.77") == [None]
    result = engine.measure(Trial(ip=ip).request())
    assert (result.verdict.kind, codes(result)) == ("invalid", {"neighbour_missing"})
    assert missing in result.verdict.reasons[0].message
    assert counts(result) == dict.fromkeys(BOTH, Counts(0, 0))
    assert all(p.before.tx_frames == p.after.tx_frames for p in result.ports)


def test_a_trial_after_the_next_hop_has_come_back_passes(engine: Engine) -> None:
    resolve(engine, RIGHT_4, first="198.19.0.77")
    assert engine.measure(Trial().request()).verdict.kind == "invalid"
    engine.set_neighbours(crossed_neighbours())
    assert engine.measure(Trial().request()).verdict.kind == "pass"


def test_a_next_hop_without_an_own_address_to_ask_from_is_unresolved(
    engine: Engine,
) -> None:
    ports = [PortNeighbours(port="left", own=[], resolve=[RIGHT_4])]
    params = NeighboursParams(ports=ports, timeout_ns=50 * MS)
    assert [n.mac for n in engine.set_neighbours(params).neighbours] == [None]


@pytest.fixture(scope="module")
def lab_up() -> Iterator[None]:
    with kept_lab():
        yield


@pytest.mark.lab
@pytest.mark.tolerant
@pytest.mark.usefixtures("lab_up")
@pytest.mark.parametrize("ip", [4, 6])
@pytest.mark.parametrize("driver", DRIVERS)
def test_the_device_is_answered_also_while_frames_are_sent(
    tmp_path: Path, driver: Driver, ip: IpVersion
) -> None:
    forgotten: list[str] = []

    def forget(_progress: TrialProgress) -> None:
        forgotten.append(inside("dut", "ip", "neigh", "flush", "all"))

    with lab_engine(tmp_path, driver) as engine:
        trial = Trial(ip=ip, fps=1000, ms=4000, hops=GATEWAYS)
        result = engine.measure(trial.request(), forget)
    assert forgotten
    assert all(port.neighbour_requests > 0 for port in result.ports)
    # The device queues what it cannot deliver yet: hardly anything is lost.
    assert all(c.lost < 100 for c in counts(result).values())


STRANGER = "02:00:00:00:00:99"
SAY = (
    "import socket, sys\n"
    "said = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\n"
    "said.bind((sys.argv[1], 0))\n"
    "said.send(bytes.fromhex(sys.argv[2]))\n"
)


def claim_of(ip: IpVersion, address: str) -> str:
    """A stranger's unasked ARP reply or neighbour advertisement, in hex."""
    everybody = "ff:ff:ff:ff:ff:ff" if ip == 4 else "33:33:00:00:00:01"
    frame = Ether(src=STRANGER, dst=everybody)
    if ip == 4:
        frame /= ARP(op=2, hwsrc=STRANGER, psrc=address, hwdst=everybody, pdst=address)
    else:
        frame /= IPv6(src=address, dst="ff02::1", hlim=255)
        frame /= ICMPv6ND_NA(tgt=address, R=1, S=0, O=1)
        frame /= ICMPv6NDOptDstLLAddr(lladdr=STRANGER)
    return bytes(frame).hex()


@pytest.mark.lab
@pytest.mark.tolerant
@pytest.mark.usefixtures("lab_up")
@pytest.mark.parametrize("whose", ["the device's", "the tester's"])
@pytest.mark.parametrize("ip", [4, 6])
def test_a_trial_in_which_somebody_else_has_an_address_is_not_judged(
    tmp_path: Path, ip: IpVersion, whose: str
) -> None:
    gateway = GATEWAYS[ip][0]
    claimed = gateway if whose == "the device's" else ENDS[ip][0]
    done: list[str] = []

    def claim(_progress: TrialProgress) -> None:
        if not done:
            shown = inside("dut", "ip", "-o", "addr", "show", "to", gateway)
            words = (shown.split()[1], claim_of(ip, claimed))
            done.append(inside("dut", sys.executable, "-c", SAY, *words))

    with lab_engine(tmp_path, "af_xdp") as engine:
        trial = Trial(ip=ip, fps=1000, ms=4000, hops=GATEWAYS)
        spoilt = measured_once(engine, trial.request(), claim)
        again = engine.measure(Trial(ip=ip, fps=1000, hops=GATEWAYS).request())
    assert done
    assert "neighbour_changed" in codes(spoilt)
    assert [port.neighbour_conflicts > 0 for port in spoilt.ports] == [True, False]
    assert "neighbour_changed" not in codes(again)


def claimed(ip: IpVersion, address: str) -> None:
    """A stranger says on the left that it has ``address``."""
    inside("dut", sys.executable, "-c", SAY, "left", claim_of(ip, address))


@pytest.mark.lab
@pytest.mark.tolerant
@pytest.mark.usefixtures("lab_up")
@pytest.mark.parametrize("ip", [4, 6])
def test_a_claim_before_the_first_frame_leads_none_of_them_astray(
    tmp_path: Path, ip: IpVersion
) -> None:
    """It comes while the trial waits for the device to settle."""
    settling = {"settle_ns": 2000 * MS}
    trial = Trial(ip=ip, fps=1000, ms=100, hops=GATEWAYS, extra=settling)
    with lab_engine(tmp_path, "af_packet") as engine:
        claiming = threading.Timer(0.7, claimed, (ip, GATEWAYS[ip][0]))
        claiming.start()
        spoilt = measured_once(engine, trial.request())
        claiming.join()
    assert (spoilt.verdict.kind, codes(spoilt)) == ("invalid", {"neighbour_changed"})
    assert [port.neighbour_conflicts > 0 for port in spoilt.ports] == [True, False]
    assert all(c.received == c.sent == 100 for c in counts(spoilt).values())
