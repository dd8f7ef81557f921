"""A load that is not steady: steps, a ramp, a sine; in percent of what the load is.

    steps   100 _      _      ramp    /|  /|      sine   .-.     .-.
              _| |_   | |_          /  |/  |           '    '-'    '-

The load of a trial is its highest rate. It begins again until the trial ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Self

from pydantic import Field, model_validator

from dutperf.config.fields import Strict
from dutperf.protocol import RateStep

_STEPS = 100
"""Of a ramp or a sine: one percent, or less, from one to the next."""
_PERIOD = Annotated[float, Field(ge=0.1, le=86400)]


class LoadStep(Strict):
    """A part of the load, for a time."""

    percent: Annotated[float, Field(ge=0, le=100)] = Field(
        description="of the load; the highest step is 100"
    )
    duration_s: Annotated[float, Field(ge=0.001, le=86400)] = Field(
        description="how long it lasts"
    )


class LoadShape(Strict):
    """One of three shapes."""

    steps: Annotated[list[LoadStep], Field(min_length=2, max_length=1000)] | None = (
        Field(default=None, description="one after the other")
    )
    ramp_s: _PERIOD | None = Field(
        default=None, description="from from_percent up to 100 in so many seconds"
    )
    sine_s: _PERIOD | None = Field(
        default=None, description="from from_percent up to 100 and back"
    )
    from_percent: Annotated[float, Field(ge=0, lt=100)] = Field(
        default=0, description="the lowest point of a ramp or a sine"
    )

    @model_validator(mode="after")
    def _one_shape(self) -> Self:
        given = [self.steps, self.ramp_s, self.sine_s]
        if sum(each is not None for each in given) != 1:
            raise ValueError("give one of steps, ramp_s and sine_s")
        if self.steps is not None:
            if self.from_percent:
                raise ValueError("from_percent is of a ramp or a sine, not of steps")
            if max(step.percent for step in self.steps) != 100:
                raise ValueError("the highest step must be 100 percent")
        return self

    @property
    def label(self) -> str:
        """Part of a cell's name."""
        if self.steps is not None:
            return f"steps{len(self.steps)}"
        low = f"-from{self.from_percent:.12g}" if self.from_percent else ""
        if self.ramp_s is not None:
            return f"ramp{self.ramp_s:.12g}s{low}"
        return f"sine{self.sine_s:.12g}s{low}"

    @property
    def period_s(self) -> float:
        """After so long it begins again."""
        if self.steps is not None:
            return math.fsum(step.duration_s for step in self.steps)
        return self.ramp_s or self.sine_s or 0.0

    def of_load(self, rate_fps: int) -> list[RateStep]:
        """One period at a load of ``rate_fps``, which is the highest step's rate."""
        return [
            RateStep(rate_fps=round(rate_fps * share), duration_ns=duration_ns)
            for share, duration_ns in self._parts()
        ]

    def _parts(self) -> Iterator[tuple[float, int]]:
        if self.steps is not None:
            for step in self.steps:
                yield step.percent / 100, round(step.duration_s * 1e9)
            return
        period_ns, low = round(self.period_s * 1e9), self.from_percent / 100
        ends = [number * period_ns // _STEPS for number in range(_STEPS + 1)]
        for number, (begin_ns, end_ns) in enumerate(pairwise(ends)):
            yield low + (1 - low) * self._height(number), end_ns - begin_ns

    def _height(self, number: int) -> float:
        """Of one of ``_STEPS``, from 0 to 1; both are among them."""
        if self.ramp_s is not None:
            return number / (_STEPS - 1)
        return (1 - math.cos(2 * math.pi * number / _STEPS)) / 2
