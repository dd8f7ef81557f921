"""What each procedure may be told: one model for each, and their union.

A key that a procedure does not have is unknown there. What several have in common is
defined once, in ``*_keys``.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias, get_args

from pydantic import Field

from dutperf.config.specs.connection_specs import (
    ConnectionRateSpec,
    EstablishmentKeys,
    TableCapacitySpec,
    TeardownRateSpec,
)
from dutperf.config.specs.load_specs import (
    FixedLoadKeys,
    IpdvSpec,
    LatencySpec,
    LoadKeys,
    OutageSpec,
    PdvSpec,
    SystemRecoverySpec,
)
from dutperf.config.specs.procedure_keys import (
    Direction,
    SearchedKeys,
    StreamKeys,
    TimedStreamKeys,
)
from dutperf.config.specs.rate_specs import (
    BackToBackSpec,
    FrameLossSpec,
    LossKeys,
    ThroughputSpec,
)

_Any: TypeAlias = (
    ThroughputSpec
    | FrameLossSpec
    | BackToBackSpec
    | LatencySpec
    | PdvSpec
    | IpdvSpec
    | ConnectionRateSpec
    | TableCapacitySpec
    | TeardownRateSpec
    | SystemRecoverySpec
    | OutageSpec
)
ProcedureSpec = Annotated[_Any, Field(discriminator="procedure")]
SPECS: dict[str, type[_Any]] = {spec.named(): spec for spec in get_args(_Any)}
"""The model of each procedure, by its name."""

__all__ = [
    "SPECS",
    "BackToBackSpec",
    "ConnectionRateSpec",
    "Direction",
    "EstablishmentKeys",
    "FixedLoadKeys",
    "FrameLossSpec",
    "IpdvSpec",
    "LatencySpec",
    "LoadKeys",
    "LossKeys",
    "OutageSpec",
    "PdvSpec",
    "ProcedureSpec",
    "SearchedKeys",
    "StreamKeys",
    "SystemRecoverySpec",
    "TableCapacitySpec",
    "TeardownRateSpec",
    "ThroughputSpec",
    "TimedStreamKeys",
]
