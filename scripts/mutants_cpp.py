#!/usr/bin/env python3
"""Makes the edits of mutants_cpp.toml to C++ code, one at a time: do its tests notice?

scripts/mutants_cpp.py [NAME...]     units of the list, all by default

For each edit the unit's test program is built anew, outside of the tree, and run. A
mutant that survives is printed, unless the list says why it is equivalent.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "engine/src"
LISTED = Path(__file__).with_name("mutants_cpp.toml")
PATIENCE_S = 30


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
        SystemExit: the edit has no place.
    """
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        here = Path(name)
        if edit is not None:
            text = (SOURCE / edit.file).read_text()
            if text.count(edit.old) != 1:
                raise SystemExit(f"error: not once in {edit.file}: {edit.old}")
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
        try:
            run = subprocess.run(
                [program], capture_output=True, check=False, timeout=PATIENCE_S
            )
        except subprocess.TimeoutExpired:
            return True
        return run.returncode != 0


def main() -> int:
    """Tells the survivors; returns whether there are any."""
    survived = 0
    for unit in tomllib.loads(LISTED.read_text())["unit"]:
        if sys.argv[1:] and unit["name"] not in sys.argv[1:]:
            continue
        if noticed(unit, None):
            raise SystemExit(
                f"error: the tests of {unit['name']} fail without a mutant"
            )
        edits = [Edit(**each) for each in unit["edit"]]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            told = list(pool.map(partial(noticed, unit), edits))
        alive = [edit for edit, killed in zip(edits, told, strict=True) if not killed]
        known = [edit for edit in alive if edit.equivalent]
        survived += len(alive) - len(known)
        print(
            f"{unit['name']}: {len(edits)} mutants, {sum(told)} killed, {len(known)} "
            f"equivalent, {len(alive) - len(known)} survived"
        )
        for edit in alive:
            if not edit.equivalent:
                print(f"  {edit.file}: {edit.old} -> {edit.new}")
        for edit, killed in zip(edits, told, strict=True):
            if killed and edit.equivalent:
                print(f"  listed as equivalent, but killed: {edit.old} -> {edit.new}")
    return int(survived > 0)


if __name__ == "__main__":
    sys.exit(main())
