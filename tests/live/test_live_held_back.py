"""Who stands still, and who loses: a device that is slower than what it is offered.

An Ethernet link does not wait: what a device has no room for is the device's loss, and
the tester goes on. Where something waits all the same, a tester that cannot go on must
say that it was held back, and not that it was too slow; and a device's loss must never
be hidden by a queue that the tester's buffers cannot fill.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from livetools import (
    DRIVERS,
    GATEWAYS,
    MS,
    RefDut,
    Trial,
    codes,
    crossed_neighbours,
    engines_of,
    inside,
    kept_lab,
    lab_engine,
    needs_engine,
    ref_dut,
    running_engine,
)

from dutperf.lab import machine, netns
from dutperf.protocol.base import Driver, WhenFull
from dutperf.protocol.result_messages import DirectionResult, PortReport, TrialResult
from dutperf.protocol.trial_messages import TrialProgress

pytestmark = needs_engine

SERVED_FPS = 50_000
QUEUE = 50
OFFERED = Trial(fps=2 * SERVED_FPS, ms=600, extra={"residual_wait_ns": 300 * MS})
"""The known-answer device's ring of 4,096 frames is full after some 80 ms."""
STRICT = {"lag_limit_ns": 10 * MS}
RULES = 5000
"""So slow a router forwards less than half of what the tester offers."""
ROUTED = Trial(
    fps=150_000,
    ms=1000,
    directions=["forward"],
    hops=GATEWAYS,
    extra={"residual_wait_ns": 500 * MS},
)

HANGING = "tc qdisc add dev left root tbf rate 8bit burst 2000 limit 1000000000"
"""The tester's interface sends nothing for minutes, and drops nothing."""


def slow(*, withhold: bool) -> dict[str, Any]:
    service = {"rate_fps": SERVED_FPS, "queue_frames": QUEUE, "withhold": withhold}
    return {"forward": {"service": service}}


def forward(result: TrialResult) -> DirectionResult:
    return next(d for d in result.directions if d.name == "forward")


@pytest.fixture(scope="module")
def device() -> Iterator[RefDut]:
    with (
        tempfile.TemporaryDirectory(prefix="dutperf") as short,
        ref_dut(Path(short)) as device,
    ):
        yield device


def measured(
    device: RefDut, path: Path, when_full: WhenFull, *, withhold: bool
) -> TrialResult:
    device.client.configure(slow(withhold=withhold))
    ports = [p.model_copy(update={"when_full": when_full}) for p in device.ports()]
    with running_engine(path) as engine:
        engine.open_ports(ports)
        engine.set_neighbours(crossed_neighbours())
        extra = OFFERED.extra | (STRICT if when_full == "wait" else {})
        return engine.measure(replace(OFFERED, extra=extra).request())


def test_a_full_ring_is_the_devices_loss(device: RefDut, tmp_path: Path) -> None:
    result = measured(device, tmp_path, "lose", withhold=True)
    direction, account = forward(result), device.account().forward.foreground
    (stream,) = direction.streams
    assert stream.sent == stream.intended
    assert stream.lost > stream.lost_in_shadow
    assert stream.lost == direction.ring_full  # the device itself loses nothing
    assert account.seen == stream.sent - direction.ring_full
    assert "frames_lost" in codes(result)


def test_a_device_that_drops_by_itself_has_no_full_ring(
    device: RefDut, tmp_path: Path
) -> None:
    result = measured(device, tmp_path, "lose", withhold=False)
    direction = forward(result)
    (stream,) = direction.streams
    account = device.account().forward.foreground
    assert stream.lost == account.dropped_by_queue + direction.ring_full
    assert account.dropped_by_queue > 0


def test_where_the_port_waits_the_tester_is_held_back(
    device: RefDut, tmp_path: Path
) -> None:
    result = measured(device, tmp_path, "wait", withhold=True)
    assert "held_back" in codes(result)
    assert "sender_behind" not in codes(result)
    assert forward(result).ring_full == 0


@pytest.fixture
def slow_router() -> Iterator[None]:
    """The lab's router with a long list of rules that match nothing."""
    rules = "\n".join(
        f"add rule ip slow f ip saddr 198.18.{100 + n // 250}.{n % 250} drop"
        for n in range(RULES)
    )
    chain = "add chain ip slow f { type filter hook forward priority 0; }"
    with kept_lab():
        text = f"add table ip slow\n{chain}\n{rules}\n"
        command = ["ip", "netns", "exec", netns.DUT, "nft", "-f", "-"]
        subprocess.run(command, input=text, text=True, check=True)
        yield


@contextlib.contextmanager
def queue_of(frames: int) -> Iterator[None]:
    """The machine's input queues hold so many."""
    before = machine.BACKLOG.read_text()
    machine.BACKLOG.write_text(str(frames))
    try:
        yield
    finally:
        machine.BACKLOG.write_text(before)


@pytest.mark.usefixtures("slow_router")
@pytest.mark.parametrize("driver", DRIVERS)
def test_a_slow_router_loses_frames_and_does_not_stop_the_tester(
    tmp_path: Path, driver: Driver
) -> None:
    # A packet socket's ring must hold all that is sent while one frame waits.
    queue = 500 if driver == "af_packet" else machine.QUEUE_FRAMES
    with queue_of(queue), lab_engine(tmp_path, driver) as engine:
        result = engine.measure(ROUTED.request())
    (stream,) = forward(result).streams
    assert stream.sent == stream.intended
    assert 0 < stream.received < stream.sent / 2, "the router is too fast for this test"
    assert codes(result) == {"frames_lost"}


def of(told: list[set[str]], code: str) -> int:
    """In how many trials."""
    return sum(code in codes for codes in told)


@pytest.mark.usefixtures("slow_router")
@pytest.mark.parametrize("driver", DRIVERS)
def test_a_queue_longer_than_the_testers_buffers_holds_it_back(
    tmp_path: Path, driver: Driver
) -> None:
    with queue_of(100_000), lab_engine(tmp_path, driver) as engine:
        # Patient enough that what others take of its CPU is not most of its lag.
        patient = ROUTED.extra | {"lag_limit_ns": 50 * MS}
        trial = replace(ROUTED, ms=3000, extra=patient)
        told: list[set[str]] = []
        # It must be held back in four of seven, and behind in three at most.
        while len(told) < 7 and not (
            of(told, "held_back") >= 4
            and of(told, "sender_behind") + 7 - len(told) <= 3
        ):
            told.append(codes(engine.measure(trial.request(1 + len(told)))))
    assert of(told, "held_back") >= 4, told
    assert of(told, "sender_behind") <= 3, told


def test_an_interface_that_takes_no_more_frames_does_not_stop_the_engine(
    tmp_path: Path,
) -> None:
    """AF_PACKET's driver waits for room inside of the send call: not for ever."""
    impatient = ROUTED.extra | {"lag_limit_ns": 50 * MS}
    trial = replace(ROUTED, size=1518, ms=300, extra=impatient)
    with kept_lab(), lab_engine(tmp_path, "af_packet") as engine:
        inside(netns.TESTER, *HANGING.split())
        result = engine.measure(trial.request())
        inside(netns.TESTER, "tc", "qdisc", "del", "dev", "left", "root")
        again = engine.measure(replace(ROUTED, fps=1000).request(2))
    assert codes(result) & {"held_back", "sender_behind"}
    assert forward(again).streams[0].received > 0


SMALL: dict[Driver, dict[str, int]] = {
    "af_packet": {"in_flight_frames": 64},
    "af_xdp": {"rx_descriptors": 64},
}
"""What makes a port's receive ring so short."""
SOCKET_COUNTERS = ("socket_full", "xdp_dropped", "xdp_ring_full")


def of_sockets(port: PortReport) -> int:
    """What the port's sockets had no room for in the trial."""
    before, after = port.before.kernel, port.after.kernel
    assert before is not None
    assert after is not None
    return sum(getattr(after, n) - getattr(before, n) for n in SOCKET_COUNTERS)


@pytest.mark.usefixtures("slow_router")
@pytest.mark.parametrize("driver", DRIVERS)
def test_what_the_testers_own_ring_drops_is_told_from_what_the_router_loses(
    tmp_path: Path, driver: Driver
) -> None:
    """The tester stands still while the router's full queue runs into its ring."""

    def stand_still(_progress: TrialProgress) -> None:
        (engine,) = engines_of(os.getpid())
        os.kill(engine, signal.SIGSTOP)
        time.sleep(0.2)
        os.kill(engine, signal.SIGCONT)

    trial = replace(ROUTED, ms=1500)
    with lab_engine(tmp_path, driver, SMALL[driver]) as engine:
        # Where others took the sender's CPU just before, the router's queue was empty.
        for attempt in range(5):
            result = engine.measure(trial.request(1 + attempt), stand_still)
            left, right = result.ports
            dropped = of_sockets(right)
            if dropped > 0:
                break
    assert dropped > 0
    assert right.after.rx_missed - right.before.rx_missed == dropped
    assert of_sockets(left) == 0
    (stream,) = forward(result).streams
    assert stream.lost > dropped
    told = f"of which the tester itself may have dropped {dropped}"
    assert any(told in reason.message for reason in result.verdict.reasons)
    # The input queues that overflowed are the router's.
    assert sum(queue.dropped for queue in result.input_queues) > 0
    assert result.input_queue_drops == 0
