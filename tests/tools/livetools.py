"""For tests with the real engine: marks, requests, counts, and raw connections.

``from livetools import ...``; pytest puts this directory on the path. Rates are low and
lag limits wide, so that a busy machine cannot spoil a trial: what is compared is
counts, never times.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

import pytest
from programs import ProgramServer

from dutperf import lab
from dutperf.config.testbed import Testbed
from dutperf.engine.client import (
    Connection,
    Engine,
    Notification,
    ProgressCallback,
    Response,
    ignore_progress,
)
from dutperf.engine.process import start_engine
from dutperf.errors import SetupError
from dutperf.lab.refdut_socket import (
    Behaviour,
    KnownAnswer,
    TrialAccount,
)
from dutperf.programs import find_engine
from dutperf.protocol.base import DirectionName, Driver, IpVersion, Side, VlanTag
from dutperf.protocol.port_messages import (
    AddressRange,
    NeighboursParams,
    PortNeighbours,
    PortSpec,
)
from dutperf.protocol.result_messages import Inspected, TrialResult
from dutperf.protocol.stream_messages import DirectionRequest, StreamRequest
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import ResultsFile, load_results

MS = 1_000_000
Measure = Callable[..., TrialResult]
PATIENT_NS = 5_000 * MS
"""A lag limit that no hiccup of the machine reaches."""
BOTH: tuple[DirectionName, DirectionName] = ("forward", "reverse")
ENDS: dict[IpVersion, tuple[str, str]] = {
    4: ("198.18.0.2", "198.19.0.2"),
    6: ("2001:2::2", "2001:2:0:8000::2"),
}
"""The tester's addresses, left and right; those of the lab, too."""
GATEWAYS: dict[IpVersion, tuple[str, str]] = {
    4: ("198.18.0.1", "198.19.0.1"),
    6: ("2001:2::1", "2001:2:0:8000::1"),
}
"""The DUT's addresses in the lab, left and right."""
MACS: dict[Side, str] = {"left": "02:00:00:00:00:01", "right": "02:00:00:00:00:02"}
LAB = "linux-router"
DRIVERS: tuple[Driver, Driver] = ("af_packet", "af_xdp")
MIN_SIZE: dict[IpVersion, int] = {4: 64, 6: 84}


def _missing() -> str:
    """Why the engine cannot run here; empty when it can."""
    if os.geteuid() != 0:
        return "the engine needs root"
    try:
        find_engine()
    except SetupError as error:
        return error.message
    return ""


needs_engine = [
    pytest.mark.engine,
    pytest.mark.skipif(bool(_missing()), reason=_missing()),
]


def counting(group: str) -> list[pytest.MarkDecorator]:
    """Marks of tests that judge counts, on rings and sockets of their own.

    Such tests of two groups may run at the same time.
    """
    return [*needs_engine, pytest.mark.counts, pytest.mark.xdist_group(group)]


DEVICE = "device"
"""The group of tests with a known-answer device: it keeps a CPU busy all the time."""


def cpus(count: int) -> list[int]:
    """``count`` CPUs for workers; they repeat when the machine has fewer."""
    usable = sorted(os.sched_getaffinity(0))
    return [usable[i % len(usable)] for i in range(count)]


def main_cpu() -> int:
    return max(os.sched_getaffinity(0))


@contextlib.contextmanager
def running_engine(
    directory: Path,
    *,
    workers: int = 1,
    memory_mb: int = 512,
    namespace: str | None = None,
) -> Iterator[Engine]:
    """An engine of ``workers`` workers, ports not yet open."""
    with start_engine(
        worker_cpus=cpus(workers),
        main_cpu=main_cpu(),
        memory_mb=memory_mb,
        hugepages=False,
        namespace=namespace,
        log_path=directory / "engine.log",
    ) as engine:
        if workers <= len(os.sched_getaffinity(0)):  # else each trial has its stalls
            engine.measure = _patient(engine.measure)  # type: ignore[method-assign]
        yield engine


STALLS = {"sender_lag", "sender_behind", "sender_burst", "receiver_lag"}
"""Of a tester that others keep from running now and then, as on any shared machine."""


def _patient(measure: Measure) -> Measure:
    """Runs trials with the limits of ``Trial`` again when only a stall spoilt them."""

    def patiently(
        trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        for _ in range(8):
            result = measure(trial, on_progress)
            spoilt = result.verdict.kind == "invalid" and codes(result) & STALLS
            if trial.lag_limit_ns < PATIENT_NS or not spoilt:
                break
        return result

    return patiently


def measured_once(
    engine: Engine, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
) -> TrialResult:
    """Whatever the machine does: for tests that watch all that a trial leaves."""
    return Engine.measure(engine, trial, on_progress)


def ring_ports(mtu: int = 1500) -> list[PortSpec]:
    return [
        PortSpec(name=side, driver="ring", mac=mac, mtu=mtu)
        for side, mac in MACS.items()
    ]


def vhost(directory: Path, queues: int = 1) -> PortSpec:
    device = f"net_vhost,iface={directory / 'socket'},queues={queues}"
    return PortSpec(name="left", driver="vdev", device=device)


def virtio_user(directory: Path, queues: int = 1) -> PortSpec:
    """The other end of such a port; it is there when that is."""
    device = f"net_virtio_user,path={directory / 'socket'},queues={queues}"
    return PortSpec(name="right", driver="vdev", device=device)


def to_nobody(request: TrialRequest) -> TrialRequest:
    """Its frames go to a MAC that no port has asked for."""
    data = request.model_dump(mode="json")
    for way in data["directions"]:
        way["streams"][0]["dst_mac"] = "02:00:00:00:00:09"
    return TrialRequest.model_validate(data)


def tagged(
    ports: list[PortSpec], left: list[VlanTag], right: list[VlanTag]
) -> list[PortSpec]:
    """The same ports on sides whose frames have these tags."""
    return [
        port.model_copy(update={"vlan": left if port.name == "left" else right})
        for port in ports
    ]


def headed(
    key: Literal["mpls", "encapsulation"],
    left: object,
    right: object,
    vlan: list[VlanTag] | None = None,
) -> list[PortSpec]:
    """Crossed ports whose test frames have this before their IP packets."""
    sides = {"left": left, "right": right}
    return [
        port.model_copy(update={key: sides[port.name], "vlan": vlan or []})
        for port in ring_ports()
    ]


def headed_request(
    key: Literal["mpls", "encapsulation"],
    left: object,
    right: object,
    trial: Trial | None = None,
    vlan: list[VlanTag] | None = None,
    **stream: Any,  # noqa: ANN401 - keys of a stream
) -> TrialRequest:
    """A trial between such ports."""
    plain = (trial or Trial(size=128)).request()
    ways = []
    for way in plain.directions:
        ends = (left, right) if way.name == "forward" else (right, left)
        keys = {
            key: ends[0],
            f"received_{key}": ends[1],
            "vlan": vlan or [],
            "received_vlan": vlan or [],
            "streams": [each.model_copy(update=stream) for each in way.streams],
        }
        ways.append(way.model_copy(update=keys))
    return plain.model_copy(update={"directions": ways})


def other_vlan(result: TrialResult) -> list[int]:
    """Frames with other tags, labels or outer headers, by port."""
    return [port.other_vlan for port in result.ports]


def crossed_neighbours(timeout_ms: int = 3000) -> NeighboursParams:
    """Each port answers for its ends; each end's next hop is the other end."""
    return _neighbours(
        left=[right for _, right in ENDS.values()],
        right=[left for left, _ in ENDS.values()],
        timeout_ms=timeout_ms,
    )


def lab_neighbours(
    timeout_ms: int = 3000,
    left: Sequence[IpVersion] = (4, 6),
    right: Sequence[IpVersion] = (4, 6),
) -> NeighboursParams:
    """The next hops are the lab's device, which has these versions there."""
    return _neighbours(
        left=[GATEWAYS[version][0] for version in left],
        right=[GATEWAYS[version][1] for version in right],
        timeout_ms=timeout_ms,
    )


def _neighbours(left: list[str], right: list[str], timeout_ms: int) -> NeighboursParams:
    own = {
        "left": [AddressRange(first=end) for end, _ in ENDS.values()],
        "right": [AddressRange(first=end) for _, end in ENDS.values()],
    }
    return NeighboursParams(
        ports=[
            PortNeighbours(port="left", own=own["left"], resolve=left),
            PortNeighbours(port="right", own=own["right"], resolve=right),
        ],
        timeout_ns=timeout_ms * MS,
    )


def lab_ports(driver: Driver) -> list[PortSpec]:
    """The tester's ends of the lab's wires; interfaces are named after their side."""
    return [PortSpec(name=side, driver=driver, device=side) for side in MACS]


@contextlib.contextmanager
def kept_lab() -> Iterator[Testbed]:
    """The lab's router, up for the block."""
    assert lab.running() == [], "a lab is up: take it down before these tests"
    try:
        yield lab.up(LAB)
    finally:
        lab.down(all_=True)


@contextlib.contextmanager
def lab_engine(
    directory: Path,
    driver: Driver,
    right: dict[str, Any] | None = None,
    neighbours: NeighboursParams | None = None,
) -> Iterator[Engine]:
    """An engine in the lab that is up, its ports open, its neighbours known.

    ``right``: other keys of the right port.
    """
    with running_engine(directory, namespace="tester") as engine:
        ports = lab_ports(driver)
        ports[1] = ports[1].model_copy(update=right or {})
        engine.open_ports(ports)
        found = engine.set_neighbours(neighbours or lab_neighbours()).neighbours
        assert all(neighbour.mac for neighbour in found)
        yield engine


def inside(namespace: str, *command: str) -> str:
    """The output of ``command`` in ``namespace``."""
    command = ("ip", "netns", "exec", namespace, *command)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout


@contextlib.contextmanager
def captured_in_lab(directory: Path, what: str) -> Iterator[dict[str, Path]]:
    """What a lab's device receives and sends by both of its interfaces in the block.

    ``what``: a filter of dumpcap.
    """
    files = {side: directory / f"{side}.pcap" for side in ("left", "right")}
    command = ["ip", "netns", "exec", "dut", "dumpcap", "-q", "-P", "-f", what]
    running = [
        subprocess.Popen(
            [*command, "-i", side, "-a", "duration:120", "-w", str(file)],
            stderr=subprocess.PIPE,
            text=True,
        )
        for side, file in files.items()
    ]
    try:
        for process in running:
            assert process.stderr is not None
            assert any(line.startswith("File:") for line in process.stderr)
        yield files
        time.sleep(0.5)  # dumpcap looks into its ring that often
    finally:
        for process in running:
            process.terminate()
            process.communicate(timeout=10)


def open_rings(engine: Engine, mtu: int = 1500) -> None:
    """Crossed ring ports whose neighbours are known."""
    engine.open_ports(ring_ports(mtu))
    engine.set_neighbours(crossed_neighbours())


@dataclass
class Trial:
    """What a trial of a test sends; ``request`` makes the message."""

    ip: IpVersion = 4
    size: int = 0
    fps: int = 10_000
    ms: int = 50
    directions: Sequence[DirectionName] = BOTH
    hops: dict[IpVersion, tuple[str, str]] | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def request(self, trial_id: int = 1) -> TrialRequest:
        defaults = {
            "settle_ns": 5 * MS,
            "residual_wait_ns": 50 * MS,
            "lag_limit_ns": PATIENT_NS,
        }
        return TrialRequest(
            trial_id=trial_id,
            duration_ns=self.ms * MS,
            directions=[self._direction(name) for name in self.directions],
            **(defaults | self.extra),
        )

    def _direction(self, name: DirectionName) -> DirectionRequest:
        left, right = ENDS[self.ip]
        size = self.size or MIN_SIZE[self.ip]
        forward = name == "forward"
        hops = self.hops[self.ip] if self.hops else (right, left)
        stream = StreamRequest(
            id=0 if forward else 1,
            ip_version=self.ip,
            frame_sizes=[size],
            received_frame_sizes=[size],
            src_ip=left if forward else right,
            dst_ip=right if forward else left,
            next_hop=hops[0] if forward else hops[1],
        )
        return DirectionRequest(name=name, rate_fps=self.fps, streams=[stream])


def codes(result: TrialResult) -> set[str]:
    return {reason.code for reason in result.verdict.reasons}


def odd_frames(result: TrialResult) -> list[tuple[int, int, int, int]]:
    """Per port: foreign, stale, misdirected, corrupt."""
    return [(p.foreign, p.stale, p.misdirected, p.corrupt) for p in result.ports]


def inspected(result: TrialResult) -> list[Inspected]:
    """Of each stream: what was looked at wholly, and found altered."""
    found = [s.inspected for d in result.directions for s in d.streams]
    return [each for each in found if each]


NO_ODD_FRAMES = [(0, 0, 0, 0), (0, 0, 0, 0)]


class RawEngine:
    """An engine process and its socket: for lines that a proper client never sends."""

    def __init__(self, log_path: Path, **options: Any) -> None:  # noqa: ANN401 - Popen's
        self.socket, theirs = socket.socketpair()
        arguments = {
            "--control-fd": str(theirs.fileno()),
            "--main-cpu": str(main_cpu()),
            "--worker-cpus": str(cpus(1)[0]),
            "--memory-mb": "512",
            "--hugepages": "off",
        } | options.pop("arguments", {})
        command = [options.pop("program", str(find_engine()))]
        with theirs, log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *(part for pair in arguments.items() for part in pair)],
                stdout=log,
                stderr=log,
                pass_fds=[theirs.fileno()],
                **options,
            )
        self._connection = Connection(self.socket)

    def call(self, method: str, params: dict[str, Any] | None = None) -> Response:
        return self.answer_to(self.send(method, params))

    def send(self, method: str, params: dict[str, Any] | None = None) -> int:
        return self._connection.send(method, params or {}, 5)

    def line(self, line: bytes) -> Response:
        """Send ``line`` as it is; the next response."""
        self.socket.sendall(line + b"\n")
        return self.next_response()

    def answer_to(self, request: int) -> Response:
        response = self.next_response()
        assert response.id == request
        return response

    def next_response(self, timeout_s: float = 20) -> Response:
        while True:
            message = self.next_message(timeout_s)
            if isinstance(message, Response):
                return message

    def next_message(self, timeout_s: float = 20) -> Response | Notification:
        return self._connection.receive(time.monotonic() + timeout_s)

    def await_frames(self) -> None:
        """Returns when the running trial has sent and received frames."""
        while True:
            message = self.next_message()
            assert isinstance(message, Notification)
            if min(message.params["sent"], message.params["received"]) > 0:
                return

    def open_rings(self) -> None:
        ports = {"ports": [p.model_dump() for p in ring_ports()]}
        assert self.call("ports.open", ports).error is None
        neighbours = crossed_neighbours().model_dump()
        assert self.call("neighbours.set", neighbours).error is None

    def close(self) -> None:
        self.socket.close()
        try:
            self.process.wait(30)
        finally:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def raw_engine(directory: Path, **options: Any) -> Iterator[RawEngine]:  # noqa: ANN401 - see RawEngine
    engine = RawEngine(directory / "engine.log", **options)
    try:
        yield engine
    finally:
        engine.close()


class RefDut:
    """The known-answer device between two memif sockets in ``directory``.

    With a namespace it is between the interfaces ``left`` and ``right`` in there.
    """

    def __init__(
        self,
        directory: Path,
        behaviour: Behaviour | None,
        options: Sequence[str],
        namespace: str | None = None,
        driver: Driver = "memif",
    ) -> None:
        self.sockets = {side: str(directory / side) for side in MACS}
        control = directory / "control"
        config = directory / "behaviour.json"
        config.write_text(json.dumps(behaviour or {}))
        program = find_engine().with_name("dutperf-refdut")
        with (directory / "refdut.log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(("ip", "netns", "exec", namespace) if namespace else ()),
                    program,
                    f"--cpu={main_cpu()}",
                    f"--config={config}",
                    f"--control={control}",
                    *(
                        f"--{side}={driver}:{side if namespace else path}"
                        for side, path in self.sockets.items()
                    ),
                    *options,
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,  # which it lets outrank others, as the lab's
            )
        assert self.process.stdout is not None
        self.output = self.process.stdout
        assert self.output.readline() == '{"ready": true}\n'
        self.client = KnownAnswer(control)

    def ports(self, mtu: int = 1500) -> list[PortSpec]:
        return [
            PortSpec(
                name=side, driver="memif", device=self.sockets[side], mac=mac, mtu=mtu
            )
            for side, mac in MACS.items()
        ]

    def account(self, trial_id: int = 1) -> TrialAccount:
        """What it did in that trial."""
        return self.client.report(trial_id).trial(trial_id)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)
        self.output.close()


@contextlib.contextmanager
def ref_dut(
    directory: Path,
    behaviour: Behaviour | None = None,
    *options: str,
    namespace: str | None = None,
    driver: Driver = "memif",
) -> Iterator[RefDut]:
    device = RefDut(directory, behaviour, options, namespace, driver)
    try:
        yield device
    finally:
        device.kill()


SHORT = [
    *("--trial-duration", "0.1"),
    *("--settle-wait", "0.02"),
    *("--residual-wait", "0.05"),
    *("--restabilise-wait", "0.02"),
]
"""Options for trials far below the times of RFC 2544."""


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "dutperf", *arguments]


def dutperf(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the program to its end; no traceback may be seen, however it ends."""
    done = _program_server().run(arguments, timeout_s=120)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def measured_in_lab(name: str, path: Path, *options: str) -> ResultsFile:
    """What a short search for the throughput, up to 20,000 fps, found there."""
    done = dutperf(
        "throughput",
        *("--lab", name, "--max-rate", "20000", "--output", str(path)),
        *SHORT,
        *options,
    )
    assert done.returncode in {0, 1}, done.stderr
    return load_results(path)


@functools.cache
def _program_server() -> ProgramServer:
    return ProgramServer()


class Running:
    """The program in a process group of its own, while it runs."""

    def __init__(self, *arguments: str, patch: str = "") -> None:
        """``patch``: statements that change the program before it begins."""
        entry = f"{patch}\nfrom dutperf.cli.main import main\nmain()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", entry, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._stderr = ""
        self.trials = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.communicate()

    def await_line(self, pattern: str) -> re.Match[str]:
        """Returns when ``pattern`` is found in a line of standard error."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._stderr += line
            if found := re.search(pattern, line):
                return found
        raise AssertionError(f"no {pattern!r} in {self._stderr}")

    def await_trial(self) -> None:
        """Returns when a trial of the search has ended; ``trials``: which.

        First frames and probes, which a busy machine repeats, are none.
        """
        self.trials = int(self.await_line(r"trial (\d+): ")[1])

    def engines(self) -> list[int]:
        """The engine processes that it started."""
        return engines_of(self.process.pid)

    def end(self, within_s: float = 30) -> tuple[int, str]:
        """Waits for the end; exit code and all of standard error."""
        _, rest = self.process.communicate(timeout=within_s)
        self._stderr += rest
        assert "Traceback" not in self._stderr, self._stderr
        return self.process.returncode, self._stderr


class Usage(NamedTuple):
    """What a process has at a moment."""

    resident_kb: int
    files: int
    threads: int
    mappings: int


def usage(pid: int) -> Usage:
    process = Path(f"/proc/{pid}")
    lines = (process / "status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines)
    return Usage(
        resident_kb=int(status["VmRSS"].split()[0]),
        files=len(list((process / "fd").iterdir())),
        threads=int(status["Threads"]),
        mappings=len((process / "maps").read_text().splitlines()),
    )


def engines_of(pid: int) -> list[int]:
    """The engine processes that the main thread of a process started."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found if "dutperf-engine" in _program(child)]


def _program(pid: str) -> str:
    """Empty for a process that has just ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""
