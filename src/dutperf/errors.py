"""Everything that can go wrong, in a way the user can act on, or as a defect.

    DutperfError
    +-- InputError         2    a file, key or flag is wrong
    +-- SetupError         3    machine, lab or device under test are not as needed
    |   +-- EngineError    3    the engine refused a request or died
    |   +-- BusyError      3    another process has what is needed, until it ends
    |   +-- StorageError   3    results cannot be written any more

Each error says what happened, where, and (in ``hint``) what to do; the command line
prints both and leaves with the number above. Anything else that escapes is a defect.
"""

from __future__ import annotations

import os
from pathlib import Path

from dutperf.plain_files import append_plain
from dutperf.visible import visible


class DutperfError(Exception):
    """Base of all expected errors.

    Attributes:
        code: what kind it is, for programs: input, setup, busy, storage, engine, ...
        message: what happened, and where.
        hint: what to do; may be empty.
        where: the key of a file or of a call that is wrong; empty: it is none.
        exit_code: what the process leaves with.
    """

    code = "failed"
    exit_code = 3
    where = ""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InputError(DutperfError):
    """A file, key or flag is wrong; nothing was sent."""

    code = "input"
    exit_code = 2

    def __init__(self, message: str, hint: str = "", where: str = "") -> None:
        super().__init__(message, hint)
        self.where = where


class SetupError(DutperfError):
    """The machine, the lab or the device under test is not as needed."""

    code = "setup"


class BusyError(SetupError):
    """Another process has what is needed, and gives it back when it ends."""

    code = "busy"


class StorageError(SetupError):
    """Results cannot be written: nothing more may be measured."""

    code = "storage"


class EngineError(SetupError):
    """The engine refused a request (``rpc_code``: see the protocol) or died (0)."""

    code = "engine"

    def __init__(self, message: str, hint: str = "", rpc_code: int = 0) -> None:
        super().__init__(message, hint)
        self.rpc_code = rpc_code


# What escaped and should not have, the defect: told to the user, its traceback in a
# file.


class DefectError(DutperfError):
    """Something escaped that dutperf should have handled."""

    code = "defect"


def defect(error: Exception, directory: Path | None) -> DefectError:
    """``error`` as something to report; its traceback goes to a file.

    Args:
        error: what escaped.
        directory: of the results; None: there is none, a temporary file is used.
    """
    import traceback  # noqa: PLC0415 - hardly ever needed, and long to load

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
    import tempfile  # noqa: PLC0415 - as above

    handle, name = tempfile.mkstemp(prefix="dutperf-crash-", suffix=".txt")
    os.close(handle)
    return Path(name)
