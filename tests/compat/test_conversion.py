"""What a converted file measures is what the command would have sent."""

from __future__ import annotations

from pathlib import Path

import pytest
from siitperf_files import (
    EXAMPLES,
    HOSTS44,
    NAT44,
    NAT64,
    RANDOM_PORTS,
    ROUTER,
    ROUTER6,
    SIIT,
    main_of,
    read,
    write,
)

from dutperf.cli import app
from dutperf.compat.command_line import Command, read_arguments
from dutperf.compat.conversion import as_campaign, as_testbed
from dutperf.compat.requests import trial_requests
from dutperf.config import Testbed, load_campaign
from dutperf.config.expansion import expand
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.model.rate_specs import ThroughputSpec
from dutperf.model.specs import LatencySpec
from dutperf.protocol.base import Side
from dutperf.protocol.stream_messages import StreamRequest
from dutperf.run.engine_session import neighbours
from dutperf.run.trial_request import trial_request

PORTS: dict[Side, dict[str, str]] = {
    "left": {"pci": "0000:03:00.0"},
    "right": {"pci": "0000:03:00.1"},
}
TRIAL = "84 1000 60 2000 1 1"
PHASE1 = " 4000 4000 1000 500 4500"
HOSTS = {
    "IP-L-var": "3",
    "IP-L-min": "2",
    "IP-L-max": "65534",
    "IP-R-var": "1",
    "IP-R-min": "3",
    "IP-R-max": "999",
}


def converted(
    folder: Path, keys: dict[str, str], line: str = TRIAL, command: Command = "tp"
) -> tuple[Testbed, Cell]:
    conf = read(folder, keys)
    arguments = read_arguments(
        command,
        line.split(),
        stateful=conf.initiator is not None,
        only_ipv4={side.version for side in conf.sides.values()} == {4},
    )
    (folder / "testbed.yaml").write_text(as_testbed(conf, PORTS))
    text = as_campaign(conf, arguments, "testbed.yaml")
    (folder / "campaign.yaml").write_text(text)
    campaign = load_campaign(folder / "campaign.yaml")
    (testbed,) = campaign.testbeds
    (cell,) = expand(campaign, testbed)
    return testbed, cell


def told(stream: StreamRequest) -> dict[str, object]:
    """What a frame of it is; the order of its varying fields says nothing."""
    data = stream.model_dump(exclude={"vary", "src_mac", "id"})
    return data | {"vary": sorted(map(str, stream.vary))}


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (ROUTER, TRIAL),
        (ROUTER, "1538 1000 60 2000 1 1"),
        (ROUTER, "84 1000 60 2000 2 1"),
        (ROUTER, "84 1000 60 2000 2 2"),
        (ROUTER, "84 1000 60 2000 4 2"),
        (ROUTER | {"Reverse": "0"}, TRIAL),
        (ROUTER6, TRIAL),
        (SIIT, "1518 1000 60 500 10 9"),
        (SIIT | {"IP-L-Vers": "4", "IP-R-Vers": "4"}, TRIAL),
        (ROUTER | RANDOM_PORTS, TRIAL),
        (ROUTER | {"Fwd-var-sport": "1", "Rev-var-dport": "2"}, TRIAL),
        (ROUTER | {"Num-L-Nets": "256", "Num-R-Nets": "16"}, TRIAL),
        (ROUTER6 | {"Num-R-Nets": "256"}, "84 1000 60 2000 2 1"),
        (ROUTER | {"Forward": "0", "Rev-var-dport": "2"}, TRIAL),
        (
            ROUTER
            | {"Reverse": "0", "Rev-var-sport": "3"}
            | {"Rev-sport-min": "9", "Rev-sport-max": "8"},
            TRIAL,
        ),
        (ROUTER | HOSTS, TRIAL),
        (ROUTER6 | HOSTS | {"IPv6-R-offset": "13"}, TRIAL),
        (ROUTER6 | HOSTS | {"IPv6-R-offset": "14"}, TRIAL),
    ],
)
def test_the_campaign_sends_what_the_command_sends(
    tmp_path: Path, keys: dict[str, str], line: str
) -> None:
    testbed, cell = converted(tmp_path, keys, line)
    conf = read(tmp_path, keys)
    arguments = read_arguments("tp", line.split(), stateful=False, only_ipv4=True)
    requests = trial_requests(conf, arguments, {}, seed=cell.seed, first_id=1)
    theirs = main_of(requests)
    ours = trial_request(testbed, cell, arguments.rate_fps, 1)
    assert (ours.duration_ns, ours.residual_wait_ns) == (
        theirs.duration_ns,
        theirs.residual_wait_ns,
    )
    assert [(d.name, d.rate_fps, d.mix) for d in ours.directions] == [
        (d.name, d.rate_fps, d.mix) for d in theirs.directions
    ]
    for mine, other in zip(ours.directions, theirs.directions, strict=True):
        assert list(map(told, mine.streams)) == list(map(told, other.streams))
    # Nobody is asked for the MAC addresses that the file has.
    assert [p.resolve for p in neighbours(testbed, [cell]).ports] == [[], []]


def test_latency_is_measured_at_the_rate_of_the_command(tmp_path: Path) -> None:
    _, cell = converted(tmp_path, ROUTER, f"{TRIAL} 10 500", "lat")
    spec = cell.spec_of(LatencySpec)
    assert (spec.given_rate_fps, spec.first_tag_s, spec.tags) == (1000, 10, 500)
    assert spec.repeats == 20


def test_a_frame_timeout_makes_a_throughput_of_it(tmp_path: Path) -> None:
    _, cell = converted(tmp_path, ROUTER, f"{TRIAL} 100", "pdv")
    assert cell.spec_of(ThroughputSpec).frame_timeout_ns == 100_000_000
    _, cell = converted(tmp_path, ROUTER, f"{TRIAL} 0", "pdv")
    assert (cell.spec.procedure, cell.spec.given_rate_fps) == ("pdv", 1000)


def test_connections_are_those_of_phase_1(tmp_path: Path) -> None:
    hosts = HOSTS44 | {"IP-R-min": "2"}  # 0 is the network's own
    for keys, combinations in ((NAT44, 4000), (NAT64, 4000), (hosts, 65533**2)):
        _, cell = converted(tmp_path, keys, TRIAL + PHASE1)
        stateful = cell.stateful
        assert stateful
        assert (stateful.connections, stateful.combinations) == (4000, combinations)
        assert (stateful.phase1_rate, stateful.phase2_after_ms) == (1000, 4500)
        assert (stateful.order, stateful.responder_order) == ("random", "random")


def test_connections_are_no_more_than_there_are(tmp_path: Path) -> None:
    keys = NAT44 | {"Enumerate-ports": "1"}
    _, cell = converted(tmp_path, keys, TRIAL + " 9000 9000 1000 500 9500")
    assert cell.stateful
    assert cell.stateful.connections == 4000
    text = (tmp_path / "campaign.yaml").read_text()
    assert "N 9000: dutperf opens each connection once" in text


def test_what_has_no_place_is_a_comment(tmp_path: Path) -> None:
    keys = SIIT | {
        "Promisc": "1",
        "MEM-Channels": "4",
        "CPU-L-Send": "5",
        "IPv4-R-Virt": "192.0.2.77",
    }
    text = as_testbed(read(tmp_path, keys), None)
    for part in (
        "write here",
        "Promisc: of no meaning",
        "MEM-Channels: of no meaning",
        "CPUs 5",
        "MAC-L-Tester 02:00:00:00:00:01",
        "IPv4-R-Virt 192.0.2.77: no frame has it",
        "IPv4-L-Real 198.18.0.2: no frame has it",
    ):
        assert part in text
    ends = ("L-Send", "R-Recv", "R-Send", "L-Recv")
    cpus = {f"CPU-{end}": str(cpu) for cpu, end in enumerate(ends)}
    assert "\ncores:\n  - 0\n  - 1\n  - 2\n  - 3\n" in as_testbed(
        read(tmp_path, SIIT | cpus), None
    )


def test_a_stateful_file_needs_its_command_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs N, M, R, T and D"):
        as_campaign(read(tmp_path, NAT44), None, "testbed.yaml")
    conf = read(tmp_path, ROUTER)
    alone = read_arguments(
        "tp", ["84", "1000", "60", "2000", "1", "0"], stateful=False, only_ipv4=False
    )
    with pytest.raises(InputError, match="background frames alone"):
        as_campaign(conf, alone, "testbed.yaml")


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_kind_of_file_becomes_a_campaign_that_would_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    keys, line = EXAMPLES[name]
    path = str(write(tmp_path, keys))
    words = ["siitperf-tp", *line.split()]
    assert app.run(["convert", path, "--output", str(tmp_path), *words]) == 0
    campaign = str(tmp_path / "campaign.yaml")
    load_campaign(Path(campaign))
    capsys.readouterr()
    assert app.run(["run", campaign, "--dry-run"]) == 0
    assert "1 test case, " in capsys.readouterr().out


def test_the_command_writes_both_files_and_overwrites_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(write(tmp_path, ROUTER))
    made = str(tmp_path / "new/folder")
    assert app.run(["convert", path, "--output", made]) == 0
    assert "dutperf run" in capsys.readouterr().out
    load_campaign(Path(made) / "campaign.yaml")
    assert app.run(["convert", path, "--output", made]) == 2
    assert "testbed.yaml is there already" in capsys.readouterr().err
    assert app.run(["convert", path, "--output", path]) == 2
    assert f"{path} is there already" in capsys.readouterr().err
    line = ["siitperf-tp", "84", "1000", "60", "2000", "2", "1"]
    assert app.run(["convert", path, "--to", "campaign", *line]) == 0
    assert "mix: 1/2" in capsys.readouterr().out
    assert app.run(["convert", path, "--to", "testbed"]) == 0
    assert "next_hop_mac: 02:00:00:00:01:01" in capsys.readouterr().out
    assert app.run(["convert", path, "bogus", "84"]) == 2
    assert "no command of siitperf" in capsys.readouterr().err


def test_a_campaign_is_not_of_phase_1_alone(tmp_path: Path) -> None:
    keys = NAT44 | {"Forward": "0", "Reverse": "0"}
    with pytest.raises(InputError, match="by its procedure connection-rate"):
        converted(tmp_path, keys, TRIAL + PHASE1)
