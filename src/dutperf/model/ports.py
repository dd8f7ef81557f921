"""UDP ports that vary from frame to frame (RFC 4814 4.5).

In short ``random``, ``fixed:49184`` or ``increasing:1000-2000``; as a block of keys
``{mode: increasing, min: 1000, max: 2000}``.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from dutperf.model.fields import Short, Strict
from dutperf.protocol.base import DirectionName
from dutperf.protocol.stream_messages import FieldVariation

PortMode = Literal["fixed", "increasing", "decreasing", "random"]
PortNumber = Annotated[int, Field(ge=0, le=65535)]

_VARYING = "increasing|decreasing|random"
_SHORT = rf"(?:fixed(?::[0-9]{{1,5}})?|(?:{_VARYING})(?::[0-9]{{1,5}}-[0-9]{{1,5}})?)"


class PortField(Strict):
    """How one of the two ports goes on from frame to frame."""

    LEAST: ClassVar[int] = 0
    MOST: ClassVar[int] = 65535
    FIXED: ClassVar[int] = 0

    mode: PortMode = Field(
        default="random", description="from frame to frame; RFC 4814 4.5: random"
    )
    min: PortNumber | None = Field(
        default=None,
        description="lowest port; default: RFC 4814's, source 1024, destination 1",
    )
    max: PortNumber | None = Field(
        default=None,
        description="highest port; default: RFC 4814's, source 65535, destination "
        "49151",
    )
    value: PortNumber | None = Field(
        default=None,
        description="the port, with mode fixed; default: RFC 2544's, source 49184, "
        "destination 7",
    )

    @model_validator(mode="before")
    @classmethod
    def _with_defaults(cls, data: Any) -> Any:  # noqa: ANN401 - raw YAML
        if not isinstance(data, dict):
            return data
        if data.get("mode") == "fixed":
            return {"value": cls.FIXED} | data
        return {"min": cls.LEAST, "max": cls.MOST} | data

    @model_validator(mode="after")
    def _one_meaning(self) -> Self:
        least, most = self.bounds
        if self.mode == "fixed" and (self.min, self.max) != (None, None):
            raise ValueError("min and max are of no use with mode fixed; give value")
        if self.mode != "fixed" and self.value is not None:
            raise ValueError(
                f"value belongs to mode fixed; mode {self.mode} has min and max"
            )
        if least > most:
            raise ValueError(f"the range is empty: min {least} is above max {most}")
        if least == most and self.mode != "fixed":
            raise ValueError(
                f"mode {self.mode} needs more than one value, and {least} to {most} "
                f"is one; for one port write fixed:{least}"
            )
        return self

    @property
    def bounds(self) -> tuple[int, int]:
        """Lowest and highest port."""
        if self.mode == "fixed":
            return self.value or 0, self.value or 0
        return self.min or 0, self.max or 0

    @property
    def by_the_book(self) -> bool:
        """Whether this is what RFC 4814 4.5 asks for."""
        return self.mode == "random" and self.bounds == (self.LEAST, self.MOST)

    def variation(
        self, field: Literal["src_port", "dst_port"]
    ) -> FieldVariation | None:
        """The port as the engine wants to have it; None: it is fixed."""
        if self.mode == "fixed":
            return None
        least, most = self.bounds
        return FieldVariation(
            field=field, width=16, min=least, max=most, mode=self.mode
        )

    def __str__(self) -> str:
        least, most = self.bounds
        if self.mode == "fixed":
            return f"fixed {least}"
        return f"{self.mode} {least}-{most}"


class SourcePort(PortField):
    """The UDP source port."""

    LEAST, MOST, FIXED = 1024, 65535, 0xC020


class DestinationPort(PortField):
    """The UDP destination port."""

    LEAST, MOST, FIXED = 1, 49151, 7


def _expand(text: str) -> dict[str, Any]:
    if not re.fullmatch(_SHORT, text):
        raise ValueError(
            "must be like random, random:1024-65535, increasing:1000-2000 or "
            f"fixed:49184, not {text[:40]!r}"
        )
    mode, _, values = text.partition(":")
    numbers = [int(value) for value in values.split("-") if value]
    keys = ("value",) if mode == "fixed" else ("min", "max")
    return {"mode": mode, **dict(zip(keys, numbers, strict=False))}


_short = Short(str, _expand, {"type": "string", "pattern": f"^{_SHORT}$"})
Source = Annotated[SourcePort, _short]
Destination = Annotated[DestinationPort, _short]


class ReversePorts(Strict):
    """Ports of the reverse direction where they differ from the forward ones."""

    source: Source | None = Field(
        default=None, description="source port; default: as forward"
    )
    destination: Destination | None = Field(
        default=None, description="destination port; default: as forward"
    )


class Ports(Strict):
    """UDP ports of all test frames, foreground and background."""

    source: Source = Field(
        default=SourcePort(),
        description="source port: random, fixed:N or increasing:MIN-MAX; also "
        "decreasing and random with a range; RFC 4814 4.5: "
        "random:1024-65535",
    )
    destination: Destination = Field(
        default=DestinationPort(),
        description="destination port, likewise; RFC 4814 4.5: random:1-49151",
    )
    reverse: ReversePorts | None = Field(
        default=None, description="other ports for the reverse direction"
    )

    def of(self, direction: DirectionName) -> tuple[PortField, PortField]:
        """Source and destination port of one direction."""
        other = self.reverse if direction == "reverse" else None
        source = other.source if other and other.source else self.source
        target = other.destination if other and other.destination else self.destination
        return source, target


# A number of network flows (RFC 8219 10): how the frames are spread over them.
#
# A flow is a four-tuple of addresses and ports. Frame k belongs to flow k mod n, so
# each of the n flows of a direction gets every n-th frame, and all of them begin at
# once. The rate is that of all together, or n times that of one. The frames of the
# reverse direction are the answers: addresses and ports are swapped.


MOST_FLOWS = 64_512
"""Source ports of RFC 4814 4.5: from 1024 on."""


def _check_count(flows: int) -> int:
    if flows > MOST_FLOWS:
        raise ValueError(
            f"must be at most {MOST_FLOWS}, as many as there are ports from "
            f"{_FIRST_PORT} on, not {flows}"
        )
    return flows


FlowCount = Annotated[
    int,
    Field(ge=1, json_schema_extra={"maximum": MOST_FLOWS}),
    AfterValidator(_check_count),
]
FlowsBy = Literal["ports", "addresses", "sources"]

_FIRST_PORT = 1024
_CLIENT_PORT, _SERVER_PORT = 0xC020, 7  # RFC 2544 C.2.6.4


def spread_over(flows: int, by: FlowsBy) -> dict[str, Any]:
    """Keys of a traffic profile whose frames make ``flows`` flows in each direction.

    ports: of one host on each side, of which one has ``flows`` ports. addresses: host k
    of one side to host k of the other, by the ports of RFC 2544. sources: host k of the
    left side to the one host of the right, so a device that translates sources has as
    many.
    """
    if by == "ports":
        return {"ports": _ports(_each_of(flows, _FIRST_PORT))}
    keys: dict[str, Any] = {"ports": _ports(_fixed(_CLIENT_PORT))}
    if flows > 1:
        hosts = {"mode": "increasing", "hosts": flows}
        sides = ("left",) if by == "sources" else ("left", "right")
        keys["addresses"] = dict.fromkeys(sides, hosts)
    return keys


def _ports(client: dict[str, Any]) -> dict[str, Any]:
    server = _fixed(_SERVER_PORT)
    answers = {"source": server, "destination": client}
    return {"source": client, "destination": server, "reverse": answers}


def _fixed(port: int) -> dict[str, Any]:
    return {"mode": "fixed", "value": port}


def _each_of(count: int, first: int) -> dict[str, Any]:
    if count == 1:
        return _fixed(first)
    return {"mode": "increasing", "min": first, "max": first + count - 1}
