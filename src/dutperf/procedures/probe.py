"""What the tester can offer on ports that have no medium: found before a search.

The speed of a virtual link is a name: a veth says 10 Gbit/s and carries a thirtieth of
it. Frames to a MAC address that nobody has cost the tester what others do, and no
device forwards them. None comes back, so the trial's verdict says nothing; its offered
rate does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dutperf.config.cell import Cell
from dutperf.procedures.line_rates import at_line_rate
from dutperf.procedures.max_rate import MaxRate, highest_rate, is_probed
from dutperf.procedures.searching import offered_fps
from dutperf.procedures.trial_verdicts import no_rate_helps
from dutperf.procedures.trials import Ask, DeviceTrials
from dutperf.protocol import TrialRequest
from dutperf.results.environment import PortRecord

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
    if not cell.spec.up_to_maximum or not _is_probed(runner, cell, ports):
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
    if not _is_probed(runner, cell, ports):
        return highest
    return _probed(runner, cell, highest)


def _is_probed(runner: DeviceTrials, cell: Cell, ports: Sequence[PortRecord]) -> bool:
    virtual = any(port.nominal for port in ports)
    return virtual and is_probed(cell) and not runner.goes_on_without("probe", cell)


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
