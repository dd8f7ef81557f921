"""What each mode of the data path costs: the program dutperf-bench, and valgrind."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dutperf.engine.process import check_root, existing_cpus
from dutperf.errors import InputError, SetupError
from dutperf.programs import find_program

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
