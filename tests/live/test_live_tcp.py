"""TCP connections through a device, each segment accounted for."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from livetools import (
    BOTH,
    DEVICE,
    MIN_SIZE,
    MS,
    SHORT,
    Trial,
    codes,
    counting,
    crossed_neighbours,
    dutperf,
    inside,
    open_rings,
    ref_dut,
    ring_ports,
    running_engine,
    tagged,
    to_nobody,
)

from dutperf import lab
from dutperf.engine.client import Engine
from dutperf.protocol.base import IpVersion, VlanTag
from dutperf.protocol.result_messages import SegmentName, TcpResult, TrialResult
from dutperf.protocol.stream_messages import FieldName, FieldVariation
from dutperf.protocol.trial_messages import (
    ConnectionBegin,
    ConnectionEnd,
    Tcp,
    TrialRequest,
)
from dutperf.results import load_journal, load_results

pytestmark = counting(DEVICE)

SIZE: dict[ConnectionBegin, int] = {"syn": 74, "ack": 70, "request": 119, "fin": 70}
IPV6_LONGER = 20
STEPS: dict[ConnectionEnd, int] = {
    "half_open": 2,
    "opened": 3,
    "answered": 5,
    "closed": 8,
}
ONE = [VlanTag(id=10, pcp=5)]
TWO = [VlanTag(tpid=0x88A8, id=4094, pcp=7), VlanTag(id=100)]


PORTS: tuple[tuple[FieldName, int, int], ...] = (
    ("src_port", 1024, 9023),
    ("dst_port", 80, 179),
)


def connections(
    ip: IpVersion = 4,
    fps: int = 10_000,
    ms: int = 50,
    *,
    trial_id: int = 1,
    begin: ConnectionBegin = "syn",
    **tcp: object,
) -> TrialRequest:
    trial = Trial(
        ip=ip,
        size=SIZE[begin] + (IPV6_LONGER if ip == 6 else 0),
        fps=fps,
        ms=ms,
        directions=["forward"],
        # The last answers come when the device has had the CPU.
        extra={"residual_wait_ns": 500 * MS},
    )
    request = trial.request(trial_id)
    stream = request.directions[0].streams[0]
    ports = [
        FieldVariation(
            field=field, offset=0, width=16, min=low, max=high, mode="enumerate"
        )
        for field, low, high in PORTS
    ]
    varied = stream.model_copy(update={"vary": ports})
    direction = request.directions[0].model_copy(update={"streams": [varied]})
    return request.model_copy(
        update={
            "directions": [direction],
            "tcp": Tcp.model_validate(tcp | {"begin": begin}),
        }
    )


def of(result: TrialResult) -> TcpResult:
    assert result.tcp is not None
    return result.tcp


def assert_whole(
    result: TrialResult, count: int, end: int, first: int = 0, pieces: int = 1
) -> None:
    """``pieces``: segments of a response."""
    told = [(s.sent, s.received, s.duplicate) for s in of(result).segments]
    expected = [count if first <= n < end else 0 for n in range(len(told))]
    expected[4] *= pieces
    assert told == [(each, each, 0) for each in expected]
    for told_by in (of(result).initiator, of(result).responder):
        assert set(told_by.model_dump().values()) == {0}
    assert of(result).first_answer_ns.count == (count if end - first > 1 else 0)
    (direction,) = result.directions
    (stream,) = direction.streams
    assert (stream.sent, stream.received, stream.duplicate) == (count, count, 0)
    assert stream.delay_ns.count == count
    assert result.verdict.kind == "pass", result.verdict


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("end", STEPS)
@pytest.mark.parametrize("ip", [4, 6])
def test_each_connection_takes_each_step_once(
    tmp_path: Path, ip: IpVersion, end: ConnectionEnd, workers: int
) -> None:
    with running_engine(tmp_path, workers=workers) as engine:
        open_rings(engine)
        for _ in range(2):
            result = engine.measure(connections(ip, until=end))
            assert_whole(result, 500, STEPS[end])


LATER: dict[ConnectionBegin, tuple[ConnectionEnd, int]] = {
    "ack": ("opened", 2),
    "request": ("answered", 3),
    "fin": ("closed", 5),
}


@pytest.mark.parametrize("begin", LATER)
@pytest.mark.parametrize("ip", [4, 6])
def test_what_one_trial_opened_the_next_one_uses(
    tmp_path: Path, ip: IpVersion, begin: ConnectionBegin
) -> None:
    until, first = LATER[begin]
    opened: ConnectionEnd = "half_open" if begin == "ack" else "opened"
    with running_engine(tmp_path) as engine:
        open_rings(engine)
        assert_whole(engine.measure(connections(ip, until=opened)), 500, STEPS[opened])
        later = connections(ip, trial_id=2, begin=begin, until=until, opened_by=1)
        assert_whole(engine.measure(later), 500, STEPS[until], first)


def test_each_of_several_trials_goes_on_where_the_one_before_ended(
    tmp_path: Path,
) -> None:
    with running_engine(tmp_path) as engine:
        open_rings(engine)
        assert_whole(engine.measure(connections(until="answered")), 500, 5)
        used = functools.partial(connections, opened_by=1)
        for asked in (1, 2):
            later = used(
                trial_id=1 + asked, begin="request", until="answered", asked=asked
            )
            assert_whole(engine.measure(later), 500, 5, 3)
        last = used(trial_id=4, begin="fin", until="closed", asked=3)
        assert_whole(engine.measure(last), 500, 8, 5)


@pytest.mark.parametrize("ip", [4, 6])
@pytest.mark.parametrize("tags", [ONE, TWO], ids=["802.1Q", "802.1ad"])
def test_segments_behind_tags_are_answered_behind_tags(
    tmp_path: Path, ip: IpVersion, tags: list[VlanTag]
) -> None:
    with running_engine(tmp_path) as engine:
        engine.open_ports(tagged(ring_ports(), tags, tags))
        engine.set_neighbours(crossed_neighbours())
        plain = connections(ip, until="closed", object_bytes=3000)
        ways = [
            way.model_copy(update={"vlan": tags, "received_vlan": tags})
            for way in plain.directions
        ]
        trial = plain.model_copy(update={"directions": ways})
        assert_whole(engine.measure(trial), 500, STEPS["closed"], pieces=3)


def test_a_plain_trial_after_it_is_as_ever(tmp_path: Path) -> None:
    with running_engine(tmp_path) as engine:
        open_rings(engine)
        assert_whole(engine.measure(connections()), 500, STEPS["answered"])
        result = engine.measure(Trial(directions=BOTH).request(2))
    assert result.tcp is None
    assert codes(result) == set()
    assert MIN_SIZE[4] == 64


@contextlib.contextmanager
def wire(
    directory: Path, **behaviour: Sequence[Mapping[str, object]]
) -> Iterator[Engine]:
    """An engine and the known-answer device, which does that to all packets."""
    rules = {
        way: {"rules": [{"match": "other", **rule} for rule in rules]}
        for way, rules in behaviour.items()
    }
    with (
        running_engine(directory) as engine,
        tempfile.TemporaryDirectory(prefix="dutperf") as short,
        ref_dut(Path(short), rules) as device,
    ):
        engine.open_ports(device.ports())
        yield engine


def lost(result: TrialResult) -> dict[str, int]:
    return {s.name: s.sent - s.received for s in of(result).segments}


def assert_chain(result: TrialResult) -> None:
    """Each segment that came was answered, and no other was."""
    syn, *answers = of(result).segments
    by_name = {s.name: s for s in (syn, *answers)}
    answered: dict[SegmentName, tuple[SegmentName, ...]] = {
        "syn": ("syn_ack",),
        "syn_ack": ("ack", "request"),
        "request": ("response",),
        "response": ("fin",),
        "fin": ("fin_ack",),
        "fin_ack": ("last_ack",),
    }
    for name, those in answered.items():
        for answer in those:
            assert by_name[answer].sent == by_name[name].received, (name, answer)


@pytest.mark.parametrize(("way", "segments"), [("forward", 5), ("reverse", 3)])
def test_what_a_device_drops_is_lost_of_the_step_that_it_was(
    tmp_path: Path, way: str, segments: int
) -> None:
    with wire(tmp_path, **{way: [{"every": 100, "do": "drop"}]}) as engine:
        result = engine.measure(to_nobody(connections(until="closed")))
    sent = {s.name: s.sent for s in of(result).segments}
    forward = ("syn", "ack", "request", "fin", "last_ack")
    there = [n for n in sent if (n in forward) == (way == "forward")]
    assert len(there) == segments
    # The device counts on where a trial that a stall spoilt was repeated.
    rounds = sum(sent[n] for n in there) // 100
    assert sum(lost(result)[n] for n in there) in (rounds, rounds + 1)
    assert sum(lost(result).values()) == sum(lost(result)[n] for n in there)
    assert_chain(result)
    assert result.verdict.kind == "fail"
    assert codes(result) <= {"segments_lost", "frames_lost"}


@pytest.mark.parametrize("way", ["forward", "reverse"])
def test_what_comes_twice_is_counted_and_answered_once(
    tmp_path: Path, way: str
) -> None:
    with wire(tmp_path, **{way: [{"every": 50, "do": "duplicate"}]}) as engine:
        result = engine.measure(to_nobody(connections(until="closed")))
    assert set(lost(result).values()) == {0}
    assert_chain(result)
    each = of(result).segments
    assert {s.sent for s in each} == {500}
    ways = {"forward": 5, "reverse": 3}
    assert sum(s.duplicate for s in each) == ways[way] * 500 // 50


def test_how_long_a_connection_takes_to_open_is_both_ways_together(
    tmp_path: Path,
) -> None:
    delay_ns = 3_000_000
    rule = [{"do": {"delay_ns": delay_ns}}]
    with wire(tmp_path, forward=rule, reverse=rule) as engine:
        result = engine.measure(to_nobody(connections(until="closed", ms=100)))
    assert_whole(result, 1000, STEPS["closed"])
    opening = of(result).first_answer_ns
    assert opening.min is not None
    # Of a thousand one is not held up by what else the CPUs do.
    assert 2 * delay_ns - 64 <= opening.min < 3 * delay_ns


RTO_MS = 50


def again(times: int = 5, rto_ms: int = RTO_MS, **tcp: object) -> TrialRequest:
    """Connections that send again; the trial waits for the last of it."""
    request = connections(retransmit=times, rto_ns=rto_ms * MS, **tcp)  # type: ignore[arg-type]
    assert request.tcp
    wait_ns = request.residual_wait_ns + request.tcp.retransmits_ns
    return request.model_copy(update={"residual_wait_ns": wait_ns})


def retransmitted(result: TrialResult) -> dict[str, int]:
    return {s.name: s.retransmitted for s in of(result).segments}


@pytest.mark.parametrize("object_bytes", [64, 3000])
def test_what_is_lost_is_sent_again_until_it_comes(
    tmp_path: Path, object_bytes: int
) -> None:
    rules = [{"every": 40, "do": "drop"}]
    with wire(tmp_path, forward=rules, reverse=rules) as engine:
        trial = again(until="closed", object_bytes=object_bytes)
        result = engine.measure(to_nobody(trial))
    assert result.verdict.kind == "pass", result.verdict
    assert set(lost(result).values()) == {0}
    assert all(retransmitted(result).values())
    for each in of(result).segments:
        assert each.duplicate <= each.retransmitted
    (stream,) = result.directions[0].streams
    assert (stream.received, stream.duplicate) == (500, 0)


@pytest.mark.parametrize(
    ("begin", "until", "never"),
    [("syn", "half_open", "syn_ack"), ("request", "answered", "response")],
)
def test_what_never_comes_is_sent_again_as_often_as_was_asked_for(
    tmp_path: Path, begin: ConnectionBegin, until: ConnectionEnd, never: str
) -> None:
    with wire(tmp_path, reverse=[{"do": "drop"}]) as engine:
        opened_by = None if begin == "syn" else 9
        trial = again(3, begin=begin, until=until, opened_by=opened_by)
        result = engine.measure(to_nobody(trial))
    assert result.verdict.kind == "fail"
    told = retransmitted(result)
    assert told == dict.fromkeys(told, 0) | {begin: 1500, never: 1500}
    assert lost(result)[never] == 500


def test_who_had_to_send_again_has_waited(tmp_path: Path) -> None:
    with wire(tmp_path, forward=[{"every": 40, "do": "drop"}]) as engine:
        result = engine.measure(to_nobody(again(until="half_open")))
    assert result.verdict.kind == "pass", result.verdict
    # Time stands in units of 64 ns, from when a SYN was due.
    late = [n for low, _, n in of(result).first_answer_ns.buckets if low > RTO_MS * MS]
    first = retransmitted(result)["syn"]
    assert 500 // 40 - 1 <= sum(late) <= first


def test_what_is_only_late_is_neither_lost_nor_there_twice(tmp_path: Path) -> None:
    with wire(tmp_path, forward=[{"do": {"delay_ns": 30 * MS}}]) as engine:
        result = engine.measure(to_nobody(again(2, 8, until="closed")))
    assert result.verdict.kind == "pass", result.verdict
    assert retransmitted(result)["syn"] == 1000
    assert of(result).segments[0].duplicate == 1000
    assert of(result).segments[1].duplicate == 1000


@pytest.mark.parametrize(
    ("object_bytes", "pieces"), [(0, 1), (1384, 1), (1500, 2), (65_000, 45)]
)
def test_an_object_of_any_size(tmp_path: Path, object_bytes: int, pieces: int) -> None:
    with wire(tmp_path) as engine:
        ends: tuple[ConnectionEnd, ...] = ("answered", "closed")
        for trial_id, until in enumerate(ends, start=1):
            request = connections(
                fps=1000, trial_id=trial_id, until=until, object_bytes=object_bytes
            )
            result = engine.measure(to_nobody(request))
            assert_whole(result, 50, STEPS[until], pieces=pieces)


def test_a_response_that_lacks_a_segment_is_not_answered(tmp_path: Path) -> None:
    rule = {"probability": 0.02, "do": "drop"}
    with wire(tmp_path, reverse=[rule]) as engine:
        opened = connections(fps=1000, ms=200, until="closed", object_bytes=11_000)
        result = engine.measure(to_nobody(opened))
    sent = {s.name: s.sent for s in of(result).segments}
    came = {s.name: s.received for s in of(result).segments}
    assert sent["response"] == 8 * came["request"]
    missing = sent["response"] - came["response"]
    assert missing > 0
    assert came["request"] - missing <= sent["fin"] <= came["response"] // 8
    assert of(result).initiator.wrong == 0
    assert result.verdict.kind == "fail"


def test_a_single_connection(tmp_path: Path) -> None:
    with wire(tmp_path) as engine:
        request = connections(until="closed", fps=1000, ms=1)
        assert_whole(engine.measure(to_nobody(request)), 1, STEPS["closed"])


SYN_PROXY = """
table ip proxy {
  chain untracked {
    type filter hook prerouting priority raw;
    tcp flags & (fin|syn|rst|ack) == syn notrack
  }
  chain forwarded {
    type filter hook forward priority filter;
    ct state invalid,untracked synproxy mss 1460 wscale 7 timestamp sack-perm
    ct state invalid drop
  }
}
"""


@pytest.fixture
def syn_proxy(tmp_path: Path) -> Iterator[None]:
    """The kernel answers each SYN by a cookie, and says at first that it has no room.

    Without checksum offload: a veth pair would leave the checksums of the kernel's own
    segments to a NIC that is not there.
    """
    rules = tmp_path / "proxy.nft"
    rules.write_text(SYN_PROXY)
    try:
        assert dutperf("lab", "up", "linux-router").returncode == 0
        inside("dut", "sysctl", "-qw", "net.netfilter.nf_conntrack_tcp_loose=0")
        for interface in ("left", "right"):
            inside("dut", "ethtool", "-K", interface, "tx", "off")
        inside("dut", "nft", "-f", str(rules))
        yield
    finally:
        lab.down(all_=True)


@pytest.mark.lab
@pytest.mark.usefixtures("syn_proxy")
def test_a_proxy_of_syns_is_told(tmp_path: Path) -> None:
    where = ("--lab", "linux-router", "--ip", "4", *SHORT)
    run = tmp_path / "run"
    done = dutperf(
        *("tcp-connection-rate", *where, "--max-rate", "1000", "--output", str(run))
    )
    assert done.returncode == 0, done.stderr
    (cell,) = load_results(run).cells
    assert cell.median == 1000
    (told,) = (each for each in cell.findings if each.kind == "proxied")
    assert told.numbers["proxied"] == told.numbers["opened"] > 0
    for record in load_journal(run).records:
        if record.result.verdict.kind == "pass":
            assert_chain(record.result)
    # What it opened nobody else can go on with.
    held = tmp_path / "held"
    numbers = ("--first", "100", "--connections", "200", "--max-rate", "1000")
    dutperf(
        *("tcp-capacity", *where[:4], *numbers, "--settle-wait", "0"),
        *("--restabilise-wait", "0", "--output", str(held)),
    )
    (cell,) = load_results(held).cells
    assert (cell.verdict, cell.median) == ("invalid", None)
    assert [reason.code for reason in cell.reasons] == ["renumbered"]
    assert "SYN proxy" in cell.reasons[0].message


GATEWAYS = {
    "nft-nat44": ("--ip", "4"),
    "nft-nat66": ("--ip", "6"),
    "tayga-nat64": (),
    "linux-router": (),
}


@pytest.mark.lab
@pytest.mark.parametrize("name", GATEWAYS)
def test_a_gateway_has_each_connection_in_its_table(tmp_path: Path, name: str) -> None:
    """The kernel counts by itself: what came to the responder is what it tracks."""
    done = dutperf(
        *("tcp-connection-rate", "--lab", name, *GATEWAYS[name]),
        *("--max-rate", "2000", "--output", str(tmp_path / "run"), *SHORT),
    )
    assert done.returncode == 0, done.stderr
    cells = load_results(tmp_path / "run").cells
    assert {(each.median, each.unit) for each in cells} == {(2000, "connections/s")}
    tracked = 0
    for record in load_journal(tmp_path / "run").records:
        if record.role == "probe":  # its frames are for nobody
            continue
        connections = of(record.result).segments[0].received
        asked = ["conntrack", "-C"]
        told = [each.output for each in record.hooks if each.command[-2:] == asked]
        tracked += len(told)
        assert [int(text) for text in told] == [connections] * len(told)
    assert tracked or not name.startswith("nft")
    assert dutperf("verify", str(tmp_path / "run")).returncode == 0
