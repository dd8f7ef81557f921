"""Frame loss curves: up to which load nothing is lost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar


class Lossy(Protocol):
    """A point of a curve, as stored or as shown."""

    @property
    def loss_percent(self) -> float | None:
        """Null: not valid."""
        ...

    @property
    def lossy_repeats(self) -> int:
        """In how many repeats frames were lost, whatever the median is."""
        ...


P = TypeVar("P", bound=Lossy)


def highest_clean(rising: Iterable[P]) -> P | None:
    """The highest point that is free of loss in each repeat, as are all below it."""
    clean = None
    for point in rising:
        if point.loss_percent != 0 or point.lossy_repeats:
            break
        clean = point
    return clean
