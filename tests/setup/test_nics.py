"""``make test-nics``: the parts of it that need no virtual machine."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from tools.nics.accounts import Passed, differences, passed
from tools.nics.image import load_order
from tools.nics.machine import CABLE, MODELS, ROUTED, command, mac_of
from tools.nics.steps import STEPS
from tools.nics.tester import Ran

OWN, OTHER = "02:00:00:00:01:01", "02:00:00:00:01:02"


def test_modules_are_loaded_after_those_that_they_need() -> None:
    dependencies = (
        "kernel/fs/ext4/ext4.ko.xz: kernel/fs/jbd2/jbd2.ko.xz kernel/lib/crc16.ko.xz\n"
        "kernel/fs/jbd2/jbd2.ko.xz: kernel/lib/crc16.ko.xz\n"
        "kernel/lib/crc16.ko.xz:\n"
        "kernel/net/other.ko.xz:\n"
    )
    order = load_order(dependencies, ["part_of_the_kernel", "ext4"])
    assert [path.split("/")[-1] for path in order] == [
        "crc16.ko.xz",
        "jbd2.ko.xz",
        "ext4.ko.xz",
    ]


def frame(source: str, trial: int, magic: int = 0xD07F) -> bytes:
    addresses = bytes(6) + bytes.fromhex(source.replace(":", ""))
    return addresses + bytes(30) + struct.pack(">HH", magic, trial) + bytes(14)


def capture(*frames: bytes) -> bytes:
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65536, 1)
    each = (struct.pack("<IIII", 0, 0, len(f), len(f)) + f for f in frames)
    return head + b"".join(each)


def test_test_frames_are_counted_by_trial_and_way() -> None:
    arp = bytes(6) + bytes.fromhex(OWN.replace(":", "")) + bytes(30)
    seen = passed(
        capture(
            frame(OWN, 1), arp, frame(OTHER, 1), frame(OWN, 2), frame(OWN, 2, magic=7)
        )
        # QEMU may be writing still.
        + b"\0" * 5,
        OWN,
    )
    assert seen == Passed(sent={1: 1, 2: 1}, given={1: 1})


def trial(received: int, lost: int, missed: int = 0) -> dict[str, Any]:
    counts = {"rx_errors": 0, "rx_nombuf": 0}
    ports = [
        {
            "name": side,
            "before": counts | {"rx_missed": 5},
            "after": counts | {"rx_missed": 5 + (missed if side == "right" else 0)},
            "interface_drops": 0,
        }
        for side in ROUTED
    ]
    stream = {"sent": 10, "received": received, "lost": lost}
    directions = [{"name": "forward", "streams": [stream]}]
    return {"trial_id": 7, "ports": ports, "directions": directions}


SENT = Passed(sent={7: 10}, given={})


@pytest.mark.parametrize(
    ("told", "given", "found"),
    [
        (trial(10, 0), 10, None),
        (trial(8, 2), 8, None),  # the device's loss
        (trial(8, 2, missed=2), 10, None),  # the tester's, which it knows
        (trial(8, 2), 10, "knows of 0 drops"),
        (trial(8, 2), 7, "the engine has 8"),
        (trial(8, 0), 8, "0 lost, of 10 sent and 8 received"),
    ],
)
def test_what_the_nic_had_and_the_engine_does_not_know_of_is_found(
    told: dict[str, Any], given: int, found: str | None
) -> None:
    seen = differences([told], SENT, Passed(sent={}, given={7: given}))
    assert (found is None) == (not seen)
    assert found is None or found in seen[0]


def test_frames_that_did_not_leave_the_nic_are_found() -> None:
    [found] = differences([trial(10, 0)], Passed({7: 9}, {}), Passed({}, {7: 10}))
    assert found == "trial 7 forward: sent 10 by the engine, 9 by the NIC"


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("fast", ["kvm", "tcg"])
def test_each_nic_is_behind_a_port_and_an_iommu_of_its_own(
    name: str, fast: str
) -> None:
    words = list(command(MODELS[name], fast))
    nics = [word for word in words if word.startswith(f"{name},netdev=")]
    assert [f"mac={mac_of(each)}" for each in (*CABLE, *ROUTED)] == [
        word for nic in nics for word in nic.split(",") if word.startswith("mac=")
    ]
    assert len({nic.split("bus=")[1].split(",")[0] for nic in nics}) == len(nics)
    assert any("intremap=on" in word for word in words)
    assert any(word.startswith(fast) for word in words)


def test_what_is_expected_names_models_that_there_are() -> None:
    assert len({step.name for step in STEPS}) == len(STEPS)
    for step in STEPS:
        assert set(step.but) <= set(MODELS)


def test_a_run_tells_its_error_or_why_its_trials_were_invalid() -> None:
    refused = Ran(3, "", "error: port left: it is gone\nhint: look for it\n")
    assert (refused.outcome, refused.message) == (
        "refused",
        "error: port left: it is gone",
    )
    reasons = [{"code": "link_changed"}, {"code": "flow_control"}]
    told = trial(8, 2) | {"verdict": {"reasons": reasons}}
    assert Ran(1, "", "", [told, told]).message == (
        "2 trials, 20 frames sent, 4 lost; flow_control; link_changed"
    )
