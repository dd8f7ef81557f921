"""Which connections survive when more are opened than the table holds (RFC 9693 4.9).

Each of them is tried once, whatever became of its first frame; those whose first frame
did not arrive were never there, even if a frame that was sent for them came back.
"""

from __future__ import annotations

from collections.abc import Sequence

from dutperf.model.stateful_keys import Stateful
from dutperf.procedures.searching import NoUseError
from dutperf.procedures.stateful.establishing import Establishing, Opened
from dutperf.procedures.trials import ATTEMPTS
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.stream_parts import Survival
from dutperf.results.details import Eviction, Picture
from dutperf.search import attempted
from dutperf.stats.survival import Ranges, oldest_kind, survivors

SLOW_PER_S = 1000
"""A rate at which no device loses a connection for its speed."""
_MOST_RANGES = 100


def numbers_beyond(capacity: int, most: int) -> list[int]:
    """How many connections to open: about 1.5 and 2 times the capacity, if there are.

    The two differ by a prime number, so that no size of a chunk divides it: a device
    that drops chunks keeps another number each time.
    """
    first = min(capacity + max(1, capacity // 2), most)
    second = min(first + _prime_up_to(max(2, capacity // 2)), most)
    return sorted({number for number in (first, second) if number > capacity})


def probe_eviction(
    tests: Establishing, stateful: Stateful, numbers: Sequence[int], rate_per_s: int
) -> Eviction | None:
    """What the device evicts, by the survivors of each of ``numbers``.

    None where no trial told anything.

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    pictures = [
        picture
        for number in numbers
        if (picture := _picture(tests, stateful.with_connections(number), rate_per_s))
    ]
    return eviction(pictures) if pictures else None


def eviction(pictures: Sequence[Picture]) -> Eviction:
    """The policy that the last picture shows, and what two of them tell."""
    last = pictures[-1]
    oldest = oldest_kind(pictures)
    words = last.words
    if oldest:  # others have no such words
        named = {"one_by_one": "one by one", "chunks": "in chunks"}[oldest]
        words = words.replace("one by one or in chunks", named)
    return Eviction(
        policy=last.policy, oldest=oldest, words=words, pictures=list(pictures)
    )


def _picture(
    tests: Establishing, stateful: Stateful, rate_per_s: int
) -> Picture | None:
    """Both phases, again while they are invalid."""
    opened_and_used = (
        tests.both(stateful, rate_per_s, goes_on=("pass", "fail"))
        for _ in range(ATTEMPTS)
    )
    try:
        opened = attempted(opened_and_used, lambda tried: tried[-1].tells_nothing)[-1]
    except NoUseError:
        return None
    return None if opened.tells_nothing else picture_of(opened, stateful)


def picture_of(opened: Opened, stateful: Stateful) -> Picture | None:
    """Of both phases of one test; None where there was but one."""
    if opened.back is None:
        return None
    total = stateful.connections
    first, back = _survival(opened.first.result), _survival(opened.back.result)
    if first is None or back is None:
        return None
    size = back.block_frames
    if first.more_ranges or back.more_ranges:
        pairs = zip(first.received, back.received, strict=True)
        blocks = [min(pair) for pair in pairs]
        lost = _spread(blocks, size, total)
    else:
        lost = _joined([*first.lost_ranges, *back.lost_ranges])
        blocks = _by_block(lost, size, total)
    opened_first = sum(first.received)
    return Picture(
        **vars(survivors(total, lost, total - opened_first)),
        opened=opened_first,
        rate_per_s=opened.first.load_fps,
        block_connections=size,
        blocks=blocks,
        lost_ranges=lost[:_MOST_RANGES],
        more_ranges=max(0, len(lost) - _MOST_RANGES),
    )


def _survival(result: TrialResult) -> Survival | None:
    return result.directions[0].streams[0].survival


def _joined(ranges: Ranges) -> Ranges:
    """Rising, and without overlap."""
    found: Ranges = []
    for first, count in sorted(ranges):
        if found and first <= sum(found[-1]):
            begin = found[-1][0]
            found[-1] = (begin, max(sum(found[-1]), first + count) - begin)
        else:
            found.append((first, count))
    return found


def _spread(blocks: Sequence[int], size: int, total: int) -> Ranges:
    """Ranges that say of each block no more than how many were lost in it."""
    found: Ranges = []
    for number, alive in enumerate(blocks):
        end = min((number + 1) * size, total)
        begin = number * size + alive
        if end > begin:
            found.append((begin, end - begin))
    return found


def _by_block(lost: Ranges, size: int, total: int) -> list[int]:
    """How many of each block survived."""
    blocks = [min(size, total - begin) for begin in range(0, total, size)]
    for first, count in lost:
        at = first
        while at < first + count:
            end = min((at // size + 1) * size, first + count)
            blocks[at // size] -= end - at
            at = end
    return blocks


def _prime_up_to(number: int) -> int:
    """The largest one."""
    return next(n for n in range(number, 1, -1) if _is_prime(n))


def _is_prime(number: int) -> bool:
    return all(number % d for d in range(2, int(number**0.5) + 1))
