"""Who stands still, and who loses: a device that is slower than what it is offered.

An Ethernet link does not wait: what a device has no room for is the device's loss, and
the tester goes on. Where something waits all the same, a tester that cannot go on must
say that it was held back, and not that it was too slow; and a device's loss must never
be hidden by a queue that the tester's buffers cannot fill.
"""

from __future__ import annotations

import subprocess
import tempfile
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
    kept_lab,
    lab_engine,
    needs_engine,
    ref_dut,
    running_engine,
)

from dutperf.engine.protocol import (
    DirectionResult,
    Driver,
    TrialResult,
    WhenFull,
)
from dutperf.lab import input_queue, topology

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
    assert direction.ring_full > direction.ring_full_catching_up
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
        command = ["ip", "netns", "exec", topology.DUT, "nft", "-f", "-"]
        subprocess.run(command, input=text, text=True, check=True)
        yield


@pytest.mark.usefixtures("slow_router")
def test_a_slow_router_loses_frames_and_does_not_stop_the_tester(
    tmp_path: Path,
) -> None:
    with lab_engine(tmp_path, "af_xdp") as engine:
        result = engine.measure(ROUTED.request())
    (stream,) = forward(result).streams
    assert stream.sent == stream.intended
    assert 0 < stream.received < stream.sent / 2, "the router is too fast for this test"
    assert codes(result) == {"frames_lost"}


@pytest.mark.usefixtures("slow_router")
@pytest.mark.parametrize("driver", DRIVERS)
def test_a_queue_longer_than_the_testers_buffers_holds_it_back(
    tmp_path: Path, driver: Driver
) -> None:
    before = input_queue.BACKLOG.read_text()
    input_queue.BACKLOG.write_text("100000")
    try:
        with lab_engine(tmp_path, driver) as engine:
            trial = replace(ROUTED, ms=3000, extra=ROUTED.extra | STRICT)
            result = engine.measure(trial.request())
    finally:
        input_queue.BACKLOG.write_text(before)
    assert "held_back" in codes(result)
    assert "sender_behind" not in codes(result)
