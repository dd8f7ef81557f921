"""The committed protocol: golden messages, their variations, schemas."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from dutperf.protocol.base import Message
from dutperf.protocol.methods import METHODS, ErrorObject
from dutperf.protocol.trial_messages import TrialProgress

PROTOCOL = Path(__file__).parents[2] / "protocol"
GOLDEN = PROTOCOL / "golden"
SCHEMA = PROTOCOL / "schema"

Json = dict[str, Any]


def golden(name: str) -> Json:
    """Return a whole message as it stands on the wire."""
    message: Json = json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))
    return message


def names(kind: str) -> list[str]:
    """Return the golden messages of a kind: params, result, progress or error."""
    found = sorted(p.stem for p in GOLDEN.glob("*.json") if p.stem != "borders")
    return [n for n in found if n.rpartition(".")[2].partition("-")[0] == kind]


def schema_name(name: str) -> str:
    """Return the message of which ``name`` is a case: trial.run-ipv6.params."""
    method, dot, kind = name.rpartition(".")
    return f"{method.partition('-')[0]}{dot}{kind.partition('-')[0]}"


def body(message: Json) -> Json:
    """Return what the envelope carries."""
    (key,) = message.keys() & {"params", "result", "error"}
    carried: Json = message[key]
    return carried


def model(name: str) -> type[Message]:
    """Return the model of a golden message's body."""
    message = schema_name(name)
    if message == "error":
        return ErrorObject
    if message == "trial.progress":
        return TrialProgress
    method, _, kind = message.rpartition(".")
    return METHODS[method][kind == "result"] or Message


def borders() -> list[Json]:
    """Return changes of golden requests that both languages accept, or both refuse."""
    cases: list[Json] = json.loads((GOLDEN / "borders.json").read_text("utf-8"))
    return cases


def changed(case: Json) -> Json:
    """Return the params of the case's request with its one change made."""
    params = copy.deepcopy(body(golden(f"{case['request']}.params")))
    *parents, last = case["path"].split("/")[1:]
    node: Any = params
    for key in parents:
        node = node[int(key) if isinstance(node, list) else key]
    key = int(last) if isinstance(node, list) else last
    if case.get("remove"):
        del node[key]
    else:
        node[key] = case["value"]
    return params
