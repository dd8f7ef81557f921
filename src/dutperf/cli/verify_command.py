"""``dutperf verify``: whether the evidence of a run holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from dutperf.cli.exit_codes import INVALID
from dutperf.cli.failures import PatientConsole
from dutperf.cli.json_print import print_versioned
from dutperf.cli.options import AsJson
from dutperf.cli.testbeds import planned_testbeds
from dutperf.evidence import Check, Verification
from dutperf.evidence import verify as verified
from dutperf.report import write_report

_VERSION = 1
_MOST_WRONG = 10

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="an archive of dutperf evidence, or a results directory",
        show_default=False,
    ),
]


def verify(path: File, as_json: AsJson = False) -> None:
    """Check the sums of a run, and derive each of its results from the journal again.

    Ends with 1 if anything speaks against them.
    """
    found = verified(path, planned_testbeds, write_report)
    if as_json:
        print_versioned(_VERSION, as_data(found))
    else:
        console = PatientConsole()
        for line in lines(found):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    if not found.good:
        raise typer.Exit(INVALID)


def as_data(found: Verification) -> dict[str, object]:
    """As ``--json`` prints it (docs/json.md)."""
    return {
        "what": found.what,
        "good": found.good,
        "figures": {
            "derived": found.figures.derived,
            "agree": found.figures.agree,
            "differ": found.figures.differ,
            "not_derived": found.figures.underived,
        },
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
    bad = [check.name for check in found.checks if check.wrong]
    if bad:
        yield f"refused: {', '.join(bad)}"
    else:
        yield "nothing speaks against these results"


def _sign(check: Check) -> str:
    if check.wrong:
        return "WRONG"
    return "good" if check.looked else "-"
