"""The programs that are built beside the package: where they are.

Free of everything that takes long to load: ``dutperf --version`` looks here, too.
"""

from __future__ import annotations

import os
import select
import subprocess
from pathlib import Path

from dutperf.errors import SetupError

ENGINE_VARIABLE = "DUTPERF_ENGINE"
PACKAGE = Path(__file__).resolve().parent
BUILT = PACKAGE / "_engine"
"""Where they are in an installed package."""
SOURCE_TREE = PACKAGE.parents[1]
"""Where the package is not installed, but used where it was written."""
_PROGRAM_FOLDERS = (BUILT, SOURCE_TREE / "build")


def find_engine() -> Path:
    """Where the engine program is.

    Raises:
        SetupError: nowhere, or the file named by $DUTPERF_ENGINE is not a program.
    """
    named = os.environ.get(ENGINE_VARIABLE)
    if not named:
        return find_program("dutperf-engine")
    if _is_program(Path(named)):
        return Path(named)
    message = f"${ENGINE_VARIABLE} names {named}, which is not a program"
    raise SetupError(message, "correct it, or unset it to use the built engine")


def find_program(name: str) -> Path:
    """Where one of the built programs is: in the package, else in the source tree.

    Raises:
        SetupError: nowhere.
    """
    for folder in _PROGRAM_FOLDERS:
        if _is_program(folder / name):
            return folder / name
    raise SetupError(
        f"the engine program {name} is not found",
        "build it: run 'make setup' in dutperf's source tree",
    )


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


# Programs that are run once, with a text as their input, perhaps in a namespace.


def in_namespace(namespace: str, *command: str) -> list[str]:
    """``command`` as it runs in a network namespace, with that one's /sys."""
    return ["ip", "netns", "exec", namespace, *command]


def feed(command: list[str], text: str) -> str:
    """Runs ``command`` with ``text`` as input; what it complained about, or nothing."""
    result = subprocess.run(
        command, input=text, capture_output=True, text=True, check=False
    )
    if result.returncode == 0:
        return ""
    return result.stderr.strip() or f"exit code {result.returncode}"


# When a process of ours ends: at once, where ``Popen.wait`` looks every 50 ms.


def ends_within(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Wait for its end, ``timeout_s`` at most; whether it has ended."""
    if process.poll() is not None:
        return True
    descriptor = os.pidfd_open(process.pid)
    try:
        ready, _, _ = select.select([descriptor], [], [], timeout_s)
        return bool(ready)
    finally:
        os.close(descriptor)
