"""What ``--help`` shows, without loading the commands: that takes seconds.

Commands that do nothing stand for them, made of ``completion.json``; typer shows
their help as it shows that of the commands themselves.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperOption

from dutperf.cli.quick_answers import TABLE

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
