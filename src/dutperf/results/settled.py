"""How repeats ended, and which of them do not count, in words."""

from __future__ import annotations

from dutperf.results.model import CellResult
from dutperf.results.rate_results import Withdrawal


def settled_words(cell: CellResult) -> str:
    """Empty where the number of repeats was given."""
    settled, repeats = cell.settled, len(cell.repeats)
    if settled is None:
        return ""
    looks = f"{settled.looks} look{'' if settled.looks == 1 else 's'}"
    width = settled.width
    number = width.removesuffix("%")
    target = f"{int(number):,} fps" if number == width else f"{number} % of it"
    if settled.reached:
        return (
            f"settled after {repeats} repeats ({looks}): the interval of the median is "
            f"no wider than {target}"
        )
    if cell.bound:
        return (
            f"not settled after {repeats} repeats ({looks}): the median is a lower "
            "bound, and more repeats would not change that"
        )
    return (
        f"not settled after {repeats} repeats ({looks}): the interval of the median is "
        f"wider than {target}, or not known"
    )


def withdrawn_words(withdrawn: Withdrawal | None) -> str:
    """Which repeats do not count, and why; empty where all do."""
    if withdrawn is None:
        return ""
    first, last = withdrawn.repeats[0], withdrawn.repeats[-1]
    which = f"repeat {first} does" if first == last else f"repeats {first} to {last} do"
    return (
        f"{which} not count: measured only at the two rates where all before had "
        "ended, and the limit turned out not to be that sharp; all that count are "
        "classic"
    )
