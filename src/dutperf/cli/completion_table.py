"""Writes ``completion.json`` from the commands: ``python -m ...completion_table``.

A shell is answered from it (``completion``); so is who asks for help (``help_pages``).
"""

from __future__ import annotations

import json
from typing import Any, Literal, get_args, get_origin

import typer
from typer.main import get_command

from dutperf import lab
from dutperf.cli.app import whole
from dutperf.cli.completion import TABLE

_RUNS = {
    *("resume", "report", "verify", "evidence", "compare", "export-histograms"),
    *("export", "query", "trend", "serve"),
}
"""Commands and options that take directories of runs."""


def table() -> str:
    """Every command with its arguments and options, as JSON, a line each."""
    command = get_command(whole())
    program = _command(command, typer.Context(command, info_name="dutperf"))
    commands = program.pop("commands")
    told = (f"{json.dumps(key)}: {json.dumps(each)}" for key, each in commands.items())
    lines = ",\n".join(told)
    return f'{json.dumps(program)[:-1]}, "commands": {{\n{lines}\n}}}}\n'


# Classes of typer's parser, which are no part of its interface, are Any here.
def _command(command: Any, context: typer.Context) -> dict[str, Any]:  # noqa: ANN401
    name = context.info_name
    told: dict[str, Any] = {"arguments": {}, "options": {}}
    for param in command.params:
        if param.param_type_name == "argument":
            told["arguments"][param.name] = _argument(param, context)
        else:
            told["options"]["/".join([*param.opts, *param.secondary_opts])] = _option(
                param, context
            )
    deeper = getattr(command, "commands", {})
    told |= {
        "help": command.help,
        "epilog": command.epilog,
        "values": list(lab.LABS) if name in {"up", "down"} else [],
        "runs": name in _RUNS,
        "commands": {
            key: _command(each, typer.Context(each, info_name=key, parent=context))
            for key, each in deeper.items()
        },
    }
    return _said(told)


def _argument(param: Any, context: typer.Context) -> dict[str, Any]:  # noqa: ANN401
    kind = param.display_type_rich(ctx=context)
    return _said(_shown(param, context) | {"metavar": param.metavar, "type": kind})


def _option(param: Any, context: typer.Context) -> dict[str, Any]:  # noqa: ANN401
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


if __name__ == "__main__":
    TABLE.write_text(table(), "utf-8")
