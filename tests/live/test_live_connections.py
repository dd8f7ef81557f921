"""Tables of real gateways from outside: capacity, survivors, how fast they empty.

And procedures on open connections, while the device keeps them and while it does not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from livetools import dutperf, inside, needs_engine

from dutperf import lab
from dutperf.lab.netns import DUT
from dutperf.results import CellResult, load_journal, load_results

pytestmark = [*needs_engine, pytest.mark.lab]

ENTRIES = 500
QUICK = (
    *("--settle-wait", "0", "--restabilise-wait", "0"),
    *("--phase-timeout", "100"),
)


@contextmanager
def gateway(
    tmp_path: Path, nat: dict[str, Any], **more: dict[str, Any]
) -> Iterator[None]:
    """known-answer-nat44 with a table that is known."""
    behaviour = tmp_path / "nat.json"
    public = {"first_address": "198.19.0.1"}
    told = {"nat": {"kind": "nat44", "public": public} | nat, **more}
    behaviour.write_text(json.dumps(told))
    try:
        dutperf("lab", "up", "known-answer-nat44", "--behaviour", str(behaviour))
        yield
    finally:
        lab.down(all_=True)


def measured(
    tmp_path: Path, *command: str, quick: tuple[str, ...] = QUICK
) -> CellResult:
    output = tmp_path / "results"
    done = dutperf(*command, *quick, "--output", str(output))
    assert output.is_dir(), done.stderr
    (cell,) = load_results(output).cells
    return cell


@pytest.mark.parametrize(
    ("eviction", "policy", "oldest"),
    [
        ({"eviction": "refuse"}, "keeps_first", None),
        ({"eviction": "least_recently_used"}, "keeps_last", "one_by_one"),
        ({"eviction": "chunks", "chunk": 50}, "keeps_last", "chunks"),
        ({"eviction": "random"}, "random", None),
    ],
)
def test_the_capacity_is_exact_and_the_eviction_policy_has_its_name(
    tmp_path: Path, eviction: dict[str, Any], policy: str, oldest: str | None
) -> None:
    with gateway(tmp_path, {"table": {"entries": ENTRIES, **eviction}}):
        where = ("--lab", "known-answer-nat44")
        limits = ("--first", "480", "--connections", "1250", "--max-rate", "50000")
        found = measured(tmp_path, "table-capacity", *where, *limits, "--beta", "0.5")
    assert (found.verdict, found.median) == ("pass", ENTRIES)
    assert found.eviction is not None
    assert (found.eviction.policy, found.eviction.oldest) == (policy, oldest)


@pytest.mark.parametrize("procedure", ["tcp-capacity", "tcp-half-open"])
@pytest.mark.parametrize("eviction", ["refuse", "least_recently_used"])
def test_as_many_tcp_connections_are_held_as_the_table_has_room_for(
    tmp_path: Path, procedure: str, eviction: str
) -> None:
    """Whether it refuses a SYN or forgets an older connection for it."""
    with gateway(tmp_path, {"table": {"entries": ENTRIES, "eviction": eviction}}):
        where = ("--lab", "known-answer-nat44")
        limits = ("--first", "480", "--connections", "1250", "--max-rate", "20000")
        found = measured(tmp_path, procedure, *where, *limits, "--beta", "0.5")
    assert (found.verdict, found.median) == ("pass", ENTRIES)
    assert dutperf("verify", str(tmp_path / "results")).returncode == 0


@pytest.mark.parametrize("state", ["udp", "established", "half-open"])
def test_an_idle_connection_is_kept_as_long_as_the_device_was_told(
    tmp_path: Path, state: str
) -> None:
    table = {"table": {"entries": 10_000, "timeout_ns": 2_000_000_000}}
    with gateway(tmp_path, table):
        asked = ("--hold", "4", "--connections", "400", "--state", state)
        found = measured(
            tmp_path, "idle-timeout", "--lab", "known-answer-nat44", *asked
        )
    assert (found.verdict, found.bound) == ("pass", None)
    assert found.median is not None
    # A hundred uses a second; a frame may be in the device for some ms.
    assert 1.98 <= found.median / 1e9 <= 2.01
    assert dutperf("verify", str(tmp_path / "results")).returncode == 0


@pytest.mark.parametrize(
    ("mapping", "filtering", "met"),
    [
        ("endpoint", "address", {"REQ-1": "met", "REQ-8": "met"}),
        ("address", "endpoint", {"REQ-1": "not met", "REQ-8": "met"}),
        ("connection", "connection", {"REQ-1": "not met", "REQ-8": "not met"}),
    ],
)
def test_what_a_nat_was_told_to_do_is_what_it_is_seen_to_do(
    tmp_path: Path, mapping: str, filtering: str, met: dict[str, str]
) -> None:
    kinds = {"endpoint": "endpoint-independent", "address": "address-dependent"}
    nat = {"table": {"entries": 10_000}, "mapping": mapping, "filtering": filtering}
    with gateway(tmp_path, nat):
        asked = ("nat-behaviour", "--lab", "known-answer-nat44")
        ports = ("--initiator-ports", "10000-10007")
        found = measured(tmp_path, *asked, *ports)
    told = {b.section: b for b in found.behaviour}
    assert {section: told[section].verdict for section in met} == met
    if mapping != "endpoint":
        kind = kinds.get(mapping, "address and port-dependent")
        assert told["REQ-1"].found.startswith(f"{kind} for 32 of 32 inside ends")
    kind = kinds.get(filtering, "address and port-dependent")
    assert told["REQ-8"].found.startswith(f"{kind}; ")
    assert dutperf("verify", str(tmp_path / "results")).returncode == 0


COUNTED = """table ip counted {
  set hosts { type ipv4_addr; flags dynamic; }
  chain forward {
    type filter hook forward priority 0;
    ct state new add @hosts { ip saddr ct count over 100 } drop;
  }
}"""


def test_what_nftables_lets_a_host_have_is_found_exactly(tmp_path: Path) -> None:
    """100 sessions of each of four hosts, which open 256 each."""
    command = ("port-limit", "--lab", "nft-nat44", "--initiator-ports", "10000-10127")
    try:
        dutperf("lab", "up", "nft-nat44")
        rules = tmp_path / "rules"
        rules.write_text(COUNTED, "ascii")
        inside(DUT, "nft", "-f", str(rules))
        found = measured(tmp_path, *command)
    finally:
        lab.down(all_=True)
    assert (found.verdict, found.median, found.bound) == ("pass", 100, None)
    ports, sessions, _ = found.behaviour
    assert (ports.verdict, sessions.verdict) == ("met", "met")
    assert sessions.found.startswith("100 of 256, each of 4 hosts: the first sessions")
    assert dutperf("verify", str(tmp_path / "results")).returncode == 0


def test_the_kernels_events_name_each_of_its_mappings(tmp_path: Path) -> None:
    asked = ("nat-log", "--lab", "nft-nat44", "--tests", "1")
    found = measured(tmp_path, *asked, "--connections", "3000", "--phase1-rate", "3000")
    assert (found.verdict, found.median) == ("pass", 100)
    assert found.log
    assert (found.log.learned, found.log.other) == (3000, 0)
    assert found.log.clock_ns is not None
    # One clock: the event is not older than the frame, but for what a timestamp cuts.
    assert -(10**6) < found.log.clock_ns < 10**9
    assert dutperf("verify", str(tmp_path / "results")).returncode == 0


def test_a_router_holds_no_tcp_connections(tmp_path: Path) -> None:
    command = ("tcp-capacity", "--lab", "linux-router", "--ip", "4", "--first", "100")
    found = measured(tmp_path, *command, "--connections", "200", "--max-rate", "2000")
    assert (found.verdict, found.median) == ("invalid", None)
    assert [reason.code for reason in found.reasons] == ["not_translated"]


def test_a_plain_router_is_no_gateway(tmp_path: Path) -> None:
    """All its frames arrive: only whom the responder sees tells."""
    command = ("connection-rate", "--lab", "linux-router", "--ip", "4")
    found = measured(tmp_path, *command, "--connections", "1000", "--repeats", "1")
    assert (found.verdict, found.median) == ("invalid", None)
    assert [reason.code for reason in found.reasons] == ["not_translated"]


def test_the_tear_down_rate_is_that_of_the_device(tmp_path: Path) -> None:
    nat = {"table": {"entries": 100_000}, "removal_per_s": 30_000}
    with gateway(tmp_path, nat):
        command = ("teardown-rate", "--lab", "known-answer-nat44", "--rate", "50000")
        numbers = ("--connections", "60000", "--repeats", "2")
        found = measured(tmp_path, *command, *numbers)
    assert found.verdict == "pass"
    assert found.median == pytest.approx(30_000, rel=0.05)
    assert [each.counted_after for each in found.teardown] == [0, 0]


PHASES = (
    *("--stateful", "--connections", "1000", "--phase1-rate", "5000"),
    *("--trial-duration", "1.5", "--residual-wait", "0.2", "--resolution", "2%"),
)
SERVICE_FPS = 10_000


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_throughput_through_the_table_is_the_service_rate(
    tmp_path: Path, transport: str
) -> None:
    served = {"service": {"rate_fps": SERVICE_FPS, "queue_frames": 200}}
    table = {"table": {"entries": 100_000}}
    with gateway(tmp_path, table, forward=served, reverse=served):
        command = ("throughput", "--lab", "known-answer-nat44", *PHASES)
        limits = ("--max-rate", "12000", "--transport", transport)
        found = measured(tmp_path, *command, *limits)
    assert found.verdict == "pass"
    assert found.median == pytest.approx(SERVICE_FPS, rel=0.02)


FLOODED = (
    *("--connections", "1000", "--phase1-rate", "5000", "--max-rate", "2000"),
    *("--trial-duration", "1", "--residual-wait", "0.3", "--load", "100"),
)


@pytest.mark.parametrize("transport", ["udp", "tcp"])
@pytest.mark.parametrize(("eviction", "suffers"), [("refuse", False), ("random", True)])
def test_a_flood_costs_what_the_device_makes_room_by(
    tmp_path: Path, transport: str, eviction: str, suffers: bool
) -> None:
    """The table is full after 500 of 1,000; then another has to go, or none has."""
    table = {"entries": 1500, "eviction": eviction}
    with gateway(tmp_path, {"table": table, "refusal": "reset"}):
        command = ("frame-loss", "--lab", "known-answer-nat44", *FLOODED)
        kind = ("--transport", transport, "--flood", "50")
        found = measured(tmp_path, *command, *kind)
    (count,) = found.beside
    assert (count.direction, count.sent) == ("forward", 1000)
    assert found.verdict == "pass"
    (point,) = found.points
    assert point.loss_percent is not None
    assert (point.loss_percent > 0) is suffers
    if not suffers:
        assert count.received == 500
    assert dutperf("verify", str(tmp_path / "results")).returncode == 0


def test_who_sends_again_finds_no_loss_where_others_do(tmp_path: Path) -> None:
    """Each hundredth segment is dropped."""
    nat = {"table": {"entries": 60_000}}
    lossy = {"rules": [{"match": "other", "every": 100, "do": "drop"}]}
    command = (
        *("tcp-connection-rate", "--lab", "known-answer-nat44", "--ip", "4"),
        *("--trial-duration", "0.5", "--max-rate", "2000", "--resolution", "20%"),
    )
    with gateway(tmp_path, nat, forward=lossy, reverse=lossy):
        patient = measured(tmp_path, *command, "--retransmit", "3", quick=QUICK[:4])
        for record in load_journal(tmp_path / "results").records:
            if record.result.verdict.kind == "pass":
                assert record.result.tcp
                again = [s.retransmitted for s in record.result.tcp.segments]
                assert sum(again) >= sum(
                    s.sent // 100 for s in record.result.tcp.segments
                )
        assert dutperf("verify", str(tmp_path / "results")).returncode == 0
        strict = measured(tmp_path / "strict", *command, quick=QUICK[:4])
    assert (patient.verdict, patient.median) == ("pass", 2000)
    assert strict.median is None or strict.median < 200
    assert "retransmit-3" in patient.id


@pytest.mark.parametrize("refusal", ["reset", "icmp"])
def test_who_is_refused_is_told_so(tmp_path: Path, refusal: str) -> None:
    nat = {"table": {"entries": 500}, "refusal": refusal}
    numbers = ("--connections", "2000", "--first", "100", "--max-rate", "2000")
    with gateway(tmp_path, nat):
        command = ("tcp-capacity", "--lab", "known-answer-nat44")
        found = measured(tmp_path, *command, *numbers)
    assert found.median == 500
    failed = [
        record.result
        for record in load_journal(tmp_path / "results").records
        if record.result.tcp and record.result.verdict.kind == "fail"
    ]
    refused = 0
    for result in failed:
        assert result.tcp
        syn = result.tcp.segments[0]
        told = [each for port in result.ports for each in port.icmp]
        by_icmp = sum(each.frames for each in told)
        resets = result.tcp.initiator.resets
        assert {(each.type, each.code) for each in told} <= {(3, 13)}
        assert syn.sent - syn.received == (resets if refusal == "reset" else by_icmp)
        assert not (by_icmp if refusal == "reset" else resets)
        refused += syn.sent - syn.received
    assert refused


@pytest.mark.parametrize(
    ("procedure", "segments"), [("tcp-request-rate", 1), ("tcp-teardown-rate", 2)]
)
def test_the_rate_of_use_is_that_at_which_segments_are_served(
    tmp_path: Path, procedure: str, segments: int
) -> None:
    """A GET, or a FIN and the last ACK, goes forward; and what opens it, slowly."""
    served = {"service": {"rate_fps": SERVICE_FPS, "queue_frames": 20, "others": True}}
    with gateway(tmp_path, {"table": {"entries": 100_000}}, forward=served):
        opened = ("--connections", "2000", "--phase1-rate", "4000")
        command = (procedure, "--lab", "known-answer-nat44", *opened)
        limits = ("--max-rate", "12000", "--resolution", "2%")
        found = measured(tmp_path, *command, *limits)
    assert found.verdict == "pass"
    assert found.median == pytest.approx(SERVICE_FPS / segments, rel=0.04)


QUEUE_FRAMES = 200
BURST_FPS = 1_000_000
LOAD_FPS = 900
OPENED = ("--stateful", "--connections", "300", "--phase1-rate", "500")


@pytest.mark.parametrize("options", [OPENED, ()], ids=["connections", "none"])
def test_a_buffer_takes_bursts_of_its_length_with_connections_as_without(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    """One frame is in service, and none leaves in the fifth of a ms of a burst."""
    served = {"service": {"rate_fps": 1000, "queue_frames": QUEUE_FRAMES}}
    load = ("--load", f"{100 * LOAD_FPS / BURST_FPS:g}", "--max-rate", f"{BURST_FPS}")
    times = ("--trial-duration", "1", "--residual-wait", "0.5", *QUICK[:4])
    where = ("--lab", "known-answer-nat44", "--ip", "4", "--direction", "forward")
    lost = []
    with gateway(
        tmp_path, {"table": {"entries": 100_000}}, forward=served, reverse=served
    ):
        for frames in (QUEUE_FRAMES + 1, QUEUE_FRAMES + 2):
            run = tmp_path / f"{frames}"
            asked = ("frame-loss", *where, *load, *times, "--bursts", f"{frames}")
            dutperf(*asked, *options, "--output", str(run))
            results = load_results(run)
            (cell,) = results.cells
            assert cell.parameters["burst_rate_fps"] == BURST_FPS
            lost.append(cell.points[0].loss_percent)
            for trial in results.trials:
                (sent,) = trial.request.directions
                assert bool(sent.steps) == (trial.role == "trial")
    archive = tmp_path / "evidence.tar.gz"
    dutperf("evidence", str(run), "--output", str(archive))
    assert dutperf("verify", str(archive)).returncode == 0
    assert lost == [0, pytest.approx(100 / (QUEUE_FRAMES + 2))]


def test_the_load_on_connections_may_go_up_and_down(tmp_path: Path) -> None:
    """At 20,000 fps half of the frames are too many, in the other half none is."""
    steps = [{"percent": p, "duration_s": 0.5} for p in (100, 25)]
    procedure = {
        "procedure": "frame-loss",
        "load_percent": [100],
        "max_rate_fps": 2 * SERVICE_FPS,
        "trial_duration_s": 2,
        "residual_wait_s": 0.3,
        "settle_wait_s": 0,
        "traffic": {"load_shape": {"steps": steps}},
        "stateful": {"connections": 2000, "phase1_rate": 5000, "timeout_ms": 100},
    }
    campaign = tmp_path / "campaign.yaml"
    keys = {"schema_version": 1, "name": "shape", "procedures": [procedure]}
    campaign.write_text(json.dumps(keys | {"lab": "known-answer-nat44"}))
    served = {"service": {"rate_fps": SERVICE_FPS, "queue_frames": QUEUE_FRAMES}}
    run = tmp_path / "run"
    with gateway(
        tmp_path, {"table": {"entries": 100_000}}, forward=served, reverse=served
    ):
        dutperf("run", str(campaign), "--output", str(run))
    results = load_results(run)
    (cell,) = results.cells
    # Of 10,000 + 2,500 frames in a second 5,000 and the queue's 200 come through first.
    assert cell.points[0].loss_percent == pytest.approx(100 * 4800 / 12_500, abs=1)
    opened = [t for t in results.trials if t.role == "phase1"]
    assert {t.result.verdict.kind for t in opened} == {"pass"}
    assert cell.conformance is not None
    assert "a load that changes" in cell.conformance.statement
    assert dutperf("verify", str(run)).returncode == 0


ADDRESSES = (
    *("--stateful", "--connections", "4000", "--addresses", "4"),
    *("--initiator-ports", "10000-10249", "--phase1-rate", "5000"),
    *("--trial-duration", "0.5", "--residual-wait", "0.3", "--resolution", "50%"),
    *("--settle-wait", "0", "--phase-timeout", "100", "--max-rate", "4000"),
)


@pytest.mark.parametrize(
    ("device", "ip", "transport"),
    [
        ("known-answer-nat44", "4", "udp"),
        ("known-answer-nat64", "6-4", "udp"),
        ("known-answer-nat64", "6-4", "tcp"),
        ("nft-nat44", "4", "udp"),
        ("nft-nat44", "4", "tcp"),
        ("nft-nat66", "6", "tcp"),
        ("tayga-nat64", "6-4", "tcp"),
    ],
)
def test_each_combination_of_ports_and_addresses_is_a_connection(
    tmp_path: Path, device: str, ip: str, transport: str
) -> None:
    """16 pairs of hosts with 250 ports each."""
    output = tmp_path / "results"
    try:
        dutperf("lab", "up", device)
        command = ("throughput", "--lab", device, "--ip", ip, *ADDRESSES)
        dutperf(*command, "--transport", transport, "--output", str(output))
    finally:
        lab.down(all_=True)
    results = load_results(output)
    (cell,) = results.cells
    assert cell.verdict == "pass", cell.reasons
    assert cell.parameters["combinations"] == 4000
    assert cell.parameters["destination_ports"] == "80-80"
    opened = [t for t in results.trials if t.role == "phase1" and not t.request.tcp]
    assert opened
    for trial in opened:
        assert trial.result.table is not None
        assert trial.result.table.filled == 4000
        if device != "nft-nat44":  # which is not asked after a trial
            assert "4000\n" in [run.output for run in trial.hooks]


@pytest.mark.parametrize(
    ("direction", "transport"), [("both", "udp"), ("reverse", "udp"), ("both", "tcp")]
)
def test_connections_that_expire_in_the_kernel_are_not_taken_for_a_lack_of_speed(
    tmp_path: Path, direction: str, transport: str
) -> None:
    """At 500 fps most connections have no frame within the second."""
    output = tmp_path / "results"
    limits = ("--max-rate", "500", "--direction", direction, "--transport", transport)
    waits = ("--settle-wait", "0", "--phase-timeout", "100")
    try:
        dutperf("lab", "up", "nft-nat44")
        dutperf("lab", "limit", "--udp-timeout", "1")
        for key in ("loose=0", "timeout_established=1"):
            inside("dut", "sysctl", "-w", f"net.netfilter.nf_conntrack_tcp_{key}")
        command = ("throughput", "--lab", "nft-nat44", *PHASES, *limits, *waits)
        assert dutperf(*command, "--output", str(output)).returncode == 1
    finally:
        lab.down(all_=True)
    (cell,) = load_results(output).cells
    assert cell.verdict == "invalid"
    assert [reason.code for reason in cell.reasons] == ["connections_expired"]


@pytest.mark.parametrize(
    ("overload", "options"), [("drop", ()), ("forget", ("--alpha", "0.8"))]
)
def test_the_connection_rate_is_that_of_the_device(
    tmp_path: Path, overload: str, options: tuple[str, ...]
) -> None:
    """One that forgets what is too much forwards it all: only validation tells."""
    # Its queue of 15 ms bridges a moment in which others have its own CPU.
    setup = {"rate_per_s": 20_000, "queue_frames": 300, "overload": overload}
    table = {"entries": 100_000}
    with gateway(tmp_path, {"table": table, "setup": setup}):
        command = ("connection-rate", "--lab", "known-answer-nat44", *options)
        numbers = ("--connections", "20000", "--resolution", "1%")
        found = measured(tmp_path, *command, *numbers, "--max-rate", "24000")
    assert found.verdict == "pass"
    assert found.median == pytest.approx(20_000, rel=0.02)
