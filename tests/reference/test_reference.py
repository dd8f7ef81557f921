"""The committed reference is what the models say, and the schemas fit the files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from dutperf.config import Campaign, Testbed
from dutperf.lab.devices import LABS
from dutperf.lab.devices.known_answer import KnownAnswerDevice
from dutperf.protocol import methods
from dutperf.reference import (
    COMMANDS,
    MARK,
    command_page,
    schema_files,
    schemas,
    tables,
)
from dutperf.results import load_environment, load_journal, load_results

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
EXAMPLES = ROOT / "examples"
OF_CONTAINERS = {"networks.yaml", "router.yaml", "tester.yaml", "compose.yaml"}
YAMLS = [
    path
    for path in sorted(EXAMPLES.rglob("*.yaml"))
    if not (path.parent.name in ("pods", "compose") and path.name in OF_CONTAINERS)
]
RUN = ROOT / "tests" / "results" / "stored"
RENEW = "run: python -m dutperf.reference"


def valid(name: str, data: object) -> bool:
    schema = json.loads((REFERENCE / "schema" / f"{name}.json").read_text())
    return Draft202012Validator(schema).is_valid(data)


def test_the_committed_schemas_are_those_of_the_models() -> None:
    made = schema_files()
    committed = {n: (REFERENCE / "schema" / n).read_text("utf-8") for n in made}
    assert committed == made, RENEW
    there = {path.name for path in (REFERENCE / "schema").iterdir()}
    assert there == {*made, "known-answer.json"}


def test_the_committed_tables_are_those_of_the_models() -> None:
    _, mark, below = (REFERENCE / "README.md").read_text("utf-8").partition(MARK)
    assert mark
    assert below == tables(), RENEW


def test_the_committed_commands_are_those_of_the_program() -> None:
    assert (REFERENCE / COMMANDS).read_text("utf-8") == command_page(), RENEW


def test_the_program_keeps_what_people_wrote(tmp_path: Path) -> None:
    directory = tmp_path / "docs" / "reference"
    directory.mkdir(parents=True)
    (directory / "README.md").write_text(f"# Words\n{MARK}old")
    subprocess.run(
        [sys.executable, "-m", "dutperf.reference"], cwd=tmp_path, check=True
    )
    assert (directory / "README.md").read_text("utf-8") == f"# Words\n{MARK}{tables()}"
    assert {path.name for path in directory.iterdir()} == {
        "README.md",
        "schema",
        COMMANDS,
    }
    written = tmp_path / "protocol" / "schema"
    assert {path.name for path in written.iterdir()} == set(methods.schema_files())


@pytest.mark.parametrize("model", [Campaign, Testbed])
def test_every_key_of_a_file_is_in_a_table(model: type[Campaign | Testbed]) -> None:
    text = tables()
    schema = model.model_json_schema()
    for part in (schema, *schema["$defs"].values()):
        for key in part.get("properties", {}):
            assert f"| `{key}` |" in text


@pytest.mark.parametrize("name", [*schemas(), "known-answer"])
def test_a_schema_is_valid_and_named_without_a_host(name: str) -> None:
    schema = json.loads((REFERENCE / "schema" / f"{name}.json").read_text())
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"urn:dutperf:schema:{name}"


@pytest.mark.parametrize("path", YAMLS, ids=lambda path: path.name)
def test_an_example_names_the_schema_that_it_fits(path: Path) -> None:
    first = path.read_text().splitlines()[0]
    found = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)
    assert found, "the first line names the schema, for editors"
    schema_path = (path.parent / found[1]).resolve()
    data = YAML(typ="safe", pure=True).load(path.read_text())
    name = "campaign" if "procedures" in data else "testbed"
    assert schema_path == REFERENCE / "schema" / f"{name}.json"
    assert valid(name, data)


def test_stored_files_fit_their_schemas_when_they_are_brought_up_to_date() -> None:
    journal = load_journal(RUN)
    for line in (journal.header, *journal.records[:3]):
        assert valid("journal", line.model_dump(mode="json"))
    assert valid("results", load_results(RUN).model_dump(mode="json"))
    assert valid("environment", load_environment(RUN).model_dump(mode="json"))
    assert not valid("journal", {"number": 1})


# --- the known-answer device checks behaviours itself ---------------------------------

REFDUT = ROOT / "engine" / "refdut"
BEYOND_A_SCHEMA = (
    "overlap",
    "greater than from_ns",
    "delay_ns.to must",
    "whole number",
    "for each of the queues",
    "needs routing",
    "needs encapsulation",
    "needs a device with",
    "are fewer than the IPv4 suffix has",
    "has no zeros for the numbers of all B4s",
    "is beside another rule",
    "are more bits than a port has",
    "reach into the interface identifier",
    "have not as many ports",
    "another port",
    "more_left[0][0] is not an IP address",
)
"""What depends on another key; and 1e9, which JSON Schema calls an integer."""


@pytest.mark.parametrize(
    "path", sorted((EXAMPLES / "known-answer").iterdir()), ids=lambda path: path.name
)
def test_a_behaviour_of_the_examples_fits(path: Path) -> None:
    assert valid("known-answer", json.loads(path.read_text()))


TOLD = {n: d.behaviour for n, d in LABS.items() if isinstance(d, KnownAnswerDevice)}


@pytest.mark.parametrize("name", sorted(TOLD))
def test_what_the_device_of_a_lab_is_told_fits(name: str) -> None:
    assert valid("known-answer", json.loads(json.dumps(dict(TOLD[name]))))


def refused() -> list[tuple[str, str]]:
    """What the device's own tests say that it refuses, and with which words."""
    text = (REFDUT / "behaviour_test.cc").read_text()
    of_cpp = r'Refused\{\s*(?:R"\((.*?)\)"|"(.*?)"),\s*"(.*?)"\}'
    found = re.findall(of_cpp, text, re.DOTALL)
    return [(raw or plain, message) for raw, plain, message in found]


def test_what_the_device_refuses_does_not_fit() -> None:
    cases = refused()
    assert len(cases) > 20
    for behaviour, message in cases:
        known = any(words in message for words in BEYOND_A_SCHEMA)
        if not known or "seed" in behaviour:
            assert not valid("known-answer", json.loads(behaviour)), message


def test_the_limits_are_the_devices() -> None:
    header = (REFDUT / "behaviour.h").read_text()
    text = (REFERENCE / "schema" / "known-answer.json").read_text()
    limits: list[Any] = re.findall(r"constexpr uint\d+_t kMax\w+ = ([\d']+);", header)
    assert len(limits) == 6
    for limit in limits:
        assert f'"maximum": {limit.replace(chr(39), "")}' in text
