"""``campaign.yaml``: what to measure, where, and how carefully.

A campaign expands to independent cells (procedure x IP version x frame size x
direction); each needs one testbed. The resolved campaign, written beside the results,
is itself a valid campaign.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from dutperf.config.testbed import Strict, Testbed
from dutperf.engine.protocol import IpVersion

Direction = Literal["both", "forward", "reverse"]
Seconds = Annotated[float, Field(ge=0, le=86400)]
FrameSize = Annotated[int, Field(ge=64, le=9216)]
Resolution = Annotated[
    str,
    Field(
        pattern=r"^[0-9]+(\.[0-9]+)?%?$",
        description="'5%' of the result, or frames per second, '1000'",
    ),
]


class TrialTimes(Strict):
    """The times of one trial (RFC 2544 23 and 24); the defaults are the RFC's."""

    trial_duration_s: Annotated[float, Field(ge=0.01, le=86400)] = 60
    settle_wait_s: Seconds = 2
    residual_wait_s: Seconds = 2
    restabilise_wait_s: Seconds = 5


class ProcedureSpec(TrialTimes):
    """One procedure over a matrix of cells."""

    procedure: Literal["throughput", "frame-loss"]
    ip: list[IpVersion] = Field(
        default=[], description="empty: all that both sides have"
    )
    frame_size: list[FrameSize] = Field(
        default=[], description="empty: the smallest, 64 for IPv4 and 84 for IPv6"
    )
    direction: Direction = "both"
    resolution: Resolution = "0.1%"
    max_rate_fps: Annotated[int, Field(ge=1)] | None = None
    repeats: Annotated[int, Field(ge=1, le=1000)] = 1
    load_percent: list[Annotated[float, Field(gt=0, le=100)]] = Field(
        default=[],
        description="frame-loss: loads in percent; empty: 100, 90, ... (RFC 2544 26.3)",
    )
    lag_limit_ms: Annotated[float, Field(gt=0, le=10000)] = 10
    burst_limit: Annotated[int, Field(ge=1, le=64)] = 32


class Campaign(Strict):
    """What to measure on one testbed: given inline, as a file, or as a lab's name."""

    schema_version: Literal[1] = 1
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    lab: str | None = None
    testbed: Testbed | str | None = None
    procedures: Annotated[list[ProcedureSpec], Field(min_length=1)]

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.lab is None) == (self.testbed is None):
            raise ValueError("give exactly one of the keys lab and testbed")
        return self


class Cell(TrialTimes):
    """One independent job: a procedure at one IP version, frame size, direction."""

    id: str
    procedure: Literal["throughput", "frame-loss"]
    ip: IpVersion
    frame_size: int
    direction: Direction
    resolution: str
    max_rate_fps: int | None
    repeats: int
    load_percent: list[float]
    lag_limit_ms: float
    burst_limit: int
    seed: int
