"""A load that is named by a rate which the same campaign finds before it.

``throughput`` is the median of its repeats (RFC 2544 26.2, RFC 8219 7.2), ``throughput
p25`` a lower quantile: their 25th percentile; ``90% of throughput`` is a share of it.
So is ``50% of connection-rate`` where connections are opened (RFC 9693 4.5).

``1000 per flow`` is a load that grows with the number of flows (RFC 8219 10.2.2).
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import PlainValidator, WithJsonSchema

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
