"""What goes into the evidence of a run, and what its manifest says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dutperf import __version__
from dutperf.errors import InputError
from dutperf.evidence.archive import (
    ENDING,
    MANIFEST,
    SIGNATURE,
    SUMS,
    Sign,
    packed,
    write_new,
)
from dutperf.results import load_environments, load_journal, load_results
from dutperf.results.directory import CAMPAIGN, RESULTS
from dutperf.results.environment import Environment
from dutperf.results.journal import JOURNAL
from dutperf.results.loading import read_bytes

VERSION = 1
REPORT = "report.html"
NEEDED = (CAMPAIGN, JOURNAL, RESULTS)
OWN = {MANIFEST, SUMS, SIGNATURE}


class Packed(NamedTuple):
    """An archive that was written: where, and what is in it."""

    path: Path
    files: tuple[str, ...]
    size_bytes: int


def files_of(directory: Path) -> dict[str, bytes]:
    """All plain files of a results directory, by name; hidden ones are left out.

    Raises:
        InputError: it holds no run, or a link.
    """
    if not directory.is_dir():
        raise InputError(
            f"{directory} is no directory", "give the results directory of a run"
        )
    found: dict[str, bytes] = {}
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        if any(part.startswith(".") for part in name.split("/")):
            continue
        if path.is_symlink():
            raise InputError(f"{path} is a link", "put the file itself in its place")
        if path.is_file() and name not in OWN and not name.endswith(ENDING):
            found[name] = read_bytes(path)
    missing = [name for name in NEEDED if name not in found]
    if missing:
        raise InputError(
            f"{directory} is no evidence of a run: {' and '.join(missing)} missing",
            "give the results directory of a run that has measured something",
        )
    return found


def pack(
    directory: Path,
    out: Path | None = None,
    more: Mapping[str, bytes] | None = None,
    sign: Sign | None = None,
) -> Packed:
    """Write the evidence of the run in ``directory`` into one archive.

    Args:
        directory: of the results.
        out: the archive; None: beside the directory, with its name.
        more: files that are made for it.
        sign: see ``packed``.

    Raises:
        InputError: it holds no run, a file is damaged, or the archive exists.
        StorageError: the file system refused.
    """
    files = {**files_of(directory), **(more or {})}
    name = directory.resolve().name
    path = out or directory.resolve().with_name(f"{name}{ENDING}")
    content = packed(name, files, manifest_of(directory), sign)
    write_new(path, content)
    own = (MANIFEST, SUMS, SIGNATURE) if sign else (MANIFEST, SUMS)
    return Packed(path, (*sorted(files), *own), len(content))


def manifest_of(directory: Path) -> dict[str, Any]:
    """What a reader wants to know before he unpacks it."""
    results, journal = load_results(directory), load_journal(directory)
    environments = load_environments(directory).values()
    return {
        "schema_version": VERSION,
        "what": "evidence of a run of dutperf; check it with: dutperf verify FILE",
        "packed_by": f"dutperf {__version__}",
        "name": results.name,
        "created_at": results.created_at,
        "complete": results.complete,
        "cells": len(results.cells),
        "trials": len(journal.records),
        "versions": sorted({_versions(each) for each in environments}),
        "seeds": sorted({each.seed for each in environments}),
        "machines": [_machine(each) for each in environments],
    }


def _versions(environment: Environment) -> str:
    return (
        f"dutperf {environment.dutperf_version}, engine {environment.engine_version}, "
        f"{environment.dpdk_version}"
    )


def _machine(environment: Environment) -> dict[str, Any]:
    told = environment.model_dump(
        include={"place", "os", "kernel", "cpu_model", "cpus_total", "hypervisor"}
    )
    return dict(json.loads(json.dumps(told)))
