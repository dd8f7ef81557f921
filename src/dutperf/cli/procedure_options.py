"""Options of the procedures, each defined once.

A procedure's options are the keys of its part of a campaign file (named in ``flags``):
ranges, defaults and explanations come from there. An option that is not given is not
set at all.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from dutperf.catalogue import ProcedureName
from dutperf.cli.flags import FLAGS, flag_of
from dutperf.cli.option_help import MORE, brief, first_of, panel_of
from dutperf.cli.options import (
    AsJson,
    Deviations,
    Display,
    Exact,
    Plain,
    Quick,
    Standard,
    Verbose,
    preset_of,
)
from dutperf.config import Preset, preset_keys
from dutperf.config.campaign import Campaign
from dutperf.config.document import Document
from dutperf.config.loader import models_in, validate
from dutperf.model.fields import Keys, Problem
from dutperf.model.specs import SPECS, EstablishmentKeys, ProcedureSpec

_TRAFFIC = "traffic."
_STATEFUL = "stateful"
_STATELESS = (
    "traffic.ports",
    "traffic.networks",
    "traffic.mix",
    "traffic.background_ip",
    "traffic.imix",
    "traffic.flows",
    "traffic.ipv6_headers",
    "traffic.ipv4_options",
    "traffic.route",
    "traffic.port_pattern",
)
"""Begins of keys of the traffic that connections say instead."""
_OF_FRAMES = {"ip", "frame_size", "direction", "flows"}
"""Options beside the traffic's that change what is in the frames."""
_OF_TIMES = {"traffic.burst_frames"}
"""Options of the traffic's that change when frames are sent."""
_BESIDE = {
    "traffic.broadcast_percent",
    "traffic.hop_by_hop_percent",
    "traffic.spoofed_percent",
}
"""Options of the traffic's for frames beside the stream."""

Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        metavar="N",
        help=brief(Campaign.model_fields["seed"].description or ""),
        rich_help_panel=MORE,
        min=0,
        max=2**63 - 1,
    ),
]
DEFAULT_SEED: int = Campaign.model_fields["seed"].default


def with_procedure_options(
    procedure: ProcedureName,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of ``procedure`` to a command; it gets those that were given.

    The command's parameter ``spec`` becomes the checked ``ProcedureSpec``, ``preset``
    what it has of a preset, which gives way to options, ``display`` how results are
    shown.
    """
    keys = [key for key in FLAGS if _field(key, procedure)]
    if issubclass(SPECS[procedure], EstablishmentKeys):
        keys = [k for k in keys if not k.startswith(_STATELESS) and k != _STATEFUL]
    if not SPECS[procedure].takes_bursts:
        keys = [key for key in keys if key not in _OF_TIMES]
    if not SPECS[procedure].takes_beside:
        keys = [key for key in keys if key not in _BESIDE]
    return _with_options(procedure, keys, measures=True)


def with_frame_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that change what is in the frames; ``spec`` as above."""
    keys = [
        key
        for key in FLAGS
        if key in _OF_FRAMES or (key.startswith(_TRAFFIC) and key not in _OF_TIMES)
    ]
    return _with_options("throughput", keys)(command)


def _with_options(
    procedure: ProcedureName, keys: list[str], *, measures: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def wrapped(**values: Any) -> None:  # noqa: ANN401 - as typer parsed them
            given = {key: values.pop(_parameter_name(key)) for key in keys}
            if not measures:
                command(spec=procedure_spec(procedure, given), **values)
                return
            preset = preset_of(**{name: values.pop(name) for name in _PRESETS})
            display = Display(**{name: values.pop(name) for name in _DISPLAY})
            spec = procedure_spec(procedure, given, preset)
            command(spec=spec, preset=preset, display=display, **values)

        own = inspect.signature(command, eval_str=True)
        made_here = {"spec", "preset", "display"}
        all_own = [p for p in own.parameters.values() if p.name not in made_here]
        parameters = [p for p in all_own if p.name not in _RARE]
        first = first_of(keys)
        parameters += _PRESETS.values() if measures else ()
        parameters += [_parameter(key, procedure, None) for key in first]
        parameters += [
            _parameter(key, procedure, panel_of(key))
            for key in keys
            if key not in first
        ]
        rare = [p for p in all_own if p.name in _RARE]
        parameters += [p.replace(kind=p.KEYWORD_ONLY) for p in rare]
        parameters += _DISPLAY.values() if measures else ()
        wrapped.__name__, wrapped.__doc__ = command.__name__, command.__doc__
        wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
        vars(wrapped)["__signature__"] = own.replace(parameters=parameters)
        return wrapped

    return decorate


def _flags(**options: object) -> dict[str, inspect.Parameter]:
    """Options that are given or not."""
    return {
        name: inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=option
        )
        for name, option in options.items()
    }


_DISPLAY = _flags(
    as_json=AsJson, verbose=Verbose, exact=Exact, plain=Plain, deviations=Deviations
)
_RARE = {"rules", "seed"}
_PRESETS = _flags(standard=Standard, quick=Quick)


def procedure_spec(
    procedure: ProcedureName, given: Mapping[str, Any], preset: Preset | None = None
) -> ProcedureSpec:
    """The options that were given, and what they leave to the preset, checked.

    Raises:
        InputError: names the flags that are wrong.
    """
    data: dict[str, Any] = {"procedure": procedure}
    if issubclass(SPECS[procedure], EstablishmentKeys):
        data["stateful"] = {}  # the block is always there, what it needs may be not
    for key, value in given.items():
        if value not in (None, []):
            *blocks, last = key.split(".")
            block = data
            for name in blocks:
                block = block.setdefault(name, {})
            block[last] = flag_of(key, procedure).read(value)
    if preset:
        data = preset_keys(preset, data) | data
    return validate(
        SPECS[procedure], _CommandLine("command line", data, procedure=procedure)
    )


@dataclass(frozen=True, kw_only=True)
class _CommandLine(Document):
    """Options that were given; keys are called as the options are."""

    procedure: ProcedureName

    def told(self, problem: Problem) -> str:
        flag = self._flag(problem.keys)
        return f"{flag} {problem.what}" if flag else super().told(problem)

    def called(self, keys: Keys) -> str:
        return self._flag(keys) or super().called(keys)

    def _flag(self, keys: Keys) -> str:
        """That of the innermost key that has one; entries of a list have theirs."""
        names = [key for key in keys if isinstance(key, str)]
        for end in range(len(names), 0, -1):
            key = ".".join(names[:end])
            if key in FLAGS:
                return flag_of(key, self.procedure).name.partition("/")[0]
        return ""


def _parameter_name(key: str) -> str:
    return key.replace(".", "_")


def _field(key: str, procedure: ProcedureName) -> FieldInfo | None:
    """The field of the procedure's model, or of a block in it, if it has one."""
    *blocks, last = key.split(".")
    model: type[BaseModel] = SPECS[procedure]
    for name in blocks:
        (model,) = models_in(model.model_fields[name].annotation)
    return model.model_fields.get(last)


def _parameter(
    key: str, procedure: ProcedureName, panel: str | None
) -> inspect.Parameter:
    flag, field = flag_of(key, procedure), _field(key, procedure)
    assert field  # noqa: S101 - options are made of fields
    default = field.default
    # typer would show None, which stands for "not given".
    shown = isinstance(default, str | int | float) and flag.kind is not bool
    option = typer.Option(
        flag.name,
        metavar="" if flag.kind is bool else flag.metavar,
        help=brief(field.description or "", default if shown else None),
        show_default=False,
        rich_help_panel=panel,
    )
    return inspect.Parameter(
        _parameter_name(key),
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[flag.kind | None, option],
    )
