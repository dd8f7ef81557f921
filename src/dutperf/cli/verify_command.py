"""``dutperf evidence`` packs a run into one archive, ``dutperf verify`` judges it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dutperf.api.places import planned_testbeds
from dutperf.cli import INVALID, UNPROVEN
from dutperf.cli.console import PatientConsole, print_versioned, show_notice
from dutperf.cli.options import AllowHooks, AsJson, Output
from dutperf.config import load_campaign
from dutperf.errors import DutperfError, InputError, SetupError
from dutperf.evidence import (
    Check,
    TwoRuns,
    Verification,
    files_of,
    pack,
    sign,
    two_runs,
    unpacked,
)
from dutperf.evidence import verify as verified
from dutperf.evidence.bounded import bounded
from dutperf.report import write_report
from dutperf.results import ResultsFile, load_environments, load_journal, load_results
from dutperf.results.directory import CAMPAIGN
from dutperf.run.campaign_run import acts, campaign_to_run, results_again
from dutperf.run.preview import recorded_frames

# ``dutperf verify``: whether the evidence of a run holds.


_VERSION = 2
_MOST_WRONG = 10

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="an archive of dutperf evidence, or a results directory",
        show_default=False,
    ),
]


Rerun = Annotated[
    bool,
    typer.Option(
        "--rerun", help="measure the campaign anew, and compare the main figures"
    ),
]


Allowed = Annotated[
    Path | None,
    typer.Option(
        "--allowed-signers",
        metavar="FILE",
        help="one of these signed it: keys and whose they are, in ssh's format",
        show_default=False,
    ),
]


def verify(
    path: File,
    allowed: Allowed = None,
    rerun: Rerun = False,
    output: Output = None,
    allow_hooks: AllowHooks = False,
    as_json: AsJson = False,
) -> None:
    """Check the sums of a run, and make each of its results from the journal again.

    Ends with 1 if anything speaks against them, and with 5 if it cannot be told whether
    something does.
    """
    if output and not rerun:
        raise InputError("--output is where --rerun stores its run", "leave it out")
    if allow_hooks and not rerun:
        raise InputError(
            "--allow-hooks is for --rerun, which is missing", "leave it out"
        )
    found = bounded(
        lambda: verified(path, planned_testbeds, results_again, write_report, allowed),
        path,
    )
    if not as_json:
        _print(lines(found))
    again = _measured_again(path, output, allow_hooks) if rerun else None
    if as_json:
        told = {} if again is None else {"rerun": [asdict(each) for each in again]}
        print_versioned(_VERSION, as_data(found) | told)
    elif again is not None:
        _print(rerun_lines(again))
    if not found.good or any(each.agrees is False for each in again or []):
        raise typer.Exit(INVALID)
    if not found.proven:
        raise typer.Exit(UNPROVEN)


def _print(texts: Iterable[str]) -> None:
    console = PatientConsole()
    for text in texts:
        console.print(text, markup=False, highlight=False, soft_wrap=True)


def _measured_again(
    path: Path, output: Path | None, allow_hooks: bool
) -> list[TwoRuns]:
    """The same campaign on the way of ``dutperf run``, beside what is packed."""
    with unpacked(path) as directory:
        then = load_results(directory)
        campaign = campaign_to_run(
            directory / CAMPAIGN, allowed=allow_hooks, called=path
        )
    # Nobody else needs what measures, which takes a while to be loaded.
    from dutperf.cli.measuring import measured  # noqa: PLC0415

    now = measured(campaign, then.procedure, output, None, _show_nothing)
    if now is None:
        raise SetupError("the campaign was not measured", "see why above")
    return two_runs(then, now)


def _show_nothing(
    _console: Console, _results: ResultsFile, _report: Path | None
) -> None:
    """Its results are shown beside those of before."""


def rerun_lines(rows: Sequence[TwoRuns]) -> Iterator[str]:
    """A line for each cell: then, now, and whether they agree."""
    longest = max((len(row.cell) for row in rows), default=0)
    for row in rows:
        sign = {True: "agrees", False: "DIFFERS", None: "-"}[row.agrees]
        yield f"{sign:<8}{row.cell:<{longest}}  {row.words}"
    counts = [sum(row.agrees is kind for row in rows) for kind in (True, False, None)]
    yield (
        f"measured again: {counts[0]} of {len(rows)} test cases agree, "
        f"{counts[1]} differ, {counts[2]} cannot be compared"
    )


def as_data(found: Verification) -> dict[str, object]:
    """As ``--json`` prints it (docs/json.md)."""
    return {
        "what": found.what,
        "good": found.good,
        "proven": found.proven,
        "checks": [asdict(check) for check in found.checks],
    }


def lines(found: Verification) -> Iterator[str]:
    """A line for each check, below it what is wrong and what nobody can tell."""
    longest = max(len(check.name) for check in found.checks)
    for check in found.checks:
        yield f"{_sign(check):<8}{check.name:<{longest}}  {check.told}"
        indent = " " * (8 + longest + 2)
        for told in check.wrong[:_MOST_WRONG]:
            yield f"{indent}{told}"
        if len(check.wrong) > _MOST_WRONG:
            yield f"{indent}and {len(check.wrong) - _MOST_WRONG} more (--json has all)"
        for told in check.unknown:
            yield f"{indent}{told}"
    yield _in_a_sentence(found)


def _in_a_sentence(found: Verification) -> str:
    """What a reader who reads nothing else should know."""
    if bad := [check.name for check in found.checks if check.wrong]:
        return f"refused: {', '.join(bad)}"
    if unproven := [check.name for check in found.checks if check.unproven]:
        return f"not proven: {', '.join(unproven)} could not be judged, see above"
    left = [check.name for check in found.checks if not check.looked]
    but = f"; not looked at: {', '.join(left)}" if left else ""
    return f"nothing speaks against these results{but}"


def _sign(check: Check) -> str:
    if check.wrong:
        return "WRONG"
    return "good" if check.looked else "-"


# ``dutperf evidence``: a run packed into one archive.


_EVIDENCE_VERSION = 1

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
        print_versioned(_EVIDENCE_VERSION, told)
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
