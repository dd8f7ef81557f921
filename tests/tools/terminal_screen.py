"""A terminal that remembers what it was sent, and a clock that stands still."""

from __future__ import annotations

import io

from dutperf.cli.console import PatientConsole


class Clock:
    """Stands still unless it is moved."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class TerminalScreen(PatientConsole):
    """A terminal of ``columns``, which can be changed; it remembers all it was sent."""

    def __init__(self, columns: int = 80, *, encoding: str = "utf-8") -> None:
        super().__init__(file=io.StringIO(), width=columns)
        self._known_as = encoding

    is_terminal = property(lambda _self: True)
    is_dumb_terminal = property(lambda _self: False)
    encoding = property(lambda self: self._known_as)

    @property
    def sent(self) -> str:
        assert isinstance(self.file, io.StringIO)
        return self.file.getvalue()
