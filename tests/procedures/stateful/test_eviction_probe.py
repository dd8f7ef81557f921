"""How many connections show who survives, and what the pictures say."""

from __future__ import annotations

import pytest

from dutperf.procedures.stateful.eviction_probe import eviction, numbers_beyond
from dutperf.results.connection_results import Survival


@pytest.mark.parametrize(
    ("capacity", "most", "numbers"),
    [
        (700, 3000, [1050, 1050 + 349]),  # 350 is no prime, 349 is
        (700, 1200, [1050, 1200]),
        (700, 1000, [1000]),
        (700, 700, []),  # there are no more
        (1, 100, [2, 4]),
        (3, 100, [4, 6]),
        (8, 100, [12, 15]),  # 4 is no prime: a chunk of 2 would divide it
        (18, 100, [27, 34]),  # 9 is none, 8 neither
        (50, 1000, [75, 98]),  # nor are 25 and 24
    ],
)
def test_two_numbers_beyond_the_capacity_differ_by_a_prime(
    capacity: int, most: int, numbers: list[int]
) -> None:
    assert numbers_beyond(capacity, most) == numbers


def keeps_last(connections: int, survived: int, **keys: object) -> Survival:
    """The last ones of so many survived."""
    gone = connections - survived
    known = {
        "connections": connections,
        "opened": connections,
        "survived": survived,
        "rate_per_s": 1000,
        "policy": "keeps_last",
        "border": gone,
        "strays": 0,
        "block_connections": connections,
        "blocks": [survived],
        "lost_ranges": [(0, gone)],
        "more_ranges": 0,
    }
    return Survival.model_validate(known | keys)


@pytest.mark.parametrize(
    ("kept", "oldest", "words"),
    [
        (700, "one_by_one", "the oldest, one by one"),
        (680, "chunks", "oldest, in chunks"),
    ],
)
def test_two_pictures_tell_in_words_how_the_oldest_are_dropped(
    kept: int, oldest: str, words: str
) -> None:
    found = eviction([keeps_last(1050, 700), keeps_last(1399, kept)])
    assert (found.policy, found.oldest) == ("keeps_last", oldest)
    assert found.words.endswith(words)


def test_one_picture_leaves_open_how_the_oldest_are_dropped() -> None:
    found = eviction([keeps_last(1050, 700)])
    assert found.oldest is None
    assert found.words.endswith("one by one or in chunks")


def test_the_last_picture_names_the_policy() -> None:
    unclear = keeps_last(1500, 700, policy="unclear", border=None, strays=300)
    found = eviction([keeps_last(1050, 700), keeps_last(1399, 700), unclear])
    assert found.policy == "unclear"
    assert "one by one" not in found.words
