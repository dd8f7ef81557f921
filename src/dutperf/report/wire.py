"""What a frame rate means on the wire."""

from __future__ import annotations

from dutperf.results import Environment


def medium_speed_mbps(environment: Environment | None) -> int | None:
    """Speed of the slower link; None where no medium limits the rate.

    A veth pair or a memif reports some speed, but frames do not take time on it.
    """
    ports = environment.ports if environment else []
    if not ports or any(port.nominal for port in ports):
        return None
    speeds = [port.link_speed_mbps for port in ports]
    return min((s for s in speeds if s), default=None) if all(speeds) else None
