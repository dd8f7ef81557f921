"""Options of several commands, each defined once; of procedures: procedure_options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text
from typer import rich_utils

from dutperf.config.campaign import MOST_RULES, LabKeys
from dutperf.errors import InputError
from dutperf.visible import visible

if TYPE_CHECKING:
    from dutperf.config import Preset


# What ``--help`` shows: what people use first, the rest by subject, in two lines each.
#
# A key's description begins with what it is; what follows a semicolon is shown as far
# as it has room, and stands in ``docs/reference`` in full.


_ROOM = 60
"""Characters: two lines of 80 columns beside the longest name and value of a panel."""
_FIRST = (
    "ip",
    "frame_size",
    "direction",
    "stateful.connections",
    "trial_duration_s",
    "rate_fps",
    "throughput_fps",
    "load_percent",
    "overload_percent",
    "repeats",
    "resolution",
    "search",
)
_MOST_FIRST = 5
"""Beside lab, output, dry run and two presets, which every procedure has."""
_PANELS: dict[str, tuple[str, ...]] = {
    "Search and repeats": (
        "resolution",
        "step",
        "longest_burst_s",
        "load_step_percent",
        "max_rate_fps",
        "interval_width",
        "max_repeats",
        "search",
        "verify_trials",
        "max_verify_loss_percent",
        "goals",
    ),
    "Times": (
        "trigger_after_s",
        "overload_duration_s",
        "reduced_duration_s",
        "settle_wait_s",
        "residual_wait_s",
        "restabilise_wait_s",
    ),
    "What is lost, what is late": (
        "frame_timeout_ms",
        "timeout_sweep_ms",
        "loss_tolerance_percent",
        "lag_limit_ms",
        "burst_limit",
    ),
    "Trials that are lost": ("early_stop",),
    "Tagged frames": ("tags", "first_tag_s", "percentiles", "rfc2544_latency"),
    "Traffic": ("flows",),
}
_STATEFUL = "Stateful gateways (RFC 9693)"

SHOWN = "What is shown"
MORE = "More"

# Ranges of numbers are told when one is out of range; here they take the texts' room.
rich_utils.RANGE_STRING = ""


class _Shown(rich_utils.OptionHighlighter):
    """Typer escapes values that cannot be used, and shows unknown options as given."""

    def __call__(self, text: str | Text) -> Text:
        return super().__call__(visible(text) if isinstance(text, str) else text)


rich_utils.highlighter = _Shown()


def first_of(keys: Sequence[str]) -> list[str]:
    """The keys of a procedure that people use first, in the order of the help."""
    on_request = "stateful" in keys
    return [
        key
        for key in _FIRST
        if key in keys and not (on_request and key.startswith("stateful."))
    ][:_MOST_FIRST]


def panel_of(key: str) -> str:
    """Where the help has a key that is not among the first."""
    if key.startswith("traffic."):
        return "Traffic"
    if key.startswith("stateful"):
        return _STATEFUL
    return next((name for name, keys in _PANELS.items() if key in keys), MORE)


def brief(description: str, default: object = None) -> str:
    """The begin of a key's description, and its default if it is told."""
    end = "" if default is None else f"; default: {default}"
    told, *others = description.split("; ")
    has_room = True
    for text in others:
        fits = len(f"{told}; {text}{end}") <= _ROOM
        has_room &= fits
        if fits and (has_room or text.startswith("default: ")):
            told = f"{told}; {text}"
    return f"{told}{end}"


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
        help="print test cases, trials and expected time; send nothing",
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
LabNames = Annotated[
    list[str] | None,
    typer.Option(
        "--lab",
        metavar="NAME",
        help="a lab instead of a testbed, or several, one after another; see "
        "'lab status'",
        show_default=False,
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


Require = Annotated[
    list[str] | None,
    typer.Option(
        "--require",
        metavar="TEXT",
        help="end with 4 unless it is so: 'throughput >= 200k', 'p99 latency <= 500us'",
        show_default=False,
        rich_help_panel=SHOWN,
    ),
]
RequireJunit = Annotated[
    Path | None,
    typer.Option(
        "--junit",
        metavar="FILE",
        help="write what is required, and found, as JUnit XML",
        show_default=False,
        rich_help_panel=SHOWN,
    ),
]


@dataclass(frozen=True)
class Display:
    """How results are shown, and what the exit code says of them.

    ``require``: what figures are to be; ``junit``: where that is written, too.
    """

    as_json: bool = False
    verbose: bool = False
    exact: bool = False
    plain: bool = False
    deviations: bool = False
    require: Sequence[str] | None = None
    junit: Path | None = None


DISPLAY = Display()
"""As it is where nobody asks for anything."""


def one_lab(labs: Sequence[str] | None) -> str | None:
    """The lab of a command that has but one; the last does not win in silence.

    Raises:
        InputError: several were given.
    """
    if labs and len(labs) > 1:
        raise InputError(
            "this command has one lab: --lab is given several times",
            "one after another measure the procedures: dutperf throughput",
        )
    return labs[0] if labs else None


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


# Options of all that takes part in measuring on many hosts.


TLS = "TLS between hosts"

TlsCa = Annotated[
    Path | None,
    typer.Option(
        "--tls-ca",
        metavar="FILE",
        help="certificate of the CA that all trust, PEM",
        rich_help_panel=TLS,
    ),
]
TlsCert = Annotated[
    Path | None,
    typer.Option(
        "--tls-cert",
        metavar="FILE",
        help="certificate of this host, PEM",
        rich_help_panel=TLS,
    ),
]
TlsKey = Annotated[
    Path | None,
    typer.Option(
        "--tls-key", metavar="FILE", help="its private key, PEM", rich_help_panel=TLS
    ),
]
SchedulerAddress = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="measure at the workers of this scheduler",
    ),
]
