"""Manual pages of all commands, as --help says: ``python -m ...man_pages DIR``.

``dutperf(1)`` and a page for each command, ``dutperf-lab-up(1)`` for one of a group;
and of the commands of siitperf.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import typer

from dutperf import __version__
from dutperf.cli import EXIT_CODES
from dutperf.cli.app import EXAMPLES, whole
from dutperf.compat import commands as siitperf

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
    for _file, _content in man_pages().items():
        Path(sys.argv[1], _file).write_text(_content, "utf-8")
