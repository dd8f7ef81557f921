"""The kernel's connection tracking in the DUT: how many, and for how long.

The timeouts belong to the DUT's namespace, the limit to the whole machine: only the
initial namespace can set it, and the lab sets it back when it goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dutperf.lab.devices.device import UDP_TIMEOUTS, Tracking
from dutperf.lab.state import ChangedSetting

LIMIT = Path("/proc/sys/net/netfilter/nf_conntrack_max")
SHOWN = [str(LIMIT), *(f"/proc/sys/net/netfilter/{key}" for key in UDP_TIMEOUTS)]


def limit(connections: int) -> tuple[ChangedSetting, ...]:
    """The setting that allows so many; none if it is so, or cannot be set here."""
    try:
        before = int(LIMIT.read_text("ascii"))
    except OSError:
        return ()
    if before == connections:
        return ()
    return (ChangedSetting(path=LIMIT, before=before, meanwhile=connections),)


def with_limit(
    settings: tuple[ChangedSetting, ...], connections: int
) -> tuple[ChangedSetting, ...]:
    """``settings`` with another limit, still to be set back to the first one."""
    others = tuple(s for s in settings if s.path != LIMIT)
    first = [s.before for s in settings if s.path == LIMIT]
    before = first[0] if first else int(LIMIT.read_text("ascii"))
    return (*others, ChangedSetting(path=LIMIT, before=before, meanwhile=connections))


def timeouts(udp_timeout_s: int) -> dict[str, str]:
    """The files of the DUT's namespace, and their values."""
    return {
        f"/proc/sys/net/netfilter/{key}": str(udp_timeout_s) for key in UDP_TIMEOUTS
    }


def planned(tracking: Tracking) -> str:
    """For the device's description: what it has when it comes up."""
    return _told(str(tracking.connections), str(tracking.udp_timeout_s))


def present(shown: Mapping[str, str]) -> str:
    """The same, by the values of the files ``SHOWN`` now."""
    limit, *timeouts = (shown.get(path, "unknown") for path in SHOWN)
    return _told(limit, " and ".join(dict.fromkeys(timeouts)))


def _told(limit: str, timeout_s: str) -> str:
    return f"nf_conntrack_max {limit}, UDP timeout {timeout_s} s"
