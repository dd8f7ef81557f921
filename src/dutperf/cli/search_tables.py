"""What a search found beside one rate: the goals of MLRsearch, and when it settled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.table import Table

from dutperf.cli import figures
from dutperf.results import CellResult, GoalResult, settled_words, withdrawn_words


def goal_table(cell: CellResult) -> Table:
    """A row for each goal; only regular results are results (RFC 9971 4.8)."""
    table = Table(title=f"{cell.id}: goals (RFC 9971), fps per direction")
    table.add_column("goal", overflow="fold")
    for name in ("lower bound", "upper bound", "conditional throughput"):
        table.add_column(name, justify="right")
    table.add_column("result")
    for goal in cell.goals:
        table.add_row(
            f"{goal.name}, {goal.duration_sum_s:g} s, width {goal.width:.3g}",
            figures.rate(goal.lower_fps, goal.bound),
            *map(figures.rate, (goal.upper_fps, goal.conditional_fps)),
            _regular(goal),
        )
    return table


def settled_lines(cells: Iterable[CellResult]) -> Iterator[str]:
    """How the repeats of each cell ended, where that is not just their number."""
    for cell in cells:
        told = (settled_words(cell), withdrawn_words(cell.withdrawn))
        yield from (f"{cell.id}: {words}" for words in told if words)


def _regular(goal: GoalResult) -> str:
    if goal.regular:
        return "regular"
    return f"irregular ({', '.join(reason.code for reason in goal.reasons)})"
