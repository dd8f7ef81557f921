"""Scripts as they stand around siitperf, unchanged, in labs: they only see programs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from labtools import needs_lab
from livetools import needs_engine
from siitperf_files import HOSTS44, NAT44, ROUTER, SIIT, write

from dutperf import lab
from dutperf.config.labs import LabKeys
from dutperf.lab.refdut_socket import Behaviour

pytestmark = [*needs_engine, *needs_lab]

PROGRAMS = Path(sys.executable).parent
BINARY_SEARCH = """\
#!/bin/sh
# binary search for the highest rate at which every frame comes back
low=0; high=$1
while [ $((high - low)) -gt "$2" ]; do
  rate=$(((low + high) / 2))
  siitperf-tp 84 $rate 1 300 1 1 > temp.out 2>&1
  if grep -q 'Error:' temp.out; then cat temp.out; exit 9; fi
  if grep -q invalid temp.out; then high=$rate; continue; fi
  fs=$(grep 'Forward frames sent:' temp.out | awk '{print $4}')
  fr=$(grep 'Forward frames received:' temp.out | awk '{print $4}')
  rs=$(grep 'Reverse frames sent:' temp.out | awk '{print $4}')
  rr=$(grep 'Reverse frames received:' temp.out | awk '{print $4}')
  if [ "$fs" -eq "$fr" ] && [ "$rs" -eq "$rr" ]; then low=$rate; else high=$rate; fi
done
echo $low
"""
LATENCY_REPEATED = """\
#!/bin/sh
# median of typical and worst case latency over repeated trials
: > latency.csv
for i in $(seq "$1"); do
  siitperf-lat 84 2000 2 300 1 1 1 500 > temp.out 2>&1
  tl=$(grep 'Forward TL:' temp.out | awk '{print $3}')
  wcl=$(grep 'Forward WCL:' temp.out | awk '{print $3}')
  echo "$tl;$wcl" >> latency.csv
done
sort -n latency.csv | sed -n "$((($1 + 1) / 2))p"
"""
FILLS = """\
#!/bin/sh
# does the gateway take so many connections, all of them answered?
siitperf-tp 84 2000 1 300 1 1 "$1" "$1" 4000 300 "$(($1 / 4 + 400))" > temp.out 2>&1
if grep -q 'Error:' temp.out; then cat temp.out; exit 9; fi
if grep -q 'Failed to fill state table' temp.out; then echo not filled; exit; fi
sent=$(grep 'Reverse frames sent:' temp.out | awk '{print $4}')
received=$(grep 'Reverse frames received:' temp.out | awk '{print $4}')
[ "$sent" -eq "$received" ] && echo filled
"""


class Folder:
    """Where somebody's siitperf.conf and scripts are."""

    def __init__(self, path: Path, lab_name: str, keys: dict[str, str]) -> None:
        self._path = path
        self._lab = lab_name
        write(path, without_macs(keys))

    def script(self, text: str, *arguments: object) -> str:
        """What the script prints."""
        path = self._path / "script.sh"
        path.write_text(text)
        words = map(str, arguments)
        return self.command("sh", str(path), *words).stdout.strip()

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=self._path,
            env=os.environ
            | {"PATH": f"{PROGRAMS}:{os.environ['PATH']}", "DUTPERF_LAB": self._lab},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


def without_macs(keys: dict[str, str]) -> dict[str, str]:
    """As lab devices have other ones: they are asked."""
    return {key: value for key, value in keys.items() if not key.startswith("MAC")}


@contextmanager
def kept(name: str, behaviour: Behaviour | None = None) -> Iterator[None]:
    assert lab.running() == [], "a lab is up: take it down before these tests"
    try:
        lab.up(LabKeys(name=name, behaviour=behaviour))
        yield
    finally:
        lab.down(all_=True)


def gateway(*, entries: int) -> Behaviour:
    return {
        "nat": {
            "kind": "nat44",
            "public": {"first_address": "198.19.0.1", "addresses": 1},
            "table": {"entries": entries},
        }
    }


def values(text: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)


def test_a_binary_search_finds_what_the_device_serves(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "known-answer", ROUTER)
    # Its queue bridges 20 ms, and is a fiftieth of a trial.
    serves = {"forward": {"service": {"rate_fps": 12_000, "queue_frames": 240}}}
    with kept("known-answer", serves):
        found = int(folder.script(BINARY_SEARCH, 32_000, 1_000))
    assert 10_500 <= found <= 12_500


def test_repeated_latency_is_the_devices_delay(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "known-answer", ROUTER)
    with kept(
        "known-answer", {"forward": {"rules": [{"do": {"delay_ns": 3_000_000}}]}}
    ):
        typical, worst = map(float, folder.script(LATENCY_REPEATED, 3).split(";"))
    assert 3.0 <= typical < 4.0
    assert worst >= typical


@pytest.mark.parametrize("keys", [NAT44, HOSTS44], ids=["ports", "addresses"])
def test_a_nat_fills_its_table_until_it_is_full(
    tmp_path: Path, keys: dict[str, str]
) -> None:
    folder = Folder(tmp_path, "known-answer-nat44", keys)
    for connections, told in ((900, "filled"), (1_100, "not filled")):
        with kept("known-answer-nat44", gateway(entries=1_000)):
            assert folder.script(FILLS, connections) == told


def test_real_devices_forward_ipv4_and_translate(tmp_path: Path) -> None:
    line = ("siitperf-tp", "128", "1000", "1", "500", "2", "1")
    for name, keys in (("linux-router", ROUTER), ("tayga-siit", SIIT)):
        folder = tmp_path / name
        folder.mkdir()
        with kept(name):
            done = Folder(folder, name, keys).command(*line)
        assert done.returncode == 0, done.stdout + done.stderr
        found = values(done.stdout)
        for direction in ("Forward", "Reverse"):
            assert found[f"{direction} frames sent"] == "1000"
            assert found[f"{direction} frames received"] == "1000"


def test_a_trial_takes_little_beside_its_own_time(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "known-answer", ROUTER)
    with kept("known-answer"):
        begin = time.monotonic()
        done = folder.command("siitperf-tp", "84", "1000", "1", "100", "1", "1")
        took_s = time.monotonic() - begin
    assert done.returncode == 0, done.stdout + done.stderr
    # 1.5 s on a machine that has nothing else to do; here no more than an order above.
    assert took_s < 1.1 + 15
