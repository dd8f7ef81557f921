"""Writes ``completion.json`` from the commands: ``python -m ...completion_table``."""

from __future__ import annotations

import json
from typing import Any, Literal, get_args, get_origin

from typer.main import get_command

from dutperf import lab
from dutperf.cli.app import app
from dutperf.cli.completion import TABLE

_RUNS = {
    *("resume", "report", "verify", "evidence", "compare", "export-histograms"),
    *("export", "query", "trend", "serve"),
}
"""Commands and options that take directories of runs."""


def table() -> str:
    """Every command with its options, as JSON, a line each."""
    program = _command("dutperf", get_command(app))
    commands = program.pop("commands")
    told = (f"{json.dumps(key)}: {json.dumps(each)}" for key, each in commands.items())
    lines = ",\n".join(told)
    return f'{json.dumps(program)[:-1]}, "commands": {{\n{lines}\n}}}}\n'


def _command(name: str, command: Any) -> dict[str, Any]:  # noqa: ANN401 - of typer's
    options: dict[str, Any] = {}
    takes_lab = name in {"up", "down"}
    for param in command.params:
        if param.param_type_name == "argument":
            continue
        for flag in (*param.opts, *param.secondary_opts):
            options[flag] = _option(param)
    deeper = getattr(command, "commands", {})
    told = {
        "help": (command.help or "").partition("\n")[0],
        "values": list(lab.LABS) if takes_lab else [],
        "runs": name in _RUNS,
        "options": options,
        "commands": {key: _command(key, each) for key, each in deeper.items()},
    }
    return {key: value for key, value in told.items() if value}


def _option(param: Any) -> dict[str, Any]:  # noqa: ANN401 - of typer's
    kind = param.type_descriptor.annotation
    values = get_args(kind) if get_origin(kind) is Literal else ()
    if param.name in {"lab", "lab_name"}:
        values = tuple(lab.LABS)
    is_flag = bool(getattr(param, "is_flag", False))
    told = {
        "help": (param.help or "").partition(";")[0],
        "takes": "" if is_flag else (param.metavar or "VALUE"),
        "values": list(values),
        "runs": param.name in _RUNS,
    }
    return {key: value for key, value in told.items() if value}


if __name__ == "__main__":
    TABLE.write_text(table(), "utf-8")
