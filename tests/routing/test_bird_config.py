"""What BIRD is told, and that it understands it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from planning import TESTBED, cell

from dutperf.config import Testbed
from dutperf.model.cell import Cell
from dutperf.protocol.base import RoutingDaemonProtocol, Side
from dutperf.routing.bird import Session, configuration, hosts_of, sessions_of, told_in

PROTOCOLS: list[RoutingDaemonProtocol] = ["ospf", "bgp"]
needs_bird = pytest.mark.skipif(shutil.which("bird") is None, reason="needs bird2")


def asked(protocol: str, ip: object = 4, **keys: Any) -> Cell:  # noqa: ANN401 - keys
    traffic = {"routes": protocol, **keys.pop("traffic", {})}
    return cell(ip=[ip], traffic=traffic, **keys)


def told(cells: list[Cell], number: int = 1, testbed: Testbed = TESTBED) -> str:
    return configuration(
        testbed, sessions_of(cells), told_in(testbed, cells[0]), number
    )


def routes(text: str) -> dict[str, list[str]]:
    """Session name -> its networks."""
    blocks = re.findall(r"protocol static (\w+)_routes \{(.*?)\n\}", text, re.S)
    return {name: re.findall(r"route (\S+) blackhole", body) for name, body in blocks}


@needs_bird
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("networks", [1, 256])
@pytest.mark.parametrize("ip", [4, 6])
def test_bird_understands_it(
    tmp_path: Path, ip: int, networks: int, protocol: str
) -> None:
    path = tmp_path / "bird.conf"
    path.write_text(told([asked(protocol, ip, traffic={"networks": networks})]))
    done = subprocess.run(
        ["bird", "-p", "-c", path], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_each_side_tells_the_networks_of_the_frames_that_arrive_there(
    protocol: str,
) -> None:
    found = routes(told([asked(protocol, traffic={"networks": 256})]))
    assert found == {
        f"left_{protocol}4": [f"198.18.{n}.0/24" for n in range(256)],
        f"right_{protocol}4": [f"198.19.{n}.0/24" for n in range(256)],
    }


def test_of_one_direction_only_the_receiving_side_tells() -> None:
    cells = [asked("ospf", direction=["forward"])]
    assert routes(told(cells)) == {
        "left_ospf4": [],
        "right_ospf4": ["198.19.0.0/24"],
    }


def test_networks_of_ipv6_are_64s() -> None:
    found = routes(told([asked("bgp", 6, traffic={"networks": {"right": 3}})]))
    assert found["right_bgp6"] == [f"2001:2:0:{n}::/64" for n in (1, 2, 3)]


def test_sessions_of_all_cells_are_there_from_the_beginning() -> None:
    cells = [asked("ospf"), asked("bgp", 6), cell(ip=[4])]
    sides: tuple[Side, ...] = ("left", "right")
    assert sessions_of(cells) == sorted(
        [Session(side, 4, "ospf") for side in sides]
        + [Session(side, 6, "bgp") for side in sides]
    )
    # Those that another cell needs have nothing to tell in the first.
    assert routes(told(cells)) == {
        "left_ospf4": ["198.18.0.0/24"],
        "right_ospf4": ["198.19.0.0/24"],
        "left_bgp6": [],
        "right_bgp6": [],
    }


def test_static_routes_need_nobody() -> None:
    cells = [cell(ip=[4]), cell(ip=[4], traffic={"routes": "rip"})]
    assert sessions_of(cells) == []
    assert told_in(TESTBED, cells[0]) == told_in(TESTBED, cells[1]) == {}


def test_it_speaks_as_the_testbed_says_the_device_does() -> None:
    data = TESTBED.model_dump(exclude_none=True)
    data["routing"] = {
        "prefix_length": 16,
        "ospf": {"area": 7, "hello_s": 2, "dead_s": 9},
        "bgp": {"tester_as": 64999, "device_as": 4_200_000_000, "hold_s": 12},
    }
    testbed = Testbed.model_validate(data)
    ospf, bgp = told([asked("ospf")], 5, testbed), told([asked("bgp")], 5, testbed)
    assert ospf.count("area 7 {") == 2
    assert ospf.count("hello 2; dead 9;") == 2
    assert ospf.count("ospf_tag = 5;") == 2
    assert "router id 198.19.0.2;" in ospf
    assert "local 198.18.0.2 as 64999;" in bgp
    assert "neighbor 198.19.0.1 as 4200000000;" in bgp
    assert bgp.count("hold time 12;") == 2
    hosts = hosts_of(testbed, sessions_of([asked("ospf")]))
    assert hosts["left"].addresses == ("198.18.0.2/16", "2001:2::2/64", "fe80::2/64")


def test_nothing_is_learnt_and_nothing_leaves_its_table() -> None:
    text = told([asked("ospf")]) + told([asked("bgp", 6)])
    assert text.count("import none;") == 4
    assert "kernel" not in text
    tables = re.findall(r"^ipv\d table (\w+);", text, re.M)
    assert len(set(tables)) == 4
