"""Commands that stand in the documents, and how to understand and take them."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from dutperf.cli.app import whole
from tools.__main__ import PROGRAM

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_TOOLS = [".venv/bin/python", "-m", "tools"]
_HERE_DOCUMENT = re.compile(r"<<'?(\w+)'?")
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Command:
    """A command as it stands in a page; one that writes a file, with its lines."""

    page: str
    text: str

    @property
    def words(self) -> list[str]:
        """As a shell splits them; variables set for it are left out."""
        line = self.text.partition("\n")[0].removesuffix("&")
        words = shlex.split(line, comments=True)
        while words and re.match(r"[A-Z_]+=", words[0]):
            words.pop(0)
        return words

    @property
    def in_background(self) -> bool:
        """Whether the next one begins while it goes on."""
        return self.text.endswith(" &")

    def __str__(self) -> str:
        """For the messages of tests."""
        return f"{self.page}: {self.text}"


def steps(page: Path) -> list[Command]:
    """The commands of a page's ``sh`` blocks: what a reader is to do, in order."""
    blocks = [text for kind, text in _FENCED.findall(page.read_text()) if kind == "sh"]
    name = page.relative_to(ROOT).as_posix()
    return [Command(name, text) for block in blocks for text in _commands(block)]


def mentioned(page: Path) -> list[Command]:
    """Every command of ours in any block of a page, fenced or indented."""
    name = page.relative_to(ROOT).as_posix()
    text = re.sub(r" \\\n\s*", " ", page.read_text())
    code = [block for kind, block in _FENCED.findall(text) if kind in ("", "sh")]
    code += re.findall(r"^    (.*)$", _FENCED.sub("", text), re.MULTILINE)
    lines = re.split(r"\n| && ", "\n".join(code))
    ours = ("dutperf ", f"{shlex.join(_TOOLS)} ")
    return [Command(name, line.strip()) for line in lines if line.startswith(ours)]


def _commands(block: str) -> Iterator[str]:
    lines = iter(block.splitlines())
    for line in lines:
        if found := _HERE_DOCUMENT.search(line):
            rest = iter(lines.__next__, found[1])
            yield "\n".join([line, *rest, found[1]])
        elif line.strip() and not line.startswith("#"):
            yield line


@functools.cache
def _program(name: str) -> Any:  # noqa: ANN401 - the parser's classes are no part of its interface
    return typer.main.get_command(whole() if name == "dutperf" else PROGRAM)


def understand(words: list[str]) -> None:
    """Have the parser of dutperf, or of the tools, read a command; nothing is done.

    Raises:
        Exception: of the parser's, if there is no such command, option or value.
    """
    command = _program(words[0])
    own = len(_TOOLS) if words[: len(_TOOLS)] == _TOOLS else 1
    names, rest = words[:own], words[own:]
    while isinstance(command, TyperGroup) and rest and rest[0] in command.commands:
        command = command.commands[rest[0]]
        names.append(rest.pop(0))
    if rest not in (["--help"], ["--version"]):
        command.make_context(" ".join(names), rest)
