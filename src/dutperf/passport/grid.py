"""What ``dutperf selftest`` measures where no campaign says it.

Everything that costs the tester something, each alone with the smallest frames in both
directions; the default profile also one way, and with the largest frames.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dutperf.config.traffic import Traffic
from dutperf.procedures.passport_use import MOST_CONNECTIONS, costly, features
from dutperf.protocol import IpVersion
from dutperf.results.passport import Sent

_SMALLEST: dict[IpVersion, int] = {4: 64, 6: 84}
_LARGEST = 1518
_PROFILES: tuple[dict[str, Any], ...] = (
    {"ports": {"source": "fixed", "destination": "fixed"}},
    {},
    {"ports": {"source": "increasing", "destination": "increasing"}},
    {"addresses": 256},
    {"ignore_checksums": True},
)


def default_grid(versions: Sequence[IpVersion]) -> Iterator[Sent]:
    """Of each IP version."""
    for ip in versions:
        for profile in _PROFILES:
            yield _sent(ip, _SMALLEST[ip], "both", profile)
        yield _sent(ip, _SMALLEST[ip], "forward", {})
        yield _sent(ip, _LARGEST, "both", {})
        yield from _connections(ip)


def _sent(ip: IpVersion, size: int, direction: str, profile: dict[str, Any]) -> Sent:
    traffic = Traffic.model_validate(profile)
    return Sent.model_validate(
        {
            "ip": ip,
            "frame_sizes": [size],
            "direction": direction,
            "traffic": costly(traffic),
            "features": features(traffic),
        }
    )


def _connections(ip: IpVersion) -> Iterator[Sent]:
    """Opened, and used when they are open (RFC 9693 4.2 and 4.7)."""
    for opens in (True, False):
        way = "opened" if opens else "open"
        yield Sent(
            ip=ip,
            frame_sizes=[_SMALLEST[ip]],
            direction="forward" if opens else "both",
            traffic={},
            features=f"{MOST_CONNECTIONS:,} connections {way}",
            connections=MOST_CONNECTIONS,
            opens=opens,
        )
