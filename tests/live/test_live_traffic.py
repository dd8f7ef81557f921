"""Mixes, sizes, variations, full queues: what was sent arrives, each stream exact."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from labtools import Wire
from livetools import (
    BOTH,
    DEVICE,
    DRIVERS,
    ENDS,
    GATEWAYS,
    MS,
    NO_ODD_FRAMES,
    PATIENT_NS,
    STALLS,
    RefDut,
    codes,
    counting,
    cpus,
    crossed_neighbours,
    kept_lab,
    lab_engine,
    lab_neighbours,
    lab_ports,
    main_cpu,
    measured_once,
    odd_frames,
    open_rings,
    ref_dut,
    ring_ports,
    running_engine,
)
from readers import MAGIC, headers_of, tag_of, with_good_checksums, without_stamp
from scapy.layers.inet import UDP
from scapy.utils import rdpcap

from dutperf.engine.client import Engine
from dutperf.engine.process import start_engine
from dutperf.lab.refdut_socket import Behaviour
from dutperf.protocol.base import DirectionName, Driver, IpVersion
from dutperf.protocol.methods import PreviewParams
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.stream_messages import (
    DirectionRequest,
    FieldVariation,
    Mix,
    StreamRequest,
)
from dutperf.protocol.trial_messages import TrialProgress, TrialRequest
from tools.calibrate.truth import Counts, by_account

pytestmark = counting(DEVICE)

MIXES = [(1, 1), (9, 10), (1, 2), (1, 10)]
"""Foreground frames of how many: those of RFC 8219 5.3."""
IMIX = {4: [64, 64, 64, 570, 1518], 6: [84, 84, 84, 590, 1518]}
PORTS = [
    FieldVariation(field="src_port", width=16, min=1024, max=65535),
    FieldVariation(field="dst_port", width=16, min=1, max=49151),
]
NETWORKS = [FieldVariation(field="dst_ip", offset=16, width=8, min=0, max=255)]


def stream(
    direction: DirectionName,
    ip: IpVersion,
    sizes: list[int],
    vary: list[FieldVariation],
    *,
    background: bool = False,
    hops: dict[IpVersion, tuple[str, str]] | None = None,
) -> StreamRequest:
    forward = direction == "forward"
    ends = ENDS[ip] if forward else ENDS[ip][::-1]
    gateways = (hops or {v: e[::-1] for v, e in ENDS.items()})[ip]
    return StreamRequest(
        id=(0 if forward else 1) + (2 if background else 0),
        name="background" if background else "foreground",
        ip_version=ip,
        frame_sizes=sizes,
        received_frame_sizes=sizes,
        src_ip=ends[0],
        dst_ip=ends[1],
        next_hop=gateways[0 if forward else 1],
        vary=vary,
    )


def mixed(
    mix: tuple[int, int] = (1, 1),
    *,
    fps: int = 20_000,
    ms: int = 50,
    vary: list[FieldVariation] | None = None,
    hops: dict[IpVersion, tuple[str, str]] | None = None,
    **extra: int,
) -> TrialRequest:
    """IPv4 of many sizes in the foreground, IPv6 in the background, both directions."""
    m, n = mix
    directions = []
    for name in BOTH:
        streams = [stream(name, 4, IMIX[4], PORTS if vary is None else vary, hops=hops)]
        if m < n:
            streams.append(stream(name, 6, IMIX[6], PORTS, background=True, hops=hops))
        directions.append(
            DirectionRequest(
                name=name,
                rate_fps=fps,
                streams=streams,
                mix=Mix(foreground=m, of=n) if m < n else None,
            )
        )
    waits = {"settle_ns": 5 * MS, "residual_wait_ns": 50 * MS}
    limits = {"lag_limit_ns": PATIENT_NS, "trial_id": 7, "duration_ns": ms * MS}
    return TrialRequest.model_validate(
        {"directions": directions} | waits | limits | extra
    )


def by_definition(mix: tuple[int, int], frames: int) -> list[Counts]:
    """Of the streams of a direction: frame i is foreground iff (i * m) mod n < m."""
    m, n = mix
    foreground = sum(i * m % n < m for i in range(frames))
    both = [foreground, frames - foreground]
    return [Counts(count, count) for count in both if count]


def stream_counts(result: TrialResult) -> dict[str, list[Counts]]:
    """Direction -> the frames of its streams, foreground first."""
    return {
        d.name: [
            Counts(s.sent, s.received, s.lost, s.duplicate, s.reordered)
            for s in d.streams
        ]
        for d in result.directions
    }


@pytest.fixture(scope="module", params=[1, 2, 4], ids=lambda n: f"{n}-workers")
def ring(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    with running_engine(tmp_path_factory.mktemp("traffic"), workers=request.param) as e:
        open_rings(e)
        yield e


@pytest.fixture(scope="module")
def device() -> Iterator[RefDut]:
    # A short path: a socket's has at most 107 characters.
    with (
        tempfile.TemporaryDirectory(prefix="dutperf") as place,
        ref_dut(Path(place)) as device,
    ):
        yield device


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One worker; each test opens the ports that it needs."""
    with running_engine(tmp_path_factory.mktemp("one-worker")) as it:
        yield it


def through(
    engine: Engine, device: RefDut, behaviour: Behaviour | None = None
) -> Engine:
    """``engine`` with the device between its ports, opened anew."""
    device.client.configure(behaviour or {})
    engine.open_ports(device.ports())
    engine.set_neighbours(crossed_neighbours())
    return engine


@pytest.mark.parametrize("mix", MIXES, ids=lambda mix: f"{mix[0]}of{mix[1]}")
def test_each_stream_of_a_mix_arrives_exactly(
    ring: Engine, mix: tuple[int, int]
) -> None:
    result = ring.measure(mixed(mix))
    assert codes(result) <= STALLS, "only the machine may be in the way"
    assert stream_counts(result) == dict.fromkeys(BOTH, by_definition(mix, 1000))
    assert odd_frames(result) == NO_ODD_FRAMES


@pytest.mark.parametrize("mix", MIXES, ids=lambda mix: f"{mix[0]}of{mix[1]}")
def test_a_device_accounts_for_each_mix(
    engine: Engine, device: RefDut, mix: tuple[int, int]
) -> None:
    result = through(engine, device).measure(mixed(mix))
    account = device.account(result.trial_id)
    assert stream_counts(result) == dict.fromkeys(BOTH, by_definition(mix, 1000))
    assert {n: c.sent for n, c in by_account(account).items()} == dict.fromkeys(
        BOTH, 1000
    )
    assert odd_frames(result) == NO_ODD_FRAMES


def test_losses_count_for_the_stream_that_lost(engine: Engine, device: RefDut) -> None:
    """Of Fb Fb Fb ... every other frame is dropped: all of the background."""
    behaviour = {"forward": {"rules": [{"every": 2, "do": "drop"}]}}
    result = through(engine, device, behaviour).measure(mixed((1, 2)))
    assert stream_counts(result)["forward"] == [
        Counts(500, 500),
        Counts(500, 0, lost=500),
    ]
    assert result.verdict.kind == "fail"


def test_an_enumeration_arrives_whole(ring: Engine) -> None:
    ports = [v.model_copy(update={"mode": "enumerate"}) for v in PORTS]
    result = ring.measure(mixed(vary=ports))
    assert stream_counts(result) == {d: [Counts(1000, 1000)] for d in BOTH}
    assert odd_frames(result) == NO_ODD_FRAMES


def test_the_result_names_the_generator(ring: Engine) -> None:
    assert ring.measure(mixed()).generator == "splitmix64-counter-3"


def test_64_sizes_in_a_row_arrive_whole(engine: Engine) -> None:
    sizes = [64 + 17 * i for i in range(64)]
    forward = stream("forward", 4, sizes, PORTS + NETWORKS)
    direction = DirectionRequest(name="forward", rate_fps=20_000, streams=[forward])
    open_rings(engine)
    result = engine.measure(mixed().model_copy(update={"directions": [direction]}))
    assert stream_counts(result) == {"forward": [Counts(1000, 1000)]}
    assert odd_frames(result) == NO_ODD_FRAMES


@pytest.mark.parametrize("descriptors", [64, 100, 512])
@pytest.mark.parametrize("mix", [(1, 1), (9, 10)], ids=["1of1", "9of10"])
def test_short_queues_carry_everything(
    engine: Engine, mix: tuple[int, int], descriptors: int
) -> None:
    lengths = {"tx_descriptors": descriptors, "rx_descriptors": descriptors}
    ports = [port.model_copy(update=lengths) for port in ring_ports()]
    engine.open_ports(ports)
    engine.set_neighbours(crossed_neighbours())
    result = engine.measure(mixed(mix))
    assert stream_counts(result) == dict.fromkeys(BOTH, by_definition(mix, 1000))


# --- full queues


def tx_full(result: TrialResult) -> int:
    return sum(d.tx_full for d in result.directions)


def assert_intact(result: TrialResult) -> None:
    """A rewritten frame would come twice, and the one before it never."""
    for counts in itertools.chain(*stream_counts(result).values()):
        assert counts == Counts(counts.sent, counts.sent)
    assert odd_frames(result) == NO_ODD_FRAMES


@pytest.mark.parametrize("mix", [(1, 1), (9, 10)], ids=["1of1", "9of10"])
def test_a_frame_that_is_still_queued_is_never_rewritten(
    tmp_path: Path, mix: tuple[int, int]
) -> None:
    """Four workers take turns on one CPU: while one sends, nobody reads.

    A ring port passes the sender's own buffers on, so they stay in the ring until the
    reader has its turn, much later.
    """
    with start_engine(
        worker_cpus=cpus(1) * 4,
        main_cpu=main_cpu(),
        memory_mb=512,
        hugepages=False,
        namespace=None,
        log_path=tmp_path / "engine.log",
    ) as engine:
        open_rings(engine)
        result = measured_once(engine, mixed(mix, fps=10_000_000, ms=30))
    assert tx_full(result) > 0
    assert_intact(result)
    assert stream_counts(result) == dict.fromkeys(BOTH, by_definition(mix, 300_000))


def test_frames_wait_unchanged_for_a_device_that_stands_still(
    engine: Engine, device: RefDut
) -> None:
    through(engine, device)
    turns = itertools.cycle([signal.SIGSTOP, signal.SIGCONT])

    def stop_or_go_on(_progress: TrialProgress) -> None:
        os.kill(device.process.pid, next(turns))

    with contextlib.ExitStack() as stack:
        stack.callback(os.kill, device.process.pid, signal.SIGCONT)
        trial = mixed((9, 10), fps=50_000, ms=1300, residual_wait_ns=700 * MS)
        result = measured_once(engine, trial, stop_or_go_on)
    account = device.account(result.trial_id)
    assert tx_full(result) > 0
    assert_intact(result)
    sent = {name: c.sent for name, c in by_account(account).items()}
    assert sent == dict.fromkeys(BOTH, 65_000)


# --- on the wires of the lab


@pytest.fixture(scope="module")
def lab_up() -> Iterator[None]:
    with kept_lab():
        yield


def preview(engine: Engine, trial: TrialRequest, path: Path, count: int) -> list[bytes]:
    engine.preview(PreviewParams(trial=trial, count=count, path=str(path)))
    return [bytes(packet) for packet in rdpcap(str(path))]


def tagged(wire: Wire) -> list[bytes]:
    """The frames with a tag that came in at ``wire``."""
    frames = wire.received(0.2)
    udp = [f for f in frames if f[12:14] in {b"\x08\x00", b"\x86\xdd"}]
    return [f for f in udp if UDP in headers_of(f) and tag_of(f).magic == MAGIC]


@pytest.mark.lab
@pytest.mark.usefixtures("lab_up")
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_what_is_sent_is_what_was_previewed_on_any_number_of_workers(
    tmp_path: Path, workers: int
) -> None:
    count = 40  # what a raw socket's buffer holds
    trial = mixed((7, 10), fps=1000, ms=count, vary=PORTS + NETWORKS, hops=GATEWAYS)
    with running_engine(tmp_path, workers=workers, namespace="tester") as engine:
        engine.open_ports(lab_ports("af_packet"))
        engine.set_neighbours(lab_neighbours())
        expected = preview(engine, trial, tmp_path / "frames.pcap", count)
        with Wire("dut", "left") as left, Wire("dut", "right") as right:
            measured_once(engine, trial)
            seen = [tagged(wire) for wire in (left, right)]
    for captured, previewed in zip(
        seen, (expected[:count], expected[count:]), strict=True
    ):
        assert [*map(without_stamp, captured)] == [*map(without_stamp, previewed)]
        assert [*map(with_good_checksums, captured)] == captured


@pytest.mark.lab
@pytest.mark.usefixtures("lab_up")
@pytest.mark.parametrize("driver", DRIVERS)
def test_no_frame_comes_twice_or_broken_however_far_behind_the_sender(
    tmp_path: Path, driver: Driver
) -> None:
    trial = mixed(
        (9, 10), fps=2_000_000, ms=50, hops=GATEWAYS, residual_wait_ns=500 * MS
    )
    with lab_engine(tmp_path, driver) as engine:
        result = measured_once(engine, trial)
    assert {d.burst_frames.max for d in result.directions} == {32}
    for counts in itertools.chain(*stream_counts(result).values()):
        assert (counts.duplicate, counts.reordered) == (0, 0)
        assert counts.received + counts.lost == counts.sent > 0
    assert odd_frames(result) == NO_ODD_FRAMES
