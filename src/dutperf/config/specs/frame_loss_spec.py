"""The frame loss rate (RFC 2544 26.3): loss over the whole range of loads."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from dutperf.config.fields import distinct
from dutperf.config.load_steps import (
    AROUND_THROUGHPUT,
    STANDARD_STEP_PERCENT,
    falling_loads,
)
from dutperf.config.loss_criteria import LossCriterion
from dutperf.config.problem import KeyedError
from dutperf.config.rate_reference import (
    RateReference,
    ThroughputReference,
    parse_rate_reference,
)
from dutperf.config.specs.loss_keys import LossKeys
from dutperf.config.specs.procedure_keys import (
    ReferenceUse,
    RepeatNumber,
    told,
)

Percent = Annotated[float, Field(gt=0, le=1000)]


class FrameLossSpec(LossKeys):
    """Frame loss over offered load (RFC 2544 26.3)."""

    procedure: Literal["frame-loss"] = Field(description=told("frame-loss"))
    load_percent: Annotated[list[Percent], Field(max_length=1000)] = Field(
        default=[],
        min_length=1,
        description="loads in percent of the maximum rate; default: as "
        "load_step_percent says; with rate_fps: in percent of that, which may be above "
        "100, default: 200 to 50",
    )
    load_step_percent: Annotated[float, Field(ge=0.1, le=10)] | None = Field(
        default=None,
        description="from 100 % down in such steps (RFC 2544 26.3: at most 10); "
        "until two loads in a row are lossless; finer is encouraged; "
        "default: 10",
    )
    rate_fps: ThroughputReference | None = Field(
        default=None,
        description="what 100 % is: a rate, throughput or 90% of throughput; "
        "throughput is the one that the campaign finds before; "
        "default: the maximum rate",
    )
    repeats: RepeatNumber = Field(
        default=1, description="how often each load is measured; the median counts"
    )

    @field_validator("load_percent")
    @classmethod
    def _loads_once(cls, values: list[float]) -> list[float]:
        return distinct(values)

    @model_validator(mode="after")
    def _one_kind_of_load(self) -> Self:
        if self.load_step_percent is not None:
            if self.load_percent:
                raise ValueError("give load_percent or load_step_percent, not both")
            if self.rate_fps is not None:
                raise ValueError(
                    "load_step_percent is of the maximum rate: with rate_fps give "
                    "load_percent"
                )
        highest = max(self.load_percent, default=0)
        if highest > 100 and not self.rate_fps:
            raise KeyedError(
                ("load_percent",),
                f"{highest:g} is above 100: give rate_fps: throughput "
                "for loads in percent of the throughput",
            )
        return self

    @property
    def loads_percent(self) -> list[float]:
        """All loads, the highest first."""
        if self.load_percent:
            return sorted(self.load_percent, reverse=True)
        if self.rate_fps:
            return list(AROUND_THROUGHPUT)
        return falling_loads(self.load_step_percent or STANDARD_STEP_PERCENT)

    @property
    def rate_reference(self) -> RateReference | None:
        """What 100 % is, if it is known only when the throughput was found."""
        return None if self.rate_fps is None else parse_rate_reference(self.rate_fps)

    @property
    def reference_use(self) -> ReferenceUse:
        """What ``rate_reference`` is for."""
        return "full load"

    @property
    def most_repeats(self) -> int:
        """How often each load is measured at most."""
        return self.repeats

    @property
    def loss_criterion(self) -> LossCriterion:
        """By what its trials are judged."""
        return LossCriterion(frame_timeout_ms=self.frame_timeout_ms)
