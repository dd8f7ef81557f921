"""Everything that can go wrong in a way the user can act on.

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


class DutperfError(Exception):
    """Base of all expected errors; ``exit_code`` is what the process leaves with."""

    exit_code = 3

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InputError(DutperfError):
    """A file, key or flag is wrong; nothing was sent."""

    exit_code = 2


class SetupError(DutperfError):
    """The machine, the lab or the device under test is not as needed."""


class BusyError(SetupError):
    """Another process has what is needed, and gives it back when it ends."""


class StorageError(SetupError):
    """Results cannot be written: nothing more may be measured."""


class EngineError(SetupError):
    """The engine refused a request (``code``: see the protocol) or died (0)."""

    def __init__(self, message: str, hint: str = "", code: int = 0) -> None:
        super().__init__(message, hint)
        self.code = code
