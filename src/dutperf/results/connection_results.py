"""What is stored of a stateful device: its table, survivors, how it empties."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from dutperf.results.stored import Stored
from dutperf.stats.survival import Policy, Survivors


class CapacityStep(Stored):
    """One number of connections of a capacity search (RFC 9693 4.9)."""

    phase: Literal["first", "doubling", "bisection"]
    connections: int
    rate_per_s: int | None = Field(
        description="validated maximum connection establishment rate; null: none found"
    )
    least_per_s: int = Field(description="the rate that it had to reach")
    held: Literal["held", "too_slow", "full", "collapsed", "unstable"] = Field(
        description="full: not held, and as many were missing at any rate"
    )
    tests: int = Field(description="phase 1 and validation together are one")


class Capacity(Stored):
    """How one search for the capacity of the table ended."""

    connections: int | None = Field(description="held; null: not even the first")
    beyond: int | None = Field(description="not held; null: no such number is known")
    rate_per_s: int | None = Field(description="at ``connections``")
    error: int = Field(description="how close both numbers were to come")
    ending: Literal["found", "nothing_held", "most_held", "unstable", "collapsed"]
    words: str = Field(description="the ending for people")
    steps: list[CapacityStep]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Picture(Survivors):
    """Who survives: which of ``connections`` still worked, when each was tried once.

    They are numbered in the order in which they were opened. A connection whose first
    frame did not arrive was never there. ``border`` is where the living and the lost
    meet, ``strays`` are on its wrong side.
    """

    opened: Annotated[int, Field(description="arrived in phase 1")]
    rate_per_s: Annotated[int, Field(description="at which they were opened")]
    block_connections: Annotated[int, Field(description="how many are in a block")]
    blocks: Annotated[
        list[int], Field(description="survivors of each; the last may be shorter")
    ]
    lost_ranges: Annotated[
        list[tuple[int, int]],
        Field(
            description="[first, how many] of connections lost in a row; the first ones"
        ),
    ]
    more_ranges: Annotated[
        int, Field(description="how many there are beside lost_ranges")
    ]


class Eviction(Stored):
    """What the device does when its table is full, by who survives."""

    policy: Policy
    oldest: Literal["one_by_one", "chunks"] | None = Field(
        description="how the oldest are dropped; null: they are not, or it is not known"
    )
    words: str = Field(description="for people")
    pictures: list[Picture] = Field(description="by rising number of connections")


class TeardownRate(Stored):
    """One repeat of RFC 9693 4.8: what it took to delete all connections at once."""

    connections: int
    counted_before: int | None = Field(description="by the device; null: not asked")
    counted_after: int | None
    delete_s: float = Field(description="the bulk_delete hook on the full table")
    empty_s: list[float] = Field(description="the same on the empty table, each time")
    command_s: float = Field(description="median of these: what the command itself is")
    rate_per_s: float | None = Field(description="null: too short to be told from that")
    rfc_rate_per_s: float | None = Field(
        default=None,
        description="N / (B - A) of RFC 9693 4.8, the command itself included",
    )


class CountAt(Stored):
    """What the device said of its table, so long after phase 1 had ended."""

    after_s: float
    connections: int


class Expiry(Stored):
    """One repeat in which connections expired one by one."""

    connections: int
    counts: list[CountAt]
    begins_s: float | None = Field(description="when the first was gone")
    ends_s: float | None = Field(description="when the last was gone; null: not seen")
    rate_per_s: float | None = Field(description="in between")


class TableLimits(Stored):
    """What the device's own hooks showed of its table (RFC 9693 6)."""

    table_size: int | None = Field(
        default=None, description="nf_conntrack_max, state limit or the like"
    )
    hash_size: int | None = Field(default=None, description="buckets of its hash table")


def ports_in(told: object) -> int | None:
    """How many ports a range like 10000-49999 has; None if it is none."""
    least, dash, most = str(told).partition("-")
    known = dash and least.isdigit() and most.isdigit()
    return int(most) - int(least) + 1 if known else None
