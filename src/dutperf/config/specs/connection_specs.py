"""Procedures about connections through a stateful gateway (RFC 9693).

Their trials are phases: how long one takes follows from how many connections it opens
and how fast, and only the initiator sends (RFC 9693 4.2).
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from dutperf.config.fields import KeyedError, Width
from dutperf.config.specs.procedure_keys import (
    Direction,
    ProcedureKeys,
    RepeatNumber,
    SearchedKeys,
    check_connections,
    told,
)
from dutperf.config.stateful_keys import (
    CapacityKeys,
    ConnectionKeys,
    RateKeys,
    TeardownKeys,
)


class EstablishmentKeys(ProcedureKeys):
    """What procedures have that open connections and measure these."""

    stateful: ConnectionKeys
    repeats: RepeatNumber = Field(
        default=1,
        description="how often each cell is measured; the median counts",
    )

    @model_validator(mode="after")
    def _connections_fit(self) -> Self:
        check_connections(self.stateful, self.traffic)
        for number, profile in enumerate(self.traffic):
            if profile.has_background:
                raise KeyedError(
                    ("traffic", number, "mix"),
                    "must be left out: all frames of a phase are of connections",
                )
        return self

    @property
    def direction(self) -> list[Direction]:
        """Where the initiator sends."""
        return [self.stateful.direction]

    @property
    def trial_duration_s(self) -> float:
        """Of what is no phase: the shortest."""
        return 0.01

    @property
    def residual_wait_s(self) -> float:
        """The wait for late frames of each phase."""
        return self.stateful.timeout_ms / 1000

    @property
    def most_repeats(self) -> int:
        """How often each cell is measured at most."""
        return self.repeats


class ConnectionRateSpec(EstablishmentKeys, SearchedKeys):
    """Maximum connection establishment rate (RFC 9693 4.5, 4.6)."""

    procedure: Literal["connection-rate"] = Field(description=told("connection-rate"))
    stateful: RateKeys = Field(
        description="the connections, and whether each is validated"
    )


class TableCapacitySpec(EstablishmentKeys, SearchedKeys):
    """Capacity of the connection tracking table (RFC 9693 4.9)."""

    procedure: Literal["table-capacity"] = Field(description=told("table-capacity"))
    resolution: Width = Field(
        default="5%",
        description="of the connection rate that the search is made at; '5%' of it, "
        "or connections per second, 1000",
    )
    stateful: CapacityKeys = Field(description="the connections, and how many to try")


class TeardownRateSpec(EstablishmentKeys):
    """Connection tear-down rate (RFC 9693 4.8)."""

    procedure: Literal["teardown-rate"] = Field(description=told("teardown-rate"))
    rate_fps: Annotated[int, Field(ge=1, le=10**12)] = Field(
        description="new connections per second, fewer than connection-rate finds"
    )
    repeats: RepeatNumber = Field(
        default=3, description="how often each cell is measured; the median counts"
    )
    stateful: TeardownKeys = Field(description="the connections, and how they go")

    @property
    def given_rate_fps(self) -> int | None:
        """New connections per second."""
        return self.rate_fps
