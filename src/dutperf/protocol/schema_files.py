"""JSON schemas of the protocol, one file a message, made from the models.

``python -m dutperf.protocol.schema_files [DIR]`` writes them (default:
``protocol/schema``). A schema says less than its model: that a range depends on another
key is in the model only.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from dutperf.protocol.base import Message
from dutperf.protocol.methods import METHODS, PROTOCOL_VERSION, ErrorObject
from dutperf.protocol.trial_messages import TrialProgress

DEFAULT_DIRECTORY = Path("protocol/schema")
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


def write_schemas(directory: Path) -> list[Path]:
    """Write all schemas into ``directory``, which may exist, and return their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in schema_files().items():
        paths.append(directory / name)
        paths[-1].write_text(text, "utf-8")
    return paths


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


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_DIRECTORY)
