"""What is stored of an outage, by both methods of RFC 6201, and what was done."""

from __future__ import annotations

from pydantic import Field

from dutperf.protocol import DirectionName
from dutperf.results.rate_results import Bound
from dutperf.results.stored import Stored


class OutageTime(Stored):
    """One direction's outage in one repeat, by both methods of RFC 6201 1.3.

    Times of begin and end are since the first frame was due.
    """

    value_ns: float = Field(description="frames lost / offered rate (RFC 6201 1.3, 1)")
    within_ns: float = Field(
        description="how far it may be wrong: an interval of frames, the sender's "
        "largest lag, and frames lost in the shadow of a stall of the tester's own"
    )
    bound: Bound = None
    lost: int = Field(description="frames, in the whole trial")
    longest_lost: int = Field(description="frames, in a row")
    begin_ns: int | None = Field(
        description="when the first of these was due; null: none was lost"
    )
    end_ns: int | None = Field(
        description="when the next one that arrived was due; null: none did, or none "
        "was lost"
    )
    silence_ns: int | None = Field(
        description="from the last frame that arrived before to the first one after "
        "(RFC 6201 1.3, 2), wherever in the trial it was longest; to its end, if none "
        "arrived after; null: not known"
    )


class DirectionOutage(Stored):
    """The same in all repeats."""

    direction: DirectionName
    repeats: list[OutageTime | None] = Field(description="null: invalid")


class Action(Stored):
    """A hook that was run while frames were sent."""

    command: list[str]
    host: str | None = None
    repeat: int
    started_ns: int | None = Field(
        description="since the first frame was due; null: not known"
    )
    duration_ns: int


class Outage(Stored):
    """What was sent, what was done meanwhile, and how long each direction was out."""

    trigger_ns: int = Field(description="when something was to happen")
    actions: list[Action] = Field(description="empty: a person was asked to act")
    within_ns: float = Field(description="the largest of all repeats")
    directions: list[DirectionOutage]
