"""Throughputs and other rates that a search found, in one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.table import Table

from dutperf.cli import figures
from dutperf.results import CellResult, result_word
from dutperf.results.damage_words import RECEIVED
from dutperf.results.model import DamageFigure

WIDE = 110
"""Columns from which on a terminal has room for all of a table."""
_RATE = "fps per\ndirection"
_PLAIN = "throughput per direction (RFC 2544 26.1)"


def throughput_table(cells: list[CellResult], width: int) -> Table:
    """On narrow terminals without what the cells' names or other figures tell, too."""
    plain = all(map(is_plain, cells))
    table = Table(title="Throughput" if plain else "Rates")
    table.add_column("cell", overflow="fold")
    repeated = any(len(cell.repeats) > 1 for cell in cells)
    shown = [column for column in _COLUMNS if repeated or not column.of_repeats]
    if width < WIDE:
        spared = ("narrow", "repeated") if repeated else ("narrow",)
        shown = [column for column in shown if column.spared not in spared]
    for column in shown:
        table.add_column(column.name, justify="right", no_wrap=True)
    for cell in cells:
        table.add_row(cell.id, *(column.text(cell) for column in shown))
        if cell.damage:
            table.add_row(f"  {RECEIVED}", *_received(cell.damage, shown))
    return table


def _received(damage: DamageFigure, shown: Sequence[_Column]) -> list[str]:
    """The second figure of a throughput that damaged frames limit, under the first."""
    told = {
        _RATE: figures.rate(damage.value, damage.bound),
        "verdict": result_word(damage.verdict),
        "trials": str(damage.trials),
    }
    return [told.get(column.name, "") for column in shown]


def is_plain(cell: CellResult) -> bool:
    """Whether it is what RFC 2544 calls a throughput."""
    return cell.quantity.startswith(_PLAIN)


def _sizes(cell: CellResult) -> str:
    """Of an IMIX only the name."""
    sizes = cell.parameters.get("frame_sizes", cell.parameters.get("frame_size"))
    return str(sizes).partition(":")[0]


def _total_fps(cell: CellResult) -> float | None:
    """Of all directions together; older files do not have it."""
    directions = 2 if cell.parameters.get("direction") == "both" else 1
    return cell.sum_fps or (cell.median and cell.median * directions)


@dataclass(frozen=True)
class _Column:
    """A figure of each throughput.

    ``spared``: left out on narrow terminals; there with repeats only; or never.
    """

    name: str
    text: Callable[[CellResult], str]
    of_repeats: bool = False
    spared: Literal["narrow", "repeated", ""] = ""


_COLUMNS = (
    _Column("frame\nsize", _sizes, spared="repeated"),
    _Column(_RATE, lambda cell: figures.rate(cell.median, cell.bound)),
    _Column(
        "sum",
        lambda cell: figures.rate(_total_fps(cell), cell.bound),
        spared="repeated",
    ),
    _Column("median's\ninterval", figures.interval, of_repeats=True),
    _Column("disper-\nsion %", figures.dispersion, of_repeats=True),
    _Column("verdict", lambda cell: result_word(cell.verdict)),
    _Column("N", lambda cell: str(len(cell.repeats)), spared="narrow"),
    _Column(
        "trials",
        lambda cell: str(sum(r.trials for r in cell.repeats)),
        spared="narrow",
    ),
)
