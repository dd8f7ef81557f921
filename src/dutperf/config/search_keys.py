"""What keys of a search may say: widths, repeats, goals."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PlainValidator, WithJsonSchema

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


MostRepeats = Annotated[int, AfterValidator(_check_looks)]


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
