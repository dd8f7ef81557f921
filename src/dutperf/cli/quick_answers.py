"""What is told without loading the commands, for that takes a second.

What a shell may complete: ``completion.json`` beside this file has every command with
its options; it is made from the commands by ``python -m dutperf.reference``. Which
results directories there are is seen when they are asked for. The scripts that ask are
typer's, from ``--install-completion`` and ``--show-completion``; so are the forms of
the answers.

And what ``dutperf lab list`` says, for which no model is loaded.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dutperf import lab
from dutperf.visible import versioned_json, visible

VARIABLE = "_DUTPERF_COMPLETE"
TABLE = Path(__file__).with_name("completion.json")
_RESULTS = "journal.jsonl"
_LIST_VERSION = 1


def answer(environment: Mapping[str, str]) -> str | None:
    """What the shell is told; None: it asks for something else, typer's own script."""
    shell = environment[VARIABLE].removeprefix("complete_")
    if shell == "bash":
        words = environment.get("COMP_WORDS", "").split()
        counted = environment.get("COMP_CWORD", "")
        place = int(counted) if counted.isdecimal() else 1
        before, begun = words[1:place], (words[place:] or [""])[0]
    elif shell in {"zsh", "fish"}:
        line = environment.get("_TYPER_COMPLETE_ARGS", "")
        words = line.split()[1:]
        begun = words.pop() if words and not line[-1:].isspace() else ""
        before = words
    else:
        return None
    found = [
        (word, told)
        for word, told in _candidates(before, begun)
        if word.startswith(begun)
    ]
    if shell == "zsh":
        return _for_zsh(found)
    if shell == "fish":
        if environment.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
            raise SystemExit(not found)
        return "\n".join(f"{word}\t{told}".rstrip() for word, told in found)
    return "\n".join(word for word, _ in found)


def _for_zsh(found: list[tuple[str, str]]) -> str:
    """As typer's script evaluates it: files where there is nothing better."""
    if not found:
        return "_files"
    words = "\n".join(f'"{_quoted(word)}":"{_quoted(told)}"' for word, told in found)
    return f"_arguments '*: :(({words}))'"


def _quoted(text: str) -> str:
    """Nothing in it is obeyed where the shell evaluates it."""
    return re.sub(r"[\"'`$\\():;\x00-\x1f]", " ", text)


def _candidates(before: list[str], begun: str) -> Iterator[tuple[str, str]]:
    command: dict[str, Any] = json.loads(TABLE.read_text("utf-8"))
    last: dict[str, Any] | None = None
    for word in before:
        deeper = command.get("commands", {}).get(word) if last is None else None
        if deeper:
            command = deeper
        option = _options(command).get(word)
        last = option if option and "flag" not in option else None
    if last is not None:
        yield from _values(last, begun)
    elif begun.startswith("-"):
        for name, option in _options(command).items():
            yield name, option.get("help", "").partition(";")[0]
    else:
        for name, deeper in command.get("commands", {}).items():
            yield name, deeper.get("help", "").partition("\n")[0]
        yield from _values(command, begun)


def _options(command: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """By each of their names, of which ``--this/--no-this`` are two."""
    return {
        name: option
        for names, option in command.get("options", {}).items()
        for name in names.split("/")
    }


def _values(of: Mapping[str, Any], begun: str) -> Iterator[tuple[str, str]]:
    """Of an option, or of a command without one."""
    yield from ((value, "") for value in of.get("values", ()))
    if of.get("runs"):
        yield from _directories(begun)


def _directories(begun: str) -> Iterator[tuple[str, str]]:
    """Results directories that begin so, and directories on the way to them."""
    parent = Path(begun if begun.endswith("/") else begun.rpartition("/")[0] or ".")
    if begun == "" and Path("results").is_dir():
        yield from _directories("results/")
    prefix = begun[: begun.rfind("/") + 1]
    try:
        entries = [entry for entry in os.scandir(parent) if entry.is_dir()]
    except (OSError, ValueError):
        return
    for entry in sorted(entries, key=lambda entry: entry.name):
        if Path(entry.path, _RESULTS).exists():
            yield f"{prefix}{entry.name}", "a run"
        elif not entry.name.startswith("."):
            yield f"{prefix}{entry.name}/", ""


def listing(*, as_json: bool) -> str:
    """The labs that are up, and the runs that go on.

    Raises:
        SetupError: a lab is of another version.
    """
    if as_json:
        labs = [asdict(status) for status in lab.running()]
        runs = [{"who": who, "cpus": cpus} for who, cpus in lab.runs().items()]
        return versioned_json(_LIST_VERSION, {"labs": labs, "runs": runs})
    lines = [_line(status) for status in lab.running()] or ["no lab is up"]
    for who, cpus in lab.runs().items():
        lines.append(f"measuring: {who}  CPU {', '.join(map(str, cpus))}")
    return visible("\n".join(lines))


def _line(status: lab.LabStatus) -> str:
    name = "@".join(filter(None, [status.name, status.own_name]))
    owner = f"process {status.owner}" if status.owner else "kept"
    state = "" if status.alive else ", a remainder of a dead process"
    since = status.since.isoformat(" ", "seconds")
    told = [name, f"since {since}", f"{owner}{state}", _cpus(status)]
    return "  ".join(filter(None, [*told, ", ".join(status.links)]))


def _cpus(status: lab.LabStatus) -> str:
    """Whose they are: 'CPU 0 tester, 1 device'."""
    told = [
        f"{', '.join(map(str, cpus))} {what}"
        for what, cpus in sorted(status.cpus.items(), key=lambda each: list(each[1]))
        if cpus
    ]
    shared = " (shared)" if status.shares_cpus else ""
    return f"CPU {', '.join(told)}{shared}" if told else ""
