"""Options of the procedures, each defined once.

A procedure's options are the keys of its part of a campaign file (named in ``flags``):
ranges, defaults and explanations come from there. An option that is not given is not
set at all.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from dutperf.catalogue import ProcedureName
from dutperf.cli.options import (
    MORE,
    AsJson,
    Deviations,
    Display,
    Exact,
    Plain,
    Quick,
    Require,
    RequireJunit,
    Standard,
    Verbose,
    brief,
    first_of,
    panel_of,
    preset_of,
)
from dutperf.config import Preset, filled
from dutperf.config.campaign import Campaign
from dutperf.config.document import Document
from dutperf.config.loader import models_in, validate
from dutperf.errors import InputError
from dutperf.model.fields import Keys, Problem, Search
from dutperf.model.ports import FlowsBy
from dutperf.model.specs import SPECS, EstablishmentKeys, ProcedureSpec
from dutperf.model.stateful_keys import ResponderOrder
from dutperf.model.traffic import PortPattern, Routes
from dutperf.protocol.trial_messages import ConnectionEnd

# How keys of a procedure are given on the command line: one option for each.
#
# A dot leads into a block of keys: ``traffic.ports.source``.


_MOST_DIGITS = 20


def _as_given(value: Any) -> Any:  # noqa: ANN401 - as typer parsed it
    return value


def _whole(text: str) -> int | str:
    """A number, if it can be one of anything; what is none is refused by key."""
    digits = text.removeprefix("-")
    is_number = digits.isdecimal() and len(text) <= _MOST_DIGITS
    return int(text) if is_number and str(int(text)) == text else text


def _wholes(texts: list[str]) -> list[int | str]:
    """Those between commas, and of each time that the option is given."""
    return [_whole(part.strip()) for text in texts for part in text.split(",")]


def _numbers(texts: list[str]) -> list[float | str]:
    """Numbers between commas, and of each time that the option is given.

    What is none stays a text, which is refused by key.
    """
    return [_number(part.strip()) for text in texts for part in text.split(",")]


def _split(text: str) -> list[str]:
    return text.split(",")


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


_LEAST_FPS = 100
"""A search that is to come closer than that is told so with its unit."""


def _width(text: str) -> str:
    """A share, or frames per second; ``5`` alone is more likely to be meant as 5 %.

    Raises:
        InputError: it is such a number.
    """
    plain = text.removesuffix("fps").strip()
    if plain == text and text.isdecimal() and 0 < int(text) < _LEAST_FPS:
        raise InputError(
            f"{text} may be a share or frames per second: how close is the search to "
            "come?",
            f"write {text}% or {text}fps",
        )
    return plain


@dataclass(frozen=True)
class Flag:
    """How a key of a procedure is given on the command line.

    ``read`` turns what typer parsed into what a campaign file holds.
    """

    name: str
    kind: Any
    metavar: str | None = None
    read: Callable[[Any], Any] = _as_given


FLAGS: dict[str, Flag] = {
    "ip": Flag("--ip", list[str], "VERSIONS", _wholes),
    "frame_size": Flag("--frame-size", list[str], "BYTES", _wholes),
    "direction": Flag("--direction", list[str], "WAY"),
    "trial_duration_s": Flag("--trial-duration", str, "S", _number),
    "settle_wait_s": Flag("--settle-wait", str, "S", _number),
    "residual_wait_s": Flag("--residual-wait", str, "S", _number),
    "restabilise_wait_s": Flag("--restabilise-wait", str, "S", _number),
    "resolution": Flag("--resolution", str, "WIDTH", _width),
    "load_percent": Flag("--load", list[str], "PERCENT", _numbers),
    "load_step_percent": Flag("--load-step", str, "PERCENT", _number),
    "rate_fps": Flag("--rate", str, "RATE", _whole),
    "throughput_fps": Flag("--throughput", str, "RATE", _whole),
    "longest_burst_s": Flag("--longest-burst", str, "S", _number),
    "overload_percent": Flag("--overload", str, "PERCENT", _number),
    "overload_duration_s": Flag("--overload-duration", str, "S", _number),
    "reduced_duration_s": Flag("--reduced-duration", str, "S", _number),
    "hours": Flag("--hours", str, "H", _number),
    "trigger_after_s": Flag("--trigger-after", str, "S", _number),
    "by_connection": Flag("--by-connection", bool),
    "step": Flag("--step", str, "WIDTH"),
    "tags": Flag("--tags", str, "N", _whole),
    "first_tag_s": Flag("--first-tag", str, "S", _number),
    "percentiles": Flag("--percentile", list[str], "PERCENT", _numbers),
    "rfc2544_latency": Flag("--rfc2544-latency", bool),
    "frame_timeout_ms": Flag("--frame-timeout", str, "MS", _number),
    "timeout_sweep_ms": Flag("--timeout-sweep", list[str], "MS", _numbers),
    "loss_tolerance_percent": Flag("--loss-tolerance", str, "PERCENT", _number),
    "max_rate_fps": Flag("--max-rate", str, "FPS", _whole),
    "repeats": Flag("--repeats", str, "N|auto", _whole),
    "interval_width": Flag("--interval-width", str, "WIDTH", _width),
    "max_repeats": Flag("--max-repeats", str, "N", _whole),
    "search": Flag("--search", Search, "HOW"),
    "verify_trials": Flag("--verify-trials", str, "N", _whole),
    "max_verify_loss_percent": Flag("--max-verify-loss", str, "PERCENT", _number),
    "goals": Flag("--goal", list[str], "LOSS%"),
    "early_stop": Flag("--early-stop/--no-early-stop", bool),
    "lag_limit_ms": Flag("--lag-limit", str, "MS", _number),
    "burst_limit": Flag("--burst-limit", str, "FRAMES", _whole),
    "state": Flag("--state", Literal["udp", "established", "half-open"], "STATE"),
    "hold_s": Flag("--hold", str, "S", _whole),
    "tests": Flag("--tests", str, "N", _whole),
    "log_within_s": Flag("--log-within", str, "S", _number),
    "aaaa_percent": Flag("--aaaa", list[str], "PERCENT", _wholes),
    "cached_percent": Flag("--cached", list[str], "PERCENT", _wholes),
    "cached_names": Flag("--cached-names", str, "N", _whole),
    "prefix": Flag("--prefix", str, "PREFIX"),
    "record": Flag("--record", str, "A|AAAA"),
    "server": Flag("--server", str, "ADDRESS"),
    "until": Flag("--until", ConnectionEnd, "STEP"),
    "object_bytes": Flag("--object-bytes", str, "N", _whole),
    "mss": Flag("--mss", str, "N", _whole),
    "retransmit": Flag("--retransmit", str, "N", _whole),
    "stateful": Flag("--stateful", bool, read=lambda _given: {}),
    "stateful.connections": Flag("--connections", list[str], "N", _wholes),
    "stateful.phase1_rate": Flag("--phase1-rate", str, "RATE", _whole),
    "stateful.first": Flag("--first", str, "C0", _whole),
    "stateful.error": Flag("--error", str, "E", _whole),
    "stateful.beta": Flag("--beta", str, "SHARE", _number),
    "stateful.gamma": Flag("--gamma", str, "SHARE", _number),
    "stateful.expiry": Flag("--expiry", bool),
    "stateful.alpha": Flag("--alpha", str, "SHARE", _number),
    "stateful.initiator": Flag("--initiator", Literal["left", "right"], "SIDE"),
    "stateful.source_ports": Flag("--initiator-ports", str, "PORTS"),
    "stateful.destination_ports": Flag("--responder-ports", str, "PORTS"),
    "stateful.order": Flag(
        "--order", Literal["random", "increasing", "decreasing"], "ORDER"
    ),
    "stateful.timeout_ms": Flag("--phase-timeout", str, "MS", _whole),
    "stateful.dut_timeout_s": Flag("--dut-timeout", str, "S", _number),
    "stateful.table_size": Flag("--table-size", str, "N", _whole),
    "stateful.phase2_after_ms": Flag("--phase2-after", str, "MS", _whole),
    "stateful.transport": Flag("--transport", Literal["udp", "tcp"], "PROTOCOL"),
    "stateful.responder_order": Flag("--responder-order", ResponderOrder, "ORDER"),
    "stateful.public_addresses": Flag("--public-addresses", str, "RANGE"),
    "traffic.ports.source": Flag("--source-ports", str, "PORTS"),
    "traffic.ports.destination": Flag("--destination-ports", str, "PORTS"),
    "traffic.addresses": Flag("--addresses", str, "N", _whole),
    "traffic.networks": Flag("--networks", str, "N", _whole),
    "flows": Flag("--flows", list[str], "N", _wholes),
    "traffic.flows_by": Flag("--flows-by", FlowsBy, "BY"),
    "traffic.mix": Flag("--mix", str, "SHARES"),
    "traffic.background_ip": Flag("--background-ip", str, "4|6", _whole),
    "traffic.broadcast_percent": Flag("--broadcast", str, "PERCENT", _number),
    "traffic.hop_by_hop_percent": Flag("--hop-by-hop", str, "PERCENT", _number),
    "traffic.spoofed_percent": Flag("--spoofed", str, "PERCENT", _number),
    "traffic.flood_percent": Flag("--flood", str, "PERCENT", _number),
    "traffic.imix": Flag("--imix", str, "LETTERS"),
    "traffic.pcap.file": Flag("--from-pcap", str, "FILE"),
    "traffic.pcap.others": Flag("--pcap-others", Literal["refuse", "skip"], "WHAT"),
    "traffic.pcap.times": Flag("--pcap-times", Literal["even", "original"], "WHEN"),
    "traffic.burst_frames": Flag("--bursts", str, "FRAMES", _whole),
    "traffic.ttl": Flag("--ttl", str, "N", _whole),
    "traffic.dscp": Flag("--dscp", str, "N", _whole),
    "traffic.df": Flag("--df", bool),
    "traffic.fragmented": Flag("--fragmented", bool),
    "traffic.lowest_ipv6_mtu": Flag("--lowest-ipv6-mtu", str, "BYTES", _whole),
    "traffic.ignore_checksums": Flag("--ignore-checksums", bool),
    "traffic.flow_label": Flag("--flow-label", str, "LABEL"),
    "traffic.ipv6_headers": Flag("--ipv6-headers", str, "NAMES", _split),
    "traffic.ipv4_options": Flag("--ipv4-options", str, "NAMES", _split),
    "traffic.routes": Flag("--routes", Routes, "HOW"),
    "traffic.route_changes": Flag("--route-changes", bool),
    "traffic.management": Flag("--management", bool),
    "traffic.port_pattern": Flag("--port-pattern", PortPattern, "PATTERN"),
    "traffic.group": Flag("--group", str, "ADDRESS"),
    "traffic.mac": Flag("--mac", Literal["fixed", "random"], "MAC"),
}

_TRAFFIC = "traffic."
_STATEFUL = "stateful"
_STATELESS = (
    "traffic.ports",
    "traffic.networks",
    "traffic.mix",
    "traffic.background_ip",
    "traffic.imix",
    "traffic.pcap",
    "traffic.flows",
    "traffic.ipv6_headers",
    "traffic.ipv4_options",
    "traffic.route",
    "traffic.port_pattern",
)
"""Begins of keys of the traffic that connections say instead."""
_OF_FRAMES = {"ip", "frame_size", "direction", "flows"}
"""Options beside the traffic's that change what is in the frames."""
_OF_TIMES = {"traffic.burst_frames", "traffic.pcap.times"}
"""Options of the traffic's that change when frames are sent."""
_BESIDE = {
    "traffic.broadcast_percent",
    "traffic.hop_by_hop_percent",
    "traffic.spoofed_percent",
    "traffic.flood_percent",
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
    keys = [key for key in keys if not key.startswith(SPECS[procedure].without)]
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
    """Options that are left out as a rule."""
    return {
        name: inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=False if get_args(option)[0] is bool else None,
            annotation=option,
        )
        for name, option in options.items()
    }


_DISPLAY = _flags(
    as_json=AsJson,
    verbose=Verbose,
    exact=Exact,
    plain=Plain,
    deviations=Deviations,
    require=Require,
    junit=RequireJunit,
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
            block[last] = FLAGS[key].read(value)
    if preset:
        data = filled(preset, data)
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
                return FLAGS[key].name.partition("/")[0]
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
    flag, field = FLAGS[key], _field(key, procedure)
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
