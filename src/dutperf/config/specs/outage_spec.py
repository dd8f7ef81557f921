"""An outage (RFC 6201): how long the device forwards nothing."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from dutperf.config.problem import KeyedError
from dutperf.config.rate_reference import FixedRate
from dutperf.config.specs.fixed_load_spec import LoadKeys
from dutperf.config.specs.procedure_keys import RepeatNumber, TrialDuration, told

TRIGGER_S = 15
"""What has to be forwarded before (RFC 6201 4)."""


class OutageSpec(LoadKeys):
    """How long forwarding is interrupted (RFC 6201 4, RFC 2544 26.6, RFC 8219 7.7)."""

    procedure: Literal["outage"] = Field(description=told("outage"))
    rate_fps: FixedRate = Field(
        default="throughput",
        description="load of each direction; the throughput that the campaign finds "
        "before (RFC 6201 4), or frames per second",
    )
    trial_duration_s: TrialDuration = Field(
        default=120,
        description="how long to send; an outage that has not ended then is a lower "
        "bound",
    )
    trigger_after_s: Annotated[float, Field(ge=0, le=86400)] = Field(
        default=TRIGGER_S,
        description="when the testbed's hooks during_trial are run, or you are asked "
        "to act; since the stream began (RFC 6201 4: at least 15 s)",
    )
    repeats: RepeatNumber = Field(
        default=3,
        description="how often each cell is measured; the average counts (RFC 6201 "
        "1.4: multiple trials)",
    )

    @model_validator(mode="after")
    def _triggered_before_the_end(self) -> Self:
        if self.trigger_after_s >= self.trial_duration_s:
            raise KeyedError(
                ("trigger_after_s",),
                f"{self.trigger_after_s:g} s is not before the end of the trial, "
                f"{self.trial_duration_s:g} s (trial_duration_s)",
            )
        return self
