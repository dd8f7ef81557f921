"""Every procedure on a simulated device or gateway, as small as it can be.

For tests that hold of all of them: a journal that was cut, results derived again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gateways import (
    NAT44,
    ClearedEngine,
    Lie,
    LoggedEngine,
    SimulatedHooks,
    conntrack,
    logging_to,
    nat44,
)
from meters import METERED, SimulatedMeter, TimedEngine
from planning import TESTBED, Recording, cell

from dutperf.config import Testbed
from dutperf.model.cell import Cell
from dutperf.procedures.max_rate import MaxRate
from dutperf.results import CellResult, TrialRecord
from dutperf.run.local_executor import measure_cell
from dutperf.run.openings import Openings
from dutperf.simulation.fake_engine import (
    Arrivals,
    FakeEngine,
    SimulatedNat,
    absent,
    queueing,
    step,
)

MAX = MaxRate(20_000, "set")
R = 5001
"""No rate that a search tries."""
QUICK = {"trial_duration_s": 0.2, "settle_wait_s": 0.01, "residual_wait_s": 0.1}
COUNTING = ("bulk_delete", "table_count")


@dataclass(frozen=True)
class Case:
    """How a cell is measured, by an engine and on a gateway that are new each time."""

    keys: dict[str, object]
    nat: Callable[[], SimulatedNat] | None = None
    hooks: tuple[str, ...] = ()
    dut: Callable[[float, int], int] = lambda _rate_fps, frames: frames
    arrivals: Arrivals | None = None
    meter: SimulatedMeter | None = None
    remembers: bool = False
    """What earlier tests opened, where no hook empties the table."""
    lies: Mapping[int, Lie] | None = None
    """What the gateway logs of these connections, if it has a log."""

    def run(self, stored: Sequence[TrialRecord] = ()) -> tuple[CellResult, Recording]:
        """Measure it, answered by what is ``stored`` as far as that goes."""
        recording = self._recording(stored)
        asked = self.cell
        given = asked.spec.given_rate_fps
        limit = MAX if given is None else MaxRate(given, "load")
        return measure_cell(recording.runner, asked, limit), recording

    @property
    def cell(self) -> Cell:
        """What is measured."""
        return cell(self._testbed, **self.keys)

    @property
    def _testbed(self) -> Testbed:
        if not self.nat:
            return METERED if self.meter else TESTBED
        if self.lies is not None:
            return logging_to(_log_file())
        return nat44(*self.hooks) if self.hooks else NAT44

    def _recording(self, stored: Sequence[TrialRecord]) -> Recording:
        if self.meter:
            timed = TimedEngine(self.dut)
            return Recording(timed, testbed=METERED, stored=stored, meter=self.meter)
        if not self.nat:
            engine = FakeEngine(self.dut, arrivals=self.arrivals)
            return Recording(engine, stored=stored)
        nat = self.nat()
        if self.lies is not None:
            logged = LoggedEngine(nat, _log_file(), self.lies)
            return Recording(logged, testbed=self._testbed, stored=stored)
        if self.remembers:
            return Recording(
                FakeEngine(self.dut, nat=nat),
                testbed=NAT44,
                sleep=lambda seconds: nat.wait(int(seconds * 1e9)),
                stored=stored,
                openings=Openings(now=lambda: nat.now_ns / 1e9),
            )
        if not self.hooks:
            cleared = ClearedEngine(nat, dut=self.dut, arrivals=self.arrivals)
            return Recording(cleared, testbed=NAT44, stored=stored)
        return Recording(
            FakeEngine(self.dut, nat=nat),
            testbed=self._testbed,
            hooks=SimulatedHooks(nat),
            sleep=lambda seconds: nat.wait(int(seconds * 1e9)),
            clock=lambda: nat.now_ns / 1e9,
            stored=stored,
        )


@cache
def _log_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="dutperf-log-")


def _log_file() -> Path:
    """One for all cases of this process: a trial reads what it is longer by."""
    file = Path(_log_folder().name) / "nat.log"
    file.touch()
    return file


def slow_in_phase2(rate_fps: float, frames: int) -> int:
    """3,000 frames a second; phase 1 and validations at R pass."""
    return frames if rate_fps == R else step(3000)(rate_fps, frames)


def opening(connections: int, **keys: object) -> dict[str, object]:
    return {"connections": connections, "timeout_ms": 50, **keys}


def _seven_of_each_host(new: int, alive: Collection[int]) -> bool:
    """Of the host's 32: 16 ports towards two of the responder's."""
    return sum(connection // 32 == new // 32 for connection in alive) >= 7


RATE = {"procedure": "connection-rate", "resolution": "5%", "repeats": 2}
USED = {
    "resolution": "5%",
    "repeats": 2,
    "stateful": opening(500, phase1_rate=2000),
}
WAITING = {
    "procedure": "idle-timeout",
    "hold_s": 10,
    "repeats": 2,
    "stateful": opening(500),
}
CASES = {
    "throughput": Case(
        {"procedure": "throughput", "resolution": "5%", "repeats": 2}, dut=step(9000)
    ),
    "mlrsearch": Case(
        {
            "procedure": "throughput",
            "search": "mlrsearch",
            "resolution": "2%",
            "goals": ["0", "1%:50%"],
        },
        dut=step(9000),
    ),
    "multicast": Case(
        {"procedure": "multicast-throughput", "resolution": "5%", "repeats": 2},
        dut=step(9000),
    ),
    "dns64": Case(
        {"procedure": "dns64", "resolution": "5%", "ip": [6], "aaaa_percent": 20},
        dut=step(9000),
    ),
    "dns64, cached": Case(
        {
            "procedure": "dns64",
            "resolution": "5%",
            "repeats": 2,
            "aaaa_percent": 20,
            "cached_percent": 40,
            "cached_names": 1000,
            "ip": [6],
        },
        dut=step(9000),
    ),
    "dns": Case(
        {
            "procedure": "dns",
            "resolution": "5%",
            "ip": [6],
            "cached_percent": 40,
            "cached_names": 1000,
        },
        dut=step(9000),
    ),
    "tcp": Case(
        {  # each of its connections is looked at
            "procedure": "tcp-connection-rate",
            "resolution": "5%",
            "repeats": 2,
            "trial_duration_s": 2,
        },
        dut=step(9000),
    ),
    "tcp-capacity": Case(
        {
            "procedure": "tcp-capacity",
            "resolution": "500",
            "stateful": opening(1000, first=100, error=100, alpha=1),
        },
        lambda: SimulatedNat(table_size=400),
        ("bulk_delete", "restart", "is_alive"),
    ),
    "tcp-half-open, no hook": Case(
        {
            "procedure": "tcp-half-open",
            "resolution": "500",
            "stateful": opening(1000, first=100, error=100, alpha=1, dut_timeout_s=9),
        },
        lambda: SimulatedNat(table_size=400, timeout_ns=9 * 10**9),
        remembers=True,
    ),
    "tcp-request-rate": Case(
        USED | {"procedure": "tcp-request-rate"}, SimulatedNat, dut=step(9000)
    ),
    "tcp-teardown-rate": Case(
        USED | {"procedure": "tcp-teardown-rate"}, SimulatedNat, dut=step(9000)
    ),
    "idle-timeout": Case(
        WAITING | {"state": "established"}, lambda: SimulatedNat(timeout_ns=3 * 10**9)
    ),
    "idle-timeout, no hook": Case(
        WAITING | {"stateful": opening(500, dut_timeout_s=3)},
        lambda: SimulatedNat(timeout_ns=3 * 10**9),
        remembers=True,
    ),
    "idle-timeout, longer": Case(
        WAITING | {"state": "half-open", "stateful": opening(500)},
        lambda: SimulatedNat(timeout_ns=30 * 10**9),
    ),
    "nat-behaviour": Case(
        {"procedure": "nat-behaviour", "stateful": {"source_ports": "10000-10007"}},
        SimulatedNat,
    ),
    "port-limit": Case(
        {
            "procedure": "port-limit",
            "stateful": {"source_ports": "10000-10015"},
            "traffic": {"addresses": {"left": {"hosts": 4}}},
        },
        lambda: SimulatedNat(refuses=_seven_of_each_host),
        hooks=("bulk_delete",),
    ),
    "nat-log": Case(
        {"procedure": "nat-log", "stateful": opening(300)}, SimulatedNat, lies={}
    ),
    "nat-log, not complete": Case(
        {"procedure": "nat-log", "stateful": opening(300)},
        # Its ports are the same when a run goes on.
        lambda: SimulatedNat(seen=lambda ends, _: ("198.19.0.1", *ends[1:])),
        lies={
            7: lambda _ends, _seen: [],
            9: lambda ends, seen: [conntrack(ends, seen)] * 2,
            11: lambda ends, seen: [conntrack(("10.9.9.9", *ends[1:]), seen)],
        },
    ),
    "frame-loss": Case({"procedure": "frame-loss", "repeats": 2}, dut=step(15_000)),
    "back-to-back": Case(
        {"procedure": "back-to-back", "repeats": 2, "throughput_fps": 1},
        dut=lambda _rate, frames: min(frames, 300),
    ),
    "system-recovery": Case(
        {
            "procedure": "system-recovery",
            "throughput_fps": 1000,
            "overload_duration_s": 1,
            "reduced_duration_s": 1,
            "repeats": 3,
        },
        arrivals=absent((500_000_000, 1_030_000_000)),
    ),
    "outage": Case(
        {
            "procedure": "outage",
            "rate_fps": 1000,
            "trial_duration_s": 2,
            "trigger_after_s": 1,
            "repeats": 3,
        },
        arrivals=absent((1_200_000_000, 1_500_000_000)),
    ),
    "power": Case(
        {
            "procedure": "power",
            "rate_fps": 1000,
            "trial_duration_s": 20,
            "load_percent": [10, 50, 100],
            "repeats": 2,
        },
        dut=step(800),
        meter=SimulatedMeter(noise_w=0.3, averaging_s=2, idle_s=20),
    ),
    "soak": Case(
        {
            "procedure": "soak",
            "rate_fps": 1000,
            "trial_duration_s": 1,
            "hours": 12 / 3600,
        },
        arrivals=absent((400_000_000, 450_000_000)),
    ),
    "latency": Case({"procedure": "latency", "rate_fps": 1000, "repeats": 3}),
    "pdv": Case({"procedure": "pdv", "rate_fps": 1000, "repeats": 3}),
    "ipdv": Case({"procedure": "ipdv", "rate_fps": 1000, "repeats": 3}),
    "connection-rate": Case(
        RATE | {"stateful": opening(500)},
        lambda: SimulatedNat(connection_rate_fps=6000),
    ),
    "connection-rate, validated": Case(
        RATE | {"stateful": opening(500, alpha=0.8)},
        lambda: SimulatedNat(connection_rate_fps=6000),
    ),
    "connection-rate, no hook": Case(
        RATE | {"stateful": opening(500, table_size=10**6)},
        lambda: SimulatedNat(connection_rate_fps=6000),
        remembers=True,
    ),
    "table-capacity, no hook": Case(
        {
            "procedure": "table-capacity",
            "resolution": "500",
            "stateful": opening(1000, first=100, error=100, alpha=1, dut_timeout_s=9),
        },
        lambda: SimulatedNat(table_size=400, timeout_ns=9 * 10**9),
        remembers=True,
    ),
    "connection-rate, nothing survives": Case(
        RATE | {"repeats": 1, "stateful": opening(500, alpha=1)},
        lambda: SimulatedNat(table_size=100, eviction="oldest"),
    ),
    "table-capacity": Case(
        {
            "procedure": "table-capacity",
            "resolution": "500",
            "stateful": opening(1000, first=100, error=100, alpha=1),
        },
        lambda: SimulatedNat(table_size=400),
        ("bulk_delete", "restart", "is_alive"),
    ),
    "teardown-rate": Case(
        {
            "procedure": "teardown-rate",
            "rate_fps": 10_000,
            "repeats": 3,
            "stateful": opening(500),
        },
        lambda: SimulatedNat(delete_rate_fps=5000, command_ns=1_000_000),
        COUNTING,
    ),
    "throughput, phase 2": Case(
        {
            "procedure": "throughput",
            "search": "classic",
            "resolution": "5%",
            "stateful": opening(500, phase1_rate=R),
            **QUICK,
        },
        SimulatedNat,
        dut=slow_in_phase2,
    ),
    "throughput, phase 2, no hook": Case(
        {
            "procedure": "throughput",
            "search": "classic",
            "resolution": "5%",
            "stateful": opening(500, phase1_rate=R, table_size=10**6),
            **QUICK,
        },
        SimulatedNat,
        dut=slow_in_phase2,
        remembers=True,
    ),
    "throughput of TCP, phase 2": Case(
        {
            "procedure": "throughput",
            "search": "classic",
            "resolution": "5%",
            "frame_size": 88,
            "stateful": opening(500, phase1_rate=R, transport="tcp"),
            **QUICK,
        },
        SimulatedNat,
        dut=slow_in_phase2,
    ),
    "frame-loss, phase 2": Case(
        {
            "procedure": "frame-loss",
            "load_percent": [100, 50, 10],
            "stateful": opening(500, phase1_rate=R),
            **QUICK,
        },
        SimulatedNat,
        dut=slow_in_phase2,
    ),
    "throughput in bursts, phase 2": Case(
        {
            "procedure": "throughput",
            "search": "classic",
            "resolution": "25%",
            "traffic": {"burst_frames": 16},
            "max_rate_fps": MAX.rate_fps,
            "stateful": opening(500, phase1_rate=R),
            **QUICK,
        },
        SimulatedNat,
        arrivals=queueing(20, 6000),
    ),
    "frame-loss of a load that changes, phase 2": Case(
        {
            "procedure": "frame-loss",
            "load_percent": [100, 50, 10],
            "traffic": {"load_shape": {"ramp_s": 0.1}},
            "stateful": opening(500, phase1_rate=R),
            **QUICK,
        },
        SimulatedNat,
        arrivals=queueing(20, 6000),
    ),
    "system-recovery, phase 2": Case(
        {
            "procedure": "system-recovery",
            "throughput_fps": 2000,
            "overload_duration_s": 0.2,
            "reduced_duration_s": 0.2,
            "repeats": 2,
            "stateful": opening(500, phase1_rate=R),
            "settle_wait_s": 0.01,
            "residual_wait_s": 0.1,
        },
        SimulatedNat,
        dut=lambda rate, n: n if rate == R else step(2000)(rate, n),
    ),
    "latency, phase 2": Case(
        {
            "procedure": "latency",
            "rate_fps": 1000,
            "repeats": 2,
            "stateful": opening(500, phase1_rate=R),
            **QUICK,
            "first_tag_s": 0.1,
            "tags": 10,
        },
        SimulatedNat,
    ),
}
