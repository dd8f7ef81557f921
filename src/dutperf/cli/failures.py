"""How failures are told: ``error:`` and ``hint:`` on standard error; and notices."""

from __future__ import annotations

import os
import tempfile
import traceback
from pathlib import Path

from rich.console import Console

from dutperf.errors import DutperfError

_PLAIN_WIDTH = 120
"""Columns for files and pipes, which rich would give 80."""


class PatientConsole(Console):
    """A console whose reader may leave (``dutperf ... | head``): the work goes on."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr)
        if not self.is_terminal:
            self.width = _PLAIN_WIDTH

    def on_broken_pipe(self) -> None:
        """From now on write to nowhere; rich would end the program."""
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)


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
        with path.open("a", encoding="utf-8") as file:
            file.writelines(traceback.format_exception(error))
    except OSError as cause:
        return DefectError(message, f"its traceback could not be stored: {cause}")
    return DefectError(message, f"please report it with the file {path}")


def show_failure(console: Console, error: DutperfError) -> None:
    """Print what happened and what to do."""
    _show_lines(console, "error", "bold red", error.message)
    if error.hint:
        _show_lines(console, "hint", "bold", error.hint)


def show_notice(text: str) -> None:
    """Print something that the user should know; the command goes on."""
    PatientConsole(stderr=True).out(f"notice: {text}", highlight=False)


def _crash_file(directory: Path | None) -> Path:
    if directory:
        return directory / "crash.txt"
    handle, name = tempfile.mkstemp(prefix="dutperf-crash-", suffix=".txt")
    os.close(handle)
    return Path(name)


def _show_lines(console: Console, label: str, style: str, text: str) -> None:
    for line in text.splitlines():
        console.print(f"{label}: ", style=style, end="", soft_wrap=True)
        console.print(line, markup=False, highlight=False, soft_wrap=True)
