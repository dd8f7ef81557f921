"""Narrowing: fewer trials a repeat, as long as all evidence says that there is a step.

The classic procedure starts every repeat between nothing and the maximum, and most of
its full-length trials confirm what the repeat before had shown. A device that forwards
everything up to some rate and loses frames above it, each time, ends all repeats at the
same two rates; then those two are all that is worth measuring.

Whether a device is like that cannot be seen from where narrowed repeats end. A frame
lost once in a while fails a trial at *any* rate; a repeat that starts where others
passed keeps their luck, and reads too high. So:

* The first ``CLASSIC_FIRST`` repeats are classic. If they do not end at the very same
  two rates, all are.
* From then on a repeat measures those two rates, with full-length trials (``confirm``).
* The first that finds anything else contradicts a step: the narrowed repeats are
  withdrawn, itself included, and all others are classic.

What is left is either all classic, repeats that know nothing of each other, or repeats
that all found the same. Withdrawing does not bend the result: on a device that forgets,
what was withdrawn says nothing of the classic repeats. What may go unseen is a soft
limit where less than half of all classic repeats end at those two rates (otherwise they
are the median's) and yet the first four do: at most one campaign in sixteen, before the
narrowed repeats get their chance to contradict.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dutperf.search.search_types import Bracket, SearchResult

CLASSIC_FIRST = 4


@dataclass
class Narrowing:
    """What the repeats found so far; ``ends`` is what the next one should confirm."""

    ends: Bracket | None = None
    _classic: list[SearchResult] = field(default_factory=list)
    _confirmed: int = 0

    def add_classic(self, result: SearchResult) -> None:
        """Take account of a repeat from nothing to the maximum."""
        self._classic.append(result)
        if len(self._classic) == CLASSIC_FIRST:
            self.ends = _common(self._classic)

    def add_confirmed(self, result: SearchResult) -> int:
        """Take account of a repeat that measured ``ends``.

        Returns:
            How many repeats, this one included, are withdrawn.
        """
        self._confirmed += 1
        if self.ends is not None and self.ends == _bracket(result):
            return 0
        self.ends = None
        return self._confirmed


def _common(results: list[SearchResult]) -> Bracket | None:
    first, *others = [_bracket(result) for result in results]
    return first if all(other == first for other in others) else None


def _bracket(result: SearchResult) -> Bracket | None:
    """The two rates that ended a search; None: the device did not end it."""
    if result.conclusion != "found" or not result.rate_fps or not result.upper_fps:
        return None
    return Bracket(result.rate_fps, result.upper_fps)
