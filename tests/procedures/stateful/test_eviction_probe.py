"""How many connections show who survives, and what the pictures say."""

from __future__ import annotations

from typing import Any

import pytest
from gateways import NAT44, ClearedEngine
from planning import Recording, cell

from dutperf.procedures.stateful.connection_rate import (
    eviction,
    numbers_beyond,
    picture_of,
)
from dutperf.procedures.stateful.establishing import Establishing, Opened, stateful_of
from dutperf.protocol.stream_parts import Survival
from dutperf.results.details import Picture
from dutperf.results.trial_record import TrialRecord
from dutperf.simulation.fake_engine import SimulatedNat


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


def keeps_last(connections: int, survived: int, **keys: Any) -> Picture:  # noqa: ANN401
    """The last ones of so many survived."""
    gone = connections - survived
    known: dict[str, Any] = {
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
    return Picture(**(known | keys))


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


def arrived(
    *received: int, lost: list[tuple[int, int]] | None = None, more: int = 0
) -> Survival:
    """Of blocks of four connections."""
    return Survival(
        block_frames=4,
        received=list(received),
        lost_ranges=lost or [],
        more_ranges=more,
    )


def with_survival(record: TrialRecord, told: Survival | None) -> TrialRecord:
    (direction,) = record.result.directions
    (stream,) = direction.streams
    streams = [stream.model_copy(update={"survival": told})]
    directions = [direction.model_copy(update={"streams": streams})]
    result = record.result.model_copy(update={"directions": directions})
    return record.model_copy(update={"result": result})


def seen(
    first: Survival | None, back: Survival | None, connections: int = 10
) -> Picture | None:
    """The picture of both phases of one test."""
    asked = cell(
        NAT44,
        procedure="connection-rate",
        stateful={"connections": connections, "alpha": 1},
    )
    runner = Recording(ClearedEngine(SimulatedNat()), testbed=NAT44).runner
    opened = Establishing(runner, asked, 1).both(stateful_of(asked), 1000)
    assert opened.back is not None
    both = Opened(with_survival(opened.first, first), with_survival(opened.back, back))
    return picture_of(both, stateful_of(asked))


@pytest.mark.parametrize(
    ("first", "back", "lost", "blocks"),
    [
        ([], [], [], [4, 4, 2]),
        ([(1, 2)], [(6, 1)], [(1, 2), (6, 1)], [2, 3, 2]),
        ([(0, 2)], [(1, 3)], [(0, 4)], [0, 4, 2]),
        ([(0, 6)], [(1, 3)], [(0, 6)], [0, 2, 2]),  # one within the other
        ([(2, 2)], [(0, 2)], [(0, 4)], [0, 4, 2]),  # one right after the other
        ([(2, 1)], [(0, 1), (9, 1)], [(0, 1), (2, 1), (9, 1)], [2, 4, 1]),
    ],
)
def test_a_connection_that_either_phase_lost_did_not_survive(
    first: list[tuple[int, int]],
    back: list[tuple[int, int]],
    lost: list[tuple[int, int]],
    blocks: list[int],
) -> None:
    picture = seen(arrived(3, 3, 1, lost=first), arrived(4, 4, 2, lost=back))
    assert picture is not None
    assert (picture.lost_ranges, picture.more_ranges) == (lost, 0)
    assert (picture.blocks, picture.block_connections) == (blocks, 4)
    assert (picture.survived, picture.opened) == (sum(blocks), 7)
    assert (picture.connections, picture.rate_per_s) == (10, 1000)


@pytest.mark.parametrize(("of_first", "of_back"), [(1, 0), (0, 1), (1, 1)])
def test_where_not_every_range_is_told_each_block_counts(
    of_first: int, of_back: int
) -> None:
    picture = seen(arrived(4, 2, 2, more=of_first), arrived(3, 4, 0, more=of_back))
    assert picture is not None
    assert picture.blocks == [3, 2, 0]
    assert picture.survived == 5
    assert picture.lost_ranges == [(3, 1), (6, 2), (8, 2)]


def test_the_picture_stores_its_first_hundred_ranges() -> None:
    lost = [(number, 1) for number in range(0, 404, 2)]
    picture = seen(arrived(lost=lost), arrived(), connections=404)
    assert picture is not None
    assert (picture.lost_ranges, picture.more_ranges) == (lost[:100], 102)
    assert picture.survived == 202


def test_without_both_phases_there_is_no_picture() -> None:
    assert seen(None, arrived(4, 4, 2)) is None
    assert seen(arrived(4, 4, 2), None) is None
