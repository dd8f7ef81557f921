"""Labs with names of their own: what is called after them, and what may be a name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from labstates import make_state

from dutperf import lab
from dutperf.config import Campaign
from dutperf.config.campaign import LabKeys
from dutperf.errors import InputError
from dutperf.lab import topology
from dutperf.lab.devices import device_of, open_vswitch
from dutperf.lab.netns import NAMESPACES
from dutperf.lab.state import StateFile
from dutperf.visible import lab_name

LONGEST = "a" * 16
MOST_IN_A_SOCKETS_PATH = 107
NAMELESS_FILES = "/run/dutperf/dut"


def told(device: lab.LabDevice) -> str:
    """All that others are told of it: its ports, and the commands of its hooks."""
    models = (device.left, device.right, device.hooks)
    return "\n".join(model.model_dump_json() for model in models)


@pytest.mark.parametrize("device", lab.LABS.values(), ids=lab.LABS)
def test_a_named_lab_has_nothing_of_the_nameless_one(device: lab.LabDevice) -> None:
    moved = device.at("a")
    assert moved.tester == "tester-a"
    assert moved.namespaces == tuple(f"{name}-a" for name in device.namespaces)
    assert all(
        end.startswith(("tester-a/", "dut-a/", "dut2-a/"))
        for end in topology.links(moved)
    )
    assert NAMELESS_FILES not in told(moved)
    assert not any(f'"{name}"' in told(moved) for name in NAMESPACES)


@pytest.mark.parametrize("device", lab.LABS.values(), ids=lab.LABS)
def test_all_else_of_a_named_lab_is_as_of_the_nameless_one(
    device: lab.LabDevice,
) -> None:
    assert device.at(None) is device
    back = told(device.at("a")).replace("/run/dutperf/labs/a/", "/run/dutperf/")
    for name in NAMESPACES:
        back = back.replace(f'"{name}-a"', f'"{name}"')
    assert back == told(device)


@pytest.mark.parametrize("device", lab.LABS.values(), ids=lab.LABS)
def test_the_longest_name_leaves_room_for_every_socket(device: lab.LabDevice) -> None:
    moved = device.at(LONGEST)
    paths = [
        part
        for text in told(moved).replace(",", '"').replace("=", '"').split('"')
        for part in [text.removeprefix("unix:")]
        if part.startswith("/run/dutperf")
    ]
    assert all(len(path) <= MOST_IN_A_SOCKETS_PATH for path in paths)
    deepest = StateFile(name=LONGEST).dut_directory / "vm" / "right.sock"
    assert len(str(deepest)) <= MOST_IN_A_SOCKETS_PATH


def test_two_named_labs_share_no_socket() -> None:
    sockets = {
        socket_of(lab.LABS["known-answer"].at(name)) for name in (None, "a", "b")
    }
    assert len(sockets) == 3


def socket_of(device: lab.LabDevice) -> str:
    return str(device.left.port.model_dump()["memif"])


def test_dpdk_keeps_the_files_of_two_switches_apart() -> None:
    device = lab.LABS["ovs-dpdk"]
    nameless, named = (
        [
            option
            for option in open_vswitch._options(each.own_name, 1)
            if "prefix" in option
        ]
        for each in (device, device.at("a"))
    )
    assert nameless != named


@pytest.mark.parametrize(
    "name", ["", "-a", "a" * 17, "a/b", "a b", "a.b", "ä", "..", "a@b"]
)
def test_what_cannot_be_a_name_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="cannot be named") as caught:
        lab.plan(f"linux-router@{name}")
    assert "1 to 16 letters" in caught.value.hint


@pytest.mark.parametrize("name", ["a", "9", "Left-2", LONGEST])
def test_what_can_be_a_name(name: str) -> None:
    planned = lab.plan(f"linux-router@{name}")
    assert planned.name == f"linux-router-{name}"
    assert planned.namespace == f"tester-{name}"


def test_an_unknown_device_is_told_without_the_name() -> None:
    with pytest.raises(InputError, match="no lab named 'linux-ruter'") as caught:
        lab.plan("linux-ruter@a")
    assert "linux-router" in caught.value.hint


def test_labs_are_told_apart_by_device_filters_label_and_name() -> None:
    keys = LabKeys(name="linux-firewall@a", rules=25, label="old")
    assert (keys.device, keys.own_name) == ("linux-firewall", "a")
    assert keys.testbed_name == "linux-firewall-25-old-a"
    assert lab_name("linux-router") == "linux-router"


def test_one_campaign_measures_at_several_named_labs() -> None:
    names = [f"linux-router@{name}" for name in "ab"]
    campaign = Campaign.model_validate(
        {"name": "both", "lab": names, "procedures": [{"procedure": "throughput"}]}
    )
    assert [keys.own_name for keys in campaign.labs] == ["a", "b"]


def test_each_lab_has_a_file_of_its_own(tmp_path: Path) -> None:
    nameless, named = StateFile(tmp_path), StateFile(tmp_path, "a")
    assert nameless.path == tmp_path / "lab.json"
    assert named.path == tmp_path / "labs/a/lab.json"
    for file in (named, nameless):
        file.write(make_state(None))
        assert StateFile.at(file.path) == file
    assert nameless.all() == [nameless, named]
    named.make_dut_directory()
    (named.home / "known-answer.log").touch()
    named.remove()
    assert not named.home.exists()
    assert named.all() == [nameless]


def test_a_state_tells_which_device_it_is_of_and_where() -> None:
    state = replace(make_state(None), name="a")
    assert state.title == "linux-router@a"
    assert device_of(state).tester == "tester-a"
