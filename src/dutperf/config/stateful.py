"""Keys of stateful tests (RFC 9693): which connections are opened, by whom, how long.

A connection is a four-tuple: the initiator's and the responder's address, a source and
a destination port. All combinations of the two ranges of ports are enumerated, the
first ``connections`` of them in the given order: any number up to their product works.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from dutperf.config.fields import Strict
from dutperf.engine.protocol import DirectionName, Side

FIRST_DESTINATION_PORT = 80


def _check_range(text: str) -> str:
    found = re.fullmatch(r"([0-9]{1,5})-([0-9]{1,5})", text)
    if not found:
        raise ValueError(f"must be two ports like 10000-49999, not {text[:40]!r}")
    least, most = map(int, found.groups())
    if least > most or most > 65535:
        raise ValueError(f"must rise, up to 65535, not {text}")
    return text


PortRange = Annotated[str, AfterValidator(_check_range)]
Order = Literal["random", "increasing", "decreasing"]


def bounds(text: str) -> tuple[int, int]:
    """Lowest and highest port of a range."""
    least, _, most = text.partition("-")
    return int(least), int(most)


def _size(text: str) -> int:
    least, most = bounds(text)
    return most - least + 1


class Stateful(Strict):
    """Connections through a stateful gateway, opened by one side (RFC 9693 4)."""

    initiator: Side = Field(
        default="left", description="the side that opens connections: the private one"
    )
    connections: Annotated[int, Field(ge=1, le=2**32)] = Field(
        description="how many: frames of phase 1, each with a four-tuple of its own"
    )
    source_ports: PortRange = Field(
        default="10000-49999",
        description="the initiator's ports; RFC 9693 4.1: a few ten thousand",
    )
    destination_ports: PortRange | None = Field(
        default=None,
        description="the responder's ports; default: from 80 on, as many as needed",
    )
    order: Order = Field(
        default="random", description="of the four-tuples; RFC 9693 4.4: random"
    )
    timeout_ms: Annotated[int, Field(ge=1, le=60_000)] = Field(
        default=500, description="wait for late frames of each phase (T)"
    )
    alpha: Annotated[float, Field(gt=0, le=1)] | None = Field(
        default=None,
        description="validate each connection by a frame back, at this share of the "
        "rate (RFC 9693 4.6); default: connections are not validated",
    )
    dut_timeout_s: Annotated[float, Field(gt=0)] | None = Field(
        default=None,
        description="after which time without frames the device forgets a connection; "
        "slower tests are not made",
    )

    @property
    def direction(self) -> DirectionName:
        """The initiator's."""
        return "forward" if self.initiator == "left" else "reverse"

    @property
    def responder_direction(self) -> DirectionName:
        """The other one."""
        return "reverse" if self.initiator == "left" else "forward"

    @property
    def destinations(self) -> tuple[int, int]:
        """Lowest and highest destination port."""
        if self.destination_ports is not None:
            return bounds(self.destination_ports)
        needed = -(-self.connections // _size(self.source_ports))
        return FIRST_DESTINATION_PORT, FIRST_DESTINATION_PORT + needed - 1

    @property
    def combinations(self) -> int:
        """How many four-tuples the ranges of ports give."""
        least, most = self.destinations
        return _size(self.source_ports) * (most - least + 1)

    def lifetime_s(self, rate_per_s: int) -> float:
        """How long a connection must live in a test at that rate (RFC 9693 4.3)."""
        phases_s = self.connections / rate_per_s + self.timeout_ms / 1000
        if self.alpha is not None:
            phases_s += self.connections / (self.alpha * rate_per_s)
            phases_s += self.timeout_ms / 1000
        return phases_s

    def troubles(self) -> Iterator[str]:
        """What of these keys does not fit together."""
        if self.destinations[1] > 65535:
            yield (
                f"stateful.connections: {self.connections} are more than source_ports "
                f"{self.source_ports} and all destination ports from "
                f"{FIRST_DESTINATION_PORT} on give"
            )
        elif self.combinations < self.connections:
            least, most = self.destinations
            yield (
                f"stateful.connections: {self.connections} are more than the "
                f"{self.combinations} combinations of source_ports "
                f"{self.source_ports} and destination_ports {least}-{most}"
            )
