"""What the tester can offer on ports that have no medium: found before a search.

The speed of a virtual link is a name: a veth says 10 Gbit/s and carries a thirtieth of
it. Frames to a MAC address that nobody has cost the tester what others do, and no
device forwards them. None comes back, so the trial's verdict says nothing; its offered
rate does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from dutperf.config.flows import directions
from dutperf.config.sizes import mean_frame_size
from dutperf.model.cell import Cell
from dutperf.procedures.max_rate import MaxRate, highest_rate, is_probed, mean_wire_size
from dutperf.procedures.searching import offered_fps, outcome
from dutperf.procedures.trials import ATTEMPTS, Ask, DeviceTrials, Trials, no_rate_helps
from dutperf.protocol.base import (
    DirectionName,
    Side,
    bytes_before_ip,
    line_rate_fps,
    wire_mbps,
)
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import CellResult, Media, PortRecord
from dutperf.results.rate_results import WireRate
from dutperf.search import attempted, sender_limit_fps, tells_nothing
from dutperf.standards import Deviation

# What stands beside every result: what the media carry, and the sum of directions.


def beside_media(
    result: CellResult, cell: Cell, ports: Sequence[PortRecord]
) -> CellResult:
    """``result`` with the theoretical maximum of the media (RFC 2544 26.1).

    A throughput is counted both ways: of each direction, and of all together. Of a
    frame loss 100 % should be that maximum.
    """
    media = media_of(cell, ports)
    if media and result.family == "load sweep":
        result = _with_lower_maximum(result, media)
    is_rate = result.family == "rate search" and cell.spec.is_of_frames
    if not is_rate or result.median is None:
        return result.model_copy(update={"media": media})
    if media and result.verdict == "pass":
        share = result.median * 100 / media.rate_fps
        media = media.model_copy(update={"share_percent": share})
    ways = directions(cell)
    wire = [
        WireRate(
            direction=way, mbps=wire_mbps(result.median, _mean_sent(cell, ports, way))
        )
        for way in ways
    ]
    total_fps = result.median * len(ways)
    return result.model_copy(
        update={"media": media, "sum_fps": total_fps, "wire": wire}
    )


def at_line_rate(limit: MaxRate, cell: Cell, ports: Sequence[PortRecord]) -> MaxRate:
    """``limit`` with whether it is all that the media carry, which are no virtual ones.

    A device that passes at it then is as fast as its media; else it may do more.
    """
    physical = [m.rate_fps for m in _media(cell, ports) if not m.nominal]
    line_rate = bool(physical) and limit.rate_fps >= min(physical)
    return replace(limit, line_rate=line_rate)


def _mean_sent(
    cell: Cell, ports: Sequence[PortRecord], direction: DirectionName
) -> Fraction:
    """Mean size of the frames that one side sends; they may come out in another."""
    side: Side = "left" if direction == "forward" else "right"
    own = [port for port in ports if port.name == side and not port.number]
    before = sum(bytes_before_ip(port, receives=False) for port in own)
    return mean_frame_size(cell, side) + before


def _with_lower_maximum(result: CellResult, media: Media) -> CellResult:
    """What was set is told here; what the tester cannot offer is told already."""
    most_fps = result.max_load_fps
    if result.parameters.get("max_load_is") != "set" or most_fps is None:
        return result
    if most_fps >= media.rate_fps:
        return result
    nominal = ", nominal" if media.nominal else ""
    short = Deviation(
        rfc="RFC 2544 26.3",
        requirement="100 % is the maximum rate of the media, "
        f"{media.rate_fps:,} fps per direction ({media.of_ports}"
        f"{media.link_speed_mbps:,} Mbit/s"
        f"{nominal})",
        actual=f"100 % is {most_fps:,} fps, the maximum rate that was set",
        level="SHOULD",
    )
    return result.model_copy(update={"deviations": [*result.deviations, short]})


def media_of(cell: Cell, ports: Sequence[PortRecord]) -> Media | None:
    """Of the link that carries fewer of the cell's frames; null: not all tell a speed.

    By the mean size of the frames on each side of the device, which differ where it
    translates (RFC 8219 appendix A).
    """
    found = _media(cell, ports)
    if len(found) < len(ports):
        return None
    return min(found, key=lambda media: media.rate_fps, default=None)


def _media(cell: Cell, ports: Sequence[PortRecord]) -> list[Media]:
    """Of the links that tell their speed."""
    return [
        Media(
            rate_fps=cell.pairs
            * line_rate_fps(port.link_speed_mbps, mean_wire_size(cell, port)),
            link_speed_mbps=port.link_speed_mbps,
            ports=cell.pairs,
            nominal=port.nominal,
        )
        for side in ("left", "right")
        for port in ports
        if port.name == side and port.link_speed_mbps
    ]


NOBODY = "02:6e:6f:62:6f:64"
"""Unicast, locally administered."""
TRIALS = 3
"""The best one counts: a sender that was stopped meanwhile offered too little."""
TRIAL_S = 0.4
"""One that is hopelessly behind gives up before."""
MARGIN = 0.95
"""All of what a struggling sender managed is too much for a steady one."""
_KEPT_UP = 0.98
_RESIDUAL_NS = 10_000_000
_LAG_LIMIT_NS = 10_000_000


def with_probed(
    runner: DeviceTrials, cell: Cell, load: MaxRate, ports: Sequence[PortRecord]
) -> MaxRate:
    """``load``, with a maximum rate that is no more than the ports can offer.

    Once a cell: another one has other frames, and a machine changes its mind.

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    if not cell.spec.up_to_maximum or not _is_probed(cell, ports):
        return load
    if load.most:
        return replace(load, most=_probed(runner, cell, load.most))
    return _probed(runner, cell, load)


def burst_peak(
    runner: DeviceTrials, cell: Cell, load: MaxRate, ports: Sequence[PortRecord]
) -> MaxRate:
    """The rate of frames within a burst: the highest that there is, whatever the load.

    ``load``: of ``with_probed``.

    Raises:
        InputError: nothing was set and a port does not tell its speed.
        EngineError, SetupError: see ``Trials.run``.
    """
    if cell.spec.up_to_maximum or cell.traffic.burst_frames is None:
        return load.most or load
    highest = at_line_rate(highest_rate(cell, ports), cell, ports)
    if not _is_probed(cell, ports):
        return highest
    return _probed(runner, cell, highest)


def _is_probed(cell: Cell, ports: Sequence[PortRecord]) -> bool:
    return is_probed(cell) and any(port.nominal for port in ports)


def _probed(runner: DeviceTrials, cell: Cell, limit: MaxRate) -> MaxRate:
    """``limit``, or what the slower direction can offer where that is less."""
    offered: list[float] = []
    for repeat in range(1, TRIALS + 1):
        result = runner.run(
            Ask(
                _plain(cell),
                limit.rate_fps,
                repeat=repeat,
                duration_s=TRIAL_S,
                shape=_to_nobody,
                continues=True,
                role="probe",
            )
        ).result
        if no_rate_helps(result.verdict.reasons):
            return limit
        offered.append(offered_fps(result))
        if offered[-1] >= _KEPT_UP * limit.rate_fps:
            return limit
    # What is known to be safe is not given up for a probe in a bad moment.
    known_fps = min(limit.begin_fps or 1, limit.rate_fps)
    return limit.lowered(max(known_fps, int(max(offered) * MARGIN)))


def _plain(cell: Cell) -> Cell:
    """Without what needs frames that come back, or a whole trial."""
    untagged = {"tags": 0} if cell.spec.tagging else {}
    return cell.with_keys(frame_timeout_ms=None, timeout_sweep_ms=[], **untagged)


def _to_nobody(request: TrialRequest) -> TrialRequest:
    data = request.model_dump()
    for direction in data["directions"]:
        for stream in direction["streams"]:
            for path in (stream, *stream.get("more_paths", ())):
                path["dst_mac"] = NOBODY
    data |= {
        "settle_ns": 0,
        "residual_wait_ns": _RESIDUAL_NS,
        "lag_limit_ns": _LAG_LIMIT_NS,
    }
    return TrialRequest.model_validate(data)


# The maximum rate that the tester can offer while frames come back.
#
# They cost it more than those of a probe, so what a probe or the media promise is
# lowered until a trial at it tells something.


MAX_LOWERINGS = 5
"""How often it is lowered at most."""


def reach_maximum(
    runner: Trials, limit: MaxRate, ask: Callable[[MaxRate], Ask]
) -> tuple[MaxRate, list[TrialResult]]:
    """Lower ``limit`` until the tester can offer what ``ask`` makes of it.

    Returns:
        The maximum, and the results of the first trials at it, the last of which may
        count.

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    for lowering in range(MAX_LOWERINGS + 1):
        asked = ask(limit)
        trials = (runner.run(asked).result for _ in range(ATTEMPTS))
        results = attempted(trials, _may_be_too_much)
        told = [outcome(result) for result in results]
        offered_fps = sender_limit_fps(told, 0, ATTEMPTS)
        if not told[-1].offered_fps or not offered_fps or lowering == MAX_LOWERINGS:
            break
        limit = _lowered(limit, max(1, int(offered_fps * MARGIN)))
    return limit, results


def _may_be_too_much(tried: Sequence[TrialResult]) -> bool:
    """Whether the last trial could not be offered, and they do not agree how much."""
    told = [outcome(result) for result in tried]
    return told[-1].offered_fps is not None and tells_nothing(told, 0, ATTEMPTS)


def _lowered(limit: MaxRate, rate_fps: int) -> MaxRate:
    """What was found before stays; only how far loads go up changes."""
    if limit.most is None:
        return limit.lowered(rate_fps)
    return replace(limit, most=limit.most.lowered(rate_fps))
