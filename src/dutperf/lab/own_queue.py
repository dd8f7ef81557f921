"""How many frames wait in the known-answer device before it drops one: as it was told.

Its port bridges thousands. A service with a short queue drops long before that, so a
moment without its CPU costs frames that the port alone would have kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dutperf.errors import SetupError


def note(control: Path, behaviour: Mapping[str, Any]) -> None:
    """Keeps the shortest queue of ``behaviour`` beside the device's ``control`` socket.

    Args:
        control: where the device listens that does so now.
        behaviour: one that the device took.

    Raises:
        SetupError: there is no room for it, or the device's directory has gone.
    """
    shortest = min(_queues(behaviour), default=None)
    kept = _kept_in(control)
    written = kept.with_suffix(".new")
    try:
        written.write_text("" if shortest is None else str(shortest), "ascii")
        written.replace(kept)
    except OSError as error:
        raise SetupError(
            f"cannot keep what the device was told in {kept}: {error.strerror}",
            "make the lab anew: dutperf lab down; dutperf lab up known-answer",
        ) from error


def frames(control: Path) -> int | None:
    """The shortest queue of the device that listens there; None: its port's alone."""
    try:
        return int(_kept_in(control).read_text("ascii"))
    except (OSError, ValueError):
        return None


def _kept_in(control: Path) -> Path:
    return control.with_name("own-queue")


def _queues(behaviour: Mapping[str, Any]) -> Iterator[int]:
    """One that withholds drops nothing: what comes stays in the port."""
    for direction in ("forward", "reverse"):
        service = behaviour.get(direction, {}).get("service")
        if service and not service.get("withhold"):
            yield service["queue_frames"]
