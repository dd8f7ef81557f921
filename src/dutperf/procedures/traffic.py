"""What a trial of a cell sends: pure, the same request for the same arguments."""

from __future__ import annotations

from dutperf.config.campaign import Cell
from dutperf.config.testbed import SideConfig, Testbed
from dutperf.engine.protocol import (
    DirectionName,
    DirectionRequest,
    StreamRequest,
    TrialRequest,
)
from dutperf.errors import InputError

_STREAM_IDS: dict[DirectionName, int] = {"forward": 0, "reverse": 1}
# RFC 2544 C.2.6.4: from an arbitrary high port to the echo port.
_SRC_PORT, _DST_PORT = 0xC020, 7


def trial_request(
    testbed: Testbed,
    cell: Cell,
    rate_fps: int,
    trial_id: int,
    duration_s: float | None = None,
) -> TrialRequest:
    """The complete request of one trial.

    Args:
        testbed: addresses and next hops.
        cell: sizes, times and limits.
        rate_fps: intended load, frames per second and direction.
        trial_id: tells the trial's frames from an earlier trial's, 1 to 65535.
        duration_s: other than the cell's.

    Raises:
        InputError: a side has no address of the cell's IP version.
    """
    duration_s = cell.trial_duration_s if duration_s is None else duration_s
    return TrialRequest(
        trial_id=trial_id,
        duration_ns=round(duration_s * 1e9),
        settle_ns=round(cell.settle_wait_s * 1e9),
        residual_wait_ns=round(cell.residual_wait_s * 1e9),
        burst_limit=cell.burst_limit,
        lag_limit_ns=round(cell.lag_limit_ms * 1e6),
        seed=cell.seed,
        directions=[
            _direction(testbed, cell, rate_fps, name) for name in directions(cell)
        ],
    )


def directions(cell: Cell) -> list[DirectionName]:
    """The directions that carry frames."""
    return ["forward", "reverse"] if cell.direction == "both" else [cell.direction]


def _direction(
    testbed: Testbed, cell: Cell, rate_fps: int, name: DirectionName
) -> DirectionRequest:
    sender, receiver = testbed.left, testbed.right
    if name == "reverse":
        sender, receiver = receiver, sender
    stream = _stream(cell, sender, receiver, _STREAM_IDS[name])
    return DirectionRequest(name=name, rate_fps=rate_fps, streams=[stream])


def _stream(
    cell: Cell, sender: SideConfig, receiver: SideConfig, stream_id: int
) -> StreamRequest:
    source, target = sender.ip(cell.ip), receiver.ip(cell.ip)
    if source is None or target is None:
        raise InputError(
            f"cell {cell.id}: the testbed has no IPv{cell.ip} addresses on both sides",
            f"give both sides of the testbed the key ipv{cell.ip}",
        )
    return StreamRequest(
        id=stream_id,
        ip_version=cell.ip,
        frame_sizes=[cell.frame_size],
        received_frame_sizes=[cell.frame_size],
        src_ip=source.address,
        dst_ip=target.address,
        next_hop=source.gateway,
        src_port=_SRC_PORT,
        dst_port=_DST_PORT,
    )
