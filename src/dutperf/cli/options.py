"""Options of several commands, each defined once; of procedures: procedure_options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dutperf.cli.option_help import MORE, SHOWN, brief
from dutperf.config.labs import MOST_RULES, LabKeys
from dutperf.errors import InputError

if TYPE_CHECKING:
    from dutperf.config import Preset

Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="DIR",
        help="results directory, new or empty",
        show_default="results/NAME-TIME",
    ),
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        metavar="",
        help="print one JSON object on standard output",
        rich_help_panel=SHOWN,
    ),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        metavar="",
        help="a line for each trial; at the end all that the report says",
        rich_help_panel=SHOWN,
    ),
]
Plain = Annotated[
    bool,
    typer.Option(
        "--plain",
        metavar="",
        help="lines that stay instead of a view that changes",
        rich_help_panel=SHOWN,
    ),
]
Deviations = Annotated[
    bool,
    typer.Option(
        "--deviations",
        metavar="",
        help="list what is not as the RFCs have it",
        rich_help_panel=SHOWN,
    ),
]
Exact = Annotated[
    bool,
    typer.Option(
        "--exact",
        metavar="",
        help="exit with 1 if a result is only a lower bound, too",
        rich_help_panel=SHOWN,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        metavar="",
        help="print cells, trials and expected time; send nothing",
    ),
]
Resume = Annotated[
    Path | None,
    typer.Option(
        "--resume",
        metavar="DIR",
        help="continue the run in there; repeats no finished trial",
    ),
]
AllowHooks = Annotated[
    bool,
    typer.Option(
        "--allow-hooks",
        metavar="",
        help="run commands of a stored campaign that this user did not run before "
        "(docs/evidence.md)",
    ),
]
TestbedFile = Annotated[
    Path | None, typer.Argument(metavar="TESTBED", help="a testbed.yaml file")
]
LabName = Annotated[
    str | None,
    typer.Option(
        "--lab", metavar="NAME", help="a lab instead of a testbed; see 'lab status'"
    ),
]
Rules = Annotated[
    int | None,
    typer.Option(
        "--rules",
        metavar="N",
        help=brief(LabKeys.model_fields["rules"].description or ""),
        rich_help_panel=MORE,
        min=1,
        max=MOST_RULES,
    ),
]
Standard = Annotated[
    bool,
    typer.Option(
        "--standard",
        help="by the RFCs: trials of 60 s, 20 repeats, 0.1%",
        metavar="",
    ),
]
Quick = Annotated[
    bool,
    typer.Option(
        "--quick",
        help="to look around: trials of 1 s, 1 repeat, 5%",
        metavar="",
    ),
]


@dataclass(frozen=True)
class Display:
    """How results are shown, and what the exit code says of them."""

    as_json: bool = False
    verbose: bool = False
    exact: bool = False
    plain: bool = False
    deviations: bool = False


DISPLAY = Display()
"""As it is where nobody asks for anything."""


def preset_of(standard: bool, quick: bool) -> Preset | None:
    """The preset that was asked for.

    Raises:
        InputError: both were.
    """
    if standard and quick:
        raise InputError(
            "--standard and --quick contradict each other", "leave one out"
        )
    if standard:
        return "standard"
    return "quick" if quick else None
