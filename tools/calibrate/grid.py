"""The grid: behaviours of the device, and the procedures that measure them.

Trials are short, for the device does not change with time. Its queue bridges moments in
which others have its CPU; ``docs/known-answer.md`` says what then is lossless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from dutperf.config.campaign import IN_FLIGHT_FRAMES
from tools.calibrate.model import Point, Quantity, Way

MEMORY_LAB, GATEWAY_LAB = "known-answer", "known-answer-nat44"
KERNEL_LAB = "known-answer-veth"
PATHS: tuple[Way, ...] = ("memory", "af_packet", "af_xdp")
_ON_KERNEL: tuple[Quantity, ...] = ("throughput", "delay", "loss")
_S, _MS, _US = 1_000_000_000, 1_000_000, 1_000
_TRIAL_S = 0.25
_QUEUE_S = 0.02
"""Of frames that wait: a twelfth of what is served in a trial."""
_MOST_QUEUED = 5_000
"""A little more than the ring before it: when a device comes back after others had its
CPU, as many frames come at once. A longer one only makes frames colder."""
_WITHOUT_END_FPS = 50_000_000
"""A service rate that no device reaches; it costs what any costs."""
_SEARCH_FROM = 1.3
"""Times the service rate: the first trial of a search is an overload."""
WAITS: Mapping[str, Any] = {
    "settle_wait_s": 0.05,
    "residual_wait_s": 0.1,
    "restabilise_wait_s": 0.02,
}


@dataclass(frozen=True)
class Traffic:
    """What frames are like, and where they go."""

    ip: int
    size: int
    direction: str

    @property
    def words(self) -> str:
        """For people."""
        return f"IPv{self.ip}, {self.size} B, {self.direction}"

    @property
    def name(self) -> str:
        """For directories."""
        return f"ipv{self.ip}-{self.size}-{self.direction}"

    @property
    def keys(self) -> dict[str, Any]:
        """Of a procedure."""
        return {
            "ip": [self.ip],
            "frame_size": [self.size],
            "direction": [self.direction],
        }


Limit = Callable[[Traffic], int | None]
"""What tester and device can do, in frames per second and direction; None: unknown."""

SMALL = Traffic(4, 64, "forward")
WHOLE_TRAFFIC = (
    SMALL,
    Traffic(6, 84, "both"),
    Traffic(4, 1518, "both"),
    Traffic(6, 1518, "forward"),
)
"""Half of all combinations, in which each two values meet once."""
QUICK_TRAFFIC = (SMALL,)


@dataclass(frozen=True)
class Extent:
    """How much of the grid, and how often each point of it."""

    quick: bool
    repeats: int

    @property
    def keys(self) -> dict[str, Any]:
        """Of every procedure."""
        return {**WAITS, "repeats": self.repeats}


def points(
    wanted: Sequence[Quantity], paths: Sequence[Way], extent: Extent, limit: Limit
) -> Iterator[Point]:
    """Those of ``wanted``, on kernel interfaces a small part of them.

    ``limit`` is asked when half of it is needed; of kernel interfaces it is not.
    """
    if "memory" in paths:
        for quantity in wanted:
            if quantity != FLOW_CONTROL:
                yield from _MAKERS[quantity](extent, limit)
    small = Extent(quick=True, repeats=extent.repeats)
    for path in paths:
        for quantity in wanted:
            if path != "memory" and quantity in _ON_KERNEL:
                for point in _MAKERS[quantity](small, lambda _traffic: None):
                    yield replace(point, lab=KERNEL_LAB, path=path)


def _throughput(extent: Extent, limit: Limit) -> Iterator[Point]:
    rates = (20_000,) if extent.quick else (20_000, 100_000)
    for traffic in QUICK_TRAFFIC if extent.quick else WHOLE_TRAFFIC:
        most = limit(traffic)
        half = most // 2 // 1000 * 1000 if most else 0
        for rate in sorted({*rates, *((half,) if half > rates[-1] else ())}):
            yield service_point(rate, traffic, extent)


def service_point(rate: int, traffic: Traffic, extent: Extent) -> Point:
    """Both directions of the device serve ``rate`` frames per second."""
    queue = queue_frames(rate)
    service = {"service": {"rate_fps": rate, "queue_frames": queue}}
    spec = {
        "procedure": "throughput",
        "trial_duration_s": _TRIAL_S,
        "max_rate_fps": round(rate * _SEARCH_FROM),
        "resolution": "0.2%",
    }
    return Point(
        name=f"throughput-{rate}-{traffic.name}",
        quantity="throughput",
        lab=MEMORY_LAB,
        words=f"{rate:,} fps served; {traffic.words}",
        behaviour={"forward": service, "reverse": service},
        specs=(extent.keys | traffic.keys | spec,),
        figures=("throughput",),
        expected={"throughput": rate + (queue + 1) / _TRIAL_S},
        queue_frames=queue,
    )


def limit_point(traffic: Traffic) -> Point:
    """A device that serves all that it can: tester, path or device are the limit.

    It has a service and a queue as those that are measured: without them it is faster.
    """
    service = {"rate_fps": _WITHOUT_END_FPS, "queue_frames": _MOST_QUEUED}
    spec = {
        "procedure": "throughput",
        "trial_duration_s": _TRIAL_S,
        "resolution": "5%",
    }
    return Point(
        name=f"limit-{traffic.name}",
        quantity="throughput",
        lab=MEMORY_LAB,
        words=f"unlimited; {traffic.words}",
        behaviour={"forward": {"service": service}, "reverse": {"service": service}},
        specs=({**WAITS, **traffic.keys, **spec, "repeats": 1},),
        figures=(),
    )


def queue_frames(rate: int) -> int:
    """The queue of a device that serves ``rate``."""
    return min(max(1, round(rate * _QUEUE_S)), _MOST_QUEUED)


def _delays(extent: Extent, _limit: Limit) -> Iterator[Point]:
    constant = (200, 1000) if extent.quick else (50, 200, 1000, 5000)
    for delay_us in constant:
        delay_ns = delay_us * _US
        yield _delay(
            f"{delay_us}us",
            f"{delay_us:,} us",
            ({"do": {"delay_ns": delay_ns}},),
            {"TL": delay_ns, "PDV": 0.0},
            extent,
        )
    span = {"from": 1 * _MS, "to": 3 * _MS}
    uniform = ({"do": {"delay_ns": span}},)
    yield _delay(
        "uniform",
        "uniform 1 to 3 ms",
        uniform,
        {"TL": 2.0 * _MS, "PDV": 0.999 * 2 * _MS},
        extent,
    )
    if not extent.quick:
        yield _delay(
            "two-point",
            "200 us, every 10th 1 ms more",
            (
                {"do": {"delay_ns": 200 * _US}},
                {"every": 10, "do": {"delay_ns": 1 * _MS}},
            ),
            {"TL": 200.0 * _US, "PDV": 1.0 * _MS},
            extent,
        )


def _delay(
    name: str,
    words: str,
    rules: Sequence[Mapping[str, Any]],
    expected: Mapping[Any, float],
    extent: Extent,
) -> Point:
    load = {"rate_fps": 10_000, "trial_duration_s": 1.0}
    keys = extent.keys | SMALL.keys | load
    tags = {"tags": 10_000, "first_tag_s": 0}  # all: no error of a sample
    return Point(
        name=f"delay-{name}",
        quantity="delay",
        lab=MEMORY_LAB,
        words=words,
        behaviour={"forward": {"rules": list(rules)}},
        specs=(keys | tags | {"procedure": "latency"}, keys | {"procedure": "pdv"}),
        figures=("TL", "PDV"),
        expected=expected,
    )


def _losses(extent: Extent, _limit: Limit) -> Iterator[Point]:
    rate = 20_000 if extent.quick else 50_000
    traffic = Traffic(4, 64, "both")
    for share in (0.0, 0.01) if extent.quick else (0.0, 0.0001, 0.001, 0.01):
        rules = [{"probability": share, "do": "drop"}] if share else []
        spec = {
            "procedure": "frame-loss",
            "load_percent": [100.0],
            "max_rate_fps": rate,
            "trial_duration_s": 1.0,
        }
        yield Point(
            name=f"loss-{share * 1_000_000:.0f}ppm",
            quantity="loss",
            lab=MEMORY_LAB,
            words=f"{100 * share:g} % of {rate:,} fps; {traffic.words}",
            behaviour={"forward": {"rules": rules}, "reverse": {"rules": rules}},
            specs=(extent.keys | traffic.keys | spec,),
            figures=("lost",),
            expected={"lost": 2 * rate * share},
        )


def _connections(extent: Extent, _limit: Limit) -> Iterator[Point]:
    for rate in (20_000,) if extent.quick else (2_000, 20_000):
        queue = queue_frames(rate)
        connections = rate
        nat = {
            "table": {"entries": 2 * connections},
            "setup": {"rate_per_s": rate, "queue_frames": queue, "overload": "drop"},
        }
        spec = {
            "procedure": "connection-rate",
            "max_rate_fps": round(rate * _SEARCH_FROM),
            "resolution": "0.5%",
            "stateful": {"connections": [connections], "timeout_ms": 100},
        }
        yield Point(
            name=f"connections-{rate}",
            quantity="connections",
            lab=GATEWAY_LAB,
            words=f"{rate:,} per s",
            behaviour=_gateway(nat),
            specs=(_waits(extent) | spec,),
            figures=("connection rate",),
            expected={"connection rate": rate / (1 - (queue + 1) / connections)},
            queue_frames=queue,
            connections=connections,
        )


def _capacity(extent: Extent, _limit: Limit) -> Iterator[Point]:
    for entries in (500,) if extent.quick else (500, 5_000):
        spec = {
            "procedure": "table-capacity",
            "max_rate_fps": 50_000,
            "stateful": {
                "connections": [entries * 5 // 2],
                "first": entries * 24 // 25,
                "beta": 0.5,
                "timeout_ms": 100,
            },
        }
        yield Point(
            name=f"capacity-{entries}",
            quantity="capacity",
            lab=GATEWAY_LAB,
            words=f"a table of {entries:,} connections",
            behaviour=_gateway({"table": {"entries": entries}}),
            specs=(_waits(extent) | spec,),
            figures=("capacity",),
            expected={"capacity": float(entries)},
        )


def _gateway(nat: Mapping[str, Any]) -> dict[str, Any]:
    public = {"first_address": "198.19.0.1"}
    return {"nat": {"kind": "nat44", "public": public, **nat}}


def _waits(extent: Extent) -> dict[str, Any]:
    """Without the wait for late frames, which phases have of their own."""
    keys = extent.keys | {"ip": [4]}
    return {key: value for key, value in keys.items() if key != "residual_wait_s"}


BURSTS = ((500, 20_000), (1_000, 200_000), (4_000, 500_000))
"""Queue and service rate of the device."""
BURST_FPS = 1_000_000


def _buffers(extent: Extent, _limit: Limit) -> Iterator[Point]:
    for queue, service in BURSTS[:1] if extent.quick else BURSTS:
        longest = (queue + 1) * BURST_FPS / (BURST_FPS - service)
        spec = {
            "procedure": "back-to-back",
            "throughput_fps": service,
            "max_rate_fps": BURST_FPS,
            "longest_burst_s": round(2 * longest / BURST_FPS, 4),
            # The shorter the trial, the fewer of them others spoil.
            "residual_wait_s": round(0.05 + queue / service, 3),
            "lag_limit_ms": 5000,
        }
        yield Point(
            name=f"buffer-{queue}-{service}",
            quantity="buffer",
            lab=MEMORY_LAB,
            words=f"queue {queue:,}, {service:,} fps served",
            behaviour={
                "forward": {"service": {"rate_fps": service, "queue_frames": queue}}
            },
            specs=(extent.keys | SMALL.keys | spec,),
            figures=("burst",),
            expected={"burst": longest},
            queue_frames=queue,
        )


_MAKERS: Mapping[Quantity, Callable[[Extent, Limit], Iterator[Point]]] = {
    "throughput": _throughput,
    "delay": _delays,
    "loss": _losses,
    "connections": _connections,
    "capacity": _capacity,
    "buffer": _buffers,
}
FLOW_CONTROL: Quantity = "flow-control"
"""Compares two devices, so it has no points but ``pairings``."""
QUANTITIES: tuple[Quantity, ...] = (*_MAKERS, FLOW_CONTROL)

_FLOW_CONTROL_FPS = (20_000, 100_000)
RING_FRAMES: Mapping[Way, int] = {"memory": 4096, "af_packet": IN_FLIGHT_FRAMES}
"""What is before the device: filled once while nobody drops."""
FLOW_CONTROL_S = 1.0
_OFFERED_TIMES = 4
"""The service rate: the most that the search offers."""


class Pairing(NamedTuple):
    """The same device: dropping, and withholding while the tester's ports wait.

    What flow control does to a throughput (paper 001, section IV). Where the device
    withholds its descriptors whoever sends waits, and no frame is ever lost. A tester
    that counts only lost frames passes each such trial, at rates that were never sent;
    this one says that it was held back.
    """

    dropping: Point
    waiting: Point


def pairings(extent: Extent, paths: Sequence[Way]) -> list[Pairing]:
    """A pair for each rate in shared memory, and one on packet sockets.

    In shared memory the device withholds its descriptors. A packet socket that is full
    drops, so there the wire holds frames back, as one does whose other end sends pause
    frames. AF_XDP sockets have nothing of the kind. That wire's timers take the
    sender's CPU, at 100,000 frames per second nearly all of it; so it has the low rate.
    """
    rates = _FLOW_CONTROL_FPS[: 1 if extent.quick else None]
    found = [_pairing(rate, extent) for rate in rates if "memory" in paths]
    return found + [_on_sockets(_FLOW_CONTROL_FPS[0], extent)] * ("af_packet" in paths)


def _pairing(rate: int, extent: Extent) -> Pairing:
    def service(*, withhold: bool) -> dict[str, Any]:
        told = {"rate_fps": rate, "queue_frames": queue_frames(rate)}
        return {"forward": {"service": told | {"withhold": withhold}}}

    first = _flow_control_point(rate, extent, service(withhold=False), 0.2)
    wait_s = (queue_frames(rate) + RING_FRAMES["memory"]) / rate + 0.2
    second = _flow_control_point(rate, extent, service(withhold=True), wait_s)
    return Pairing(first, replace(second, name=f"{first.name}-on", waits=True))


def _on_sockets(rate: int, extent: Extent) -> Pairing:
    first = replace(_pairing(rate, extent).dropping, lab=KERNEL_LAB, path="af_packet")
    wait_s = RING_FRAMES["af_packet"] / rate + 0.2
    second = _flow_control_point(rate, extent, {}, wait_s)
    return Pairing(
        first,
        replace(
            second,
            name=f"{first.name}-on",
            lab=KERNEL_LAB,
            path="af_packet",
            held_back_fps=rate,
        ),
    )


def _flow_control_point(
    rate: int, extent: Extent, behaviour: Mapping[str, Any], residual_wait_s: float
) -> Point:
    queue = queue_frames(rate)
    spec = {
        "procedure": "throughput",
        "trial_duration_s": FLOW_CONTROL_S,
        "max_rate_fps": _OFFERED_TIMES * rate,
        "resolution": "0.2%",
        "early_stop": False,  # as a classic tester's trials go on to their end
        "residual_wait_s": round(residual_wait_s, 3),
    }
    return Point(
        name=f"flow-control-{rate}",
        quantity="flow-control",
        lab=MEMORY_LAB,
        words=f"{rate:,} fps served; {SMALL.words}",
        behaviour=behaviour,
        specs=(extent.keys | SMALL.keys | spec,),
        figures=("throughput",),
        expected={"throughput": rate + (queue + 1) / FLOW_CONTROL_S},
        queue_frames=queue,
    )
