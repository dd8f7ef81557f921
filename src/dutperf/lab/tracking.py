"""The kernel's connection tracking in the DUT: how many, and for how long.

The timeouts belong to the DUT's namespace, the limit to the whole machine: only the
initial namespace can set it, and the lab sets it back when it goes.
"""

from __future__ import annotations

from pathlib import Path

from dutperf.lab.devices.device import UDP_TIMEOUTS, Tracking
from dutperf.lab.state import RaisedSetting

LIMIT = Path("/proc/sys/net/netfilter/nf_conntrack_max")
SHOWN = [str(LIMIT), *(f"/proc/sys/net/netfilter/{key}" for key in UDP_TIMEOUTS)]


def limit(connections: int) -> tuple[RaisedSetting, ...]:
    """The setting that allows so many; none if it is so, or cannot be set here."""
    try:
        before = int(LIMIT.read_text("ascii"))
    except OSError:
        return ()
    if before == connections:
        return ()
    return (RaisedSetting(path=LIMIT, before=before, raised=connections),)


def with_limit(
    settings: tuple[RaisedSetting, ...], connections: int
) -> tuple[RaisedSetting, ...]:
    """``settings`` with another limit, still to be set back to the first one."""
    others = tuple(s for s in settings if s.path != LIMIT)
    first = [s.before for s in settings if s.path == LIMIT]
    before = first[0] if first else int(LIMIT.read_text("ascii"))
    return (*others, RaisedSetting(path=LIMIT, before=before, raised=connections))


def timeouts(udp_timeout_s: int) -> dict[str, str]:
    """The files of the DUT's namespace, and their values."""
    return {
        f"/proc/sys/net/netfilter/{key}": str(udp_timeout_s) for key in UDP_TIMEOUTS
    }


def told(tracking: Tracking) -> str:
    """For the device's description: what it has when it comes up."""
    return (
        f"nf_conntrack_max {tracking.connections}, UDP timeout "
        f"{tracking.udp_timeout_s} s"
    )
