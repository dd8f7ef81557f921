"""The committed schemas are the models', and describe the golden messages."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator
from protocol_files import SCHEMA, body, golden, names, schema_name

from dutperf.protocol.methods import (
    METHODS,
    PROTOCOL_VERSION,
    schema_files,
    schemas,
)

MESSAGES = [*names("params"), *names("result"), *names("progress"), *names("error")]
SCHEMAS = schemas()


def test_the_committed_schemas_are_those_of_the_models() -> None:
    committed = {path.name: path.read_text("utf-8") for path in SCHEMA.iterdir()}
    assert committed == schema_files(), "run: python -m dutperf.reference"


def test_every_method_has_both_schemas() -> None:
    expected = {f"{m}.{kind}" for m in METHODS for kind in ("params", "result")}
    assert set(SCHEMAS) == expected | {"trial.progress", "error"}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_valid_and_named_without_a_host(name: str) -> None:
    schema = SCHEMAS[name]
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"urn:dutperf:protocol:{PROTOCOL_VERSION}:{name}"
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize("name", MESSAGES)
def test_a_golden_message_fits_its_schema(name: str) -> None:
    schema = SCHEMAS[schema_name(name)]
    errors = list(Draft202012Validator(schema).iter_errors(body(golden(name))))
    assert errors == []


@pytest.mark.parametrize("name", MESSAGES)
def test_a_golden_message_with_a_further_key_does_not_fit(name: str) -> None:
    validator = Draft202012Validator(SCHEMAS[schema_name(name)])
    assert not validator.is_valid({**body(golden(name)), "further": 1})


@pytest.mark.parametrize(
    "name", [n for n in MESSAGES if SCHEMAS[schema_name(n)].get("required")]
)
def test_a_golden_message_fits_with_all_required_keys_only(name: str) -> None:
    schema = SCHEMAS[schema_name(name)]
    whole = body(golden(name))
    for key in schema["required"]:
        less = {k: v for k, v in whole.items() if k != key}
        assert not Draft202012Validator(schema).is_valid(less), key
