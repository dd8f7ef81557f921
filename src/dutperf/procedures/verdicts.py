"""What the procedures make of a trial's verdict."""

from __future__ import annotations

from collections.abc import Iterable

from dutperf.engine.protocol import Reason

ATTEMPTS = 3
"""How often an invalid trial is run at most."""

_NOT_THE_RATE = {
    "link_down",
    "flow_control",
    "neighbour_missing",
    "nothing_sent",
    "hook_failed",
}


def distinct(reasons: Iterable[Reason]) -> list[Reason]:
    """Each reason once, in the order of their first appearance."""
    return list(dict.fromkeys(reasons))


def no_rate_helps(reasons: Iterable[Reason]) -> bool:
    """Whether a reason for an invalid trial holds at any other rate as well."""
    return any(reason.code in _NOT_THE_RATE for reason in reasons)
