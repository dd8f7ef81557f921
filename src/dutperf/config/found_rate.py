"""A load that is named by the throughput which the same campaign finds before it.

``throughput`` is the median of its repeats (RFC 2544 26.2, RFC 8219 7.2), ``throughput
p25`` a lower quantile: their 25th percentile; ``90% of throughput`` is a share of it.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, NamedTuple

from pydantic import PlainValidator, WithJsonSchema

_MOST_FPS = 10**12
_PATTERN = (
    r"((?P<share>[0-9]{1,3}(\.[0-9]{1,6})?) ?% of )?"
    r"throughput( p(?P<percentile>[0-9]{1,2}))?"
)
_SCHEMA = r"^([0-9]{1,3}(\.[0-9]{1,6})? ?% of )?throughput( p[1-9][0-9]?)?$"


class FoundRate(NamedTuple):
    """``percentile`` is that of the repeats, null: their median."""

    share_percent: Decimal
    percentile: int | None

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
        return f"{share}throughput{quantile}"


def parse_found_rate(text: str) -> FoundRate:
    """``text`` as a load.

    Raises:
        ValueError: continues "the value ...".
    """
    match = re.fullmatch(_PATTERN, " ".join(text.split()))
    if match is None:
        raise ValueError(
            "must be whole frames per second like 100000, or throughput, throughput "
            f"p25, 90% of throughput, not {text[:40]!r}"
        )
    share_percent = Decimal(match["share"] or 100)
    percentile = int(match["percentile"]) if match["percentile"] else None
    if not 0 < share_percent <= 100:
        raise ValueError(f"must be above 0 and at most 100 % of it, not {text}")
    if percentile is not None and not 1 <= percentile <= 49:
        raise ValueError(
            f"must be a lower quantile, p1 to p49 (throughput alone is the median), "
            f"not p{percentile}"
        )
    return FoundRate(share_percent.normalize(), percentile)


def _rate(value: Any) -> int | str:  # noqa: ANN401 - raw YAML
    if isinstance(value, str):
        return str(parse_found_rate(value))
    if type(value) is not int:
        raise ValueError(
            f"must be whole frames per second, or throughput, not {str(value)[:40]}"
        )
    if value < 1:
        raise ValueError(f"must be at least 1, not {value}")
    if value > _MOST_FPS:
        raise ValueError(f"must be at most {_MOST_FPS}, not {value}")
    return value


FixedRate = Annotated[
    int | str,
    PlainValidator(_rate),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": _MOST_FPS},
                {"type": "string", "pattern": _SCHEMA},
            ]
        }
    ),
]
"""Frames per second and direction, or a ``FoundRate`` as text."""
