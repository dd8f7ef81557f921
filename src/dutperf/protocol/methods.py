"""The methods, their errors, and the messages that belong to no trial.

Names of methods are part of the design (``docs/adr``, ``protocol/README.md``).
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import Field

from dutperf.protocol.base import Count, Driver, Message, Nanoseconds
from dutperf.protocol.port_messages import (
    NeighboursParams,
    NeighboursResult,
    PortsOpenParams,
    PortsResult,
)
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.trial_messages import TrialProgress, TrialRequest

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


# Their JSON schemas, one file a message.
#
# A schema says less than its model: that a range depends on another key is in the model
# only.


_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, dict[str, Any]]:
    """Return message name (``trial.run.params``) -> schema, in the order of METHODS."""
    messages: dict[str, type[Message] | None] = {}
    for method, (params, result) in METHODS.items():
        messages[f"{method}.params"] = params
        messages[f"{method}.result"] = result
    messages["trial.progress"] = TrialProgress
    messages["error"] = ErrorObject
    return {name: _schema(name, model) for name, model in messages.items()}


def schema_files() -> dict[str, str]:
    """Return file name -> text, the same on every machine."""
    return {
        f"{name}.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for name, schema in schemas().items()
    }


def _schema(name: str, model: type[Message] | None) -> dict[str, Any]:
    body = (model or Message).model_json_schema(mode="validation")
    if model is None:
        body["title"] = "Nothing"
        body["description"] = "An empty object."
    return {
        "$schema": _DIALECT,
        "$id": f"urn:dutperf:protocol:{PROTOCOL_VERSION}:{name}",
        **dict(sorted(body.items())),
    }
