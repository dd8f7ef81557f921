"""Narrowing: where a repeat of a search should look, from what was found before.

The classic procedure starts every repeat between nothing and the media rate, and most
of its full-length trials confirm what the repeat before had shown. Here a few searches
with short trials show the region, and each repeat starts in it. What keeps the results
those of the classic procedure:

* Short trials are never evidence. They only say where to look first; when full-length
  trials disagree, they are forgotten but for how far their results were apart.
* The expected region is not believed either: ``binary_search`` measures an end that the
  result rests on, with a full-length trial, and goes beyond it when it was wrong.
* The region spans all results so far, and three quarters of their range more at either
  end. Narrower ones are faster and hold each repeat near those before: the medians
  would stay, but repeats that depend on each other pretend to more certainty than they
  have (``dutperf bench search`` shows how often the interval of the median holds it).
  On a device without noise the range is nothing, and two trials are a repeat.

The other half of the time is saved where trials run: one that is hopeless may be ended
at its first loss (above the tolerance), because that decides it. Each rate is still
judged by one trial of full length. A short trial in front of the full one would not do:
on a device with a soft limit both must pass then, which bends the result down.
"""

from __future__ import annotations

from dutperf.search.binary import binary_search
from dutperf.search.model import Bracket, Measure, Resolution, SearchResult

EXPLORATIONS = 4
EXPLORATION_S = 1.0
_AROUND_PERCENT = 5  # where the explorations after the first one look
_BEYOND_PERCENT = 75  # of the range of the results


class Narrowing:
    """What the searches found so far; ``expected`` is where the next one starts."""

    def __init__(self, max_rate_fps: int) -> None:
        self._max_rate_fps = max_rate_fps
        self._short: list[Bracket] = []
        self._full: list[Bracket] = []

    def add_short(self, result: SearchResult) -> None:
        """Take account of a search with short trials."""
        self._short.append(_bracket(result, self._max_rate_fps))

    def add(self, result: SearchResult) -> None:
        """Take account of a repeat with full-length trials."""
        self._full.append(_bracket(result, self._max_rate_fps))

    @property
    def expected(self) -> Bracket | None:
        """Where the next result should be; None while nothing is known."""
        known = self._full or self._short
        if not known:
            return None
        if _overlap(self._full, self._short):
            known = self._full + self._short
        range_fps = max(map(_range_fps, (self._full, self._short)))
        beyond_fps = range_fps * _BEYOND_PERCENT // 100
        lower_fps = min(one.lower_fps for one in known) - beyond_fps
        upper_fps = max(one.upper_fps for one in known) + beyond_fps
        return Bracket(max(0, lower_fps), min(upper_fps, self._max_rate_fps))


def explore(
    measure: Measure,
    *,
    max_rate_fps: int,
    resolution: Resolution,
    searches: int = EXPLORATIONS,
    duration_s: float = EXPLORATION_S,
    attempts: int = 3,
) -> Narrowing:
    """A narrowing that knows what a few searches with short trials found."""
    narrowing = Narrowing(max_rate_fps)
    around: Bracket | None = None
    for _ in range(searches):
        result = binary_search(
            measure,
            max_rate_fps=max_rate_fps,
            duration_s=duration_s,
            resolution=resolution,
            expected=around,
            attempts=attempts,
        )
        narrowing.add_short(result)
        around = around or _around(_bracket(result, max_rate_fps))
    return narrowing


def _bracket(result: SearchResult, max_rate_fps: int) -> Bracket:
    upper_fps = result.upper_fps or max_rate_fps
    return Bracket(min(result.rate_fps or 0, upper_fps - 1), upper_fps)


def _around(first: Bracket) -> Bracket:
    """Wide enough that the explorations hardly depend on the first one."""
    lower_fps = first.lower_fps * (100 - _AROUND_PERCENT) // 100
    return Bracket(lower_fps, first.upper_fps * (100 + _AROUND_PERCENT) // 100)


def _range_fps(found: list[Bracket]) -> int:
    lowers = [one.lower_fps for one in found]
    return max(lowers, default=0) - min(lowers, default=0)


def _overlap(full: list[Bracket], short: list[Bracket]) -> bool:
    """Whether the ranges of both have a rate in common."""
    if not full or not short:
        return False
    highest_begin = max(min(one.lower_fps for one in each) for each in (full, short))
    lowest_end = min(max(one.lower_fps for one in each) for each in (full, short))
    return highest_begin <= lowest_end
