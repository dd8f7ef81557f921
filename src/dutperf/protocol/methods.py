"""The methods, their errors, and the messages that belong to no trial.

Names of methods are part of the design (``docs/adr``, ``protocol/README.md``).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dutperf.protocol.base import Count, Driver, Message, Nanoseconds
from dutperf.protocol.port_messages import (
    NeighboursParams,
    NeighboursResult,
    PortsOpenParams,
    PortsResult,
)
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.trial_messages import TrialRequest

PROTOCOL_VERSION = 2


class HelloResult(Message):
    """What the engine is and what it runs on."""

    engine_version: str
    dpdk_version: str
    protocol_version: int
    tsc_hz: Count
    worker_cpus: list[int] = Field(description="CPU of each worker, in role order")
    main_cpu: int
    hugepages: bool
    memory_mb: Count
    drivers: list[Driver]
    clock_offset_ns: Nanoseconds = Field(
        description="how far the workers' clocks may be apart, as measured at start"
    )


class PreviewParams(Message):
    """Writes each direction's first ``count`` frames to ``path``; sends nothing."""

    trial: TrialRequest
    count: Annotated[int, Field(ge=1, le=1_000_000)]
    path: str


class PreviewResult(Message):
    """How many frames the pcap holds."""

    frames: Count


class ErrorData(Message):
    """``data`` of a JSON-RPC error: what to do."""

    hint: str = ""


class ErrorObject(Message):
    """``error`` of a response."""

    code: int
    message: str
    data: ErrorData = ErrorData()


ERROR_PARSE = -32700
ERROR_INVALID_REQUEST = -32600
ERROR_UNKNOWN_METHOD = -32601
ERROR_INVALID_PARAMS = -32602
ERROR_INTERNAL = -32603
ERROR_ENVIRONMENT = 1
"""A device, memory or privilege is missing."""
ERROR_STATE = 2
"""The call does not fit the engine's state (ports not open, trial running)."""

METHODS: dict[str, tuple[type[Message] | None, type[Message] | None]] = {
    "engine.hello": (None, HelloResult),
    "ports.open": (PortsOpenParams, PortsResult),
    "ports.status": (None, PortsResult),
    "neighbours.set": (NeighboursParams, NeighboursResult),
    "trial.run": (TrialRequest, TrialResult),
    "trial.stop": (None, None),
    "trial.abort": (None, None),
    "table.drop": (None, None),
    "frames.preview": (PreviewParams, PreviewResult),
    "engine.shutdown": (None, None),
}
"""Method -> (params, result); None: an empty object. Names are part of the design."""
