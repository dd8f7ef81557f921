"""Cells on open connections (RFC 9693 4.7): what was opened when, both directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dutperf.protocol import DirectionResult
from dutperf.report.cells import CellView
from dutperf.report.text import MISSING, whole


@dataclass(frozen=True)
class PhaseRow:
    """One cell. ``rates`` is what each direction forwarded, where that is known."""

    cell: CellView

    @property
    def rates(self) -> list[tuple[str, str]]:
        """Name and frames per second of each direction in the trial that counts.

        That is the last one at the highest load that passed.
        """
        trials = self.cell.counting_trials
        passed = [t for t in trials if t.result.verdict.kind == "pass"]
        if not passed or not self.cell.measured:
            return []
        trial = max(passed, key=lambda t: (t.load_fps, t.number))
        duration_s = trial.request.duration_ns / 1e9
        return [
            (direction.name, whole(_received(direction) / duration_s))
            for direction in trial.result.directions
        ]

    def number(self, key: str) -> str:
        """A parameter with its thousands told apart."""
        result = self.cell.result
        value = result.parameters.get(key) if result else None
        return whole(value) if isinstance(value, int | float) else MISSING


def phase_rows(cells: Sequence[CellView]) -> list[PhaseRow]:
    """The cells whose connections were opened before each trial."""
    return [
        PhaseRow(cell)
        for cell in cells
        if cell.result and cell.result.parameters.get("phase1_rate") is not None
    ]


def _received(direction: DirectionResult) -> int:
    return sum(stream.received for stream in direction.streams)
