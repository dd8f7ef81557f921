"""What a CPU that receives for the tester spares a lab's device: both are told."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from planning import TESTBED, FakeOpener, cell
from rich.console import Console

from dutperf import lab
from dutperf.cli import selftest_command
from dutperf.config import PlannedTestbed
from dutperf.passport import keeping, making, measuring
from dutperf.passport.keeping import Loop, owner_of
from dutperf.passport.making import Maker
from dutperf.procedures.passport_use import sent_by
from dutperf.results.passport import Passport
from dutperf.simulation.fake_engine import FakeEngine, perfect

ALONE_NS, SHARED_NS = 1_000_000, 5_000_000
"""In each trial, whatever its frames."""
LOOP = Loop("wire", PlannedTestbed(testbed=TESTBED), device_cpu=1)


@pytest.fixture(autouse=True)
def _a_device_that_pays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    took_ns = ALONE_NS

    @contextmanager
    def shared(_own_name: str | None) -> Iterator[None]:
        nonlocal took_ns
        took_ns = SHARED_NS
        yield
        took_ns = ALONE_NS

    def busy(_cpu: int) -> Callable[[], int]:
        return lambda: took_ns

    monkeypatch.setattr(lab, "left_to_the_device", shared)
    monkeypatch.setattr(measuring, "busy_since_now", busy)
    monkeypatch.setattr(making, "SOCKETS", tmp_path / "sockets")
    program = tmp_path / "engine"
    program.write_bytes(b"an engine")
    monkeypatch.setattr(keeping, "find_engine", lambda: program)


def made(path: Path, loop: Loop) -> tuple[Passport, list[str]]:
    told: list[str] = []
    maker = Maker(
        path,
        lambda planned: contextlib.nullcontext(planned.testbed),
        FakeOpener(FakeEngine(perfect(), tester_limit_fps=100_000)),
    )
    return maker.made(loop, sent_by(cell()), told.append), told


def printed(passport: Passport) -> str:
    console = Console(width=200, record=True)
    selftest_command._show_passport(console, passport)
    return console.export_text()


def test_both_figures_are_measured_at_the_safe_rate(tmp_path: Path) -> None:
    passport, told = made(tmp_path, replace(LOOP, receive_cpu=2))
    (entry,) = passport.entries
    assert entry.device_ns_per_frame
    assert entry.device_ns_if_shared
    ratio = entry.device_ns_if_shared / entry.device_ns_per_frame
    assert ratio == pytest.approx(SHARED_NS / ALONE_NS, rel=0.02)
    assert "a frame, " in told[0]
    assert "if it received for the tester, too" in told[0]
    assert "receives, too" in printed(passport)


def test_without_such_a_cpu_there_is_one_figure(tmp_path: Path) -> None:
    passport, told = made(tmp_path, LOOP)
    (entry,) = passport.entries
    assert entry.device_ns_per_frame
    assert entry.device_ns_if_shared is None
    assert "too" not in told[0]
    assert "receives, too" not in printed(passport)


def test_a_passport_of_one_is_none_of_the_other() -> None:
    assert owner_of(LOOP).name != owner_of(replace(LOOP, receive_cpu=2)).name
