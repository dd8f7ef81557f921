"""The files of ``docs/reference`` that are made, and README.md below a mark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from pydantic import TypeAdapter
from typer.cli import get_docs_for_click
from typer.core import MARKUP_MODE_KEY

from dutperf.cli.app import whole
from dutperf.config import json_schemas
from dutperf.results import Environment, JournalHeader, ResultsFile, TrialRecord

# ``docs/reference/commands.md``: all commands and options, as --help says.


_ABOVE = """\
<!-- Made by: python -m dutperf.reference -->

# Commands

What `--help` says, of all commands. Options of several commands stand with each.

"""


def command_page() -> str:
    """The page, the same on every terminal."""
    command = typer.main.get_command(whole())
    context = typer.Context(command, obj={MARKUP_MODE_KEY: "rich"})
    return _ABOVE + get_docs_for_click(
        obj=command, ctx=context, indent=1, name="dutperf"
    )


# JSON schemas of all files that people or programs read and write.
#
# Editors complete and check YAML files by them; programs that read results need not
# guess. A schema says less than its model: what depends on another key is in the model
# only. That of a known-answer behaviour is written by hand, because the device checks
# it.


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


# Tables of the keys of ``testbed.yaml`` and ``campaign.yaml``, from their schemas.


_REF = "#/$defs/"
_NOTHING = "-"


def key_tables(
    name: str, schema: Schema, elsewhere: Mapping[str, str] | None = None
) -> str:
    """A table for each part of a file, the whole first; parts by where they stand.

    Args:
        name: of the file.
        schema: of the file.
        elsewhere: parts that have their tables in another place, and what to say.
    """
    told = elsewhere or {}
    places = _places(schema, told)
    words = {part: f"see {text}" for part, text in told.items()}
    words |= {part: f"see `{path}`" for part, path in places.items()}
    tables = [_table(f"`{name}`", schema, words)]
    told_already: dict[str, Schema] = {}
    for part, path in places.items():
        model = schema["$defs"][part]
        kinds = _kinds(path, places, schema)
        if path not in told_already and kinds:
            told_already[path] = _common(kinds)
            tables.append(_table(f"`{path}` of every kind", told_already[path], words))
        own = _without(model, told_already.get(path, {}))
        tables.append(_table(_title(part, places, schema), own, words))
    return "\n".join(tables)


def _kinds(path: str, places: Mapping[str, str], schema: Schema) -> list[Schema]:
    """Parts that may stand in one place and are told apart by the value of a key."""
    parts = [schema["$defs"][part] for part, at in places.items() if at == path]
    return parts if len(parts) > 1 and all(map(_told_by, parts)) else []


def _told_by(model: Schema) -> str | None:
    """The key with one value only, and that."""
    for key, value in model["properties"].items():
        if "const" in value:
            return f"{key}: {_plain(value['const'])}"
    return None


def _common(kinds: Sequence[Schema]) -> Schema:
    """What all have and tell in the same words."""
    first, *others = [kind["properties"] for kind in kinds]
    same = {k: v for k, v in first.items() if all(o.get(k) == v for o in others)}
    about = "What all procedures have, whatever they measure."
    return {"properties": same, "description": about}


def _without(model: Schema, other: Schema) -> Schema:
    left = {
        key: value
        for key, value in model["properties"].items()
        if key not in other.get("properties", {})
    }
    return {**model, "properties": left}


def _title(part: str, places: Mapping[str, str], schema: Schema) -> str:
    """Of several parts in one place each is told by a key, or by where it belongs."""
    path, model = places[part], schema["$defs"][part]
    if list(places.values()).count(path) == 1 or not model.get("required"):
        return f"`{path}`"
    if told_by := _told_by(model):
        return f"`{path}` with `{told_by}`"
    if owners := list(_owners(part, schema)):
        return f"`{path}` of {', '.join(owners)}"
    return f"`{path}` with `{model['required'][0]}`"


def _owners(part: str, schema: Schema) -> Iterator[str]:
    """The kinds of a larger part in which a part stands."""
    for model in schema["$defs"].values():
        told_by = _told_by(model) if "properties" in model else None
        parts = (p for v in model.get("properties", {}).values() for p, _ in _parts(v))
        if told_by and part in parts:
            yield told_by.partition(": ")[2]


def _places(schema: Schema, elsewhere: Mapping[str, str]) -> dict[str, str]:
    """Where each part stands first, nearest to the whole first."""
    places: dict[str, str] = {}
    waiting: list[tuple[str, Schema]] = [("", schema)]
    for path, model in waiting:
        for key, value in model.get("properties", {}).items():
            here = f"{path}.{key}" if path else key
            for part, suffix in _parts(value):
                known = part in places or part in elsewhere
                if not known and "properties" in schema["$defs"][part]:
                    places[part] = f"{here}{suffix}"
                    waiting.append((places[part], schema["$defs"][part]))
    return places


def _parts(value: Schema, suffix: str = "") -> Iterator[tuple[str, str]]:
    """The parts that a value may be, and whether they are in a list."""
    if "$ref" in value:
        yield value["$ref"].removeprefix(_REF), suffix
    for choice in (*value.get("anyOf", ()), *value.get("oneOf", ())):
        yield from _parts(choice, suffix)
    if isinstance(value.get("items"), dict):
        yield from _parts(value["items"], f"{suffix}[]")


def _table(title: str, model: Schema, words: Mapping[str, str]) -> str:
    rows = [
        f"| `{key}` | {_values(value, words)} | {_default(key, value, model)} "
        f"| {_cell(value.get('description', ''))} |"
        for key, value in model.get("properties", {}).items()
    ]
    head = "| key | value | default | meaning |\n|---|---|---|---|"
    about = _cell(model.get("description", "").split("\n\n")[0])
    return "\n".join([f"### {title}\n", f"{about}\n", head, *rows, ""])


def _default(key: str, value: Schema, model: Schema) -> str:
    """Of a part with keys of its own, those have the defaults."""
    if key in model.get("required", ()):
        return "required"
    default = value.get("default")
    first = default[0] if isinstance(default, list) and default else default
    if first in (None, [], {}, "") or isinstance(first, dict):
        return _NOTHING
    return f"`{_plain(default)}`"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _values(value: Schema, words: Mapping[str, str]) -> str:
    return _cell(" or ".join(dict.fromkeys(_words(value, words))))


def _words(value: Schema, words: Mapping[str, str]) -> Iterator[str]:
    """What may stand there, each choice in words; null is: left out."""
    choices = (*value.get("anyOf", ()), *value.get("oneOf", ()))
    for choice in choices:
        yield from _words(choice, words)
    if choices or value.get("type") == "null":
        return
    if "$ref" in value:
        part = value["$ref"].removeprefix(_REF)
        yield words.get(part, part)
    elif "const" in value:
        yield f"`{_plain(value['const'])}`"
    elif "enum" in value:
        yield ", ".join(f"`{_plain(each)}`" for each in value["enum"])
    elif value.get("type") == "array":
        items = " or ".join(dict.fromkeys(_words(value.get("items", {}), words)))
        yield f"list: {items}" if items else "list"
    else:
        yield _plain_type(value)


_TYPES = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "boolean": "`true`, `false`",
    "object": "keys and values",
}


def _plain_type(value: Schema) -> str:
    name = _TYPES.get(value.get("type", ""), "anything")
    least, most = value.get("minimum"), value.get("maximum")
    above, below = value.get("exclusiveMinimum"), value.get("exclusiveMaximum")
    bounds = [
        f"above {_number(above)}" if above is not None else "",
        f"from {_number(least)}" if least is not None else "",
        f"to {_number(most)}" if most is not None else "",
        f"below {_number(below)}" if below is not None else "",
    ]
    return " ".join([name, *filter(None, bounds)])


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,g}"


def _cell(text: str) -> str:
    """Text that cannot end a table's cell."""
    return " ".join(text.split()).replace("|", "\\|").replace("``", "`")


DEFAULT_DIRECTORY = Path("docs/reference")
COMMANDS = "commands.md"
MARK = "<!-- From here on made by: python -m dutperf.reference -->\n"


def schema_files() -> dict[str, str]:
    """File name -> text, the same on every machine."""
    return {
        f"{name}.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for name, schema in schemas().items()
    }


def tables() -> str:
    """The keys of the files that people write."""
    made = schemas()
    campaign = key_tables(
        "campaign.yaml", made["campaign"], elsewhere={"Testbed": "a testbed's keys"}
    )
    testbed = key_tables("testbed.yaml", made["testbed"])
    return f"\n## Keys of a campaign\n\n{campaign}\n## Keys of a testbed\n\n{testbed}"


def write_reference(directory: Path) -> list[Path]:
    """Write all of them below ``directory``, which may exist; return their paths."""
    texts = {directory / "schema" / name: text for name, text in schema_files().items()}
    readme = directory / "README.md"
    above = readme.read_text("utf-8").partition(MARK)[0] if readme.exists() else ""
    texts[readme] = above + MARK + tables()
    texts[directory / COMMANDS] = command_page()
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return list(texts)
