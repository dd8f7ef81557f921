"""The benches: the engine alone, its limits with connections, and a path in a lab."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dutperf import lab
from dutperf.bench.path_bench import (
    RESOLUTION,
    DriverResult,
    PathDriver,
    PathSettings,
    PathSurroundings,
    bench_path,
)
from dutperf.bench.path_profile import PerfProfiler
from dutperf.config import Campaign, PlannedTestbed, Testbed, expand, spec_from
from dutperf.config.side import RingPort
from dutperf.config.testbed import crossed
from dutperf.engine.process import check_root, existing_cpus
from dutperf.errors import InputError, SetupError
from dutperf.model.rate_specs import ThroughputSpec
from dutperf.model.specs import ProcedureSpec
from dutperf.procedures.events import OnEvent
from dutperf.programs import find_program
from dutperf.report import write_report
from dutperf.results import CellResult, ResultsFile
from dutperf.run.campaign_run import run_campaign
from dutperf.run.engine_session import EngineStarter, Notify, prepare_engine
from dutperf.run.local_executor import Surroundings

# What each mode of the data path costs: the program dutperf-bench, and valgrind.


_INSTRUCTION_FRAMES = 32 * 256
_INSTRUCTION_ENTRIES = 1000  # no instruction depends on them, and valgrind fills slowly
_TOTALS = re.compile(r"^(?:summary|totals):\s+(\d+)", re.MULTILINE)
_TIMEOUT_S = 570

Result = dict[str, Any]
"""As dutperf-bench prints it."""


def bench_data_path(
    cpu: int,
    entries: Sequence[int],
    cores: Sequence[int],
    *,
    hugepages: bool,
    rounds: int,
    instructions: bool,
) -> Result:
    """Cycles per frame of each mode on ``cpu``, the median of ``rounds``.

    Args:
        cpu: one of this machine.
        entries: of the table of learned four-tuples, rising; empty: the default.
        hugepages: take buffers from huge pages.
        cores: how many shares of a direction are tried, a core each; rising; empty:
            the default.
        rounds: 1 and up.
        instructions: count those of each mode, too, as ``instructions_per_frame``.

    Raises:
        InputError: there is no such CPU, or there are not so many.
        SetupError: not root, a program is missing, or it failed.
    """
    _check_cpu(cpu)
    _check_cores(cores)
    check_root()
    program = find_program("dutperf-bench")
    arguments = ["--cpu", str(cpu), "--hugepages", "on" if hugepages else "off"]
    if entries:
        arguments += ["--entries", ",".join(map(str, entries))]
    if cores:
        arguments += ["--cores", ",".join(map(str, cores))]
        # Isolated ones among them; by default those that this process may use.
        if others := sorted(existing_cpus() - {cpu}):
            arguments += ["--other-cpus", ",".join(map(str, others))]
    result = _run([str(program), *arguments, "--rounds", str(rounds)])
    if instructions:
        names = dict.fromkeys(mode["name"] for mode in result["modes"])
        counted = {name: _instructions(program, cpu, name) for name in names}
        for mode in result["modes"]:
            mode["instructions_per_frame"] = counted[mode["name"]]
    return result


def _check_cpu(cpu: int) -> None:
    available = sorted(existing_cpus())
    if cpu not in available:
        raise InputError(
            f"--cpu {cpu}: there is no such CPU here",
            f"choose from {', '.join(map(str, available))}",
        )


def _check_cores(cores: Sequence[int]) -> None:
    available = len(existing_cpus())
    if cores and cores[-1] > available:
        raise InputError(
            f"--cores {cores[-1]}: there are {available} CPUs here",
            f"whole numbers from 1 to {available}, separated by commas",
        )


def _run(command: list[str]) -> Result:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
            start_new_session=True,  # whose priority it may raise
        )
    except subprocess.TimeoutExpired as error:
        raise SetupError(
            "the bench did not end in time", "use fewer rounds, or a quieter machine"
        ) from error
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        said = lines[-1] if lines else f"exit code {done.returncode}"
        raise SetupError(
            f"the bench failed: {said}", "see 'dutperf bench --help' and its options"
        )
    result: Result = json.loads(done.stdout)
    return result


def _instructions(program: Path, cpu: int, mode: str) -> float:
    """Instructions per frame of one mode: repeatable, whatever else runs."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise SetupError("valgrind is not installed", "apt-get install valgrind")
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "callgrind.out"
        _run(
            [
                *(valgrind, "--tool=callgrind", f"--callgrind-out-file={out}"),
                *("--toggle-collect=measured_section", str(program)),
                *("--cpu", str(cpu), "--rounds", "1", "--mode", mode),
                *("--frames", str(_INSTRUCTION_FRAMES)),
                *("--entries", str(_INSTRUCTION_ENTRIES)),
            ]
        )
        found = _TOTALS.search(out.read_text())
    return int(found.group(1)) / _INSTRUCTION_FRAMES if found else 0.0


# The tester's own limits in stateful traffic: its two ports crossed, no device.
#
# The rows of the stateful siitperf paper (Lencse 2023, Tables 3 to 5): the rate of
# phase 1, and of phase 2 in both directions and in each alone, over the number of
# four-tuples.


DIRECTIONS = ("both", "forward", "reverse")
_MOST_FPS = 1_000_000_000
"""No tester offers that; the search begins with what it did offer."""
_TROUBLES = {"unstable", "nothing_passed", "connections_expire"}


@dataclass(frozen=True)
class SelftestSettings:
    """What is measured: ``connections`` of one ``ip`` version, on ``cpus``.

    Durations and rates are those of the campaign's keys of these names.
    """

    connections: tuple[int, ...]
    ip: int
    cpus: tuple[int, ...]
    phase1_rate_fps: int
    trial_duration_s: float
    resolution: str
    repeats: int

    @property
    def procedures(self) -> list[ProcedureSpec]:
        """A search of phase 1, and of phase 2 in each direction.

        Raises:
            InputError: a setting is none that these have.
        """
        common: dict[str, Any] = {
            "ip": [self.ip],
            "resolution": self.resolution,
            "max_rate_fps": _MOST_FPS,
            "repeats": self.repeats,
            "settle_wait_s": 0.1,
            "restabilise_wait_s": 0.05,
        }
        counts: dict[str, Any] = {"connections": list(self.connections)}
        phase1 = {"procedure": "connection-rate", "stateful": counts}
        phase2 = {
            "procedure": "throughput",
            "direction": list(DIRECTIONS),
            "trial_duration_s": self.trial_duration_s,
            "residual_wait_s": 0.3,
            "stateful": {**counts, "phase1_rate": self.phase1_rate_fps},
        }
        return [spec_from(keys | common, "selftest") for keys in (phase1, phase2)]


def run_selftest(
    settings: SelftestSettings, output: Path | None, on_event: OnEvent
) -> ResultsFile:
    """Measure, and store the results in ``output``, or where others are.

    Raises:
        DutperfError: as ``run_campaign``; or a setting is wrong.
    """
    testbed = _testbed(settings.cpus)
    campaign = Campaign(
        name="selftest-stateful",
        testbed=[testbed],
        procedures=settings.procedures,
    )
    around = Surroundings(open_engine=prepare_engine, write_report=write_report)
    return run_campaign(
        campaign,
        [PlannedTestbed(testbed=testbed)],
        around,
        on_event=on_event,
        kind="campaign",
        results_dir=output,
    )


def fell_short(cell: CellResult) -> bool:
    """Crossed ports lose nothing: what ends a search must be the tester's limit."""
    return not cell.median or any(r.code in _TROUBLES for r in cell.reasons)


def _testbed(cpus: tuple[int, ...]) -> Testbed:
    ring = RingPort(ring=True)
    return crossed({"left": ring, "right": ring}, name="selftest", cores=list(cpus))


# Waiting until the CPUs of a measurement have nothing else to do.
#
# A bench of the tester itself is spoilt by a compiler on the same CPU. Trials that were
# spoilt can be repeated; it is cheaper to begin when all is quiet. The patience is
# bounded: a machine that is never quiet is measured as it is.


_STAT = Path("/proc/stat")
_GLANCE_S = 0.1
_QUIET_PERCENT = 20
_PAUSE_S = 0.5


class QuietWait:
    """A ``sleep`` that returns in a quiet moment, as long as there is patience.

    Args:
        cpus: which CPUs have to be idle.
        patience_s: for all waits together, beside what is slept anyway.
        sleep: waits a number of seconds.
        stat: where the kernel accounts for the CPUs' time.
    """

    def __init__(
        self,
        cpus: Collection[int],
        patience_s: float,
        *,
        sleep: Callable[[float], None] = time.sleep,
        stat: Path = _STAT,
    ) -> None:
        self.waited_s = 0.0
        self._names = {f"cpu{cpu}" for cpu in cpus}
        self._patience_s = patience_s
        self._sleep = sleep
        self._stat = stat

    def __call__(self, seconds: float) -> None:
        """Sleep, then wait for a quiet moment."""
        self._sleep(seconds)
        while self.waited_s < self._patience_s and not self._is_quiet():
            self._sleep(_PAUSE_S)
            self.waited_s += _PAUSE_S

    def _is_quiet(self) -> bool:
        before = self._times()
        self._sleep(_GLANCE_S)
        after = self._times()
        return all(
            _busy_percent(before[name], after[name]) <= _QUIET_PERCENT
            for name in before.keys() & after.keys()
        )

    def _times(self) -> dict[str, tuple[int, int]]:
        """CPU -> (idle, all) ticks so far."""
        lines = (line.split() for line in self._stat.read_text().splitlines())
        found = {}
        for name, *ticks in (line for line in lines if line):
            if name in self._names:
                # user nice system idle iowait irq softirq steal; guests are in user.
                numbers = [int(tick) for tick in ticks[:8]]
                found[name] = (sum(numbers[3:5]), sum(numbers))
        return found


def _busy_percent(before: tuple[int, int], after: tuple[int, int]) -> float:
    idle, total = (b - a for a, b in zip(before, after, strict=True))
    return 100 * (total - idle) / total if total > 0 else 0.0


_PATIENCE = 20
"""How long the bench waits for quiet moments in all: so many trials for each round."""


@dataclass(frozen=True)
class LabBench:
    """What the drivers do at one lab; ``description`` is that of its device."""

    lab: str
    description: str
    settings: PathSettings
    drivers: list[DriverResult]

    @property
    def valid(self) -> bool:
        """Whether each driver that works here had a valid trial."""
        return all(not d.valid or d.valid.median_fps is not None for d in self.drivers)

    def as_data(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "lab": self.lab,
            "device": self.description,
            "ip": 4,
            "frame_size": 64,
            "direction": "both",
            **asdict(self.settings),
            "drivers": [asdict(result) for result in self.drivers],
        }


@dataclass(frozen=True)
class LabAccess:
    """How a lab is brought up, and asked whether its device is still there."""

    open_testbed: Callable[[PlannedTestbed], AbstractContextManager[Testbed]]
    dut_alive: Callable[[PlannedTestbed], bool]


def bench_lab_path(
    campaign: Campaign,
    planned: PlannedTestbed,
    access: LabAccess,
    drivers: Sequence[PathDriver],
    rounds: int,
    on_event: OnEvent,
) -> LabBench:
    """Bench ``drivers`` at ``planned``, where the campaign has one cell.

    Raises:
        DutperfError: as the measuring commands.
    """
    with access.open_testbed(planned) as testbed:
        own = planned.lab.own_name if planned.lab else None
        settings = PathSettings(rounds, testbed.cores[0], lab.cpu_of_device(own))
        (cell,) = expand(campaign, testbed)
        cpus = _cpus(settings)
        patience_s = _PATIENCE * rounds * cell.spec.trial_duration_s
        with contextlib.closing(PerfProfiler(cpus)) as profiler:
            around = PathSurroundings(
                open_engine=partial(_open_engine, own),
                profiler=profiler,
                dut_alive=lambda: access.dut_alive(planned),
                sleep=QuietWait(cpus, patience_s),
            )
            results = bench_path(testbed, cell, drivers, settings, around, on_event)
    return LabBench(planned.name, testbed.description, settings, results)


def _open_engine(own: str | None, testbed: Testbed, notify: Notify) -> EngineStarter:
    lab.renew_receiving(own)  # the driver before took its rings away
    return prepare_engine(testbed, notify)


def path_spec(trial_duration_s: float) -> ThroughputSpec:
    """Short trials: what is measured is the tester, by the device's example."""
    return ThroughputSpec(
        procedure="throughput",
        ip=[4],
        frame_size=[64],
        trial_duration_s=trial_duration_s,
        settle_wait_s=0.1,
        residual_wait_s=min(0.3, trial_duration_s),
        restabilise_wait_s=0.05,
        resolution=RESOLUTION,
    )


def _cpus(settings: PathSettings) -> list[int]:
    device = settings.device_cpu
    return sorted({settings.worker_cpu, *(() if device is None else (device,))})
