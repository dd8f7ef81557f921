"""Scripts of the kinds that stand around siitperf find what the device was told.

They are those of examples/siitperf. Rates are low and queues bridge 100 ms: what a busy
machine does makes a trial invalid, which the scripts repeat, and changes no figure.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from labtools import needs_lab
from livetools import needs_engine
from siitperf_files import HOSTS44, NAT44, ROUTER
from siitperf_folder import COUNTS_ONLY, PROGRAMS, Folder, kept

from dutperf import lab
from dutperf.lab.refdut_socket import Behaviour

pytestmark = [*needs_engine, *needs_lab]
SHORT = {"DURATION": 1, "TIMEOUT": 200}
LATE = {**SHORT, "TIMEOUT": 500}
VALIDATED = {"Forward": "0", "Responder-tuples": "1"}


def gateway(**told: object) -> Behaviour:
    public = {"first_address": "198.19.0.1", "addresses": 1}
    return {"nat": {"kind": "nat44", "public": public, **told}}


def emptied() -> dict[str, object]:
    """Before each trial, as siitperf's users do it over ssh."""
    hook = lab.LABS["known-answer-nat44"].hooks.bulk_delete
    assert hook is not None
    return {**SHORT, "RESET": shlex.join(hook.shown)}


@pytest.fixture
def router(tmp_path: Path) -> Folder:
    return Folder(tmp_path, "known-answer", ROUTER)


def test_throughput_is_what_the_device_serves(router: Folder) -> None:
    serves = {"forward": {"service": {"rate_fps": 4_000, "queue_frames": 400}}}
    with kept("known-answer", serves):
        found = int(router.script("throughput.sh", 8_000, 1_100, **SHORT))
    assert 3_700 <= found <= 4_400


def test_the_loss_rate_is_the_devices_at_each_rate(router: Folder) -> None:
    loses = {"rules": [{"every": 50, "do": "drop"}]}
    serves = {"service": {"rate_fps": 2_000, "queue_frames": 100}}
    with kept("known-answer", {"forward": loses, "reverse": serves}):
        found = router.script("frame-loss.sh", 1_000, 4_000, **SHORT)
    fast, slow = found.splitlines()
    assert fast.startswith("4000;2.0000;")
    assert 40 < float(fast.rpartition(";")[2]) <= 50
    assert slow == "1000;2.0000;0.0000"


def test_latency_is_the_devices_delay(router: Folder) -> None:
    delays = {"forward": {"rules": [{"do": {"delay_ns": 60_000_000}}]}}
    with kept("known-answer", delays):
        found = router.script("latency.sh", 1_000, 3, 0, 500, **LATE)
    told = spreads(found)
    assert 60 <= told["Forward TL"] < 75
    assert told["Forward TL"] <= told["Forward WCL"]
    assert told["Reverse TL"] < 15


def test_variation_is_the_jump_of_the_delay(router: Folder) -> None:
    jump = {"when": {"to_ns": 300_000_000}, "do": {"delay_ns": 200_000_000}}
    with kept("known-answer", {"forward": {"rules": [jump]}}):
        found = router.script("pdv.sh", 1_000, 3, **LATE)
    told = spreads(found)
    assert 199 <= told["Forward PDV"] < 260
    assert told["Reverse PDV"] < 60


def test_the_connection_rate_is_what_the_device_keeps(tmp_path: Path) -> None:
    """What comes too fast it forwards and forgets: only validation tells."""
    folder = Folder(tmp_path, "known-answer-nat44", NAT44 | VALIDATED)
    setup = {"rate_per_s": 2_000, "queue_frames": 200, "overload": "forget"}
    behaviour = gateway(table={"entries": 4_000}, setup=setup)
    with kept("known-answer-nat44", behaviour):
        numbers = (1_500, 500, 3_500, 500)
        variables = emptied() | {"ALPHA": 100}
        found = int(folder.script("connection-rate.sh", *numbers, **variables))
    assert 1_700 <= found <= 2_320


@pytest.mark.parametrize(
    ("keys", "eviction", "limits"),
    [
        (NAT44, "least_recently_used", (600, 3_000, 320)),
        (HOSTS44, "refuse", (900, 1_080, 180)),
    ],
    ids=["ports", "addresses"],
)
def test_the_capacity_is_that_of_the_table(
    tmp_path: Path, keys: dict[str, str], eviction: str, limits: tuple[int, ...]
) -> None:
    """One that forgets another connection fills all the same: only validation tells."""
    folder = Folder(tmp_path, "known-answer-nat44", keys | VALIDATED)
    table = {"entries": 1_000, "eviction": eviction}
    with kept("known-answer-nat44", gateway(table=table)):
        found = int(folder.script("capacity.sh", *limits, 4_000, **emptied()))
    assert 850 <= found <= 1_000


def test_a_script_that_looks_at_counts_alone_finds_the_truth(
    router: Folder, tmp_path: Path
) -> None:
    """With n=2, m=2, and m=0 for PDV, by ./build, as siitperf's own scripts have it."""
    (tmp_path / "build").symlink_to(PROGRAMS)
    jump = {"when": {"to_ns": 300_000_000}, "do": {"delay_ns": 200_000_000}}
    service = {"rate_fps": 4_000, "queue_frames": 400}
    with kept("known-answer", {"forward": {"rules": [jump], "service": service}}):
        found = counted(router, tmp_path / "all.out")
    assert 3_700 <= found["throughput"] <= 4_400
    assert 200 <= found["Forward WCL"] < 260
    assert found["Forward TL"] < 15
    assert found["Reverse TL"] < 15
    assert 199 <= found["Forward PDV"] < 260
    assert found["Reverse PDV"] < 60


def counted(folder: Folder, printed: Path) -> dict[str, float]:
    """What the script finds where the machine left the tester alone."""
    for _ in range(5):
        printed.unlink(missing_ok=True)
        done = folder.command("sh", str(COUNTS_ONLY), "8000", "500")
        if "invalid" not in printed.read_text():
            break
    pairs = (line.split(": ") for line in done.stdout.splitlines())
    return {name: float(value) for name, value in pairs}


def spreads(text: str) -> dict[str, float]:
    """The medians by their names."""
    lines = (line.rsplit(" ", 3) for line in text.splitlines())
    return {name: float(median) for name, median, _, _ in lines}
