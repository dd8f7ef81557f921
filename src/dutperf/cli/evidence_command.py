"""``dutperf evidence``: a run packed into one archive."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from dutperf.cli.failures import PatientConsole, show_notice
from dutperf.cli.json_print import print_versioned
from dutperf.cli.options import AsJson
from dutperf.config import load_campaign
from dutperf.errors import DutperfError, InputError
from dutperf.evidence import files_of, pack, sign
from dutperf.results import load_environments, load_journal
from dutperf.results.directory import CAMPAIGN
from dutperf.run.consent import acts
from dutperf.run.preview import recorded_frames

_VERSION = 1

Directory = Annotated[
    Path, typer.Argument(metavar="DIR", help="a results directory", show_default=False)
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="FILE",
        help="the archive; default: DIR.evidence.tar.gz",
        show_default=False,
    ),
]


Sign = Annotated[
    Path | None,
    typer.Option(
        "--sign",
        metavar="KEY",
        help="sign it with this ssh key; of one that ssh-agent has: its .pub file",
        show_default=False,
    ),
]


Yes = Annotated[
    bool,
    typer.Option("--yes", metavar="", help="pack commands of hooks and their output"),
]


def evidence(
    directory: Directory,
    out: Out = None,
    key: Sign = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Pack a run into one archive: all its files, with SHA-256 sums."""
    files_of(directory)  # refuses what is no run before an engine is started
    if not yes:
        _ask(directory)
    signing = partial(sign, key=key) if key else None
    made = pack(directory, out, _frames(directory), signing)
    if as_json:
        told = {
            "path": str(made.path),
            "files": list(made.files),
            "size_bytes": made.size_bytes,
        }
        print_versioned(_VERSION, told)
        return
    PatientConsole().out(
        f"{made.path}: {len(made.files)} files, {made.size_bytes:,} bytes; check it "
        f"with: dutperf verify {made.path}",
        highlight=False,
    )


def _ask(directory: Path) -> None:
    """Whether others may read what the run tells of this machine and its network.

    Raises:
        InputError: they may not, or nobody is there to be asked.
    """
    told = list(_confidences(directory))
    if not told:
        return
    show_notice("\n  ".join(["these are packed, and what hooks printed:", *told]))
    if sys.stdin.isatty() and typer.confirm("pack them?", err=True):
        return
    raise InputError(
        "nothing was packed: others would read what stands above",
        "if they may, give --yes",
    )


def _confidences(directory: Path) -> Iterator[str]:
    try:
        testbeds = load_campaign(directory / CAMPAIGN, stored=True).testbeds
    except InputError as error:
        yield f"{CAMPAIGN}, which cannot be read: {error.message}"
        return
    yield from acts(testbeds)
    for testbed in testbeds:
        if testbed.stored != testbed:  # of a version that stored it
            yield f"{testbed.name}: snmp.community itself, in campaign and journal"


def _frames(directory: Path) -> dict[str, bytes]:
    """The first frames of each cell, where an engine can write them."""
    journal, environments = load_journal(directory), load_environments(directory)
    try:
        return recorded_frames(journal.records, list(environments.values()))
    except DutperfError as error:
        show_notice(f"packed without the first frames (pcap): {error.message}")
        return {}
