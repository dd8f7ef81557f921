"""Eviction policies told from the survivors of small tables that follow them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

import pytest

from dutperf.stats.survival import Survivors, in_both, oldest_kind, survivors

Table = Callable[[int, int], set[int]]
"""(connections asked for, size) -> those that are in the table in the end."""


def refuses(total: int, size: int) -> set[int]:
    return set(range(min(total, size)))


def drops_oldest(total: int, size: int, chunk: int = 1) -> set[int]:
    table: list[int] = []
    for number in range(total):
        if len(table) == size:
            del table[:chunk]
        table.append(number)
    return set(table)


def drops_any(total: int, size: int) -> set[int]:
    draw = random.Random(1)  # noqa: S311 - a fixed seed
    table: list[int] = []
    for number in range(total):
        if len(table) == size:
            table.pop(draw.randrange(size))
        table.append(number)
    return set(table)


def lost_of(total: int, alive: set[int]) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    for number in range(total):
        if number in alive:
            continue
        if ranges and sum(ranges[-1]) == number:
            ranges[-1] = (ranges[-1][0], ranges[-1][1] + 1)
        else:
            ranges.append((number, 1))
    return ranges


def pictured(total: int, alive: set[int], refused: int = 0) -> Survivors:
    return survivors(total, lost_of(total, alive), refused)


@pytest.mark.parametrize("size", [100, 400, 900])
def test_each_policy_is_known_by_what_it_leaves(size: int) -> None:
    for table, refused, policy in (
        (refuses, 1000 - size, "keeps_first"),
        (drops_oldest, 0, "keeps_last"),
        (drops_any, 0, "random"),
    ):
        found = pictured(1000, table(1000, size), refused)
        assert (found.policy, found.survived) == (policy, size)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("total", [6_000, 8_000])
def test_buckets_of_a_hash_table_are_told_by_when_they_lose(
    total: int, seed: int
) -> None:
    """500 buckets of 8; the survivors alone look like chance, or like a mixture."""
    draw = random.Random(seed)  # noqa: S311 - a fixed seed
    buckets: list[list[int]] = [[] for _ in range(500)]
    for number in range(total):
        draw.choice(buckets).append(number)
    refusing = {number for bucket in buckets for number in bucket[:8]}
    found = pictured(total, refusing, total - len(refusing))
    assert found.policy == "refuses_some"
    assert "none was lost that had been let in" in found.words
    dropping = {number for bucket in buckets for number in bucket[-8:]}
    found = pictured(total, dropping)
    assert found.policy == "random"
    assert "which is not told apart" in found.words


def test_a_table_that_holds_all_has_no_policy() -> None:
    assert survivors(1000, []) == Survivors(1000, 1000, "all", None, 0)
    assert survivors(1000, [(0, 1000)]) == Survivors(1000, 0, "none", None, 0)


def test_what_is_kept_is_told_with_the_border_between_old_and_new() -> None:
    first = pictured(1000, refuses(1000, 400), 600)
    assert first == Survivors(1000, 400, "keeps_first", 400, 0)
    last = survivors(1000, lost_of(1000, drops_oldest(1000, 400)))
    assert last == Survivors(1000, 400, "keeps_last", 600, 0)


@pytest.mark.parametrize(
    ("strays", "policy"), [(100, "keeps_first"), (101, "refuses_some")]
)
def test_one_in_fifty_may_be_on_the_wrong_side(strays: int, policy: str) -> None:
    """Of the living or the dead, whichever are fewer."""
    lost = [*((40 * n, 1) for n in range(strays)), (5000 + strays, 5000 - strays)]
    found = survivors(10_000, lost, 5000)
    assert (found.connections, found.survived) == (10_000, 5000)
    assert (found.policy, found.strays) == (policy, strays)


def every(step: int, begin: int, count: int) -> list[tuple[int, int]]:
    return [(begin + step * n, 1) for n in range(count)]


def test_eight_stretches_are_a_picture_of_chance_and_seven_are_none() -> None:
    assert survivors(80, every(10, 5, 8)).policy == "random"
    assert survivors(70, every(10, 5, 7)).policy == "unclear"


@pytest.mark.parametrize(
    ("refused", "policy"),
    [(0, "random"), (2, "random"), (3, "mixed"), (97, "mixed"), (98, "refuses_some")],
)
def test_one_in_fifty_may_be_lost_at_another_time(refused: int, policy: str) -> None:
    assert survivors(2000, every(10, 1000, 100), refused).policy == policy


def test_a_device_that_lets_all_in_and_keeps_the_first_has_no_known_policy() -> None:
    found = pictured(1000, refuses(1000, 400))
    assert (found.policy, found.border) == ("unclear", None)


@pytest.mark.parametrize(("policy", "refused"), [(refuses, 5000), (drops_oldest, 0)])
def test_a_few_frames_lost_on_the_way_do_not_hide_it(
    policy: Table, refused: int
) -> None:
    alive = policy(10_000, 5000)
    clear = pictured(10_000, alive, refused)
    stray = set(random.Random(2).sample(sorted(alive), 30))  # noqa: S311 - a fixed seed
    blurred = pictured(10_000, alive - stray, refused + 10)
    assert blurred.policy == clear.policy
    assert blurred.border == clear.border
    assert blurred.strays == 30


def test_the_border_and_strays_are_those_of_trying_every_border() -> None:
    draw = random.Random(3)  # noqa: S311 - a fixed seed
    for _ in range(200):
        total = draw.randrange(2, 40)
        alive = {
            n for n in range(total) if draw.random() < draw.choice((0.1, 0.5, 0.9))
        }
        if not 0 < len(alive) < total:
            continue
        found = pictured(total, alive)
        borders = range(total + 1)
        first = min(wrong(alive, range(border)) for border in borders)
        last = min(wrong(alive, range(border, total)) for border in borders)
        known = last if found.policy == "keeps_last" else min(first, last)
        assert found.strays == known


def wrong(alive: set[int], side_of_the_living: Iterable[int]) -> int:
    side = set(side_of_the_living)
    return len(side - alive) + len(alive - side)


def test_chunks_are_told_from_one_by_one_by_two_numbers() -> None:
    def kinds(chunk: int) -> str | None:
        numbers = (2000, 2003)
        alive = [drops_oldest(number, 500, chunk) for number in numbers]
        return oldest_kind(
            [survivors(n, lost_of(n, a)) for n, a in zip(numbers, alive, strict=True)]
        )

    assert kinds(1) == "one_by_one"
    assert kinds(50) == "chunks"
    one = survivors(2000, lost_of(2000, drops_oldest(2000, 500)))
    assert oldest_kind([one]) is None


def test_some_refused_and_some_dropped_is_a_policy_of_its_own() -> None:
    """As of Linux, which drops an unreplied connection if it soon finds one."""
    draw = random.Random(5)  # noqa: S311 - a fixed seed
    alive: list[int] = list(range(1000))
    refused = 0
    for new in range(1000, 2000):
        if draw.random() < 0.45:
            alive[draw.randrange(1000)] = new
        else:
            refused += 1
    found = pictured(2000, set(alive), refused)
    assert (found.policy, found.survived) == ("mixed", 1000)


def test_what_fits_no_policy_is_not_given_a_name() -> None:
    middle = set(range(300, 700))
    assert survivors(1000, lost_of(1000, middle)).policy == "unclear"


@pytest.mark.parametrize("lost", [[(5, 2), (6, 1)], [(9, 2)], [(1, 0)]])
def test_ranges_that_overlap_or_leave_the_total_are_refused(
    lost: list[tuple[int, int]],
) -> None:
    with pytest.raises(ValueError, match=r"ranges|lost up to"):
        survivors(10, lost)


@pytest.mark.parametrize("seed", range(50))
def test_what_is_lost_in_both_is_what_lives_in_neither(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - a fixed seed
    one, other = (
        {k for k in range(60) if draw.random() < share}
        for share in (draw.random(), draw.random())
    )
    found = in_both(lost_of(60, one), lost_of(60, other))
    assert found == lost_of(60, one | other)
