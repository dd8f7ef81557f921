"""What belongs to the whole machine: a lab changes it and sets it back when it goes.

The neighbour tables of all namespaces share their limits, and only the initial
namespace can set them. With Linux's 1,024 entries a DUT starves at a few hundred hosts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from dutperf.errors import SetupError
from dutperf.lab.state import ChangedSetting

NEIGHBOURS = 2**18
"""Room for 65,536 hosts on both sides, by IPv4 as by IPv6."""
NEIGHBOUR_LIMITS = tuple(
    Path(f"/proc/sys/net/{family}/neigh/default/gc_thresh{number}")
    for family in ("ipv4", "ipv6")
    for number in (1, 2, 3)  # entries below the first are never collected
)


def settings_to_raise(paths: Iterable[Path], least: int) -> tuple[ChangedSetting, ...]:
    """Those of ``paths`` that are below ``least``, as ``settings_to_change``."""
    found = settings_to_change(paths, least)
    return tuple(setting for setting in found if setting.before < least)


def settings_to_change(paths: Iterable[Path], value: int) -> tuple[ChangedSetting, ...]:
    """Those of ``paths`` that are not ``value``; nothing is changed yet.

    Left out are those that this process does not see or may not change, as in most
    containers: the lab works without them, but not for as many hosts.
    """
    usable = [path for path in paths if os.access(path, os.W_OK)]
    found = [(path, int(path.read_text("ascii"))) for path in usable]
    return tuple(
        ChangedSetting(path=path, before=before, meanwhile=value)
        for path, before in found
        if before != value
    )


def change_settings(settings: Sequence[ChangedSetting]) -> None:
    """Sets what was found to change, once it is on record."""
    for setting in settings:
        _write(setting.path, setting.meanwhile)


def restore_settings(settings: Sequence[ChangedSetting]) -> None:
    """Sets everything back, but for what somebody has changed meanwhile."""
    for setting in settings:
        now = setting.path.read_text("ascii") if setting.path.exists() else ""
        if now.strip() == str(setting.meanwhile):
            _write(setting.path, setting.before)


def _write(path: Path, value: int) -> None:
    try:
        path.write_text(f"{value}\n", "ascii")
    except OSError as error:
        raise SetupError(
            f"cannot write {value} to {path}: {error.strerror}",
            "the lab needs the right to set it (CAP_NET_ADMIN)",
        ) from error
