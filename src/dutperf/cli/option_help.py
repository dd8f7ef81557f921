"""What ``--help`` shows: what people use first, the rest by subject, in two lines each.

A key's description begins with what it is; what follows a semicolon is shown as far as
it has room, and stands in ``docs/reference`` in full.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from typer import rich_utils

from dutperf.visible import visible

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
    "Tagged frames": ("tags", "first_tag_s", "rfc2544_latency"),
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
