"""What is made of the models and commands: documents, schemas, manual pages.

``python -m dutperf.reference`` writes ``docs/reference``, its README.md below a mark,
``protocol/schema`` and ``completion.json`` of the commands;
``python -m dutperf.reference DIR`` the manual pages.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer
from pydantic import TypeAdapter
from typer.cli import get_docs_for_click
from typer.core import MARKUP_MODE_KEY

from dutperf import __version__, lab
from dutperf.cli import EXIT_CODES
from dutperf.cli.app import EXAMPLES, whole
from dutperf.cli.quick_answers import TABLE
from dutperf.compat import commands as siitperf
from dutperf.config import json_schemas
from dutperf.protocol import methods
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


# ``completion.json``: what a shell completes, and ``--help`` shows without loading the
# commands (``cli.command_help``).


_RUNS = {
    *("resume", "report", "verify", "evidence", "compare", "export-histograms"),
    *("export", "query", "trend", "serve"),
}
"""Commands and options that take directories of runs."""


def command_table() -> str:
    """Every command with its arguments and options, as JSON, a line each."""
    command = typer.main.get_command(whole())
    program = _told_command(command, typer.Context(command, info_name="dutperf"))
    commands = program.pop("commands")
    told = (f"{json.dumps(key)}: {json.dumps(each)}" for key, each in commands.items())
    lines = ",\n".join(told)
    return f'{json.dumps(program)[:-1]}, "commands": {{\n{lines}\n}}}}\n'


# Classes of typer's parser, which are no part of its interface, are Any here.
def _told_command(command: Any, context: typer.Context) -> dict[str, Any]:  # noqa: ANN401
    name = context.info_name
    told: dict[str, Any] = {"arguments": {}, "options": {}}
    for param in command.params:
        if param.param_type_name == "argument":
            told["arguments"][param.name] = _told_argument(param, context)
            continue
        names = "/".join([*param.opts, *param.secondary_opts])
        told["options"][names] = _told_option(param, context)
    deeper = getattr(command, "commands", {})
    told |= {
        "help": command.help,
        "epilog": command.epilog,
        "panel": isinstance(command.rich_help_panel, str) and command.rich_help_panel,
        "values": list(lab.LABS) if name in {"up", "down"} else [],
        "runs": name in _RUNS,
        "commands": {
            key: _told_command(each, typer.Context(each, info_name=key, parent=context))
            for key, each in deeper.items()
        },
    }
    return _said(told)


def _told_argument(param: Any, context: typer.Context) -> dict[str, Any]:  # noqa: ANN401
    kind = param.display_type_rich(ctx=context)
    return _said(_shown(param, context) | {"metavar": param.metavar, "type": kind})


def _told_option(param: Any, context: typer.Context) -> dict[str, Any]:  # noqa: ANN401
    kind = param.type_descriptor.annotation
    values = get_args(kind) if get_origin(kind) is Literal else ()
    if param.name in {"lab", "lab_name"}:
        values = tuple(lab.LABS)
    told = {
        "flag": param.is_flag,
        "metavar": param.display_type_rich(ctx=context),
        "panel": param.rich_help_panel,
        "values": list(values),
        "runs": param.name in _RUNS,
    }
    return _said(_shown(param, context) | told)


def _shown(param: Any, context: typer.Context) -> dict[str, Any]:  # noqa: ANN401
    """The default is what its help has: between brackets, or ``[default: ...]``."""
    default = param._extract_default_help_str(ctx=context)
    named = isinstance(param.show_default, str)
    has_one = named or (param.show_default and default is not None)
    return {
        "help": param.help,
        "required": param.required,
        "default": has_one
        and param._get_default_string(
            ctx=context, show_default_is_str=named, default_value=default
        ),
    }


def _said(told: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in told.items() if value}


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


def written_schemas() -> dict[str, Schema]:
    """The same as editors get them, who let numbers be written as people do."""
    return {
        name: _with_written_numbers(schema) if name in json_schemas() else schema
        for name, schema in schemas().items()
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


_AS_TEXT = {"integer": "k|M|G|e[0-9]{1,2}", "number": "k|M|G|%|e[0-9]{1,2}"}
"""How a number may end that is written as people do, by the type that it has."""


def _with_written_numbers(node: Any) -> Any:  # noqa: ANN401 - a schema
    """``100k`` fits where a number does; bounds in a schema are of numbers alone."""
    if isinstance(node, list):
        return [_with_written_numbers(each) for each in node]
    if not isinstance(node, dict):
        return node
    found = {key: _with_written_numbers(each) for key, each in node.items()}
    kind = found.get("type")
    if isinstance(kind, str) and kind in _AS_TEXT and "const" not in found:
        found["type"] = [kind, "string"]
        found["pattern"] = rf"^[0-9]+(\.[0-9]+)?({_AS_TEXT[kind]})$"
    return found


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


COMMANDS = "commands.md"
MARK = "<!-- From here on made by: python -m dutperf.reference -->\n"


def schema_files() -> dict[str, str]:
    """File name -> text, the same on every machine."""
    return {
        f"{name}.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for name, schema in written_schemas().items()
    }


def tables() -> str:
    """The keys of the files that people write."""
    made = schemas()
    campaign = key_tables(
        "campaign.yaml", made["campaign"], elsewhere={"Testbed": "a testbed's keys"}
    )
    testbed = key_tables("testbed.yaml", made["testbed"])
    return f"\n## Keys of a campaign\n\n{campaign}\n## Keys of a testbed\n\n{testbed}"


def write_reference(checkout: Path) -> None:
    """Write all of them below ``checkout``."""
    directory = checkout / "docs" / "reference"
    texts = {directory / "schema" / name: text for name, text in schema_files().items()}
    for name, text in methods.schema_files().items():
        texts[checkout / "protocol" / "schema" / name] = text
    readme = directory / "README.md"
    above = readme.read_text("utf-8").partition(MARK)[0] if readme.exists() else ""
    texts[readme] = above + MARK + tables()
    texts[directory / COMMANDS] = command_page()
    texts[TABLE] = command_table()
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


# Manual pages of all commands, as --help says.
#
# ``dutperf(1)`` and a page for each command, ``dutperf-lab-up(1)`` for one of a group;
# and of the commands of siitperf.


PROGRAM = "dutperf"


def man_pages() -> dict[str, str]:
    """File name -> page in roff, the same on every machine."""
    program = typer.main.get_command(whole())
    pages = _pages(program, typer.Context(program, info_name=PROGRAM))
    return dict(
        [*pages, *map(_siitperf_page, (siitperf.tp, siitperf.lat, siitperf.pdv))]
    )


# Classes of typer's parser, which are no part of its interface, are Any here.
def _pages(command: Any, context: typer.Context) -> Iterator[tuple[str, str]]:  # noqa: ANN401
    yield f"{_name(context)}.1", _page(command, context)
    for name, deeper in getattr(command, "commands", {}).items():
        yield from _pages(deeper, typer.Context(deeper, info_name=name, parent=context))


def _siitperf_page(command: Callable[[], object]) -> tuple[str, str]:
    """Of a command that has no options; its docstring is its name and title."""
    name, title = re.findall(r"``(\S+)``: (.+)\.", command.__doc__ or "")[0]
    about, *more = (siitperf.__doc__ or "").partition(": ")[2].split("\n\n")
    parts = [
        _head(name),
        _section("NAME", f"{_text(name)} \\- {_text(title)}"),
        _section("SYNOPSIS", f".B {_text(name)}\nNUMBER..."),
        _section("DESCRIPTION", _text(about)),
        _section("EXIT STATUS", "\n.PP\n".join(map(_text, more))),
        _section("SEE ALSO", f".BR {PROGRAM}\\-convert (1)"),
    ]
    return f"{name}.1", "\n".join(parts) + "\n"


def _head(name: str) -> str:
    version = f"{PROGRAM} {__version__}"
    return f'.TH {_text(name.upper())} 1 "" "{version}" "User Commands"'


def _name(context: typer.Context) -> str:
    return context.command_path.replace(" ", "-")


def _page(command: Any, context: typer.Context) -> str:  # noqa: ANN401
    title, *more = (command.help or "").split("\n\n")
    whole = context.parent is None
    usage = " ".join(command.collect_usage_pieces(context))
    examples = EXAMPLES.get(context.info_name or "", ())
    parts = [
        _head(_name(context)),
        _section("NAME", f"{_text(_name(context))} \\- {_text(title.rstrip('.'))}"),
        _section("SYNOPSIS", f".B {_text(context.command_path)}\n{_text(usage)}"),
        _section("DESCRIPTION", "\n.PP\n".join(map(_text, [title, *more]))),
        _section("COMMANDS", "".join(_commands(command, context))),
        *_options(command, context),
        _section("EXAMPLES", "".join(_examples(examples))),
        _section("EXIT STATUS", "".join(_exit_status()) if whole else ""),
        _section("SEE ALSO", "" if whole else f".BR {PROGRAM} (1)"),
    ]
    return "\n".join(part.rstrip("\n") for part in parts if part) + "\n"


def _section(title: str, content: str) -> str:
    return f".SH {title}\n{content}" if content else ""


def _commands(command: Any, context: typer.Context) -> Iterator[str]:  # noqa: ANN401
    for name, deeper in getattr(command, "commands", {}).items():
        about = (deeper.help or "").partition("\n\n")[0]
        yield f".TP\n.BR {_text(_name(context))}\\-{_text(name)} (1)\n{_text(about)}\n"


def _options(command: Any, context: typer.Context) -> Iterator[str]:  # noqa: ANN401
    """Arguments and options, those of a panel of --help under its title."""
    panels: dict[str, list[str]] = {"Arguments": [], "Options": []}
    for param in command.get_params(context):
        if record := param.get_help_record(context):
            panels.setdefault(_panel(param), []).append(_option(record))
    for title, told in panels.items():
        yield _section(title.upper(), "".join(told))


def _panel(param: Any) -> str:  # noqa: ANN401
    if param.param_type_name == "argument":
        return "Arguments"
    return getattr(param, "rich_help_panel", None) or "Options"


def _option(record: tuple[str, str]) -> str:
    names, about = record
    return f".TP\n.B {_text(names)}\n{_text(about)}\n"


def _examples(commands: tuple[str, ...]) -> Iterator[str]:
    if commands:
        lines = "\n".join(map(_text, commands))
        yield f".nf\n.RS\n{lines}\n.RE\n.fi\n"


def _exit_status() -> Iterator[str]:
    """What ``cli.EXIT_CODES`` says of each number."""
    for number, meaning in re.findall(r"(\d+) ([^;(]+?)(?: \(.*?\))?[;.]", EXIT_CODES):
        yield f".TP\n.B {number}\n{_text(meaning)}\n"


def _text(text: str) -> str:
    """One line that roff takes for nothing but text."""
    plain = " ".join(text.split()).replace("``", "'").replace("\\", "\\e")
    return re.sub(r"^(?=[.'])", r"\\&", plain.replace("-", "\\-"))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        for _file, _page_text in man_pages().items():
            Path(sys.argv[1], _file).write_text(_page_text, "utf-8")
    else:
        write_reference(Path())
