"""What the tester itself can offer, as the trials that it could not offer say.

One such trial says nothing: the sender may have had a stall. A limit is what a sender
meets each time, so it takes two trials at the same rate to find one. When they do not
agree about how much it is, a third one is asked, and so on; the most that any of them
managed is the limit, because a stall only makes it less.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dutperf.search.search_types import Outcome

_ABOUT_THE_SAME = 0.95
_FEWEST = 2


def sender_limit_fps(
    outcomes: Iterable[Outcome], passed_fps: float, attempts: int
) -> float | None:
    """The limit by the trials at one rate; None: they do not tell, or not yet.

    Args:
        outcomes: what those trials told; only the invalid ones are asked.
        passed_fps: what the sender offered before. Less than a frame per second more
            is a stall, and is only taken where nothing else is told.
        attempts: how often an invalid trial is run at most.
    """
    invalid = [o for o in outcomes if o.verdict == "invalid"]
    offered = sorted(o.offered_fps for o in invalid if o.offered_fps is not None)
    if len(offered) < min(_FEWEST, attempts):
        return None
    if len(invalid) >= attempts:
        return offered[-1]
    second_fps, most_fps = offered[-2:]
    agree = second_fps >= max(passed_fps + 1, _ABOUT_THE_SAME * most_fps)
    return most_fps if agree else None


def tells_nothing(
    outcomes: Sequence[Outcome], passed_fps: float, attempts: int
) -> bool:
    """Whether trials at one rate, the last of them invalid, ask for another one there.

    What the sender cannot offer, as they say, it will not offer then. For the rest see
    ``sender_limit_fps``.
    """
    invalid = sum(outcome.verdict == "invalid" for outcome in outcomes)
    if outcomes[-1].verdict != "invalid" or invalid >= attempts:
        return False
    return sender_limit_fps(outcomes, passed_fps, attempts) is None
