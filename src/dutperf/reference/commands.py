"""``docs/reference/commands.md``: all commands and options, as --help says."""

from __future__ import annotations

import typer
from typer.cli import get_docs_for_click
from typer.core import MARKUP_MODE_KEY

from dutperf.cli.app import whole

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
