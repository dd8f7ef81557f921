"""The known-answer device on the lab's wires: real interfaces instead of shared memory.

The lab's router is told to forward nothing, and the device takes its place between the
two interfaces.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from livetools import (
    DRIVERS,
    NO_ODD_FRAMES,
    Trial,
    crossed_neighbours,
    inside,
    kept_lab,
    lab_ports,
    needs_engine,
    odd_frames,
    ref_dut,
    running_engine,
)

from dutperf.protocol.base import Driver
from tools.calibrate.truth import by_account
from tools.calibrate.truth import by_result as counts

pytestmark = [*needs_engine, pytest.mark.lab]

BEHAVIOUR = {
    "forward": {
        "rules": [{"every": 50, "do": "drop"}, {"every": 30, "do": "duplicate"}]
    },
    "reverse": {"rules": [{"every": 7, "do": {"delay_ns": 2_000_000}}]},
}


@pytest.fixture(scope="module")
def wires() -> Iterator[None]:
    """The lab without its router: its interfaces stay, its kernel keeps quiet."""
    with kept_lab():
        for setting in ("net.ipv4.ip_forward=0", "net.ipv6.conf.all.disable_ipv6=1"):
            inside("dut", "sysctl", "-qw", setting)
        for side in ("left", "right"):
            inside("dut", "ip", "address", "flush", "dev", side)
        yield


@pytest.mark.usefixtures("wires")
@pytest.mark.parametrize("driver", DRIVERS)
def test_counts_are_those_of_a_device_on_interfaces(
    tmp_path: Path, driver: Driver
) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="dutperf") as place,
        ref_dut(Path(place), BEHAVIOUR, namespace="dut", driver=driver) as device,
        running_engine(tmp_path, namespace="tester") as engine,
    ):
        engine.open_ports(lab_ports("af_packet"))
        found = engine.set_neighbours(crossed_neighbours()).neighbours
        assert all(n.mac for n in found)
        result = engine.measure(Trial(fps=5000, ms=200).request())
        account = device.account()
    assert counts(result) == by_account(account)
    assert account.forward.foreground.dropped_by_rule > 0
    assert account.reverse.foreground.delayed > 0
    assert odd_frames(result) == NO_ODD_FRAMES
