"""The committed schemas are the models', and describe the golden messages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from protocol_files import SCHEMA, body, golden, names, schema_name

from dutperf.protocol.methods import METHODS, PROTOCOL_VERSION
from dutperf.protocol.schema_files import schema_files, schemas, write_schemas

MESSAGES = [*names("params"), *names("result"), *names("progress"), *names("error")]
SCHEMAS = schemas()


def test_the_committed_schemas_are_those_of_the_models() -> None:
    committed = {path.name: path.read_text("utf-8") for path in SCHEMA.iterdir()}
    assert committed == schema_files(), "run: python -m dutperf.protocol.schema_files"


def test_the_program_writes_them_all(tmp_path: Path) -> None:
    directory = tmp_path / "new" / "schema"
    program = [sys.executable, "-m", "dutperf.protocol.schema_files", str(directory)]
    subprocess.run(program, check=True)
    written = {path.name: path.read_text("utf-8") for path in directory.iterdir()}
    assert written == schema_files()


def test_writing_replaces_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "error.json").write_text("old")
    assert tmp_path / "error.json" in write_schemas(tmp_path)
    assert (tmp_path / "error.json").read_text("utf-8") == schema_files()["error.json"]


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
