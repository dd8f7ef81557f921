"""A hundred frames before all others of a cell: does the device forward at all?

A search would find "1 of 1 frames lost" at its lowest rate, and not why. A few frames
at a low rate tell at once, and what arrives instead of them tells where to look.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dutperf.config.sizes import cell_versions, most_header_bytes, smallest_size
from dutperf.model.cell import Cell
from dutperf.procedures.events import Notice
from dutperf.procedures.trials import ATTEMPTS, Ask, DeviceTrials, no_rate_helps
from dutperf.protocol.result_messages import (
    DirectionResult,
    PortReport,
    Reason,
    TrialResult,
)
from dutperf.results.device_words import icmp_words, places_to_look
from dutperf.search import attempted

FRAMES = 100
RATE_FPS = 1000
LONGEST_S = 1.0
_TRIES = 2
"""A device may drop what it gets until its own neighbours have answered it."""
_INSTEAD = {
    "misdirected": "misdirected",
    "other_vlan": "with other VLAN tags or labels",
    "foreign": "foreign",
    "corrupt": "corrupt",
    "stale": "stale",
    "fragments": "fragments",
}


def is_tried_first(cell: Cell) -> bool:
    """Whether its first frames are these: phase 1 tells it of a stateful one."""
    return cell.stateful is None


def try_first_frames(runner: DeviceTrials, cell: Cell, most_fps: int) -> list[Reason]:
    """Send them; why ``cell`` cannot be measured, or nothing if it can.

    Args:
        runner: runs the trial; an invalid one is repeated.
        cell: whose frames they are.
        most_fps: its highest load.

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    silent: list[DirectionResult] = []
    for _ in range(_TRIES):
        result = _sent(runner, cell, min(RATE_FPS, most_fps))
        silent = [d for d in result.directions if not _received(d)]
        reasons = result.verdict.reasons
        if no_rate_helps(reasons) or (silent and result.verdict.kind == "invalid"):
            return reasons
        if not silent:
            return []
    if cell.traffic.fragmented and _forwards_small(runner, cell, most_fps):
        instead = "; ".join(map(_arrived, result.ports))
        runner.on_event(
            Notice(
                f"{cell.id}: of frames of {cell.frame_sizes[0]:,} bytes none arrives, "
                f"smaller ones do: the device does not fragment them, and their rate "
                f"is 0 (RFC 2544 9.4); instead, {instead}"
            )
        )
        return []
    return [_nothing_forwarded(result, silent)]


def _forwards_small(runner: DeviceTrials, cell: Cell, most_fps: int) -> bool:
    """Whether frames arrive that no link is too narrow for."""
    extra = most_header_bytes(cell.traffic, cell.ip, cell.phase2)
    least = smallest_size(cell_versions(cell), extra)
    small = cell.model_copy(update={"frame_sizes": [least]})
    result = _sent(runner, small, min(RATE_FPS, most_fps))
    return all(map(_received, result.directions))


def first_frames_s(most_fps: int) -> float:
    """How long they are sent."""
    return min(LONGEST_S, FRAMES / min(RATE_FPS, most_fps))


def _sent(runner: DeviceTrials, cell: Cell, rate_fps: int) -> TrialResult:
    """The last of so many attempts."""
    plain = cell.with_keys(tags=0) if cell.spec.tagging else cell
    ask = Ask(plain, rate_fps, duration_s=first_frames_s(rate_fps), role="first_frames")
    trials = (runner.run(ask).result for _ in range(ATTEMPTS))
    return attempted(trials, _tell_nothing)[-1]


def _tell_nothing(tried: Sequence[TrialResult]) -> bool:
    """Frames that came back tell enough of most invalid trials."""
    result = tried[-1]
    if result.verdict.kind != "invalid":
        return False
    all_back = all(map(_received, result.directions))
    return not all_back or no_rate_helps(result.verdict.reasons)


def _received(direction: DirectionResult) -> int:
    return sum(stream.received for stream in direction.streams)


def _nothing_forwarded(result: TrialResult, silent: list[DirectionResult]) -> Reason:
    told = ", ".join(
        f"{d.name}: none of {sum(s.sent for s in d.streams):,} frames arrived"
        for d in silent
    )
    instead = "; ".join(map(_arrived, result.ports))
    found = [hop for hop in result.neighbours if hop.mac]
    hops = ", ".join(f"{hop.ip} on the {hop.port_label}" for hop in found)
    resolved = f"; next hops that answered: {hops}" if hops else ""
    return Reason(
        code="nothing_forwarded",
        message=f"the device forwards nothing: {told}; instead, {instead}{resolved}",
        hint=" ".join(["check", *_places_to_look(result)]),
    )


def _misdirected(*, several: bool) -> str:
    if several:
        return "whether ports are swapped, as frames came in by others than theirs;"
    return (
        "whether the ports are swapped, or the device has another MAP rule, binding "
        "table or tunnel than the testbed for these hosts, as frames came where they "
        "are not for;"
    )


def _arrived(port: PortReport) -> str:
    counts = [(getattr(port, kind), words) for kind, words in _INSTEAD.items()]
    told = ", ".join(f"{count:,} {words}" for count, words in counts if count)
    if icmp := icmp_words(port.icmp):
        told += f" (of the foreign ones {icmp})"
    return f"{told or 'nothing'} on the {port.label} port"


def _places_to_look(result: TrialResult) -> Iterator[str]:
    def any_of(kind: str) -> bool:
        return any(getattr(port, kind) for port in result.ports)

    if any_of("misdirected"):
        yield _misdirected(several=len(result.ports) > 2)
    if any_of("other_vlan"):
        yield (
            "the VLAN tags, MPLS labels and outer headers of both sides (left.vlan, "
            "left.mpls, left.encapsulation and right's in the testbed);"
        )
    if any_of("fragments"):
        yield "the device's MTU, as it cuts frames into pieces;"
    yield from places_to_look(each for port in result.ports for each in port.icmp)
    if any_of("corrupt"):
        yield "checksums and sizes, as frames arrived damaged (--ignore-checksums);"
    yield (
        "that the device forwards between these networks (ip_forward, routes back to "
        "the tester, filters), and the testbed's addresses and gateways"
    )
