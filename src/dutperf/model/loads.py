"""A load that is not steady: steps, a ramp, a sine; in percent of what the load is.

    steps   100 _      _      ramp    /|  /|      sine   .-.     .-.
              _| |_   | |_          /  |/  |           '    '-'    '-

The load of a trial is its highest rate. It begins again until the trial ends.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from dutperf.model.fields import GoalSpec, Strict
from dutperf.protocol.stream_messages import RateStep

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


# Loads of a frame loss curve (RFC 2544 26.3): 100 % of the maximum rate and down.
#
# The RFC's series goes down in equal steps of 10 % or finer and ends after two loads in
# a row without loss. A list of other loads is measured as it is, and so are loads
# around the throughput.


STANDARD_STEP_PERCENT = 10.0
AROUND_THROUGHPUT = (200.0, 150.0, 125.0, 110.0, 100.0, 90.0, 75.0, 50.0)
"""In percent of it: denser where the device begins to lose frames."""
_SAME = 1e-9


def falling_loads(step_percent: float) -> list[float]:
    """100 % and all that is left above 0 % in steps, exactly as written."""
    step = Decimal(str(step_percent))
    return [float(100 - n * step) for n in range(int(100 / step) + 1) if n * step < 100]


def ends_when_lossless(loads_percent: Sequence[float]) -> bool:
    """Whether falling loads are the RFC's series, of whatever step."""
    steps = [above - below for above, below in pairwise(loads_percent)]
    if not steps or loads_percent[0] != 100:
        return False
    longest = max(*steps, loads_percent[-1])
    even = max(steps) - min(steps) < _SAME
    return even and longest < min(STANDARD_STEP_PERCENT, *steps) + _SAME


# When a trial has lost too much: what RFC 2544's "no frame is lost" is made to mean.
#
# One value for all who judge, tell or compare by it; what is left at its default is the
# RFC's own criterion.


@dataclass(frozen=True)
class LossCriterion:
    """By what a trial, or a rate, counts as lossless.

    frame_timeout_ms: frames slower than this count as lost; None: no frame is too late.
    tolerance_percent: how much of a direction's frames may be lost.
    verify_trials: so many trials must lose frames until their rate fails.
    verified_percent: a trial that lost more fails at once; None: none does.
    goals: of MLRsearch (RFC 9971), the first of which gives the result.
    """

    frame_timeout_ms: float | None = None
    tolerance_percent: float = 0
    verify_trials: int | None = None
    verified_percent: float | None = None
    goals: tuple[GoalSpec, ...] = ()

    @property
    def by_the_book(self) -> bool:
        """Whether it is RFC 2544's, that of the first goal if there are any."""
        lossy = any(g.loss_percent or g.exceed_percent for g in self.goals[:1])
        late = self.frame_timeout_ms is not None
        return not (lossy or late or self.tolerance_percent or self.verify_trials)


# A load that is named by a rate which the same campaign finds before it.
#
# ``throughput`` is the median of its repeats (RFC 2544 26.2, RFC 8219 7.2),
# ``throughput p25`` a lower quantile: their 25th percentile; ``90% of throughput`` is a
# share of it. So is ``50% of connection-rate`` where connections are opened (RFC 9693
# 4.5).
#
# ``1000 per flow`` is a load that grows with the number of flows (RFC 8219 10.2.2).


MOST_FPS = 10**12
_PER_FLOW = r"(?P<fps>[0-9]{1,13}) ?per flow"
_PER_FLOW_SCHEMA = r"^[0-9]{1,13} ?per flow$"
_PATTERN = (
    r"((?P<share>[0-9]{{1,3}}(\.[0-9]{{1,6}})?) ?% of )?"
    r"{found}( p(?P<percentile>[0-9]{{1,2}}))?"
)
_SCHEMA = r"^([0-9]{{1,3}}(\.[0-9]{{1,6}})? ?% of )?{found}( p[1-9][0-9]?)?$"

Found = Literal["throughput", "connection-rate"]


class RateReference(NamedTuple):
    """``percentile`` is that of the repeats, null: their median."""

    share_percent: Decimal
    percentile: int | None
    found: Found = "throughput"

    @property
    def plain(self) -> bool:
        """Whether it is what the RFCs ask for: all of the throughput."""
        return self.share_percent == 100 and self.percentile is None

    def of(self, found_fps: float) -> int:
        """The load, in whole frames per second, of what was found."""
        return int(Fraction(found_fps) * Fraction(self.share_percent) / 100)

    def __str__(self) -> str:
        share = "" if self.share_percent == 100 else f"{self.share_percent:f}% of "
        quantile = "" if self.percentile is None else f" p{self.percentile}"
        return f"{share}{self.found}{quantile}"


def parse_rate_reference(text: str, found: Found = "throughput") -> RateReference:
    """``text`` as a load, or a rate, that is named by what is ``found``.

    Raises:
        ValueError: continues "the value ...".
    """
    match = re.fullmatch(_PATTERN.format(found=found), " ".join(text.split()))
    if match is None:
        raise ValueError(
            f"must be whole frames per second like 100000, or {found}, {found} p25, "
            f"90% of {found}, not {text[:40]!r}"
        )
    share_percent = Decimal(match["share"] or 100)
    percentile = int(match["percentile"]) if match["percentile"] else None
    if not 0 < share_percent <= 100:
        raise ValueError(f"must be above 0 and at most 100 % of it, not {text}")
    if percentile is not None and not 1 <= percentile <= 49:
        raise ValueError(
            f"must be a lower quantile, p1 to p49 ({found} alone is the median), "
            f"not p{percentile}"
        )
    return RateReference(share_percent.normalize(), percentile, found)


def parse_rate_per_flow(text: str) -> int | None:
    """The 1000 of ``1000 per flow``, whatever it is; None: ``text`` is no such rate."""
    match = re.fullmatch(_PER_FLOW, " ".join(text.split()))
    return None if match is None else int(match["fps"])


def _rate(value: Any, found: Found = "throughput") -> int | str:  # noqa: ANN401 - raw YAML
    if isinstance(value, str):
        return str(parse_rate_reference(value, found))
    if type(value) is not int:
        raise ValueError(
            f"must be whole frames per second, or {found}, not {str(value)[:40]}"
        )
    return _in_range(value)


def _load(value: Any) -> int | str:  # noqa: ANN401 - raw YAML
    per_flow = parse_rate_per_flow(value) if isinstance(value, str) else None
    return _rate(value) if per_flow is None else f"{_in_range(per_flow)} per flow"


def _in_range(rate_fps: int) -> int:
    if rate_fps < 1:
        raise ValueError(f"must be at least 1, not {rate_fps}")
    if rate_fps > MOST_FPS:
        raise ValueError(f"must be at most {MOST_FPS}, not {rate_fps}")
    return rate_fps


def _schema(found: Found, *more: str) -> WithJsonSchema:
    patterns = [_SCHEMA.format(found=found), *more]
    return WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": MOST_FPS},
                *({"type": "string", "pattern": pattern} for pattern in patterns),
            ]
        }
    )


def _reference(value: Any) -> str:  # noqa: ANN401 - raw YAML
    if isinstance(value, str):
        return str(parse_rate_reference(value))
    raise ValueError(
        "must be throughput, or left out: loads are percentages (load_percent, --load) "
        "of the throughput or of the maximum rate"
    )


ThroughputReference = Annotated[
    str,
    PlainValidator(_reference),
    WithJsonSchema({"type": "string", "pattern": _SCHEMA.format(found="throughput")}),
]
"""A ``RateReference`` as text."""
FixedRate = Annotated[int | str, PlainValidator(_rate), _schema("throughput")]
"""Frames per second and direction, or a ``RateReference`` as text."""
LoadRate = Annotated[
    int | str, PlainValidator(_load), _schema("throughput", _PER_FLOW_SCHEMA)
]
"""The same, or a rate ``per flow`` as text."""
ConnectionRate = Annotated[
    int | str,
    PlainValidator(partial(_rate, found="connection-rate")),
    _schema("connection-rate"),
]
"""Frames per second of phase 1, or a ``RateReference`` of the connection rate."""
