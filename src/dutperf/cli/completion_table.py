"""``completion.json``: made of the commands, and shown when ``--help`` is asked for.

``python -m dutperf.cli.completion_table`` writes it; a shell is answered from it, too
(``completion``).
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from typer.core import TyperOption
from typer.main import get_command

from dutperf import lab
from dutperf.cli.completion import TABLE

_RUNS = {
    *("resume", "report", "verify", "evidence", "compare", "export-histograms"),
    *("export", "query", "trend", "serve"),
}
"""Commands and options that take directories of runs."""


def table() -> str:
    """Every command with its arguments and options, as JSON, a line each."""
    from dutperf.cli.app import whole  # noqa: PLC0415 - whose help is shown, needs none

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
        "panel": isinstance(command.rich_help_panel, str) and command.rich_help_panel,
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


# What ``--help`` shows, without loading the commands: that takes seconds.
#
# Commands that do nothing stand for them, made of ``completion.json``; typer shows
# their help as it shows that of the commands themselves.


_told_type = TyperOption.display_type_rich


def _type_of(self: TyperOption, ctx: Any) -> str | None:  # noqa: ANN401 - typer's
    """What is given or not has no type to be told."""
    return None if self.is_flag else _told_type(self, ctx)


setattr(TyperOption, "display_type_rich", _type_of)  # noqa: B010 - of another type

_TYPES = {
    "<path>": Path,
    "<str>": str,
    "<list[Path]>": list[Path],
    "<list[str]>": list[str],
}


def show_help(arguments: list[str]) -> None:
    """End the program if nothing but the help of a command is asked for.

    Whatever else stands on the command line, the commands themselves have to read.
    """
    told: dict[str, Any] = json.loads(TABLE.read_text("utf-8"))
    of = told
    for word in arguments[:-1]:
        of = of.get("commands", {}).get(word)
        if of is None:
            return
    if not arguments or arguments[-1] == "--help":
        _group(told, arguments)(arguments)


def _group(told: Mapping[str, Any], path: list[str]) -> typer.Typer:
    """Only what is asked for has parameters: to read any, typer loads pydantic."""
    is_asked_for = path[:1] in ([], ["--help"])
    group = typer.Typer(
        help=told["help"],
        no_args_is_help=True,
        add_completion=is_asked_for,
        add_help_option=is_asked_for,
        callback=_stand_in(told if is_asked_for else {}),
        pretty_exceptions_enable=False,
    )
    for name, deeper in told["commands"].items():
        shown = deeper if path[:1] == [name] else {"help": deeper["help"]}
        if "commands" in shown:
            group.add_typer(
                _group(shown, path[1:]), name=name, rich_help_panel=deeper.get("panel")
            )
        else:
            group.command(
                name,
                help=shown["help"],
                epilog=shown.get("epilog"),
                rich_help_panel=deeper.get("panel"),
            )(_stand_in(shown))
    return group


def _stand_in(told: Mapping[str, Any]) -> Callable[..., None]:
    def command(**_values: object) -> None:
        pass

    parameters = [
        _stand_in_parameter(
            name,
            _TYPES[argument["type"]],
            typer.Argument(metavar=argument.get("metavar"), **_as_told(argument)),
            argument,
        )
        for name, argument in told.get("arguments", {}).items()
    ]
    for names, option in told.get("options", {}).items():
        if names in {"--install-completion", "--show-completion"}:  # typer's own
            continue
        info = typer.Option(
            names,
            metavar=option.get("metavar", ""),
            rich_help_panel=option.get("panel"),
            **_as_told(option),
        )
        kind = bool if "flag" in option else str
        name = f"{names.partition('/')[0].strip('-').replace('-', '_')}_"
        parameters.append(_stand_in_parameter(name, kind, info, option))
    vars(command)["__signature__"] = inspect.Signature(parameters)
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


def _as_told(told: Mapping[str, Any]) -> dict[str, Any]:
    return {"help": told.get("help"), "show_default": "default" in told}


def _stand_in_parameter(
    name: str, kind: type, info: object, told: Mapping[str, Any]
) -> inspect.Parameter:
    required = "required" in told
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if required else told.get("default"),
        annotation=Annotated[kind if required else kind | None, info],
    )


if __name__ == "__main__":
    TABLE.write_text(table(), "utf-8")
