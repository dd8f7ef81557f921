"""A trial that told nothing is run again: the loop of all who do so.

But for a bisection, in which trials with loss are repeated as well (``binary``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def attempted(trials: Iterable[T], again: Callable[[Sequence[T]], bool]) -> list[T]:
    """The first of ``trials``, and more of them as long as they tell nothing.

    Args:
        trials: as many as may be run, each of which is run when it is taken.
        again: whether those so far, one or more, ask for another one.
    """
    taken: list[T] = []
    for trial in trials:
        taken.append(trial)
        if not again(taken):
            break
    return taken
