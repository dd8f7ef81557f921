"""What is stored of delays: figures, and what each of them is of."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dutperf.protocol import (
    DirectionName,
)
from dutperf.results.rate_results import Spread
from dutperf.results.stored import Stored
from dutperf.results.trial_record import StreamName

Absent = Literal["lost", "undefined", "invalid"]


class Figure(Stored):
    """A number, or why there is none.

    lost: so many frames were lost that it is infinite. undefined: nothing arrived
    that it could be taken from. invalid: the trials were.
    """

    value: float | None
    absent: Absent | None = None
    at_most: bool = Field(
        default=False,
        description="an upper bound: no small part of it may be the tester's own",
    )
    below_ns: float | None = Field(
        default=None,
        description="what the tester's own way takes, by its passport, where that is "
        "more: all that the figure says is that it is below; null: it is not, or "
        "nobody knew",
    )


class Measure(Stored):
    """One measured quantity of one stream: a figure for each repeat, and their summary.

    A cell of latency has TL and WCL of each direction and stream, and so on: all that
    a table or chart needs, without any knowledge of the procedure. Repeats that are
    "lost" are ranked as infinite; "undefined" and "invalid" ones are left out.
    """

    name: str = Field(description="short, for example TL, WCL, PDV, IPDV max")
    quantity: str = Field(description="what it is, in words, with the RFC's section")
    direction: DirectionName
    stream: StreamName = "foreground"
    unit: Literal["ns"] = "ns"
    summary: Literal["median", "mean"] = Field(
        default="median", description="what ``result`` is of the repeats"
    )
    repeats: list[Figure]
    samples: list[int] = Field(
        description="what each repeat's figure is taken from: how many frames, tags or "
        "pairs, lost tags included; 0: invalid"
    )
    lost: list[int] = Field(
        description="how many of each repeat's samples were lost: ranked as infinite"
    )
    rounding_ns: float | None = Field(
        default=None,
        description="how much too large a repeat's figure is at most, as it is read "
        "from the buckets of a histogram",
    )
    count: int = Field(description="N, the repeats that the summary is taken from")
    result: Figure
    percentile_1: Figure = Field(description="of the repeats (RFC 8219 12)")
    percentile_99: Figure
    spread: Spread | None = Field(default=None, description="of the repeats")

    @property
    def words(self) -> str:
        """Which of a cell's it is, as findings call it: ``TL, forward``."""
        stream = "" if self.stream == "foreground" else f" {self.stream}"
        return f"{self.name}, {self.direction}{stream}"


class FrameCount(Stored):
    """Frames of one stream, over the trials that a cell's figures come from."""

    direction: DirectionName
    stream: StreamName = "foreground"
    sent: int
    received: int
    lost: int
    late: int = Field(description="slower than the frame timeout, if there is one")
    negative_delays: int = Field(description="a defect of the tester's clocks")


class DelayRecord(Stored):
    """What a cell's delays are, and how far they may be wrong.

    A delay is never understated; the tester's own share is at least ``floor_ns`` and at
    most ``bound_ns``: truth lies within [delay - bound, delay].
    """

    definition: str
    resolution: str = Field(description="how finely values are told")
    floor_ns: int = Field(description="smallest of all trials and directions")
    bound_ns: int = Field(description="largest of all trials and directions")
    usual_bound_ns: int | None = Field(
        default=None,
        description="the same of 998 in 1000 frames of each trial and direction: the "
        "99.9th percentiles of the send calls and of the gaps between polls, together",
    )
