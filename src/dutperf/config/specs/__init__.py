"""What each procedure may be told: one model for each, and their union.

A key that a procedure does not have is unknown there. What several have in common is
defined once, in ``*_keys``.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias, get_args

from pydantic import Field

from dutperf.config.specs.back_to_back_spec import BackToBackSpec
from dutperf.config.specs.connection_specs import (
    ConnectionRateSpec,
    EstablishmentKeys,
    TableCapacitySpec,
    TeardownRateSpec,
)
from dutperf.config.specs.fixed_load_spec import (
    FixedLoadKeys,
    IpdvSpec,
    LatencySpec,
    LoadKeys,
    PdvSpec,
)
from dutperf.config.specs.frame_loss_spec import FrameLossSpec
from dutperf.config.specs.loss_keys import LossKeys
from dutperf.config.specs.outage_spec import OutageSpec
from dutperf.config.specs.procedure_keys import (
    Direction,
    SearchedKeys,
    StreamKeys,
    TimedStreamKeys,
)
from dutperf.config.specs.system_recovery_spec import SystemRecoverySpec
from dutperf.config.specs.throughput_spec import ThroughputSpec

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
