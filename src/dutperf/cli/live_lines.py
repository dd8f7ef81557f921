"""Lines at the end of a terminal that are drawn over and over again, and then go.

The cursor is never hidden, so however the program ends there is nothing to give back.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.control import Control
from rich.live import Live
from rich.segment import ControlType
from rich.text import Text

from dutperf.cli.failures import PatientConsole

WIDTH = 79
"""At most: what is narrower than a terminal stays whole when that is made narrower."""


class LiveLines:
    """Draws on ``console``; what was printed before stands above."""

    def __init__(self, console: PatientConsole) -> None:
        self._console = console
        self._live: Live | None = None
        self._drawn: list[str] = []
        self._width = console.width

    def draw(self, lines: Sequence[Text]) -> None:
        """Show ``lines`` in place of those before."""
        if self._live is None:
            self._live = Live(
                console=self._console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
            self._console.show_cursor(True)
        self._unwrap()
        self._live.update(Text("\n").join(lines), refresh=True)
        self._drawn = [line.plain for line in lines]
        self._width = self._console.width

    def stop(self) -> None:
        """Take them away."""
        if self._live:
            self._unwrap()
            self._live.stop()
            self._live = None

    def _unwrap(self) -> None:
        """A terminal that was made narrower wrapped lines: go up by as many more."""
        width = self._console.width
        if width >= self._width:
            return
        more = sum(-(-len(line) // width) - 1 for line in self._drawn)
        self._width = width
        for _ in range(more):
            self._console.control(
                Control(
                    ControlType.CARRIAGE_RETURN,
                    (ControlType.ERASE_IN_LINE, 2),
                    (ControlType.CURSOR_UP, 1),
                )
            )
