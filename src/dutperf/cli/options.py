"""Options of the procedures, each defined once.

A procedure's options are the keys of its part of a campaign file: ranges, defaults and
explanations come from there. An option that is not given is not set at all.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from dutperf.config import ProcedureSpec, from_data
from dutperf.config.campaign import Campaign, Direction, Procedure
from dutperf.errors import InputError

ONLY_FOR: dict[str, Procedure] = {
    "resolution": "throughput",
    "load_percent": "frame-loss",
}
"""Options that make sense for one procedure only."""


@dataclass(frozen=True)
class Flag:
    """How a key of a procedure is given on the command line."""

    name: str
    kind: Any
    metavar: str | None = None


FLAGS: dict[str, Flag] = {
    "ip": Flag("--ip", list[int], "4|6"),
    "frame_size": Flag("--frame-size", list[int], "BYTES"),
    "direction": Flag("--direction", Direction),
    "trial_duration_s": Flag("--trial-duration", float, "S"),
    "settle_wait_s": Flag("--settle-wait", float, "S"),
    "residual_wait_s": Flag("--residual-wait", float, "S"),
    "restabilise_wait_s": Flag("--restabilise-wait", float, "S"),
    "resolution": Flag("--resolution", str, "FPS|PERCENT%"),
    "load_percent": Flag("--load", list[float], "PERCENT"),
    "max_rate_fps": Flag("--max-rate", int, "FPS"),
    "repeats": Flag("--repeats", int, "N"),
    "lag_limit_ms": Flag("--lag-limit", float, "MS"),
    "burst_limit": Flag("--burst-limit", int, "FRAMES"),
}

Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="DIR",
        help="results directory, new or empty; default: results/NAME-TIME",
    ),
]
AsJson = Annotated[
    bool,
    typer.Option("--json", help="print one JSON object on standard output"),
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
Seed = Annotated[
    int,
    typer.Option(
        "--seed", metavar="N", help=Campaign.model_fields["seed"].description, min=0
    ),
]
DEFAULT_SEED: int = Campaign.model_fields["seed"].default


def with_procedure_options(
    procedure: Procedure,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of ``procedure`` to a command; it gets those that were given.

    The command's parameter ``spec`` becomes the checked ``ProcedureSpec``.
    """
    keys = [key for key in FLAGS if ONLY_FOR.get(key, procedure) == procedure]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def wrapped(**values: Any) -> None:  # noqa: ANN401 - as typer parsed them
            given = {key: values.pop(key) for key in keys}
            command(spec=procedure_spec(procedure, given), **values)

        own = inspect.signature(command, eval_str=True)
        parameters = [p for p in own.parameters.values() if p.name != "spec"]
        parameters += [_parameter(key) for key in keys]
        wrapped.__name__, wrapped.__doc__ = command.__name__, command.__doc__
        wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
        vars(wrapped)["__signature__"] = own.replace(parameters=parameters)
        return wrapped

    return decorate


def procedure_spec(procedure: Procedure, given: Mapping[str, Any]) -> ProcedureSpec:
    """The options that were given, checked.

    Raises:
        InputError: names the flags that are wrong.
    """
    data = {key: value for key, value in given.items() if value not in (None, [])}
    try:
        return from_data(ProcedureSpec, {"procedure": procedure, **data}, _WHERE)
    except InputError as error:
        raise InputError(_with_flags(error.message), _with_flags(error.hint)) from None


_WHERE = "command line"


def _with_flags(text: str) -> str:
    """Name flags where a campaign file's keys are named."""
    for key, flag in FLAGS.items():
        text = re.sub(rf"^{_WHERE}: {key}(\[\d+\])?:", f"{flag.name}", text, flags=re.M)
    return text


def _parameter(key: str) -> inspect.Parameter:
    flag, field = FLAGS[key], ProcedureSpec.model_fields[key]
    # typer would show None, which stands for "not given".
    default = "" if field.default in (None, []) else f"; default: {field.default}"
    option = typer.Option(
        flag.name,
        metavar=flag.metavar,
        help=f"{field.description}{default}",
        show_default=False,
    )
    return inspect.Parameter(
        key,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[flag.kind | None, option],
    )
