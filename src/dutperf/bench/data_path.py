"""The engine alone: what each mode costs, and its limits with connections."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dutperf.config import Campaign, PlannedTestbed, Testbed, spec_from
from dutperf.config.side import RingPort
from dutperf.config.testbed import crossed
from dutperf.engine.process import check_root, existing_cpus
from dutperf.errors import InputError, SetupError
from dutperf.model.specs import ProcedureSpec
from dutperf.procedures.events import OnEvent
from dutperf.programs import find_program
from dutperf.report import write_report
from dutperf.results import CellResult, ResultsFile
from dutperf.run.campaign_run import run_campaign
from dutperf.run.engine_session import prepare_engine
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
        rounds: 1 and up.
        instructions: count those of each mode, too, as ``instructions_per_frame``.

    Raises:
        InputError: there is no such CPU.
        SetupError: not root, a program is missing, or it failed.
    """
    _check_cpu(cpu)
    check_root()
    program = find_program("dutperf-bench")
    arguments = ["--cpu", str(cpu), "--hugepages", "on" if hugepages else "off"]
    if entries:
        arguments += ["--entries", ",".join(map(str, entries))]
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
