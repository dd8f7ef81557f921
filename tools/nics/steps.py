"""What is tried on each NIC, in the order of docs/real-nics.md and docs/hardware.md."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dutperf.errors import SetupError
from tools.nics.machine import CABLE, LARGE_MTU, ROUTED
from tools.nics.tester import MAX_FPS, Seen, Tester

_LOOK = f"--ip 4 --quick --frame-size 128 --max-rate {MAX_FPS}"
_LATENCY = f"--ip 4 --quick --frame-size 128 --rate {MAX_FPS // 2}"
_LOSS = f"--ip 4 --quick --frame-size 128 --load 50 --max-rate {MAX_FPS}"
_SELFTEST_FPS = 50_000
"""It opens 100,000 connections in each of some trials."""
_SENDING_FRAMES = 300
"""So many more at the router, and a trial goes on."""


@dataclass(frozen=True)
class Step:
    """One of them.

    Attributes:
        expected: its outcome.
        but: of the models of which another is expected.
        always: others need it.
    """

    name: str
    run: Callable[[Tester], Seen]
    expected: str = "measured"
    but: Mapping[str, str] = field(default_factory=dict)
    always: bool = False

    def expected_of(self, model: str) -> str:
        """The outcome on that one."""
        return self.but.get(model, self.expected)


def _down(tester: Tester) -> Seen:
    return tester.dutperf(
        f"throughput {_LOOK}", tester.testbed(driver="af_packet")
    ).seen


def _up(tester: Tester) -> Seen:
    for name in ROUTED:
        tester.sh(f"ip link set {tester.nics[name].interface} up")
    return Seen("up")


def _af_packet(tester: Tester) -> Seen:
    return tester.counted(f"throughput {_LOOK}", tester.testbed(driver="af_packet"))


def _af_xdp(tester: Tester) -> Seen:
    return tester.dutperf(f"throughput {_LOOK}", tester.testbed(driver="af_xdp")).seen


def _af_xdp_one_queue(tester: Tester) -> Seen:
    for name in ROUTED:
        interface = tester.nics[name].interface
        tester.machine.run(f"ethtool -L {interface} combined 1")
    return tester.counted(f"throughput {_LOOK}", tester.testbed(driver="af_xdp"))


def _of_kernel(tester: Tester) -> Seen:
    tester.sh("echo 512 >/proc/sys/vm/nr_hugepages")
    return tester.dutperf(f"throughput {_LOOK}", tester.testbed()).seen


def _bind(tester: Tester) -> Seen:
    tester.sh("echo 512 >/proc/sys/vm/nr_hugepages")
    tester.bind("vfio-pci")
    status = tester.sh("dpdk-devbind.py --status-dev net")
    bound = sum("drv=vfio-pci" in line for line in status.splitlines())
    return Seen("bound" if bound == len(tester.nics) else "not bound", f"{bound} NICs")


def _bound_to_nothing(tester: Tester) -> Seen:
    nic = tester.nics[ROUTED[1]].pci
    tester.sh(f"dpdk-devbind.py --unbind {nic}")
    try:
        return tester.dutperf(f"throughput {_LOOK}", tester.testbed()).seen
    finally:
        tester.sh(f"dpdk-devbind.py --bind=vfio-pci {nic}")


def _no_huge_pages(tester: Tester) -> Seen:
    tester.sh("echo 0 >/proc/sys/vm/nr_hugepages")
    try:
        return tester.dutperf(f"throughput {_LOOK}", tester.testbed()).seen
    finally:
        tester.sh("echo 512 >/proc/sys/vm/nr_hugepages")


def _used_by_another(tester: Tester) -> Seen:
    place = _long_trial(tester, 60)  # the second takes 20 s to begin
    second = tester.dutperf(f"throughput {_LOOK}", tester.testbed())
    first = tester.finish(place)
    return Seen(
        f"second {second.outcome}, first {first.outcome}",
        f"{second.message}; first: {first.message}",
    )


def _doctor(tester: Tester) -> Seen:
    ran = tester.dutperf("doctor --json", tester.testbed())
    checks = [
        check
        for check in json.loads(ran.out)["checks"]
        if not check["name"].startswith("preemptions")  # the host has other work
    ]
    bad = [f"{c['name']}: {c['found']}" for c in checks if c["verdict"] == "bad"]
    doubtful = [c["name"] for c in checks if c["verdict"] == "doubtful"]
    told = "; ".join(bad) or "doubtful: " + ", ".join(doubtful)
    return Seen("bad" if bad else "nothing bad", told)


def _selftest(tester: Tester) -> Seen:
    testbed = tester.testbed(CABLE) | {"max_rate_fps": _SELFTEST_FPS}
    ran = tester.dutperf("selftest --cabled --quick", testbed)
    safe = [line for line in ran.err.splitlines() if ": safe at " in line]
    return Seen(ran.outcome, f"{len(safe)} kinds of frames; {ran.message}")


def _cable(tester: Tester) -> Seen:
    return tester.counted(f"throughput {_LOOK}", tester.cabled(), CABLE)


def _throughput(tester: Tester) -> Seen:
    return tester.counted(f"throughput {_LOOK}", tester.testbed())


def _shares(number: int) -> Callable[[Tester], Seen]:
    """Each with a queue of either NIC."""

    def run(tester: Tester) -> Seen:
        shared = tester.testbed() | {"shares": number}
        return tester.counted(f"frame-loss {_LOSS}", shared)

    return run


def _frame_loss(tester: Tester) -> Seen:
    return tester.counted(f"frame-loss {_LOSS}", tester.testbed())


def _latency(tester: Tester) -> Seen:
    return tester.counted(f"latency {_LATENCY}", tester.testbed())


def _jumbo(tester: Tester) -> Seen:
    words = f"frame-loss --ip 4 --quick --frame-size {LARGE_MTU + 18} --load 10"
    return tester.counted(words, tester.testbed(ports={"mtu": LARGE_MTU}))


def _vlan(tester: Tester) -> Seen:
    testbed = tester.cabled(vlan=10)
    return tester.counted(f"frame-loss {_LOSS}", testbed, CABLE)


_NAT = (
    "nft 'add table ip nat; add chain ip nat out { type nat hook postrouting priority "
    "srcnat; }; add rule ip nat out oifname right masquerade'"
)


def _stateful(tester: Tester) -> Seen:
    tester.machine.in_router(_NAT)
    try:
        words = (
            "throughput --ip 4 --stateful --quick --connections 1000 --phase1-rate 500"
        )
        # A trial that is invalid, as the host has other work, is repeated then.
        rate = f"--max-rate {MAX_FPS} --frame-size 128 --table-size 100000"
        return tester.dutperf(f"{words} {rate}", tester.testbed()).seen
    finally:
        tester.machine.in_router("nft delete table ip nat")


def _long_trial(tester: Tester, seconds: int = 15) -> str:
    """Starts one, and waits until it sends."""
    place = tester.start(
        f"frame-loss {_LOSS} --trial-duration {seconds}",
        tester.testbed(),
    )
    before = tester.router_frames()
    for _ in range(120):
        if tester.router_frames() > before + _SENDING_FRAMES:
            return place
        time.sleep(0.5)
    raise SetupError("no frame came to the router within 60 s")


def _pulled(tester: Tester) -> Seen:
    place = _long_trial(tester)
    tester.machine.ask_qemu("set_link", name="right", up=False)
    time.sleep(1)
    tester.machine.ask_qemu("set_link", name="right", up=True)
    ran = tester.finish(place)
    kinds = [
        trial["verdict"]["kind"]
        for trial in ran.trials
        if any(each["code"] == "link_changed" for each in trial["verdict"]["reasons"])
    ]
    return Seen(", ".join(kinds) or "not noticed", ran.message)


_FLOOD = (
    "import socket; s = socket.socket(type=socket.SOCK_DGRAM); "
    "[s.sendto(bytes(100), ('198.19.1.2', 9)) for _ in range(20000)]"
)


def _no_room(tester: Tester) -> Seen:
    """More frames than the NIC has buffers for, while nobody takes them."""
    place = _long_trial(tester)
    tester.sh("kill -STOP $(pidof dutperf-engine)")
    tester.machine.in_router(f'python3 -c "{_FLOOD}"')
    tester.sh("kill -CONT $(pidof dutperf-engine)")
    ran = tester.finish(place)
    missed = max(
        port["after"]["rx_missed"] - port["before"]["rx_missed"]
        for trial in ran.trials
        for port in trial["ports"]
    )
    kinds = [trial["verdict"]["kind"] for trial in ran.trials]
    told = f"{missed} rx_missed; {ran.message}"
    return Seen("invalid" if "invalid" in kinds else ", ".join(kinds), told)


def _killed(tester: Tester) -> Seen:
    place = _long_trial(tester)
    tester.sh("kill -9 $(pidof dutperf-engine)")
    ended = tester.finish(place)
    again = tester.dutperf(f"frame-loss {_LOSS}", tester.testbed())
    told = f"{ended.outcome}: {ended.message}; again: {again.message}"
    return Seen(f"then {again.outcome}", told)


_OPEN_AGAIN = """
import sys
from pathlib import Path
from dutperf.config.loader import load_testbed
from dutperf.run.engine_session import open_ports, prepare_engine
testbed = load_testbed(Path(sys.argv[1]))
with prepare_engine(testbed, print)(Path(sys.argv[1] + ".log")) as engine:
    for _ in range(3):
        print(*(port.driver for port in open_ports(engine, testbed, print).ports))
"""


def _opened_again(tester: Tester) -> Seen:
    place = tester.write("again", json.dumps(tester.testbed()))
    program = tester.write("again.py", _OPEN_AGAIN)
    done = tester.machine.run(f"/usr/lib/dutperf/bin/python3 -I {program} {place}")
    said = (done.err + done.out).strip().splitlines()
    return Seen("opened" if done.code == 0 else "refused", said[-1] if said else "")


def _flow_control(tester: Tester) -> Seen:
    for name in ROUTED:
        interface = tester.nics[name].interface
        tester.machine.run(f"ethtool -A {interface} autoneg on rx on tx on")
    return _with_flow_control(tester, tester.testbed(driver="af_packet"))


def _flow_control_of_nics(tester: Tester) -> Seen:
    return _with_flow_control(tester, tester.testbed())


def _with_flow_control(tester: Tester, testbed: Mapping[str, object]) -> Seen:
    place = tester.start(f"frame-loss {_LOSS}", testbed)
    ran = tester.finish(place)
    if ran.code:
        return ran.seen
    environment = json.loads(tester.read(f"{place}/environment.json"))
    [told] = {port["flow_control"] for port in environment["ports"]}
    return Seen(told, ran.message)


_NO_FLOW_CONTROL = {"vmxnet3": "unknown", "virtio-net-pci": "unknown"}
STEPS = (
    Step("kernel driver, interfaces down", _down, "refused"),
    Step("interfaces up", _up, "up", always=True),
    Step("kernel driver by AF_PACKET", _af_packet),
    # Each but e1000e spreads what it receives to several queues.
    Step("kernel driver by AF_XDP, as it is", _af_xdp, "refused"),
    # The driver e1000e has no XDP, and vmxnet3 keeps its queues.
    Step(
        "kernel driver by AF_XDP, one queue",
        _af_xdp_one_queue,
        but={"e1000e": "refused", "vmxnet3": "refused"},
    ),
    Step("flow control on, kernel driver", _flow_control, "off", _NO_FLOW_CONTROL),
    Step("NICs of the kernel, by PCI", _of_kernel, "refused"),
    Step("binding to vfio-pci", _bind, "bound", always=True),
    Step("NIC bound to nothing", _bound_to_nothing, "refused"),
    Step("no huge pages", _no_huge_pages, "refused"),
    Step("doctor", _doctor, "nothing bad"),
    Step("selftest --cabled --quick", _selftest),
    Step("throughput on the cable", _cable),
    Step("throughput", _throughput),
    Step("shares: two", _shares(2), but={"e1000e": "refused"}),
    # Of QEMU's virtio the lab has two queues.
    Step(
        "shares: four",
        _shares(4),
        but={"e1000e": "refused", "virtio-net-pci": "refused"},
    ),
    Step(
        "shares: eight",
        _shares(8),
        but={"e1000e": "refused", "virtio-net-pci": "refused"},
    ),
    Step("flow control, vfio-pci", _flow_control_of_nics, "off", _NO_FLOW_CONTROL),
    Step("frame loss", _frame_loss),
    Step("latency", _latency),
    Step("jumbo frames", _jumbo, but={"e1000e": "refused"}),
    Step("VLAN tags, on the cable", _vlan),
    Step("stateful, by NAT", _stateful),
    Step("cable pulled in mid-trial", _pulled, "invalid"),
    Step("no room in the NIC, while the engine stands", _no_room, "invalid"),
    Step("NICs of another process", _used_by_another, "second refused, first measured"),
    Step("ports opened again by one engine", _opened_again, "opened"),
    Step("engine killed, and started again", _killed, "then measured"),
)
