"""Trials by several ports on each side: requests, ports, neighbours, a whole run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import several_ports
from planning import FakeOpener, Run, campaign, cell, spec

from dutperf.config import Testbed
from dutperf.config.paths import path_flows
from dutperf.errors import InputError, SetupError
from dutperf.model.traffic import PortPattern
from dutperf.procedures.max_rate import max_rate
from dutperf.procedures.tester_limit import NOBODY
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.stream_messages import StreamRequest
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.report import write_report
from dutperf.results import ResultsFile, load_environment, load_results
from dutperf.run.engine_session import (
    check_interfaces,
    neighbours,
    open_ports,
    port_names,
    resolve_neighbours,
)
from dutperf.run.preview import preview_frames, recorded_frames, unopened
from dutperf.run.trial_request import trial_request
from dutperf.simulation.fake_engine import FakeEngine, perfect, step
from oracle import compared_run

TWO = several_ports.testbed(2)
THREE = several_ports.testbed(3)


def request(testbed: Testbed = TWO, **keys: object) -> TrialRequest:
    return trial_request(testbed, cell(testbed, **keys), 1000, 5)


def paths(stream: StreamRequest) -> list[tuple[int, int, str, str, str]]:
    first = (0, 0, stream.src_ip, stream.dst_ip, stream.next_hop)
    more = [
        (p.sent_by, p.received_by, p.src_ip, p.dst_ip, p.next_hop)
        for p in stream.more_paths
    ]
    return [first, *more]


def test_frames_go_from_each_port_to_all_of_the_other_side_in_turn() -> None:
    forward, reverse = (d.streams[0] for d in request().directions)
    assert paths(forward) == [
        (0, 0, "198.18.0.2", "198.19.0.2", "198.18.0.1"),
        (1, 0, "198.18.1.2", "198.19.0.2", "198.18.1.1"),
        (0, 1, "198.18.0.2", "198.19.1.2", "198.18.0.1"),
        (1, 1, "198.18.1.2", "198.19.1.2", "198.18.1.1"),
    ]
    assert paths(reverse)[1] == (1, 0, "198.19.1.2", "198.18.0.2", "198.19.1.1")


def sent_to(streams: dict[str, list[str]], frames: int) -> list[tuple[str, str]]:
    """The slow twin: inputs take their turns, each follows its own stream."""
    found: list[tuple[str, str]] = []
    positions = dict.fromkeys(streams, 0)
    while len(found) < frames:
        for source, stream in streams.items():
            found.append((source, stream[positions[source] % len(stream)]))
            positions[source] += 1
    return found[:frames]


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_the_sequence_is_that_of_the_rfcs_six_ports(direction: str) -> None:
    """RFC 2544 16: inputs A, B, C; outputs X, Y, Z; the same sequence from each."""
    inputs, outputs = ("198.18", "198.19")[:: 1 if direction == "forward" else -1]
    streams = {
        f"{inputs}.{number}.2": [f"{outputs}.{out}.2" for out in range(3)]
        for number in range(3)
    }
    found = paths(request(THREE, direction=[direction]).directions[0].streams[0])
    of_frames = [found[k % len(found)] for k in range(30)]
    assert [(src, dst) for _, _, src, dst, _ in of_frames] == sent_to(streams, 30)


def test_pairs_send_to_the_port_of_their_own_number() -> None:
    forward = request(THREE, traffic={"port_pattern": "pairs"}).directions[0]
    assert [(s, r) for s, r, *_ in paths(forward.streams[0])] == [
        (0, 0),
        (1, 1),
        (2, 2),
    ]


def test_one_pair_has_no_more_paths_whatever_the_pattern() -> None:
    one = several_ports.testbed(1)
    plain, pairs = (
        request(one, traffic={"port_pattern": pattern}) for pattern in (None, "pairs")
    )
    assert plain == pairs
    assert "more_paths" not in plain.model_dump_json()


def test_hosts_vary_alike_on_all_paths() -> None:
    forward = request(traffic={"addresses": 50}).directions[0].streams[0]
    assert [(v.field, v.offset, v.width, v.min, v.max) for v in forward.vary[:2]] == [
        ("src_ip", 24, 8, 2, 51),
        ("dst_ip", 24, 8, 2, 51),
    ]
    assert len(forward.more_paths) == 3


def test_each_port_has_a_random_mac_address_of_its_own() -> None:
    forward, reverse = (
        d.streams[0] for d in request(traffic={"mac": "random"}).directions
    )
    macs = [s.src_mac for s in (forward, reverse)]
    macs += [p.src_mac for s in (forward, reverse) for p in s.more_paths[:1]]
    assert macs == [f"00:00:0{n}:00:00:00" for n in (1, 2, 3, 4)]


def test_a_given_mac_address_is_that_of_the_ports_own_next_hop() -> None:
    data = several_ports.testbed_data(2)
    data["left"]["more_ports"][0]["next_hop_mac"] = "02:00:00:00:00:77"
    testbed = Testbed.model_validate(data)
    forward = request(testbed).directions[0].streams[0]
    assert forward.dst_mac is None
    assert [p.dst_mac for p in forward.more_paths] == [
        "02:00:00:00:00:77",
        None,
        "02:00:00:00:00:77",
    ]
    asked = neighbours(testbed, [cell(testbed)]).ports
    assert [port.resolve for port in asked] == [
        ["198.18.0.1"],
        [],
        ["198.19.0.1"],
        ["198.19.1.1"],
    ]


def test_hops_that_differ_from_path_to_path_are_not_looked_at() -> None:
    assert request().directions[0].streams[0].received_ttl == 9
    data = several_ports.testbed_data(2)
    data["left"]["more_ports"][0]["ipv4"]["gateway"] = "198.19.1.2"
    data["right"]["more_ports"][0]["ipv4"]["gateway"] = "198.18.1.2"
    crossed = Testbed.model_validate(data)
    assert request(crossed).directions[0].streams[0].received_ttl is None


def test_all_ports_are_opened_and_answer_for_their_addresses() -> None:
    engine = FakeEngine(perfect())
    ports = open_ports(engine, TWO, lambda _text: None).ports
    assert [(p.label, p.device) for p in ports] == [
        ("left", "left"),
        ("left 2", "left2"),
        ("right", "right"),
        ("right 2", "right2"),
    ]
    asked = neighbours(TWO, [cell(TWO, traffic={"addresses": 9})]).ports
    assert [(p.port, p.number) for p in asked] == [
        ("left", 0),
        ("left", 1),
        ("right", 0),
        ("right", 1),
    ]
    assert [(r.first, r.count) for r in asked[3].own if ":" not in r.first] == [
        ("198.19.1.2", 1),
        ("198.19.1.2", 9),
    ]


def test_ports_without_a_mac_address_get_different_ones() -> None:
    data = several_ports.testbed_data(4)
    for side in ("left", "right"):
        for port in (data[side], *data[side]["more_ports"]):
            port["port"] = {"memif": f"/run/{port['port']['interface']}.sock"}
    ports = open_ports(FakeEngine(perfect()), Testbed.model_validate(data), print).ports
    assert [port.mac[-2:] for port in ports] == [
        *("01", "03", "05", "07"),
        *("02", "04", "06", "08"),
    ]


def test_a_next_hop_that_is_silent_is_named_with_its_port() -> None:
    engine = FakeEngine(perfect(), silent={"198.18.1.1"})
    with pytest.raises(SetupError) as caught:
        resolve_neighbours(engine, TWO, [cell(TWO)], lambda _text: None)
    assert caught.value.message.startswith("left 2: the next hop 198.18.1.1 does not")
    assert "on left2" in caught.value.message
    assert "left.more_ports[0].ipv4.address" in caught.value.hint


def test_all_interfaces_have_to_be_there_and_are_owned(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="interface right2 does not exist"):
        check_interfaces(TWO, tmp_path, lambda _where, name: name != "right2")
    assert len(port_names(TWO)) == 4


def test_a_direction_may_have_what_all_ports_of_a_side_carry() -> None:
    def most(pairs: int) -> int:
        testbed = several_ports.testbed(pairs)
        ports = open_ports(FakeEngine(perfect()), testbed, lambda _text: None).ports
        return max_rate(cell(testbed, max_rate_fps=None), ports).rate_fps

    assert most(1) == 14_880_952
    assert [most(pairs) for pairs in (2, 3, 4)] == [n * most(1) for n in (2, 3, 4)]


def measured(path: Path, **keys: object) -> ResultsFile:
    """A run of one throughput on a device that forwards 300,000 frames a second."""
    return Run(path, FakeEngine(step(300_000)), testbed=TWO)(campaign(spec(**keys)))


@pytest.mark.parametrize("pattern", ["mesh", "pairs"])
def test_a_run_tells_of_all_ports(tmp_path: Path, pattern: PortPattern) -> None:
    path = tmp_path / "run"
    (result,) = measured(path, traffic={"port_pattern": pattern}).cells
    assert result.median is not None
    assert 298_000 < result.median <= 300_000
    assert (result.parameters["port_pairs"], result.parameters["port_pattern"]) == (
        2,
        pattern,
    )
    assert result.media is not None
    assert (result.media.ports, result.media.rate_fps) == (2, 2 * 14_880_952)
    environment = load_environment(path)
    assert environment is not None
    assert [p.label for p in environment.ports] == [
        "left",
        "left 2",
        "right",
        "right 2",
    ]
    assert load_results(path).cells == [result]
    page = write_report(path).read_text()
    assert "Port right 2" in page
    assert "29,761,904\xa0fps per direction (2 ports of 10,000\xa0Mbit/s)" in page
    figures = compared_run(path)
    assert figures.derived > 10
    assert figures.differ == []


def test_a_port_counts_the_frames_of_its_own_paths() -> None:
    engine = FakeEngine(perfect())
    open_ports(engine, THREE, lambda _text: None)
    trial = trial_request(THREE, cell(THREE, direction=["forward"]), 1000, 5)
    result = engine.measure(trial)
    sent = [port.after.tx_frames for port in result.ports]
    received = [port.after.rx_frames for port in result.ports]
    of_paths = path_flows(THREE, cell(THREE, direction=["forward"]), "forward")
    by_port = [0] * 6
    for frame in range(10_000):
        path = of_paths[frame % len(of_paths)]
        by_port[path.sent_by] += 1
        by_port[3 + path.received_by] += 1
    assert sent == [*by_port[:3], 0, 0, 0]
    assert received == [0, 0, 0, *by_port[3:]]


def test_frames_that_are_not_sent_are_shown_with_all_next_hops(tmp_path: Path) -> None:
    testbed, made_up = unopened(TWO)
    assert [text.partition(", ")[2] for text in made_up[1:]] == [
        "02:00:00:00:01:01",
        "02:00:00:00:01:03",
        "02:00:00:00:01:02",
        "02:00:00:00:01:04",
    ]
    engine = FakeEngine(perfect())
    preview_frames(
        campaign(spec()),
        testbed,
        FakeOpener(engine),
        rate_fps=1000,
        count=8,
        path=tmp_path / "x.pcap",
        notify=lambda _text: None,
    )
    stream = engine.previews[0].trial.directions[0].streams[0]
    assert [path.dst_mac for path in stream.more_paths] == [
        "02:00:00:00:01:03",
        "02:00:00:00:01:01",
        "02:00:00:00:01:03",
    ]


class WritingEngine(FakeEngine):
    """Writes a file for each preview, as the real one does."""

    def preview(self, params: Any) -> Any:  # noqa: ANN401
        Path(params.path).write_bytes(b"pcap")
        return super().preview(params)


def test_recorded_frames_have_the_addresses_of_their_ports(tmp_path: Path) -> None:
    results = measured(tmp_path / "run")
    environment = load_environment(tmp_path / "run")
    assert environment is not None
    numbered = [
        port.model_copy(update={"mac": f"02:00:00:00:00:{n:02x}"})
        for n, port in enumerate(environment.ports)
    ]
    engine = WritingEngine(perfect())

    @contextlib.contextmanager
    def start(_log: Path) -> Iterator[FakeEngine]:
        yield engine

    own = environment.model_copy(update={"ports": numbered})
    recorded_frames(results.trials, [own], start)
    stream = engine.previews[0].trial.directions[0].streams[0]
    assert stream.src_mac == "02:00:00:00:00:00"
    assert [path.src_mac for path in stream.more_paths] == [
        "02:00:00:00:00:01",
        "02:00:00:00:00:00",
        "02:00:00:00:00:01",
    ]
    assert len(engine.port_status().ports) == 4


def test_a_set_maximum_of_a_testbed_is_that_of_a_direction() -> None:
    data = several_ports.testbed_data(2) | {"max_rate_fps": 1000}
    testbed = Testbed.model_validate(data)
    with pytest.raises(InputError, match="1500 is more than testbed several allows"):
        cell(testbed, max_rate_fps=1500)


class CrossingEngine(FakeEngine):
    """Behind it a device that sends what is for right to right 2 as well."""

    def measure(self, trial: TrialRequest, *args: Any) -> TrialResult:  # noqa: ANN401
        result = super().measure(trial, *args)
        *others, last = result.ports
        crossed = last.model_copy(update={"misdirected": 1500})
        return result.model_copy(update={"ports": [*others, crossed]})


@pytest.mark.parametrize("pairs", [1, 2])
def test_frames_that_come_in_by_a_wrong_port_are_told(
    tmp_path: Path, pairs: int
) -> None:
    testbed = several_ports.testbed(pairs)
    run = Run(tmp_path / "run", CrossingEngine(perfect()), testbed=testbed)
    (result,) = run(campaign(spec(max_rate_fps=1000))).cells
    told = [f.message for f in result.findings if f.kind == "misdirected"]
    each = "in 2 of 2 trials frames came that are for other ports or hosts, and count"
    place = "right 2" if pairs > 1 else "right"
    assert told == [f"{each} as lost: 3,000 by {place}"]


def test_what_virtual_ports_can_offer_is_probed_on_all_paths(tmp_path: Path) -> None:
    data = several_ports.testbed_data(2)
    for side in ("left", "right"):
        for port in (data[side], *data[side]["more_ports"]):
            port["port"] = {"memif": f"/run/{port['port']['interface']}.sock"}
    engine = FakeEngine(perfect())
    run = Run(tmp_path / "run", engine, testbed=Testbed.model_validate(data))
    records = run(campaign(spec(max_rate_fps=1000))).trials
    probed = [r.request for r in records if r.role == "probe"]
    streams = [s for trial in probed for d in trial.directions for s in d.streams]
    more = [path for stream in streams for path in stream.more_paths]
    assert {stream.dst_mac for stream in streams} == {NOBODY}
    assert {path.dst_mac for path in more} == {NOBODY}
    assert {len(stream.more_paths) for stream in streams} == {3}
