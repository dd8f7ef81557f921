"""What commands write to a terminal or a pipe: texts, failures, notices, JSON."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from dutperf.errors import DutperfError
from dutperf.visible import versioned_json, visible, visible_json

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


def show_failure(console: Console, error: DutperfError) -> None:
    """Print what happened and what to do."""
    _show_lines(console, "error", "bold red", error.message)
    if error.hint:
        _show_lines(console, "hint", "bold", error.hint)


def show_notice(text: str) -> None:
    """Print something that the user should know; the command goes on."""
    PatientConsole(stderr=True).out(f"notice: {text}", highlight=False)


def _show_lines(console: Console, label: str, style: str, text: str) -> None:
    for line in text.splitlines():
        console.print(f"{label}: ", style=style, end="", soft_wrap=True)
        console.print(line, markup=False, highlight=False, soft_wrap=True)


# What ``--json`` prints: one object, which tells the version of its format.
#
# What each object holds, and what changed with a version, stands in docs/json.md.


def print_versioned(version: int, data: Mapping[str, object]) -> None:
    """Print ``data`` as version ``version`` of its format, on standard output.

    The version rises with every change that a reader of an older one would misread;
    a key that is added is none.
    """
    PatientConsole().out(versioned_json(version, data), highlight=False)


def print_json(console: PatientConsole, text: str) -> None:
    """Print ``text``, which is JSON and stays it."""
    console.out(visible_json(text), highlight=False)
