"""The path bench on simulated devices and testers; no packets, no perf."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from planning import TESTBED, cell

from dutperf.bench.path_bench import (
    PATH_DRIVERS,
    DriverResult,
    PathDriver,
    PathSettings,
    PathSurroundings,
    bench_path,
    loss_verified,
    valid_as_pass,
    with_driver,
)
from dutperf.bench.path_profile import Frame, StackSample
from dutperf.config import Testbed
from dutperf.config.side import InterfacePort
from dutperf.errors import EngineError, InputError
from dutperf.procedures.events import CellStarted, Event, Notice
from dutperf.protocol.base import Driver
from dutperf.run.engine_session import EngineStarter, Notify
from dutperf.search import Outcome
from dutperf.simulation.fake_engine import Dut, FakeEngine, perfect, step


class FakeProfiler:
    """One sample of the worker's CPU each time; counts what was asked of it."""

    def __init__(self, trouble: str = "") -> None:
        self.trouble = trouble
        self.started = 0

    def start(self) -> None:
        self.started += 1

    def finish(self) -> list[StackSample]:
        if self.trouble:
            return []
        kernel = Frame("xsk_sendmsg", "[kernel.kallsyms]")
        return [
            StackSample("rte-worker-1", 0, (kernel,)),
            StackSample("ksoftirqd/1", 1, ()),
        ]


class Bench:
    """Runs the bench with a new FakeEngine for each driver; remembers everything."""

    def __init__(
        self,
        dut: Dut,
        *,
        tester_limit_fps: float | None = None,
        refused: tuple[Driver, ...] = (),
        trouble: str = "",
    ) -> None:
        self.engines: list[FakeEngine] = []
        self.events: list[Event] = []
        self.profiler = FakeProfiler(trouble)
        self._dut = dut
        self._tester_limit_fps = tester_limit_fps
        self._refused = refused

    def run(
        self, *drivers: PathDriver, rounds: int = 1, device_cpu: int | None = 1
    ) -> list[DriverResult]:
        around = PathSurroundings(
            self._prepare, self.profiler, sleep=lambda _seconds: None
        )
        settings = PathSettings(rounds, worker_cpu=0, device_cpu=device_cpu)
        job = cell(resolution="3%", trial_duration_s=1)
        chosen = drivers or PATH_DRIVERS
        return bench_path(TESTBED, job, chosen, settings, around, self.events.append)

    def _prepare(self, _testbed: Testbed, _notify: Notify) -> EngineStarter:
        return self._start

    @contextlib.contextmanager
    def _start(self, log_path: Path) -> Iterator[FakeEngine]:
        assert log_path.parent.is_dir()
        engine = FakeEngine(
            self._dut, tester_limit_fps=self._tester_limit_fps, refused=self._refused
        )
        self.engines.append(engine)
        yield engine


def only(results: list[DriverResult]) -> DriverResult:
    (result,) = results
    return result


def test_the_testers_limit_and_the_devices_are_told_apart() -> None:
    result = only(Bench(step(300_000), tester_limit_fps=600_000).run("af_xdp"))
    assert result.valid is not None
    assert result.lossless is not None
    assert result.valid.median_fps is not None
    assert result.lossless.median_fps is not None
    assert 580_000 <= result.valid.median_fps <= 600_000
    assert 290_000 <= result.lossless.median_fps <= 300_000


def test_a_lossless_device_does_what_the_tester_can() -> None:
    result = only(Bench(perfect(), tester_limit_fps=600_000).run("af_xdp"))
    assert result.valid == result.lossless or (
        result.valid
        and result.lossless
        and result.valid.median_fps == result.lossless.median_fps
    )


def test_each_driver_has_an_engine_of_its_own() -> None:
    bench = Bench(perfect())
    results = bench.run()
    assert [r.driver for r in results] == ["af_xdp", "af_packet"]
    assert len(bench.engines) == 2
    started = [e for e in bench.events if isinstance(e, CellStarted)]
    assert [(e.index, e.count) for e in started] == [(1, 2), (2, 2)]
    assert "af_packet" in started[1].cell.id


def test_the_longer_trial_is_sampled_and_nothing_else() -> None:
    bench = Bench(step(300_000), tester_limit_fps=600_000)
    result = only(bench.run("af_xdp", rounds=3))
    assert bench.profiler.started == 1
    assert bench.engines[0].trials[-1].duration_ns == 4_000_000_000
    assert [t.purpose for t in result.trials].count("profile") == 1
    assert result.profiled == result.trials[-1]
    assert result.worker is not None
    assert result.worker.kernel_percent == 100
    assert result.device is not None
    assert result.device.ksoftirqd_percent == 100


def test_every_round_counts_and_the_median_is_one_of_them() -> None:
    result = only(
        Bench(step(300_000), tester_limit_fps=600_000).run("af_xdp", rounds=3)
    )
    for rate in (result.valid, result.lossless):
        assert rate is not None
        assert len(rate.rounds_fps) == len(rate.conclusions) == 3
        assert rate.median_fps in rate.rounds_fps


def test_without_perf_the_rates_stand() -> None:
    bench = Bench(perfect(), trouble="perf is not installed")
    result = only(bench.run("af_packet"))
    assert result.valid is not None
    assert result.profiled is not None
    assert result.worker is None
    assert result.profiler_trouble == "perf is not installed"


def test_an_unknown_device_cpu_has_no_profile() -> None:
    assert only(Bench(perfect()).run("af_xdp", device_cpu=None)).device is None


def test_a_driver_that_does_not_work_is_skipped_and_named() -> None:
    bench = Bench(perfect(), refused=("af_xdp",))
    first, second = bench.run()
    assert "af_xdp does not work" in first.unusable
    assert first.valid is None
    assert second.valid is not None
    assert any(isinstance(e, Notice) and "af_xdp" in e.text for e in bench.events)


def test_the_only_driver_must_work() -> None:
    with pytest.raises(EngineError, match="af_xdp does not work"):
        Bench(perfect(), refused=("af_xdp",)).run("af_xdp")


def test_a_device_that_loses_at_any_rate_has_no_lossless_one() -> None:
    result = only(Bench(step(0), tester_limit_fps=1000).run("af_xdp"))
    assert result.valid is not None
    assert result.valid.median_fps is not None
    assert result.lossless is not None
    assert result.lossless.median_fps is None
    assert result.profiled is not None
    assert result.profiled.lost_percent == 100


def test_both_interfaces_get_the_driver_and_keep_the_rest() -> None:
    changed = with_driver(TESTBED, "af_packet")
    for side, port in ((side, s.port) for side, s in changed.sides.items()):
        assert isinstance(port, InterfacePort)
        assert (port.interface, port.driver) == (side, "af_packet")
    assert with_driver(changed, "af_xdp") == with_driver(TESTBED, "af_xdp")


def test_ports_without_a_choice_of_drivers_are_refused() -> None:
    ring = TESTBED.model_dump(exclude_none=True)
    for side in ("left", "right"):
        ring[side]["port"] = {"ring": True}
    with pytest.raises(InputError, match="no kernel interface"):
        with_driver(Testbed.model_validate(ring), "af_xdp")


class Script:
    """Outcomes in a row, one for each trial."""

    def __init__(self, *outcomes: Outcome) -> None:
        self.left = list(outcomes)

    def __call__(self, _rate_fps: int, _duration_s: float) -> Outcome:
        return self.left.pop(0)


PASS, FAIL, INVALID = Outcome("pass"), Outcome("fail"), Outcome("invalid")


def test_a_valid_trial_is_one_in_which_the_tester_kept_up() -> None:
    kept_up = valid_as_pass(Script(FAIL, PASS, Outcome("invalid", offered_fps=5)))
    assert [kept_up(1, 1).verdict for _ in range(2)] == ["pass", "pass"]
    assert kept_up(1, 1) == Outcome("invalid", offered_fps=5)


@pytest.mark.parametrize(
    ("outcomes", "verdict", "left"),
    [
        ((PASS, FAIL), "pass", 1),
        ((FAIL, PASS), "pass", 0),
        ((FAIL, FAIL, FAIL, PASS), "fail", 1),
        ((FAIL, INVALID, PASS), "invalid", 1),
    ],
)
def test_little_loss_is_verified(
    outcomes: tuple[Outcome, ...], verdict: str, left: int
) -> None:
    script = Script(*outcomes)
    assert loss_verified(script, lambda: True)(1, 1).verdict == verdict
    assert len(script.left) == left


def test_much_loss_needs_no_second_trial() -> None:
    script = Script(FAIL, PASS)
    assert loss_verified(script, lambda: False)(1, 1) == FAIL
