"""Narrowing: where a repeat of a search should look, from what was found before.

The classic procedure starts every repeat between nothing and the media rate, and most
of its full-length trials confirm what the repeat before had shown. Here a few searches
with short trials show the region, and each repeat starts in it. What keeps the results
those of the classic procedure:

* Short trials are never evidence. They only say where to look first, and nothing of
  them is left once a full repeat is there, but how far the results wander.
* The expected region is not believed either: ``binary_search`` measures an end that the
  result rests on, with a full-length trial, and goes beyond it when it was wrong.
* The region spans all earlier results and some more, the more the fewer they are, so a
  repeat on a device that wanders is not held near the first one.

The other half of the time is saved where trials run: one that is hopeless may be ended
at its first loss (above the tolerance), because that decides it. Each rate is still
judged by one trial of full length. A short trial in front of the full one would not do:
on a device with a soft limit both must pass then, which bends the result down.
"""

from __future__ import annotations

from dutperf.search.binary import binary_search
from dutperf.search.model import Bracket, Measure, Resolution, SearchResult

EXPLORATIONS = 3
EXPLORATION_S = 1.0


class Narrowing:
    """What the searches found so far; ``expected`` is where the next one starts."""

    def __init__(self, max_rate_fps: int) -> None:
        self._max_rate_fps = max_rate_fps
        self._short: list[Bracket] = []
        self._full: list[Bracket] = []

    def add_short(self, result: SearchResult) -> None:
        """Take account of a search with short trials."""
        self._short.append(self._bracket(result))

    def add(self, result: SearchResult) -> None:
        """Take account of a repeat with full-length trials."""
        self._full.append(self._bracket(result))

    @property
    def expected(self) -> Bracket | None:
        """Where the next result should be; None while nothing is known."""
        known = self._full or self._short
        if not known:
            return None
        beyond_fps = max(map(_spread_fps, (self._full, self._short))) // len(known)
        lower_fps = min(one.lower_fps for one in known) - beyond_fps
        upper_fps = max(one.upper_fps for one in known) + beyond_fps
        return Bracket(max(0, lower_fps), min(upper_fps, self._max_rate_fps))

    def _bracket(self, result: SearchResult) -> Bracket:
        upper_fps = result.upper_fps or self._max_rate_fps
        return Bracket(min(result.rate_fps or 0, upper_fps - 1), upper_fps)


def explore(
    measure: Measure,
    *,
    max_rate_fps: int,
    resolution: Resolution,
    searches: int = EXPLORATIONS,
    duration_s: float = EXPLORATION_S,
) -> Narrowing:
    """A narrowing that knows what a few searches with short trials found."""
    narrowing = Narrowing(max_rate_fps)
    for _ in range(searches):
        result = binary_search(
            measure,
            max_rate_fps=max_rate_fps,
            duration_s=duration_s,
            resolution=resolution,
            expected=narrowing.expected,
        )
        narrowing.add_short(result)
    return narrowing


def _spread_fps(found: list[Bracket]) -> int:
    if not found:
        return 0
    lowers = [one.lower_fps for one in found]
    return max(lowers) - min(lowers)
