"""The throughput (RFC 2544 26.1): the fastest rate at which no frame is lost.

Some defaults depend on other keys: a search that judges by how much was lost needs its
trials to the end, and what belongs to one search is left out of the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from dutperf.config.loss_criteria import LossCriterion
from dutperf.config.problem import KeyedError
from dutperf.config.search_keys import (
    AUTO,
    Goal,
    GoalSpec,
    MostRepeats,
    RepeatCount,
    Search,
    Width,
)
from dutperf.config.specs.loss_keys import LossKeys, scaled, whole
from dutperf.config.specs.procedure_keys import SearchedKeys, told
from dutperf.stats import LOOKS

_VERIFIED_PERCENT = 0.5
"""Larger losses are no rare ones: one pass among them is luck."""


def _check_percent(value: float) -> float:
    return whole(value, 7, "parts per billion")


class ThroughputSpec(LossKeys, SearchedKeys):
    """The throughput, and how it is searched for (RFC 2544 26.1)."""

    procedure: Literal["throughput"] = Field(description=told("throughput"))
    repeats: RepeatCount = Field(
        default=1,
        description="how often each cell is measured; the median counts; auto repeats "
        "until the median is settled",
    )
    interval_width: Width | None = Field(
        default=None,
        description="repeats auto: until the median is known so closely; width of"
        " its 95 % confidence interval, a percentage of the median, "
        "or frames per second; default: 1%",
    )
    max_repeats: MostRepeats | None = Field(
        default=None,
        description="repeats auto: how often at most: 8, 16, 32 or 64; default: 64",
    )
    loss_tolerance_percent: Annotated[
        float, Field(ge=0, lt=100), AfterValidator(_check_percent)
    ] = Field(
        default=0,
        description="share of a direction's frames that may be lost; in percent, "
        "and above 0 it is not RFC 2544's throughput",
    )
    search: Search = Field(
        default="narrowed",
        description="classic, narrowed, verified or mlrsearch; classic starts "
        "each repeat between nothing and the maximum; narrowed does "
        "so until repeats agree exactly, and while they do the others"
        " measure only the two rates that matter; verified repeats a "
        "trial that lost frames before it counts (ETSI GS NFV-TST "
        "009); mlrsearch has several goals (RFC 9971)",
    )
    verify_trials: Annotated[int, Field(ge=2, le=10)] | None = Field(
        default=None,
        description="search verified: trials with loss until a rate has failed; "
        "default: 2",
    )
    max_verify_loss_percent: Annotated[float, Field(gt=0, lt=100)] | None = Field(
        default=None,
        description="search verified: a rate that lost more fails at once; in "
        "percent; default: 0.5; null: no limit",
    )
    goals: Annotated[list[Goal], Field(max_length=20)] = Field(
        default=[],
        description="search mlrsearch: losses that are tolerated: 0, 0.5% or "
        "0.5%:50%; after the colon in how much of the time they may "
        "be more; default: 0",
    )
    early_stop: bool = Field(
        default=True,
        description="end a trial once it is lost; when more frames are lost than "
        "may be; not for mlrsearch, which needs to know how many",
    )

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_search(cls, data: Any) -> Any:  # noqa: ANN401 - raw YAML
        return {**_defaults(data), **data} if isinstance(data, Mapping) else data

    @model_validator(mode="after")
    def _search_fits(self) -> Self:
        for trouble in self._troubles():
            raise trouble
        return self

    @property
    def most_repeats(self) -> int:
        """How often each cell is measured at most."""
        return self.repeats if self.repeats != AUTO else self.max_repeats or LOOKS[-1]

    @property
    def loss_tolerance_ppb(self) -> int:
        """The tolerated loss in parts per billion, exactly."""
        return int(scaled(self.loss_tolerance_percent, 7))

    @property
    def loss_criterion(self) -> LossCriterion:
        """By what its trials are judged."""
        return LossCriterion(
            self.frame_timeout_ms,
            self.loss_tolerance_percent,
            self.verify_trials,
            self.max_verify_loss_percent,
            tuple(self.goals),
        )

    @property
    def timed_goals(self) -> list[GoalSpec]:
        """The goals, with how long a rate is measured for each."""
        return [
            goal.model_copy(
                update={"duration_sum_s": goal.duration_sum(self.trial_duration_s)}
            )
            for goal in self.goals
        ]

    def _troubles(self) -> Iterator[KeyedError]:
        """What of its keys does not fit the others."""
        if self.repeats != AUTO:
            yield from self._only_auto("interval_width")
            yield from self._only_auto("max_repeats")
        elif self.interval_width is not None:
            yield from _too_narrow(self.interval_width, self.resolution)
        if self.search != "verified":
            yield from self._belongs("verified", "verify_trials")
            yield from self._belongs("verified", "max_verify_loss_percent")
        elif self.max_verify_loss_percent is not None and self.early_stop:
            yield KeyedError(
                ("early_stop",),
                "must be false with search verified: a trial that is ended early does "
                "not tell how much it would have lost (max_verify_loss_percent)",
            )
        if self.search != "mlrsearch":
            yield from self._belongs("mlrsearch", "goals")
        else:
            yield from self._mlr_troubles()
            yield from self._goal_troubles()

    def _belongs(self, search: Search, key: str) -> Iterator[KeyedError]:
        if getattr(self, key) != type(self).model_fields[key].default:
            yield KeyedError(
                (key,), f"belongs to search {search}, not to {self.search}"
            )

    def _only_auto(self, key: str) -> Iterator[KeyedError]:
        if getattr(self, key) is not None:
            yield KeyedError(
                (key,), "belongs to repeats auto, not to a number of repeats"
            )

    def _mlr_troubles(self) -> Iterator[KeyedError]:
        if self.early_stop:
            yield KeyedError(
                ("early_stop",),
                "must be false with mlrsearch, which needs whole trials",
            )
        if self.repeats != 1:
            yield KeyedError(
                ("repeats",),
                "must be 1 with mlrsearch: how often a rate is measured follows from "
                "its goals (duration_sum_s)",
            )
        if not self.resolution.endswith("%"):
            yield KeyedError(
                ("resolution",),
                "must be a percentage with mlrsearch (RFC 9971: goal width), not "
                f"{self.resolution} frames per second",
            )
        if self.loss_tolerance_percent:
            yield KeyedError(
                ("loss_tolerance_percent",),
                "must be left out with mlrsearch, where a goal says what may be lost: "
                f"{self.loss_tolerance_percent:.12g}%",
            )

    def _goal_troubles(self) -> Iterator[KeyedError]:
        if not self.goals:
            yield KeyedError(("goals",), "must have at least 1 entry, or be left out")
        trial_s = self.trial_duration_s
        seen = set()
        for goal in self.goals:
            duration_s = goal.duration_sum(trial_s)
            if duration_s < trial_s:
                yield KeyedError(
                    ("goals",),
                    f"duration_sum_s {duration_s:g} is less than one trial, "
                    f"{trial_s:g} s (trial_duration_s)",
                )
            if (goal.loss_percent, goal.exceed_percent, duration_s) in seen:
                yield KeyedError(
                    ("goals",), f"must not list {goal.loss_percent:.12g}% twice"
                )
            seen.add((goal.loss_percent, goal.exceed_percent, duration_s))


def _defaults(data: Mapping[str, Any]) -> dict[str, Any]:
    """Keys whose defaults depend on other keys."""
    found: dict[str, Any] = {}
    if data.get("search") == "verified":
        found |= {"verify_trials": 2, "max_verify_loss_percent": _VERIFIED_PERCENT}
    if data.get("search") == "mlrsearch":
        found["goals"] = [{}]
    verified = {**found, **data}.get("max_verify_loss_percent") is not None
    if data.get("search") == "mlrsearch" or verified:
        found["early_stop"] = False
    if data.get("repeats") == AUTO:
        width = _default_width(str(data.get("resolution")))
        found |= {"interval_width": width, "max_repeats": LOOKS[-1]}
    return found


def _default_width(resolution: str) -> str:
    """One percent, but never narrower than the resolution."""
    if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,9})?%", resolution):
        return resolution if Fraction(resolution[:-1]) > 1 else "1%"
    return "1%"


def _too_narrow(width: str, resolution: str) -> Iterator[KeyedError]:
    """An interval that no search could reach, however often it is repeated."""
    number, unit = width.removesuffix("%"), width[-1:] == "%"
    known, known_unit = resolution.removesuffix("%"), resolution[-1:] == "%"
    if unit == known_unit and Fraction(number) < Fraction(known):
        yield KeyedError(
            ("interval_width",),
            f"must not be narrower than the resolution, {resolution}: no search knows "
            f"its result to {width}",
        )
