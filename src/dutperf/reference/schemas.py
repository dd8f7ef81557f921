"""JSON schemas of all files that people or programs read and write.

Editors complete and check YAML files by them; programs that read results need not
guess. A schema says less than its model: what depends on another key is in the model
only. That of a known-answer behaviour is written by hand, because the device checks it.
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from dutperf.config import json_schemas
from dutperf.results import Environment, JournalHeader, ResultsFile, TrialRecord

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_STORED: dict[str, Any] = {
    "results": ResultsFile,
    "journal": JournalHeader | TrialRecord,
    "environment": Environment,
}


def schemas() -> dict[str, Schema]:
    """The schema of each kind of file; of the journal, that of a line."""
    stored = {
        name: {"$schema": _DIALECT, **TypeAdapter(model).json_schema()}
        for name, model in _STORED.items()
    }
    found: dict[str, Schema] = {**json_schemas(), **stored}
    return {
        name: {"$id": f"urn:dutperf:schema:{name}", **schema}
        for name, schema in found.items()
    }
