"""Makes the edits of mutants_cpp.toml to C++ code, one at a time: do its tests notice?

For each edit the unit's test program is built anew, outside of the tree, and run. A
mutant that survives is printed, unless the list says why it is equivalent.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from dutperf.errors import InputError, SetupError

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "engine/src"
LISTED = Path(__file__).with_name("mutants_cpp.toml")
PATIENCE_S = 30
"""Of a CPU, so that a busy machine kills no mutant."""


@dataclass(frozen=True)
class Edit:
    """``old`` stands in ``file`` exactly once."""

    file: str
    old: str
    new: str
    equivalent: str | None = None


def noticed(unit: dict[str, Any], edit: Edit | None) -> bool:
    """Whether the tests fail; to be killed by the compiler counts, too.

    Raises:
        InputError: the edit has no place, or several.
    """
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        here = Path(name)
        if edit is not None:
            text = (SOURCE / edit.file).read_text()
            if text.count(edit.old) != 1:
                raise InputError(f"not once in {edit.file}: {edit.old}")
            changed = here / edit.file
            changed.parent.mkdir(parents=True)
            changed.write_text(text.replace(edit.old, edit.new))
        sources = [
            here / each if (here / each).exists() else SOURCE / each
            for each in unit["sources"]
        ]
        program = here / "test"
        flags = ["-std=gnu++20", "-O1", "-w", f"-I{here}", f"-I{SOURCE}"]
        libraries = ["-lgtest_main", "-lgtest", "-pthread"]
        built = subprocess.run(
            ["g++", *flags, *sources, *libraries, "-o", program],
            capture_output=True,
            check=False,
        )
        if built.returncode:
            return True
        limited = ["prlimit", f"--cpu={PATIENCE_S}", str(program)]
        run = subprocess.run(limited, capture_output=True, check=False)
        return run.returncode != 0


def mutants_cpp(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[UNIT]...", help="of the list; default: all"),
    ] = None,
) -> None:
    """Edit C++ code as mutants_cpp.toml says, and see whether its tests notice.

    Ends with 1 if a mutant survives.
    """
    survived = 0
    for unit in tomllib.loads(LISTED.read_text())["unit"]:
        if names and unit["name"] not in names:
            continue
        if noticed(unit, None):
            raise SetupError(f"the tests of {unit['name']} fail without a mutant")
        edits = [Edit(**each) for each in unit["edit"]]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            told = list(pool.map(partial(noticed, unit), edits))
        alive = [edit for edit, killed in zip(edits, told, strict=True) if not killed]
        known = [edit for edit in alive if edit.equivalent]
        survived += len(alive) - len(known)
        typer.echo(
            f"{unit['name']}: {len(edits)} mutants, {sum(told)} killed, {len(known)} "
            f"equivalent, {len(alive) - len(known)} survived"
        )
        for edit in alive:
            if not edit.equivalent:
                typer.echo(f"  {edit.file}: {edit.old} -> {edit.new}")
        for edit, killed in zip(edits, told, strict=True):
            if killed and edit.equivalent:
                typer.echo(
                    f"  listed as equivalent, but killed: {edit.old} -> {edit.new}"
                )
    if survived:
        raise typer.Exit(1)
