"""System recovery (RFC 2544 26.5): how long frames are lost after an overload."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dutperf.config.rate_reference import FixedRate, RateReference, parse_rate_reference
from dutperf.config.specs.procedure_keys import (
    ReferenceUse,
    RepeatNumber,
    StreamKeys,
    TrialDuration,
    told,
)

OVERLOAD_PERCENT = 110
OVERLOAD_S = 60
"""As RFC 2544 26.5 has them."""


class SystemRecoverySpec(StreamKeys):
    """How long the device needs after an overload (RFC 2544 26.5, RFC 8219 7.6)."""

    procedure: Literal["system-recovery"] = Field(description=told("system-recovery"))
    throughput_fps: FixedRate = Field(
        default="throughput",
        description="what the overload is a share of; the throughput that the campaign "
        "finds before, or frames per second",
    )
    overload_percent: Annotated[float, Field(gt=100, le=1000)] = Field(
        default=OVERLOAD_PERCENT,
        description="the overload in percent of the throughput; never more than the "
        "maximum rate (RFC 2544 26.5: 110)",
    )
    overload_duration_s: TrialDuration = Field(
        default=OVERLOAD_S,
        description="how long the overload is sent (RFC 2544 26.5: at least 60 s)",
    )
    reduced_duration_s: TrialDuration = Field(
        default=60,
        description="how long half of the overload is sent after it; what is still "
        "lost in its last tenth makes the recovery a lower bound",
    )
    repeats: RepeatNumber = Field(
        default=10,
        description="how often each cell is measured; the average counts (RFC 2544 "
        "26.5: a number of times)",
    )

    @property
    def trial_duration_s(self) -> float:
        """Of overload and reduced load together."""
        return self.overload_duration_s + self.reduced_duration_s

    @property
    def rate_reference(self) -> RateReference | None:
        """The throughput, if the campaign finds it before."""
        known = self.throughput_fps
        return parse_rate_reference(known) if isinstance(known, str) else None

    @property
    def reference_use(self) -> ReferenceUse:
        """The overload is a share of it."""
        return "overload"

    @property
    def up_to_maximum(self) -> bool:
        """The overload is as much as the ports can offer, if that is less."""
        return True

    @property
    def most_repeats(self) -> int:
        """How often each cell is measured at most."""
        return self.repeats
