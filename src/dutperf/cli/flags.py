"""How keys of a procedure are given on the command line: one option for each.

A dot leads into a block of keys: ``traffic.ports.source``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from dutperf.catalogue import ProcedureName
from dutperf.model.fields import Search
from dutperf.model.ports import FlowsBy
from dutperf.model.stateful_keys import ResponderOrder
from dutperf.model.traffic import PortPattern, Routes

_MOST_DIGITS = 20


def _as_given(value: Any) -> Any:  # noqa: ANN401 - as typer parsed it
    return value


def _whole(text: str) -> int | str:
    """A number, if it can be one of anything; what is none is refused by key."""
    is_number = (
        text.isdecimal() and len(text) <= _MOST_DIGITS and str(int(text)) == text
    )
    return int(text) if is_number else text


def _whole_or_words(texts: list[str]) -> list[int | str]:
    return [_whole(text) for text in texts]


def _numbers(texts: list[str]) -> list[float | str]:
    """Numbers between commas, and of each time that the option is given.

    What is none stays a text, which is refused by key.
    """
    return [_number(part.strip()) for text in texts for part in text.split(",")]


def _listed(value: int) -> list[int]:
    return [value]


def _split(text: str) -> list[str]:
    return text.split(",")


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


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
    "ip": Flag("--ip", list[str], "VERSIONS", _whole_or_words),
    "frame_size": Flag("--frame-size", list[str], "BYTES", _whole_or_words),
    "direction": Flag("--direction", list[str], "WAY"),
    "trial_duration_s": Flag("--trial-duration", float, "S"),
    "settle_wait_s": Flag("--settle-wait", float, "S"),
    "residual_wait_s": Flag("--residual-wait", float, "S"),
    "restabilise_wait_s": Flag("--restabilise-wait", float, "S"),
    "resolution": Flag("--resolution", str, "WIDTH"),
    "load_percent": Flag("--load", list[str], "PERCENT", _numbers),
    "load_step_percent": Flag("--load-step", float, "PERCENT"),
    "rate_fps": Flag("--rate", str, "RATE", _whole),
    "throughput_fps": Flag("--throughput", str, "RATE", _whole),
    "longest_burst_s": Flag("--longest-burst", float, "S"),
    "overload_percent": Flag("--overload", float, "PERCENT"),
    "overload_duration_s": Flag("--overload-duration", float, "S"),
    "reduced_duration_s": Flag("--reduced-duration", float, "S"),
    "trigger_after_s": Flag("--trigger-after", float, "S"),
    "step": Flag("--step", str, "WIDTH"),
    "tags": Flag("--tags", int, "N"),
    "first_tag_s": Flag("--first-tag", float, "S"),
    "rfc2544_latency": Flag("--rfc2544-latency", bool),
    "frame_timeout_ms": Flag("--frame-timeout", float, "MS"),
    "timeout_sweep_ms": Flag("--timeout-sweep", list[str], "MS", _numbers),
    "loss_tolerance_percent": Flag("--loss-tolerance", float, "PERCENT"),
    "max_rate_fps": Flag("--max-rate", int, "FPS"),
    "repeats": Flag("--repeats", str, "N|auto", _whole),
    "interval_width": Flag("--interval-width", str, "WIDTH"),
    "max_repeats": Flag("--max-repeats", int, "N"),
    "search": Flag("--search", Search, "HOW"),
    "verify_trials": Flag("--verify-trials", int, "N"),
    "max_verify_loss_percent": Flag("--max-verify-loss", float, "PERCENT"),
    "goals": Flag("--goal", list[str], "LOSS%"),
    "early_stop": Flag("--early-stop/--no-early-stop", bool),
    "lag_limit_ms": Flag("--lag-limit", float, "MS"),
    "burst_limit": Flag("--burst-limit", int, "FRAMES"),
    "stateful": Flag("--stateful", bool, read=lambda _given: {}),
    "stateful.connections": Flag("--connections", list[int], "N"),
    "stateful.phase1_rate": Flag("--phase1-rate", str, "RATE", _whole),
    "stateful.first": Flag("--first", int, "C0"),
    "stateful.error": Flag("--error", int, "E"),
    "stateful.beta": Flag("--beta", float, "SHARE"),
    "stateful.gamma": Flag("--gamma", float, "SHARE"),
    "stateful.expiry": Flag("--expiry", bool),
    "stateful.alpha": Flag("--alpha", float, "SHARE"),
    "stateful.initiator": Flag("--initiator", Literal["left", "right"], "SIDE"),
    "stateful.source_ports": Flag("--initiator-ports", str, "PORTS"),
    "stateful.destination_ports": Flag("--responder-ports", str, "PORTS"),
    "stateful.order": Flag(
        "--order", Literal["random", "increasing", "decreasing"], "ORDER"
    ),
    "stateful.timeout_ms": Flag("--phase-timeout", int, "MS"),
    "stateful.dut_timeout_s": Flag("--dut-timeout", float, "S"),
    "stateful.table_size": Flag("--table-size", int, "N"),
    "stateful.phase2_after_ms": Flag("--phase2-after", int, "MS"),
    "stateful.responder_order": Flag("--responder-order", ResponderOrder, "ORDER"),
    "stateful.public_addresses": Flag("--public-addresses", str, "RANGE"),
    "traffic.ports.source": Flag("--source-ports", str, "PORTS"),
    "traffic.ports.destination": Flag("--destination-ports", str, "PORTS"),
    "traffic.addresses": Flag("--addresses", int, "N"),
    "traffic.networks": Flag("--networks", int, "N"),
    "flows": Flag("--flows", list[int], "N"),
    "traffic.flows_by": Flag("--flows-by", FlowsBy, "BY"),
    "traffic.mix": Flag("--mix", str, "SHARES"),
    "traffic.background_ip": Flag("--background-ip", int, "4|6"),
    "traffic.broadcast_percent": Flag("--broadcast", float, "PERCENT"),
    "traffic.hop_by_hop_percent": Flag("--hop-by-hop", float, "PERCENT"),
    "traffic.spoofed_percent": Flag("--spoofed", float, "PERCENT"),
    "traffic.imix": Flag("--imix", str, "LETTERS"),
    "traffic.burst_frames": Flag("--bursts", int, "FRAMES"),
    "traffic.ttl": Flag("--ttl", int, "N"),
    "traffic.dscp": Flag("--dscp", int, "N"),
    "traffic.df": Flag("--df", bool),
    "traffic.fragmented": Flag("--fragmented", bool),
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

_OTHER_NAMES: dict[tuple[str, ProcedureName], Flag] = {
    ("stateful.connections", "table-capacity"): Flag("--most", int, "N", _listed),
}
"""Keys that are called otherwise where they mean something more."""


def flag_of(key: str, procedure: ProcedureName) -> Flag:
    """How ``key`` is given to the command of ``procedure``."""
    return _OTHER_NAMES.get((key, procedure), FLAGS[key])
