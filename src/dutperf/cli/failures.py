"""How failures are told: ``error:`` and ``hint:`` on standard error; and notices."""

from __future__ import annotations

import os
import tempfile
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from dutperf.errors import DutperfError
from dutperf.visible import visible

_PLAIN_WIDTH = 120
"""Columns for files and pipes, which rich would give 80."""


class PatientConsole(Console):
    """All that a command prints goes through one of these.

    Its reader may leave (``dutperf ... | head``): the work goes on. No text is markup,
    and none reaches the terminal as something that it would obey, see ``visible``.
    """

    def __init__(
        self,
        *,
        stderr: bool = False,
        file: IO[str] | None = None,
        width: int | None = None,
    ) -> None:
        super().__init__(
            stderr=stderr,
            file=file,
            width=width,
            markup=False,
            emoji=False,
            highlight=False,
        )
        if width is None and not self.is_terminal:
            self.width = _PLAIN_WIDTH

    def render_str(self, text: str, **how: Any) -> Text:  # noqa: ANN401 - as rich's
        """Texts, also those in tables, before their width is measured."""
        return super().render_str(visible(text), **how)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """What came as rich's own ``Text`` as well; not what moves the cursor."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)

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
            file.writelines(map(visible, traceback.format_exception(error)))
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
