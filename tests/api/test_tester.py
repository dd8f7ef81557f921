"""``import dutperf``: open traffic, trials, searches and measurements, simulated."""

from __future__ import annotations

import asyncio
import re
import runpy
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dutperf
from dutperf import api
from dutperf.api import AsyncTester, InputError, Tester, Traffic
from dutperf.procedures.events import Event, TrialStarted

EXAMPLES = Path(__file__).parents[2] / "examples" / "python"
FRAMES: dict[str, Any] = {"ip": 4, "frame_size": 64, "direction": "both"}
FPS = 120_000


@pytest.fixture
def traffic() -> Iterator[Traffic]:
    with Tester(simulated_fps=FPS) as tester, tester.traffic(**FRAMES) as opened:
        yield opened


def test_a_trial_tells_what_became_of_each_frame(traffic: Traffic) -> None:
    passed, failed = traffic.trial(FPS // 2), traffic.trial(2 * FPS, 0.5)
    assert (passed.verdict, passed.lost, passed.loss_percent) == ("pass", 0, 0.0)
    assert list(passed.directions) == ["forward", "reverse"]
    assert passed.sent == passed.received == passed.intended == FPS
    assert failed.verdict == "fail"
    assert failed.sent == failed.intended == 2 * FPS
    assert failed.lost == failed.lost_by_device == failed.sent - failed.received
    assert failed.loss_percent == pytest.approx(50, abs=0.1)
    assert {reason.code for reason in failed.reasons} == {"frames_lost"}
    assert failed.directions["forward"].lost == failed.lost // 2
    assert failed.record.request.duration_ns == 500_000_000


def test_a_search_is_one_repeat_of_a_throughput(
    traffic: Traffic, tmp_path: Path
) -> None:
    found = traffic.find(resolution="1%", trial_duration_s=1, search="classic")
    assert found.conclusion == "found"
    assert found.rate_fps is not None
    assert found.upper_fps is not None
    assert found.rate_fps <= FPS < found.upper_fps <= found.rate_fps * 1.0102
    assert [t.rate_fps for t in found.trials if t.verdict == "pass"][-1]
    tester = Tester(simulated_fps=FPS, results=tmp_path)
    measured = tester.measure(
        "throughput",
        **FRAMES,
        repeats=1,
        resolution="1%",
        trial_duration_s=1,
        search="classic",
    )
    assert measured.value == found.rate_fps
    assert measured.report.is_file()


def test_a_bound_is_named_for_what_it_is(traffic: Traffic) -> None:
    found = traffic.find(max_rate_fps=1000)
    assert (found.rate_fps, found.upper_fps) == (1000, None)
    assert found.conclusion == "max_rate_passed"


@pytest.mark.parametrize(
    ("keys", "where"),
    [
        ({"frame_size": [64, 128]}, ""),
        ({**FRAMES, "frame_size": 63}, "frame_size"),
        ({**FRAMES, "frames": 1}, "frames"),
    ],
)
def test_frames_that_cannot_be_sent_are_refused(
    keys: dict[str, object], where: str
) -> None:
    tester = Tester(simulated_fps=FPS)
    with pytest.raises(InputError) as refused, tester.traffic(**keys):
        pass
    assert refused.value.code == "input"
    assert refused.value.where.startswith(where)


@pytest.mark.parametrize(
    ("rate_fps", "duration_s", "attempts", "where"),
    [
        (0, 1, 1, "rate_fps"),
        (1.5, 1, 1, "rate_fps"),
        (True, 1, 1, "rate_fps"),
        (10**9, 1, 1, "rate_fps"),
        (1000, 0, 1, "duration_s"),
        (1000, float("nan"), 1, "duration_s"),
        (1000, "1", 1, "duration_s"),
        (1000, None, 1, "duration_s"),
        (1000, True, 1, "duration_s"),
        (1000, 1, 0, "attempts"),
    ],
)
def test_a_trial_that_cannot_be_is_refused(
    traffic: Traffic, rate_fps: int, duration_s: float, attempts: int, where: str
) -> None:
    with pytest.raises(InputError) as refused:
        traffic.trial(rate_fps, duration_s, attempts=attempts)
    assert refused.value.where == where


def test_a_search_keeps_its_frames_and_knows_its_keys(traffic: Traffic) -> None:
    with pytest.raises(InputError, match="open traffic keeps its frames"):
        traffic.find(frame_size=128)
    with pytest.raises(InputError, match="resolutoin"):
        traffic.find(resolutoin="1%")
    with pytest.raises(InputError, match="max_rate_fps"):
        traffic.find(max_rate_fps=10**9)


@pytest.mark.parametrize(
    "place",
    [
        {},
        {"lab": "linux-router", "testbed": "testbed.yaml"},
        {"simulated_fps": 0},
        {"simulated_fps": float("nan")},
    ],
)
def test_one_place_is_named(place: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refused, Tester(**place):
        pass
    assert refused.value.where in ("testbed", "simulated_fps")


def test_connections_are_opened_before_each_trial() -> None:
    """Phase 1 comes before each of them (RFC 9693 4.7)."""
    phases: list[str] = []

    def on_event(event: Event) -> None:
        if isinstance(event, TrialStarted):
            phases.append(f"{event.rate_fps}")

    tester = Tester(simulated_fps=FPS, lab="nft-nat44", on_event=on_event)
    stateful = {"connections": 1000, "phase1_rate": 5000}
    with tester.traffic(**FRAMES, stateful=stateful) as traffic:
        assert [traffic.trial(2000).verdict for _ in range(2)] == ["pass", "pass"]
        with pytest.raises(InputError, match="open traffic keeps"):
            traffic.find(stateful={})
    assert phases == ["5000", "2000"] * 2


def test_who_interrupts_ends_what_is_measured_and_can_go_on() -> None:
    def on_event(event: Event) -> None:
        if isinstance(event, TrialStarted) and event.rate_fps == 7:
            raise KeyboardInterrupt

    tester = Tester(simulated_fps=FPS, on_event=on_event)
    with pytest.raises(KeyboardInterrupt), tester.traffic(**FRAMES) as traffic:
        traffic.trial(7)
    with tester.traffic(**FRAMES) as traffic:
        assert traffic.trial(8).verdict == "pass"


def test_tasks_await_the_same(tmp_path: Path) -> None:
    async def main() -> tuple[str, int | None, float | None]:
        async with AsyncTester(simulated_fps=FPS, results=tmp_path) as tester:
            async with tester.traffic(**FRAMES) as traffic:
                trial = await traffic.trial(1000)
                found = await traffic.find(resolution="10%")
            measured = await tester.measure("throughput", preset="quick", **FRAMES)
            return trial.verdict, found.rate_fps, measured.value

    verdict, rate_fps, value = asyncio.run(main())
    assert verdict == "pass"
    assert rate_fps is not None
    assert rate_fps <= FPS
    assert value is not None


def test_a_task_that_is_cancelled_ends_its_trial() -> None:
    """The trial that runs is ended before the task is; the tester can be used again."""
    begun, goes_on = threading.Event(), threading.Event()

    def on_event(event: Event) -> None:
        if isinstance(event, TrialStarted) and event.rate_fps == 7:
            begun.set()
            goes_on.wait(30)

    async def main() -> str:
        tester = AsyncTester(simulated_fps=FPS, on_event=on_event)
        async with tester, tester.traffic(**FRAMES) as traffic:
            task = asyncio.create_task(traffic.trial(7))
            await asyncio.to_thread(begun.wait, 30)
            task.cancel()
            await asyncio.sleep(0)
            goes_on.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            return (await traffic.trial(8)).verdict

    assert asyncio.run(main()) == "pass"


def test_the_package_has_the_promised_names_and_no_others() -> None:
    assert all(getattr(dutperf, name) is getattr(api, name) for name in api.__all__)
    with pytest.raises(AttributeError, match="Teser"):
        _ = dutperf.Teser
    with pytest.raises(AttributeError, match="measure"):
        _ = dutperf.measure


def test_the_page_runs_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (EXAMPLES.parents[1] / "docs" / "python.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    for block in blocks:
        exec(compile(block, "python.md", "exec"), {"__name__": "__main__"})  # noqa: S102
    assert capsys.readouterr().out.count("pass") == len(blocks) == 2


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda e: e.stem)
def test_examples_run_as_they_stand(
    example: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(example)])
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out
