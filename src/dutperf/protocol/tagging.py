"""Which frames of a stream are tagged, as in the engine's ``tag_spread.h``.

Of the frames after ``first_ns``, one in each of as many equal strata as there are tags,
at a place in it that is drawn from the trial's seed, the stream and the tag's number. A
single tag is the first of these frames.
"""

from __future__ import annotations

from functools import lru_cache

from dutperf.protocol.trial_messages import TagPlan

_WORD = 2**64 - 1
_STEP, _MIX1, _MIX2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_GROUP = 2**32 - 4
"""Beside the groups of all that varies in frames."""


def tagged_frames(
    plan: TagPlan, *, frames: int, duration_ns: int, seed: int, stream: int
) -> tuple[int, ...]:
    """Numbers of the tagged ones among ``frames`` of the stream with id ``stream``."""
    first = frames * plan.first_ns // duration_ns
    return _tagged(first, frames - first, plan.count, _key(seed, stream))


@lru_cache(maxsize=16)
def _tagged(first: int, span: int, count: int, key: int) -> tuple[int, ...]:
    begins = [first + tag * span // count for tag in range(count + 1)]
    if count == 1:
        return (first,)
    return tuple(
        begins[tag] + (_draw(key, tag) * (begins[tag + 1] - begins[tag]) >> 64)
        for tag in range(count)
    )


def _key(seed: int, stream: int) -> int:
    return _mix(_mix(seed + _STEP & _WORD) ^ _mix((stream << 32) + _GROUP + 1))


def _draw(key: int, number: int) -> int:
    return _mix(key + number * _STEP & _WORD)


def _mix(x: int) -> int:
    x = (x ^ x >> 30) * _MIX1 & _WORD
    x = (x ^ x >> 27) * _MIX2 & _WORD
    return x ^ x >> 31
