"""Keys of stateful tests (RFC 9693): which connections are opened, by whom, how long.

A connection is a four-tuple: the initiator's and the responder's address, a source and
a destination port. All combinations of the two ranges of ports and of the addresses of
``traffic.addresses`` are enumerated, the first ``connections`` of them in the given
order: any number up to their product works.

Phase 1 opens them. Phase 2 is a trial of any procedure on what was opened (RFC 9693
4.7); ``config.phase2`` says when it starts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from dutperf.model.fields import KeyedError, OneOrMore, Strict, repeated
from dutperf.model.hosts import Addresses
from dutperf.model.loads import ConnectionRate, RateReference, parse_rate_reference
from dutperf.protocol.base import DirectionName, Side
from dutperf.protocol.stream_parts import MAX_COMBINATIONS, MAX_TOLD, ExpectedAddresses

SOURCE_PORTS = "10000-49999"
"""RFC 9693 4.1: the larger range, a few ten thousand."""
FIRST_DESTINATION_PORT = 80
USUAL_DESTINATION_PORTS = 4000
"""RFC 9693 4.1: the smaller range, up to thousands; more only where needed."""
MARGIN = 0.1
"""Of the device's timeout: it is no clock."""


def _check_range(text: str) -> str:
    found = re.fullmatch(r"([0-9]{1,5})-([0-9]{1,5})", text)
    if not found:
        raise ValueError(f"must be two ports like 10000-49999, not {text[:40]!r}")
    least, most = map(int, found.groups())
    if least > most or most > 65535:
        raise ValueError(f"must rise, up to 65535, not {text}")
    return text


def _check_addresses(text: str) -> str:
    first, _, last = text.partition("-")
    try:
        ExpectedAddresses(first=first, last=last or first)
    except ValueError:
        raise ValueError(
            "must be an address, or the first and the last one like "
            f"192.0.2.1-192.0.2.9, not {text[:80]!r}"
        ) from None
    return text


PortRange = Annotated[str, AfterValidator(_check_range)]
AddressRange = Annotated[str, AfterValidator(_check_addresses)]
Order = Literal["random", "increasing", "decreasing"]
ResponderOrder = Literal["random", "increasing", "decreasing", "first"]
Transport = Literal["udp", "tcp"]


def bounds(text: str) -> tuple[int, int]:
    """Lowest and highest port of a range."""
    least, _, most = text.partition("-")
    return int(least), int(most)


def _size(text: str) -> int:
    least, most = bounds(text)
    return most - least + 1


Connections = Annotated[int, Field(ge=1, le=2**32)]
Share = Annotated[float, Field(gt=0, lt=1)]
Alpha = Annotated[float, Field(gt=0, le=1)]


class _Enumeration(Strict):
    """Which four-tuples there are, in which order, and how long one is waited for."""

    initiator: Side = Field(
        default="left", description="the side that opens connections: the private one"
    )
    source_ports: PortRange = Field(
        default=SOURCE_PORTS,
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
    dut_timeout_s: Annotated[float, Field(gt=0)] | None = Field(
        default=None,
        description="the device forgets a connection after so long without "
        "frames; slower tests are not made",
    )
    table_size: Connections | None = Field(
        default=None,
        description="how many connections the device's table holds; if no hook "
        "empties it, each test opens others as long as there is room;"
        " default: the run waits for the device's timeout before each"
        " test",
    )
    public_addresses: AddressRange | None = Field(
        default=None,
        description="the device's own on the responder's side, one or FIRST-LAST;"
        " others are reported; default: not checked",
    )

    @property
    def direction(self) -> DirectionName:
        """The initiator's."""
        return "forward" if self.initiator == "left" else "reverse"

    @property
    def responder(self) -> Side:
        """The side that answers."""
        return "right" if self.initiator == "left" else "left"

    @property
    def responder_direction(self) -> DirectionName:
        """The other one."""
        return "reverse" if self.initiator == "left" else "forward"


class ConnectionKeys(_Enumeration):
    """The connections of a procedure through a stateful gateway (RFC 9693 4)."""

    connections: OneOrMore[Connections] = Field(
        description="how many: frames of phase 1, each with a four-tuple of its own; "
        "several: a test case of each (RFC 9693 5)"
    )

    @field_validator("connections")
    @classmethod
    def _each_once(cls, values: list[int]) -> list[int]:
        twice = repeated(values)
        if twice is not None:
            raise ValueError(f"must not list {values[twice]} twice")
        return values

    def each(self, hosts: Addresses) -> list[Stateful]:
        """The connections of each cell of one traffic profile, which has ``hosts``."""
        given = self.model_dump() | {
            "source_addresses": hosts.count(self.initiator),
            "destination_addresses": hosts.count(self.responder),
            "numbers": len(self.connections),
        }
        return [
            Stateful.model_validate(given | {"connections": n})
            for n in self.connections
        ]

    def troubles(self, hosts: Addresses) -> Iterator[KeyedError]:
        """What of these keys does not fit together, or not the hosts."""
        for each in self.each(hosts):
            yield from each.troubles()
        for side in (self.initiator, self.responder):
            field = hosts.of(side)
            if field and field.mode != "random":
                yield KeyedError(
                    ("traffic", "addresses", side, "mode"),
                    "must be left out of a stateful "
                    "test: each address is combined with each port, in the order of "
                    "stateful.order",
                )


class Phase2Keys(ConnectionKeys):
    """Connections on which a trial is measured, opened before it (RFC 9693 4.7)."""

    phase1_rate: ConnectionRate = Field(
        description="frames per second of phase 1 (R), or 50% of connection-rate;"
        " safely below the maximum connection establishment rate; "
        "connection-rate is the one that the campaign finds before "
        "(RFC 9693 4.7)",
    )
    phase2_after_ms: Annotated[int, Field(ge=1, le=100_000_000)] | None = Field(
        default=None,
        description="from the start of phase 1 to that of phase 2 (D); default: phase "
        "1 and twice the wait for late frames",
    )
    transport: Transport = Field(
        default="udp",
        description="tcp: data, both ways, on connections that SYNs have opened",
    )
    responder_order: ResponderOrder = Field(
        default="random",
        description="in which order the responder takes the connections; first: the "
        "first one only",
    )

    @property
    def rate_reference(self) -> RateReference | None:
        """R, if it is known only when the connection rate was found."""
        return _found(self.phase1_rate)


class OpenedKeys(ConnectionKeys):
    """Connections that are opened before it is looked for how fast they are used."""

    phase1_rate: Annotated[int, Field(ge=1, le=10**12)] = Field(
        description="connections opened a second, safely below what "
        "tcp-connection-rate finds"
    )

    def each(self, hosts: Addresses) -> list[Stateful]:
        """See ``ConnectionKeys``."""
        told = {"is_opened_before": True}
        return [each.model_copy(update=told) for each in super().each(hosts)]


class IdleKeys(OpenedKeys):
    """Connections that wait, each longer than the one before."""

    connections: OneOrMore[Connections] = Field(
        default=[3000], description="how many are used, at even distances of time"
    )
    phase1_rate: Annotated[int, Field(ge=1, le=10**12)] = Field(
        default=1000, description="connections opened a second"
    )


class WholeKeys(OpenedKeys):
    """All connections that ports and addresses give, host by host."""

    order: Order = Field(
        default="increasing", description="of the four-tuples: increasing"
    )

    def each(self, hosts: Addresses) -> list[Stateful]:
        """One: all combinations."""
        (most, *_) = super().each(hosts)
        return [most.with_connections(most.combinations)]

    def troubles(self, hosts: Addresses) -> Iterator[KeyedError]:
        """What of these keys does not fit together, or not the hosts."""
        (each,), most = self.each(hosts), min(self.connections)
        if each.connections > most:
            yield KeyedError(
                ("stateful", "connections"),
                f"is less than the {each.connections:,} combinations of ports and "
                f"addresses; at most {most:,} are opened: take fewer ports",
            )
        if self.order != "increasing":
            yield KeyedError(
                ("stateful", "order"),
                "must be increasing: ports in a row tell blocks and limits",
            )
        yield from super().troubles(hosts)


class BehaviourKeys(WholeKeys):
    """Connections of which it is looked what the device makes of them."""

    source_ports: PortRange = Field(
        default="10000-10063", description="the initiator's ports, of each host"
    )
    destination_ports: PortRange | None = Field(
        default="80-83", description="the responder's ports, of each host"
    )
    connections: OneOrMore[Annotated[int, Field(ge=1, le=MAX_TOLD)]] = Field(
        default=[MAX_TOLD],
        description="how many there may be: each combination of ports and addresses is "
        "opened",
    )
    phase1_rate: Annotated[int, Field(ge=1, le=10**12)] = Field(
        default=1000, description="connections opened a second"
    )

    def each(self, hosts: Addresses) -> list[Stateful]:
        """See ``WholeKeys``; of each it is told what became of it."""
        told = {"is_told": True}
        return [each.model_copy(update=told) for each in super().each(hosts)]

    def troubles(self, hosts: Addresses) -> Iterator[KeyedError]:
        """What of these keys does not fit together, or not the hosts."""
        first, last = self.each(hosts)[0].destinations
        if first == last:
            yield KeyedError(
                ("stateful", "destination_ports"),
                "must be two or more: whether a mapping depends on them is looked at",
            )
        yield from super().troubles(hosts)


class LimitKeys(WholeKeys):
    """More connections of each host than it may have (RFC 6888 REQ-4, REQ-5)."""

    source_ports: PortRange = Field(
        default="10000-14095",
        description="the initiator's ports, of each host: more than the limit",
    )
    destination_ports: PortRange | None = Field(
        default="80-81",
        description="the responder's ports; two tell a limit of ports from one of "
        "sessions",
    )
    connections: OneOrMore[Connections] = Field(
        default=[2**20],
        description="how many there may be: each combination of ports and addresses is "
        "opened",
    )
    phase1_rate: Annotated[int, Field(ge=1, le=10**12)] = Field(
        default=4000, description="connections opened a second"
    )

    def troubles(self, hosts: Addresses) -> Iterator[KeyedError]:
        """What of these keys does not fit together, or not the hosts."""
        if hosts.count(self.responder) > 1:
            yield KeyedError(
                ("traffic", "addresses", self.responder),
                "must be one: the connections of a host are opened in a row",
            )
        yield from super().troubles(hosts)


class LogKeys(OpenedKeys):
    """Connections that the device is to log."""

    order: Order = Field(
        default="increasing", description="of the four-tuples: increasing"
    )
    connections: OneOrMore[Annotated[int, Field(ge=1, le=MAX_TOLD)]] = Field(
        default=[MAX_TOLD], description="how many each test opens"
    )
    phase1_rate: Annotated[int, Field(ge=1, le=10**12)] = Field(
        default=10_000,
        description="connections opened a second; what connection-rate finds, or less",
    )

    def each(self, hosts: Addresses) -> list[Stateful]:
        """See ``ConnectionKeys``."""
        told = {"is_told": True}
        return [each.model_copy(update=told) for each in super().each(hosts)]

    def troubles(self, hosts: Addresses) -> Iterator[KeyedError]:
        """What of these keys does not fit together, or not the hosts."""
        if self.order != "increasing":
            yield KeyedError(
                ("stateful", "order"),
                "must be increasing: whose a mapping is is known by its number",
            )
        yield from super().troubles(hosts)


class RateKeys(ConnectionKeys):
    """Connections whose rate is looked for."""

    alpha: Alpha | None = Field(
        default=None,
        description="validate connections, at this share of the rate (RFC 9693 "
        "4.6); by a frame back each; default: connections are not "
        "validated",
    )


class CapacityKeys(ConnectionKeys):
    """Connections of which as many are looked for as a table holds (RFC 9693 4.9)."""

    connections: OneOrMore[Connections] = Field(
        description="as many as may be tried; several: a test case of each"
    )
    first: Connections = Field(
        description="a number of connections that is surely held (C0); where the "
        "search begins",
    )
    error: Annotated[int, Field(ge=1)] = Field(
        default=1,
        description="how far what is held may be from what is not (E)",
    )
    alpha: Alpha = Field(
        default=0.8,  # RFC 9693 4.6: a safety factor
        description="connections are validated at this share of the rate; by a "
        "frame back each (RFC 9693 4.6)",
    )
    beta: Share = Field(
        default=0.1,
        description="doubling ends where the rate falls below this share; of the "
        "rate before: the number is not held (RFC 9693 4.9)",
    )
    gamma: Share = Field(
        default=0.5, description="the same while the number is bisected"
    )

    def troubles(self, hosts: Addresses) -> Iterator[KeyedError]:
        """What of these keys does not fit together, or not the hosts."""
        yield from super().troubles(hosts)
        if self.first > min(self.connections):
            most = max(self.connections)
            yield KeyedError(
                ("stateful", "first"), f"{self.first} is more than may be tried, {most}"
            )


class TeardownKeys(ConnectionKeys):
    """Connections that are deleted (RFC 9693 4.8)."""

    expiry: bool = Field(
        default=False,
        description="connections expire instead of being deleted at once; one by "
        "one, and hooks.table_count watches them",
    )

    def troubles(self, hosts: Addresses) -> Iterator[KeyedError]:
        """What of these keys does not fit together, or not the hosts."""
        yield from super().troubles(hosts)
        if self.expiry and self.dut_timeout_s is None:
            yield KeyedError(
                ("stateful", "dut_timeout_s"),
                "is missing: connections expire after the "
                "device's timeout, which must be known (--dut-timeout)",
            )


def _found(rate: int | str | None) -> RateReference | None:
    return (
        parse_rate_reference(rate, "connection-rate") if isinstance(rate, str) else None
    )


class Stateful(_Enumeration):
    """The connections of one cell, whatever its procedure does with them.

    What its procedure has no key for is as if it had none.
    """

    connections: Connections
    alpha: float | None = None
    first: int | None = None
    error: int = 1
    beta: float = 0.1
    gamma: float = 0.5
    expiry: bool = False
    phase1_rate: int | str | None = None
    phase2_after_ms: int | None = None
    responder_order: ResponderOrder = "random"
    transport: Transport = "udp"
    is_opened_before: bool = False
    """What is looked for is how fast connections are used."""
    is_told: bool = False
    """What the responder learned stands in the result, of each."""
    # Of traffic.addresses and the testbed, where they are told.
    source_addresses: int = 1
    destination_addresses: int = 1
    numbers: int = 1
    translates: bool = True
    is_emptied: bool = True
    untold: tuple[str, ...] = ()

    @property
    def rate_reference(self) -> RateReference | None:
        """R, if it is known only when the connection rate was found."""
        return _found(self.phase1_rate)

    def with_connections(self, number: int) -> Stateful:
        """The first ``number`` of the same four-tuples, in the same order."""
        least, most = self.destinations
        ports = f"{least}-{most}"
        return self.model_copy(
            update={"connections": number, "destination_ports": ports}
        )

    @property
    def expected(self) -> ExpectedAddresses | None:
        """``public_addresses``."""
        if self.public_addresses is None:
            return None
        first, _, last = self.public_addresses.partition("-")
        return ExpectedAddresses(first=first, last=last or first)

    @property
    def connections_per_host(self) -> int | None:
        """Combinations of a host that opens some; None: there is one, or no such count.

        With several hosts to open them to, these change last, and so one of those that
        open has more.
        """
        if self.source_addresses == 1 or self.destination_addresses > 1:
            return None
        sources, destinations = self.port_numbers
        return sources * destinations

    @property
    def destinations(self) -> tuple[int, int]:
        """Lowest and highest destination port."""
        if self.destination_ports is not None:
            return bounds(self.destination_ports)
        each = self._sources * self.destination_addresses
        needed = -(-self.connections // each)
        if not self.is_emptied:
            # Each test has others. As many ports for any number of them: one
            # enumeration, so that no test opens what one of another cell did.
            most = min(USUAL_DESTINATION_PORTS, MAX_COMBINATIONS // each)
            needed = max(needed, most)
        return FIRST_DESTINATION_PORT, FIRST_DESTINATION_PORT + needed - 1

    @property
    def takes_all_ports(self) -> bool:
        """Whether there is no destination port that no connection has."""
        first, last = self.destinations
        return first <= 1 and last == 65535

    @property
    def port_numbers(self) -> tuple[int, int]:
        """How many source and destination ports there are."""
        least, most = self.destinations
        return _size(self.source_ports), most - least + 1

    @property
    def combinations(self) -> int:
        """How many four-tuples ports and addresses give."""
        least, most = self.destinations
        return self._sources * (most - least + 1) * self.destination_addresses

    @property
    def mappings(self) -> int:
        """How many pairs of address and port the initiator has at most."""
        return min(self.connections, self._sources)

    @property
    def several_addresses(self) -> bool:
        """Whether connections differ by their addresses, too."""
        return self.source_addresses * self.destination_addresses > 1

    @property
    def _sources(self) -> int:
        return _size(self.source_ports) * self.source_addresses

    @property
    def forgotten_after_s(self) -> float:
        """How long after its last frame the device may know one; inf: for ever."""
        if self.dut_timeout_s is None:
            return math.inf
        return self.dut_timeout_s * (1 + MARGIN)

    def lifetime_s(self, rate_per_s: int) -> float:
        """How long a connection must live in a test at that rate (RFC 9693 4.3)."""
        opened_per_s, used_per_s = self.rates_per_s(rate_per_s)
        phases_s = self.connections / opened_per_s + self.timeout_ms / 1000
        if used_per_s is not None:
            phases_s += self.connections / used_per_s + self.timeout_ms / 1000
        return phases_s

    def rates_per_s(self, rate_per_s: int) -> tuple[int, int | None]:
        """How fast a test at that rate opens connections, and uses them; None: not.

        One of them is what is looked for, the other one follows from it or is given.
        """
        if self.is_opened_before and isinstance(self.phase1_rate, int):
            return self.phase1_rate, rate_per_s
        if self.alpha is None:
            return rate_per_s, None
        return rate_per_s, max(1, int(rate_per_s * self.alpha))

    def troubles(self) -> Iterator[KeyedError]:
        """What of these keys does not fit together."""
        hosts = ""
        if self.several_addresses:
            hosts = (
                f", {self.source_addresses:,} source and "
                f"{self.destination_addresses:,} destination addresses"
            )
        if self.destinations[1] > 65535:
            yield KeyedError(
                ("stateful", "connections"),
                f"{self.connections} are more than source_ports "
                f"{self.source_ports} and all destination ports from "
                f"{FIRST_DESTINATION_PORT} on{hosts} give",
            )
        elif self.combinations < self.connections:
            least, most = self.destinations
            yield KeyedError(
                ("stateful", "connections"),
                f"{self.connections} are more than the "
                f"{self.combinations} combinations of source_ports "
                f"{self.source_ports} and destination_ports {least}-{most}{hosts}",
            )
        elif self.combinations > MAX_COMBINATIONS:
            yield KeyedError(
                ("stateful",),
                f"ports and addresses have {self.combinations} combinations, "
                f"more than the 2^{MAX_COMBINATIONS.bit_length() - 1} that can be told "
                "apart: narrow source_ports, destination_ports or traffic.addresses",
            )
