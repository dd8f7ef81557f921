"""Back-to-back frames (RFC 9004): the longest burst that a device takes without loss.

Bursts are sent at the maximum rate, so what can be chosen is how long they may be, and
how the search for the longest one goes (ETSI GS NFV-TST 009 12.3).
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from dutperf.config.problem import KeyedError
from dutperf.config.rate_reference import FixedRate, RateReference, parse_rate_reference
from dutperf.config.search_keys import Width
from dutperf.config.specs.procedure_keys import (
    ReferenceUse,
    RepeatNumber,
    StreamKeys,
    told,
)


class BackToBackSpec(StreamKeys):
    """The longest burst without loss (RFC 9004, RFC 2544 26.4)."""

    procedure: Literal["back-to-back"] = Field(description=told("back-to-back"))
    throughput_fps: FixedRate = Field(
        default="throughput",
        description="what frames leave the device's buffer at (RFC 9004 6.4); the"
        " buffer time is corrected by it; the throughput that the "
        "campaign finds before, or frames per second",
    )
    longest_burst_s: Annotated[float, Field(ge=0.0001, le=30)] = Field(
        default=2,
        description="how long the longest burst takes (RFC 9004 6.2: up to 30 s)",
    )
    step: Width = Field(
        default="1",
        description="where the search stops, in frames or '5%' of the burst; RFC "
        "9004 6.2: minimum step size",
    )
    verify_trials: Annotated[int, Field(ge=1, le=10)] = Field(
        default=2,
        description="trials with loss until a burst is too long; binary search "
        "with loss verification; 1: binary search",
    )
    max_verify_loss_percent: Annotated[float, Field(gt=0, le=100)] = Field(
        default=10,
        description="a burst that lost more is not tried again; in percent",
    )
    repeats: RepeatNumber = Field(
        default=50,
        description="how many searches; their average counts (RFC 2544 26.4: at least "
        "50)",
    )

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        for number, profile in enumerate(self.traffic):
            if profile.imix:
                raise KeyedError(
                    ("traffic", number, "imix"),
                    "must be left out: bursts have frames of one size (RFC 9004 3)",
                )
        return self

    @property
    def trial_duration_s(self) -> float:
        """Of the longest burst."""
        return self.longest_burst_s

    @property
    def rate_reference(self) -> RateReference | None:
        """The throughput, if the campaign finds it before."""
        known = self.throughput_fps
        return parse_rate_reference(known) if isinstance(known, str) else None

    @property
    def reference_use(self) -> ReferenceUse:
        """The buffer time is corrected by it."""
        return "correction"

    @property
    def up_to_maximum(self) -> bool:
        """Bursts are at the maximum rate."""
        return True

    @property
    def most_repeats(self) -> int:
        """How often each cell is measured at most."""
        return self.repeats
