"""What a lab knows of its device, and the tester of itself, decides what is printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from siitperf_files import ROUTER, main_of, read

from dutperf.compat.command_line import read_arguments, trial_lines
from dutperf.compat.commands import measured
from dutperf.compat.requests import trial_requests
from dutperf.engine.client import ProgressCallback, ignore_progress
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.simulation.fake_engine import FakeEngine
from dutperf.simulation.simulated_devices import lossy, perfect

ARGUMENTS = read_arguments(
    "tp", ["84", "1000", "1", "500", "1", "1"], stateful=False, only_ipv4=True
)


@dataclass
class Watch:
    """A lab's device, whose CPU others had for ``taken_ns``."""

    taken_ns: int = 0
    queue_frames: int = 10
    cpu: int = 1
    counts: list[dict[str, int]] = field(default_factory=list)

    @property
    def drops(self) -> Callable[[], dict[str, dict[str, int]]]:
        return dict

    @property
    def sent(self) -> Callable[[], dict[str, int]]:
        return lambda: self.counts.pop(0) if self.counts else {}

    def started(self) -> Callable[[], int]:
        return lambda: self.taken_ns


class Dropping(FakeEngine):
    """A tester whose right port drops frames that the device forwarded."""

    dropped = 0

    def measure(
        self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        result = super().measure(trial, on_progress)
        ports = [
            port.model_copy(update={"interface_drops": self.dropped})
            if port.name == "right"
            else port
            for port in result.ports
        ]
        return result.model_copy(update={"ports": ports})


def request(folder: Path) -> TrialRequest:
    conf = read(folder, ROUTER)
    return main_of(trial_requests(conf, ARGUMENTS, {}, seed=1, first_id=1))


def printed(result: TrialResult) -> str:
    return "\n".join(trial_lines(ARGUMENTS, result, strict=True))


def test_losses_of_the_device_are_told_as_they_are(tmp_path: Path) -> None:
    for watch in (None, Watch(), Watch(taken_ns=4_000_000)):
        result = measured(FakeEngine(lossy(100_000)), request(tmp_path), watch)
        assert result.verdict.kind == "fail"
        assert "Forward frames received: " in printed(result)


def test_a_trial_in_which_others_had_the_devices_cpu_tells_nothing(
    tmp_path: Path,
) -> None:
    watch = Watch(taken_ns=900_000_000)
    text = printed(measured(FakeEngine(lossy(100_000)), request(tmp_path), watch))
    assert "invalid: other programs used the device's CPU for 900 ms" in text
    assert "the trial is worth repeating" in text
    assert "frames sent" not in text
    passed = measured(FakeEngine(perfect()), request(tmp_path), watch)
    assert passed.verdict.kind == "pass"


def test_frames_that_the_testers_kernel_did_not_take_in_are_not_the_devices(
    tmp_path: Path,
) -> None:
    everything: dict[str, int] = {"left": 10**6, "right": 10**6}
    watch = Watch(counts=[{"left": 0, "right": 0}, everything])
    text = printed(measured(FakeEngine(lossy(100_000)), request(tmp_path), watch))
    assert "did not take in" in text
    assert "frames sent" not in text


def test_what_the_tester_dropped_makes_its_losses_no_result(tmp_path: Path) -> None:
    engine = Dropping(lossy(100_000))
    assert measured(engine, request(tmp_path), None).verdict.kind == "fail"
    engine.dropped = 1
    text = printed(measured(engine, request(tmp_path), None))
    assert "invalid: forward: of " in text
    assert "the tester itself dropped up to 1" in text
    assert "frames sent" not in text
    passing = Dropping(perfect())
    passing.dropped = 1
    assert measured(passing, request(tmp_path), None).verdict.kind == "pass"
