"""What is stored of a load over time: how long frames were lost after it fell."""

from __future__ import annotations

from pydantic import Field

from dutperf.protocol import DirectionName
from dutperf.results.rate_results import Bound
from dutperf.results.stored import Stored


class RecoveryTime(Stored):
    """One direction's recovery in one repeat (RFC 2544 26.5)."""

    value_ns: float = Field(
        description="from when the load fell to when the last lost frame was due; 0: "
        "none that was due later was lost"
    )
    within_ns: float = Field(
        description="how much longer it may have taken: until the next frame that "
        "arrived was due, and by how much the sender was late at most"
    )
    bound: Bound = None
    overload_lost: int = Field(description="frames sent until the load fell")
    reduced_lost: int = Field(description="frames sent after it fell")


class DirectionRecovery(Stored):
    """The same in all repeats."""

    direction: DirectionName
    repeats: list[RecoveryTime | None] = Field(description="null: invalid")


class Recovery(Stored):
    """The loads of a system recovery, per direction, and what each direction took."""

    throughput_fps: int
    overload_fps: int
    reduced_fps: int
    overload_ns: int = Field(description="when the load fell, since the trial's start")
    reduced_ns: int = Field(description="how long the reduced load lasted")
    within_ns: float = Field(description="the largest of all repeats")
    directions: list[DirectionRecovery]
