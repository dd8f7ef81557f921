"""Files of all kinds that siitperf has, unchanged, on the devices they are for."""

from __future__ import annotations

import re
import runpy
import sys
import time
from pathlib import Path

import pytest
from labtools import needs_lab
from livetools import needs_engine
from siitperf_files import EXAMPLES, ROUTER
from siitperf_folder import Folder, kept

pytestmark = [*needs_engine, *needs_lab]

START_UP = Path(__file__).parents[2] / "examples/papers/003/start_up.py"
TAYGA = {"IPv6-R-Virt": "2001:2:0:6464::c613:2"}  # its prefix is one of its own


@pytest.mark.parametrize(
    ("device", "names", "changes"),
    [
        (
            "linux-router",
            ("ipv4-router", "ipv4-router-addresses", "ipv6-router-addresses"),
            {},
        ),
        ("tayga-siit", ("stateless-nat64",), {}),
        ("nft-nat44", ("nat44-ports", "nat44-few-ports", "nat44-addresses"), {}),
        ("known-answer-nat64", ("nat64-ports", "nat64-addresses"), {}),
        ("tayga-nat64", ("nat64-addresses",), TAYGA),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_devices_forward_and_translate_what_each_example_sends(
    tmp_path: Path, device: str, names: tuple[str, ...], changes: dict[str, str]
) -> None:
    """TAYGA 0.9.2 damages one frame in 65,535 from IPv4 to IPv6 (its lab says why)."""
    with kept(device):
        for name in names:
            keys, line = EXAMPLES[name]
            folder = Folder(tmp_path / name, device, keys | changes)
            found = folder.trial("siitperf-tp", *line.split())
            for direction in ("Forward", "Reverse"):
                assert found[f"{direction} frames sent"] == "1000"
                damaged = found.get(f"Info: {direction} frames damaged", "0").split()
                assert damaged[0] == "0" or device.startswith("tayga")
                received = int(found[f"{direction} frames received"])
                assert received + int(damaged[0]) == 1000
            if "Stateful" in keys:
                assert found["Preliminary frames received"] == "2000"


def test_a_trial_takes_little_beside_its_own_time(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "known-answer", ROUTER)
    with kept("known-answer"):
        begin = time.monotonic()
        done = folder.command("siitperf-tp", "84", "1000", "1", "100", "1", "1")
        took_s = time.monotonic() - begin
    assert done.returncode == 0, done.stdout + done.stderr
    # 1.5 s on a machine that has nothing else to do; here no more than an order above.
    assert took_s < 1.1 + 15


def test_start_and_memory_of_many_connections_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    start_up = runpy.run_path(str(START_UP))
    ways = {"ports only": (2000, start_up["_ports"](40, 50))}
    monkeypatch.setitem(start_up["main"].__globals__, "WAYS", ways)
    monkeypatch.setattr(sys, "argv", [str(START_UP), "--rate", "4000"])
    start_up["main"]()
    row = capsys.readouterr().out.splitlines()[-1]
    assert re.fullmatch(r"\| ports only \| [\d.]+ \| [+-][\d.]+ s \| -?\d+ \|", row)
