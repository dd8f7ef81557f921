"""Keys about the search of a throughput: which one, how often, with which goals.

Some defaults depend on other keys: a search that judges by how much was lost needs its
trials to the end, and what belongs to one search is left out of the others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PlainValidator, WithJsonSchema

from dutperf.config.delay_keys import Procedure
from dutperf.config.fields import NumberAsText, Short, Strict
from dutperf.stats import LOOKS

Search = Literal["narrowed", "classic", "verified", "mlrsearch"]
Auto = Literal["auto"]
AUTO: Auto = "auto"

_MOST_REPEATS = 1000
_GOAL = r"([0-9]{1,2}(?:\.[0-9]{1,7})?)%?(?::([0-9]{1,2}(?:\.[0-9]{1,7})?)%?)?"


def _check_width(text: str) -> str:
    if not re.fullmatch(r"[0-9]{1,12}|[0-9]{1,3}(\.[0-9]{1,9})?%", text):
        raise ValueError(
            "must be a percentage like '0.1%' or whole frames per second like 1000, "
            f"not {text!r}"
        )
    number = float(text.removesuffix("%"))
    if number == 0:
        raise ValueError("must be above 0: no search can end there")
    if text.endswith("%") and number >= 100:
        raise ValueError(f"must be below 100%, not {text}")
    return text


Width = Annotated[
    str,
    NumberAsText,
    AfterValidator(_check_width),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?%$|^[0-9]+$"},
                {"type": "integer", "minimum": 1},
            ]
        }
    ),
]
"""How close two rates must come."""


def _check_repeats(value: Any) -> Any:  # noqa: ANN401 - raw YAML
    if value == AUTO or (type(value) is int and 1 <= value <= _MOST_REPEATS):
        return value
    raise ValueError(
        f"must be a whole number from 1 to {_MOST_REPEATS}, or auto, not {value!r}"
    )


RepeatCount = Annotated[
    int | Auto,
    PlainValidator(_check_repeats),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": _MOST_REPEATS},
                {"const": AUTO},
            ]
        }
    ),
]


def _check_looks(number: int) -> int:
    if number not in LOOKS:
        known = ", ".join(map(str, LOOKS))
        raise ValueError(f"must be one of {known}, not {number}")
    return number


class GoalSpec(Strict):
    """What a rate must hold to be a result of MLRsearch (RFC 9971 4.6)."""

    loss_percent: Annotated[float, Field(ge=0, lt=100)] = Field(
        default=0, description="how much of a trial's frames may be lost, in percent"
    )
    exceed_percent: Annotated[float, Field(ge=0, lt=100)] = Field(
        default=0,
        description="in how much of the time more may be lost, in percent",
    )
    duration_sum_s: Annotated[float, Field(gt=0, le=864_000)] | None = Field(
        default=None,
        description="how long a rate is measured until it is decided; default: one "
        "trial, or as many as it takes to tolerate one that lost more",
    )

    def duration_sum(self, trial_s: float) -> float:
        """In seconds, with trials of ``trial_s``."""
        if self.duration_sum_s is not None:
            return self.duration_sum_s
        if not self.exceed_percent:
            return trial_s
        return trial_s * math.ceil(100 / Fraction(str(self.exceed_percent)))


def _goal(text: str) -> Mapping[str, Any]:
    found = re.fullmatch(_GOAL, text.strip())
    if not found:
        raise ValueError(
            "must be the loss that is tolerated, and in how much of the time it may be "
            f"more: 0, 0.5% or 0.5%:50%, not {text!r}"
        )
    loss, exceed = found.groups()
    return {"loss_percent": float(loss), "exceed_percent": float(exceed or 0)}


Goal = Annotated[
    GoalSpec,
    Short(kind=str, expand=_goal, schema={"type": "string", "pattern": f"^{_GOAL}$"}),
]


def search_defaults(data: Mapping[str, Any]) -> dict[str, Any]:
    """Keys of a procedure whose defaults depend on other keys of it."""
    found: dict[str, Any] = {}
    if data.get("search") == "verified":
        found["verify_trials"] = 2
    if data.get("search") == "mlrsearch":
        found["goals"] = [{}]
    if data.get("search") == "mlrsearch" or data.get("hopeless_loss_percent"):
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


class SearchSettings(Strict):
    """Keys of a throughput search."""

    search: Search = Field(
        default="narrowed",
        description="throughput: classic starts each repeat between nothing and the "
        "maximum; narrowed does so until repeats agree exactly, and while they do the "
        "others measure only the two rates that matter; verified repeats a trial that "
        "lost frames before it counts (ETSI GS NFV-TST 009); mlrsearch has several "
        "goals (RFC 9971)",
    )
    verify_trials: Annotated[int, Field(ge=2, le=10)] | None = Field(
        default=None,
        description="throughput, search verified: so many trials at a rate must lose "
        "frames until it counts as failed; default: 2",
    )
    hopeless_loss_percent: Annotated[float, Field(gt=0, lt=100)] | None = Field(
        default=None,
        description="throughput, search verified: a trial that lost more than this is "
        "not repeated, in percent; its trials are not ended early",
    )
    goals: Annotated[list[Goal], Field(max_length=20)] = Field(
        default=[],
        description="throughput, search mlrsearch: losses that are tolerated, and in "
        "how much of the time they may be more: 0, 0.5% or 0.5%:50%; default: 0",
    )
    early_stop: bool = Field(
        default=True,
        description="throughput: end a trial when more frames are lost than may be; "
        "not for mlrsearch, which needs to know how many",
    )
    interval_width: Width | None = Field(
        default=None,
        description="throughput, repeats auto: repeat until the 95 % confidence "
        "interval of the median is no wider than this; a percentage of the median, or "
        "frames per second; default: 1%",
    )
    max_repeats: Annotated[int, AfterValidator(_check_looks)] | None = Field(
        default=None,
        description="throughput, repeats auto: how often at most: 8, 16, 32 or 64; "
        "default: 64",
    )

    def search_troubles(
        self,
        procedure: Procedure,
        repeats: int | Auto,
        resolution: str,
        trial_s: float,
        loss_tolerance_percent: float,
    ) -> Iterator[str]:
        """What of these keys does not fit the others."""
        if repeats != AUTO:
            yield from self._only_auto("interval_width")
            yield from self._only_auto("max_repeats")
        elif self.interval_width is not None:
            yield from _too_narrow(self.interval_width, resolution)
        if procedure != "throughput":
            yield from self._foreign(procedure, repeats)
            return
        if self.search != "verified":
            yield from self._belongs("verified", "verify_trials")
            yield from self._belongs("verified", "hopeless_loss_percent")
        elif self.hopeless_loss_percent is not None and self.early_stop:
            yield (
                "hopeless_loss_percent: must be left out with early_stop: a trial that "
                "is ended early does not tell how much it would have lost"
            )
        if self.search != "mlrsearch":
            yield from self._belongs("mlrsearch", "goals")
        else:
            yield from self._mlr_troubles(repeats, resolution, loss_tolerance_percent)
            yield from self._goal_troubles(trial_s)

    def _foreign(self, procedure: Procedure, repeats: int | Auto) -> Iterator[str]:
        for key, field in SearchSettings.model_fields.items():
            if getattr(self, key) != field.default and key not in _OF_AUTO:
                yield f"{key}: belongs to throughput, not to {procedure}"
        if repeats == AUTO:
            yield f"repeats: auto belongs to throughput; {procedure} needs a number"

    def _belongs(self, search: Search, key: str) -> Iterator[str]:
        if getattr(self, key) != SearchSettings.model_fields[key].default:
            yield f"{key}: belongs to search {search}, not to {self.search}"

    def _only_auto(self, key: str) -> Iterator[str]:
        if getattr(self, key) is not None:
            yield f"{key}: belongs to repeats auto, not to a number of repeats"

    def _mlr_troubles(
        self, repeats: int | Auto, resolution: str, loss_tolerance_percent: float
    ) -> Iterator[str]:
        if self.early_stop:
            yield "early_stop: must be false with mlrsearch, which needs whole trials"
        if repeats != 1:
            yield (
                "repeats: must be 1 with mlrsearch: how often a rate is measured "
                "follows from its goals (duration_sum_s)"
            )
        if not resolution.endswith("%"):
            yield (
                "resolution: must be a percentage with mlrsearch (RFC 9971: goal "
                f"width), not {resolution} frames per second"
            )
        if loss_tolerance_percent:
            yield (
                "loss_tolerance_percent: must be left out with mlrsearch, where a goal "
                f"says what may be lost: {loss_tolerance_percent:.12g}%"
            )

    def _goal_troubles(self, trial_s: float) -> Iterator[str]:
        if not self.goals:
            yield "goals: must have at least 1 entry, or be left out"
        seen = set()
        for goal in self.goals:
            duration_s = goal.duration_sum(trial_s)
            if duration_s < trial_s:
                yield (
                    f"goals: duration_sum_s {duration_s:g} is less than one trial, "
                    f"{trial_s:g} s (trial_duration_s)"
                )
            if (goal.loss_percent, goal.exceed_percent, duration_s) in seen:
                yield f"goals: must not list {goal.loss_percent:.12g}% twice"
            seen.add((goal.loss_percent, goal.exceed_percent, duration_s))


def _too_narrow(width: str, resolution: str) -> Iterator[str]:
    """An interval that no search could reach, however often it is repeated."""
    number, unit = width.removesuffix("%"), width[-1:] == "%"
    known, known_unit = resolution.removesuffix("%"), resolution[-1:] == "%"
    if unit == known_unit and Fraction(number) < Fraction(known):
        yield (
            f"interval_width: must not be narrower than the resolution, {resolution}: "
            f"no search knows its result to {width}"
        )


_OF_AUTO = ("interval_width", "max_repeats")
