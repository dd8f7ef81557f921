"""A tester that is stopped now and then: no loss is charged to the wrong one.

The engine is stopped (SIGSTOP) in the middle of trials against the known-answer device.
What it sends to make up for that is a burst which the device's queue cannot hold; the
same queue loses nothing of an even load. A device that really loses frames fails all
the same.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from livetools import (
    MS,
    RefDut,
    Trial,
    codes,
    crossed_neighbours,
    engines_of,
    measured_once,
    needs_engine,
    ref_dut,
    ring_ports,
    running_engine,
)
from stopping import stop_worker, worker_works

from dutperf.engine.client import Engine
from dutperf.protocol.result_messages import TrialResult, VerdictKind

pytestmark = needs_engine

TRIALS = int(os.environ.get("DUTPERF_STALL_TRIALS", "5"))
"""Of each kind; more of them for a table of its own (docs/developing.md)."""
LOAD = Trial(
    fps=100_000,
    ms=300,
    extra={"residual_wait_ns": 100 * MS, "lag_limit_ns": 10 * MS, "settle_ns": MS},
)
SERVED = {"rate_fps": 200_000, "queue_frames": 150}
"""1.5 ms of the load: a stall of 2 ms is too long for it, and drained soon."""
EVENLY = [{"every": 500, "do": "drop"}]
STALLS_MS = [0, 2, 9, 30]
DEVICES: dict[str, dict[str, Any]] = {
    "sound": {"forward": {"service": SERVED}, "reverse": {"service": SERVED}},
    "losing": {"forward": {"service": SERVED, "rules": EVENLY}},
}
LATEST_NS = 50 * MS + 50_000 + 5_000
"""0.1 % of 50 ms, and a step of the send loop."""
RIGHT: dict[str, set[VerdictKind]] = {
    "sound": {"pass", "invalid"},
    "losing": {"fail", "invalid"},
}


@dataclass(frozen=True)
class Case:
    """A device, and for how long the tester is stopped in each trial."""

    device: str
    stall_ms: int


@pytest.fixture(scope="module", params=[1, 2], ids=["one share", "two shares"])
def shares(request: pytest.FixtureRequest) -> int:
    """A stall of one is in the way of all; what they burst with comes on top."""
    return int(request.param)


@pytest.fixture(scope="module")
def device(shares: int) -> Iterator[RefDut]:
    with (
        tempfile.TemporaryDirectory(prefix="dutperf") as short,
        ref_dut(Path(short), None, f"--queues={shares}") as device,
    ):
        yield device


@pytest.fixture(scope="module")
def engine(
    device: RefDut, shares: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    with running_engine(tmp_path_factory.mktemp("stalls")) as it:
        it.open_ports(device.ports(), shares)
        it.set_neighbours(crossed_neighbours())
        yield it


def stop_for(stall_ms: int, after_s: float) -> threading.Thread:
    """Stops the engine once, ``after_s`` from when its worker begins a trial.

    Not from the request: where the device's loop shares a CPU with the engine's control
    thread, the kernel may let some hundred milliseconds pass between the two.
    """
    (pid,) = engines_of(os.getpid())

    def stop() -> None:
        worker_works(pid)
        time.sleep(after_s)
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(stall_ms / 1000)
        finally:
            os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=stop)
    thread.start()
    return thread


def stalled_trial(engine: Engine, case: Case, number: int) -> TrialResult:
    """One that is stopped in its first half, a little later each time."""
    thread = (
        stop_for(case.stall_ms, 0.06 + 0.02 * (number % 5)) if case.stall_ms else None
    )
    try:
        return engine.measure(LOAD.request(1 + number % 60_000))
    finally:
        if thread:
            thread.join()


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("stall_ms", STALLS_MS)
def test_no_trial_is_judged_wrongly(
    device: RefDut, engine: Engine, name: str, stall_ms: int
) -> None:
    case = Case(name, stall_ms)
    verdicts: Counter[str] = Counter()
    met = 0  # stops that fell into the sending
    device.client.configure(DEVICES[name])
    for number in range(TRIALS):
        result = stalled_trial(engine, case, number)
        kind = result.verdict.kind
        right = RIGHT[name] | ({"fail"} if device_paused(device, result) else set())
        assert kind in right, result.verdict.reasons
        verdicts[kind if kind != "invalid" else ", ".join(sorted(codes(result)))] += 1
        met += longest_ns(result) > stall_ms * MS / 2
    sys.stdout.write(f"{name}, {stall_ms} ms: {dict(verdicts)}\n")  # the table
    # On a busy machine a stop may come too late, after the last frame.
    assert met >= max(1, TRIALS // 5) or stall_ms == 0
    if name == "losing":
        assert verdicts["fail"] > TRIALS / 2


def device_paused(device: RefDut, result: TrialResult) -> bool:
    """Whether others had its CPU for a good part of what its queue bridges."""
    directions = device.account(result.trial_id).directions.values()
    return max((d.poll_gap_ns.max or 0 for d in directions), default=0) > 0.5 * MS


def longest_ns(result: TrialResult) -> int:
    return max(
        (stall.max_lag_ns for d in result.directions for stall in d.stalls), default=0
    )


def test_a_burst_that_the_queue_cannot_hold_is_the_testers(
    device: RefDut, engine: Engine
) -> None:
    device.client.configure(DEVICES["sound"])
    for number in range(10):
        result = stalled_trial(engine, Case("sound", 30), number)
        if longest_ns(result) > 15 * MS and not device_paused(device, result):
            break
    else:
        pytest.skip("others had the device's CPU in each of ten trials")
    lost = sum(s.lost for d in result.directions for s in d.streams)
    shaded = sum(s.lost_in_shadow for d in result.directions for s in d.streams)
    assert lost > 0
    assert lost == shaded
    assert result.verdict.kind == "invalid"
    assert "sender_burst" in codes(result)
    (shadow, *_) = result.directions[0].shadows
    assert shadow.end_ns is not None
    assert shadow.end_ns - shadow.begin_ns < 200 * MS


def test_a_worker_that_stops_for_100_ms_spoils_its_trial_only(
    device: RefDut, engine: Engine
) -> None:
    device.client.configure(DEVICES["sound"])
    for number in range(1, 11):
        stopping = stop_worker(after_s=0.1, for_s=0.1)
        stopped = engine.measure(LOAD.request(number))
        stopping.join()
        if not device_paused(device, stopped):
            break
    else:
        pytest.skip("others had the device's CPU in each of ten trials")
    assert stopped.verdict.kind == "invalid"
    assert codes(stopped) & {"sender_lag", "sender_behind", "sender_burst"}
    assert longest_ns(stopped) > 90 * MS
    after = [engine.measure(LOAD.request(number)) for number in range(11, 14)]
    assert all(longest_ns(result) < 90 * MS for result in after)
    sent = [s for r in after for d in r.directions for s in d.streams]
    assert all(stream.sent == stream.intended for stream in sent)


def test_a_load_that_was_sent_too_slowly_is_not_offered(
    device: RefDut, engine: Engine
) -> None:
    """10,000 frames a second for 50 ms, stopped at the end: that once passed."""
    device.client.configure({"forward": {}, "reverse": {}})
    slow = Trial(fps=10_000, ms=50, extra=LOAD.extra)
    for number in range(20):
        thread = stop_for(30, 0.04)
        result = engine.measure(slow.request(1 + number))
        thread.join()
        sent_late = any(d.sending_ns > LATEST_NS for d in result.directions)
        assert (result.verdict.kind == "pass") != sent_late
        if sent_late:
            assert codes(result) <= {"sender_lag", "sender_behind"}
            return
    pytest.fail("no stop met the end of a trial")


@pytest.mark.parametrize("rings", ["", "crossed"])
def test_a_share_that_stands_still_is_no_loss_of_the_device(
    tmp_path: Path, rings: str
) -> None:
    """Of a perfect wire: steered, or each frame by the other share's queue."""
    met = 0
    trial = Trial(fps=200_000, ms=600, extra={"lag_limit_ns": 10 * MS})
    ports = [port.model_copy(update={"device": rings}) for port in ring_ports()]
    with running_engine(tmp_path, workers=2) as engine:
        engine.open_ports(ports, 2)
        engine.set_neighbours(crossed_neighbours())
        for number in range(1, 21):
            stopping = stop_worker(after_s=0.1, for_s=0.2)
            result = measured_once(engine, trial.request(number))
            stopping.join()
            if longest_ns(result) < 200 * MS:
                continue  # on a busy machine a stop may come after the last frame
            assert result.verdict.kind == "invalid", result.verdict.reasons
            for stream in (s for d in result.directions for s in d.streams):
                assert stream.lost == stream.lost_in_shadow
            for direction in result.directions:
                stopped, other = (s.max_lag_ns for s in direction.by_share)
                assert stopped > 200 * MS
                assert other < 100 * MS
            for reason in result.verdict.reasons:
                if reason.code in {"sender_lag", "sender_behind"}:
                    assert "share 1 of 2 was the slowest" in reason.message
            met += 1
            if met == 3:
                return
    assert met
