"""What tests of stateful procedures share: a testbed, and a gateway with its hooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from planning import TESTBED

from dutperf.config import Testbed
from dutperf.config.testbed import Hook
from dutperf.engine.client import ProgressCallback, ignore_progress
from dutperf.protocol.result_messages import ReasonCode, TrialResult
from dutperf.protocol.stream_parts import LearnedTuple
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import HookRun
from dutperf.results.trial_record import HookMoment
from dutperf.simulation.fake_engine import (
    Arrivals,
    Delays,
    Dut,
    FakeEngine,
    SimulatedNat,
    fixed,
    perfect,
)
from dutperf.simulation.simulated_gateway import SimulatedTable, TupleTraffic

NAT44 = Testbed.model_validate(
    TESTBED.model_dump(exclude_none=True)
    | {
        "left": {
            "port": {"interface": "left"},
            "ipv4": {
                "address": "10.0.0.2",
                "gateway": "10.0.0.1",
                "virtual": "198.19.0.1",
            },
        }
    }
)


def nat44(*hooks: str) -> Testbed:
    """``NAT44`` with these hooks, whose commands are their own names."""
    commands = {name: {"command": [name]} for name in hooks}
    data = NAT44.model_dump(exclude_none=True)
    return Testbed.model_validate(data | {"hooks": commands})


Loses = Callable[[int, float], bool]
"""(its number, milliseconds since the first frame) -> whether a frame of it is lost."""


class Interrupted(SimulatedNat):
    """Loses in phase 2 what ``loses`` says."""

    def __init__(self, loses: Loses, **nat: Any) -> None:  # noqa: ANN401 - of SimulatedNat
        super().__init__(**nat)
        self._loses = loses

    def carry(
        self,
        outbound: TupleTraffic | None,
        inbound: TupleTraffic | None,
        table: SimulatedTable | None,
        *,
        learns: bool,
        opens: bool = True,
    ) -> tuple[bytearray, bytearray]:
        arrived = super().carry(outbound, inbound, table, learns=learns, opens=opens)
        for traffic, came in zip((outbound, inbound), arrived, strict=True):
            if outbound is None or inbound is None or traffic is None:
                continue  # phase 1
            frames = zip(traffic.numbers, traffic.times_ns(), strict=True)
            for frame, (connection, now_ns) in enumerate(frames):
                if self._loses(connection, (now_ns - traffic.first_ns) / 1e6):
                    came[frame] = 0
        return arrived


class ClearedEngine(FakeEngine):
    """Empties the gateway before each test, as a hook does; not behind its SYNs."""

    def __init__(
        self,
        nat: SimulatedNat,
        troubles: Mapping[int, ReasonCode | BaseException] | None = None,
        dut: Dut | None = None,
        tester_limit_fps: float | None = None,
        arrivals: Arrivals | None = None,
        delays: Delays | None = None,
    ) -> None:
        super().__init__(
            dut or perfect(),
            delays=delays or fixed(20_000),
            nat=nat,
            arrivals=arrivals,
            troubles=troubles or {},
            tester_limit_fps=tester_limit_fps,
        )
        self.nat = nat

    def measure(
        self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        if trial.learn and not trial.learn.keep and trial.tcp_data is None:
            self.nat.clear()
        return super().measure(trial, on_progress)


Lie = Callable[[LearnedTuple, LearnedTuple], Sequence[str]]
"""Lines that are logged of a connection, of its ends inside and outside."""


class LoggedEngine(ClearedEngine):
    """Appends what ``conntrack -E`` prints of each mapping to a file.

    Args:
        nat: the gateway.
        log: the file.
        lies: what is written of connections in place of that, by their numbers.
        clock_ns: how much later the log has it than it was, by its number.
    """

    def __init__(
        self,
        nat: SimulatedNat,
        log: Path,
        lies: Mapping[int, Lie] | None = None,
        clock_ns: Callable[[int], int] = lambda _number: 0,
    ) -> None:
        super().__init__(nat)
        self.log, self.lies, self.clock_ns = log, lies or {}, clock_ns

    def measure(
        self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        result = super().measure(trial, on_progress)
        (direction,) = trial.directions
        gap_ns = 10**9 / direction.rate_fps
        with self.log.open("a") as file:
            for number, seen in enumerate(result.table.told if result.table else ()):
                if not seen:
                    continue
                ends = direction.streams[0].ends_of(number)
                now_ns = (result.begin_unix_ns or 0) + round(number * gap_ns)
                lie = self.lies.get(number, truth)
                for line in lie(ends, seen):
                    file.write(f"{stamp(now_ns + self.clock_ns(number))} {line}\n")
        return result


def truth(ends: LearnedTuple, seen: LearnedTuple) -> Sequence[str]:
    return [conntrack(ends, seen)]


def stamp(time_ns: int) -> str:
    return f"[{time_ns // 10**9}.{time_ns % 10**9 // 1000:06d}]"


def conntrack(ends: LearnedTuple, seen: LearnedTuple) -> str:
    """The line without its time: ``ends`` inside, ``seen`` outside."""
    inside, inside_port, before, before_port = ends
    public, public_port, remote, remote_port = seen
    return (
        f"    [NEW] udp      17 30 src={inside} dst={before} sport={inside_port} "
        f"dport={before_port} [UNREPLIED] src={remote} dst={public} "
        f"sport={remote_port} dport={public_port}"
    )


def logging_to(file: Path, *, is_emptied: bool = True) -> Testbed:
    """``NAT44`` whose log is there; its table is emptied before each trial."""
    data = NAT44.model_dump(exclude_none=True)
    log = {"file": str(file), "format": "conntrack"}
    hooks = {"bulk_delete": {"command": ["true"]}} if is_emptied else {}
    return Testbed.model_validate(data | {"nat_log": log, "hooks": hooks})


class SimulatedHooks:
    """Runs the hooks of ``nat44`` on a simulated gateway, in its own time."""

    def __init__(self, nat: SimulatedNat) -> None:
        self.nat = nat
        self.done: list[HookMoment] = []

    def __call__(self, hooks: Sequence[Hook], moment: HookMoment) -> list[HookRun]:
        return [self._run(hook, moment) for hook in hooks]

    def _run(self, hook: Hook, moment: HookMoment) -> HookRun:
        self.done.append(moment)
        before_ns, (name,) = self.nat.now_ns, hook.shown
        known: dict[str, Callable[[], object]] = {
            "bulk_delete": self.nat.clear,
            "restart": self.nat.restart,
            "table_count": self.nat.table_count,
            "is_alive": lambda: self.nat.is_alive,
        }
        told = known[name]()
        code = 1 if told is False else 0
        return HookRun(
            moment=moment,
            command=hook.command,
            host=None,
            attempts=1,
            exit_code=code,
            ended=f"ended with exit code {code}",
            output=f"connections: {told}",
            duration_s=(self.nat.now_ns - before_ns) / 1e9,
        )
