"""What escaped and should not have: told to the user, its traceback in a file."""

from __future__ import annotations

import os
import tempfile
import traceback
from pathlib import Path

from dutperf.errors import DutperfError
from dutperf.plain_files import append_plain
from dutperf.visible import visible


class DefectError(DutperfError):
    """Something escaped that dutperf should have handled."""


def defect(error: Exception, directory: Path | None) -> DefectError:
    """``error`` as something to report; its traceback goes to a file.

    Args:
        error: what escaped.
        directory: of the results; None: there is none, a temporary file is used.
    """
    name = type(error).__name__
    message = f"this is a defect in dutperf: {name}: {error}"
    try:
        path = _crash_file(directory)
        told = visible("".join(traceback.format_exception(error)))
        with append_plain(path) as file:
            file.write(told.encode())
    except OSError as cause:
        return DefectError(message, f"its traceback could not be stored: {cause}")
    return DefectError(message, f"please report it with the file {path}")


def _crash_file(directory: Path | None) -> Path:
    if directory:
        return directory / "crash.txt"
    handle, name = tempfile.mkstemp(prefix="dutperf-crash-", suffix=".txt")
    os.close(handle)
    return Path(name)
