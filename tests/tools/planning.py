"""What the tests of the plan share: a testbed, cells, and a run without hardware."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from dutperf.config import Campaign, PlannedTestbed, Testbed, expand, spec_from
from dutperf.config.testbed import PowerMeter
from dutperf.engine.client import ProgressCallback, ignore_progress
from dutperf.model.cell import Cell
from dutperf.model.specs import SPECS, ProcedureSpec
from dutperf.procedures.cpu_contention import DeviceWatch
from dutperf.procedures.events import Event, Notice
from dutperf.procedures.trials import Ask, RunHooks
from dutperf.protocol.result_messages import Reason, ReasonCode, TrialResult, Verdict
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import ResultsFile, TrialRecord
from dutperf.routing import Speaking, no_speaker
from dutperf.run.campaign_run import run_campaign
from dutperf.run.engine_session import (
    EngineOpener,
    EngineStarter,
    Notify,
    TesterEngine,
)
from dutperf.run.hook_runs import run_hooks
from dutperf.run.local_executor import Surroundings
from dutperf.run.metering import open_meter
from dutperf.run.openings import Openings
from dutperf.run.trial_runner import Metering, TrialRunner
from dutperf.simulation.fake_engine import Dut, FakeEngine

TESTBED = Testbed.model_validate(
    {
        "name": "simulated",
        "cores": [0],
        "left": {
            "port": {"interface": "left"},
            "ipv4": {"address": "198.18.0.2", "gateway": "198.18.0.1"},
            "ipv6": {"address": "2001:2::2", "gateway": "2001:2::1"},
        },
        "right": {
            "port": {"interface": "right"},
            "ipv4": {"address": "198.19.0.2", "gateway": "198.19.0.1"},
            "ipv6": {"address": "2001:2:0:1::2", "gateway": "2001:2:0:1::1"},
        },
    }
)

TRANSLATOR = Testbed.model_validate(
    {
        "name": "translating",
        "cores": [0],
        "left": {
            "port": {"interface": "left"},
            "ipv4": {
                "address": "198.18.128.2",
                "gateway": "198.18.128.1",
                "virtual": "198.18.0.2",
            },
            "ipv6": {
                "address": "2001:2::2",
                "gateway": "2001:2::1",
                "virtual": "2001:2:0:2000::2",
            },
        },
        "right": {
            "port": {"interface": "right"},
            "ipv4": {
                "address": "198.19.0.2",
                "gateway": "198.19.0.1",
                "virtual": "198.19.128.2",
            },
            "ipv6": {
                "address": "2001:2:0:8000::2",
                "gateway": "2001:2:0:8000::1",
                "virtual": "2001:2:0:1000::2",
            },
        },
    }
)


def spec(**keys: object) -> ProcedureSpec:
    """A procedure of IPv4 with a known maximum rate unless told otherwise."""
    given: dict[str, object] = {
        "procedure": "throughput",
        "ip": [4],
        "max_rate_fps": 1_000_000,
        "resolution": "1000",
    }
    if "procedure" not in keys:
        given["trial_duration_s"] = 10
    kind = SPECS[str(keys.get("procedure", "throughput"))]
    known = {key: value for key, value in given.items() if key in kind.model_fields}
    return spec_from({"procedure": kind.named()} | known | keys, "test")


def spec_with(keys: Mapping[str, Any]) -> ProcedureSpec:
    """The procedure that a campaign file with ``keys`` has."""
    return spec_from(dict(keys), "test")


def campaign(*specs: ProcedureSpec) -> Campaign:
    """A campaign of ``specs`` on the testbed of this module."""
    return Campaign(name="simulation", testbed=[TESTBED], procedures=list(specs))


def cell(testbed: Testbed = TESTBED, /, **keys: object) -> Cell:
    """The only cell of ``spec(**keys)``."""
    (only,) = expand(campaign(spec(**keys)), testbed)
    return only


def spoilt(code: ReasonCode, *calls: int) -> dict[int, ReasonCode]:
    """Troubles of a FakeEngine: these calls come out invalid because of ``code``."""
    return dict.fromkeys(calls, code)


def doubling(
    engine: FakeEngine, doubles: Callable[[TrialRequest], bool] = lambda _trial: True
) -> FakeEngine:
    """``engine``, of whose frames all arrive, and some of them twice.

    In trials that it ``doubles``; others are as they were.
    """
    measure = engine.measure

    def measure_doubled(
        trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        twice = Reason(code="duplicates", message="some arrived more than once")
        verdict = Verdict(kind="fail", reasons=[twice])
        update = {"verdict": verdict} if doubles(trial) else {}
        return measure(trial, on_progress).model_copy(update=update)

    engine.measure = measure_doubled  # type: ignore[method-assign]
    return engine


def with_hooks(**hooks: object) -> Testbed:
    """The testbed of this module with hooks: lists of Hook, or of what makes one."""
    data = TESTBED.model_dump(exclude_none=True)
    return Testbed.model_validate(data | {"hooks": hooks})


class Tiring(FakeEngine):
    """Offers long bursts at any rate, and shorter ones only up to a limit.

    ``limits``: its rates, and from which number of frames down.
    """

    def __init__(self, dut: Dut, limits: dict[int, int]) -> None:
        super().__init__(dut)
        self._slower = {
            frames: FakeEngine(dut, tester_limit_fps=limit_fps)
            for frames, limit_fps in sorted(limits.items())
        }

    def measure(
        self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        frames = trial.frames(trial.directions[0])
        slower = [engine for most, engine in self._slower.items() if frames <= most]
        measure = slower[0].measure if slower else super().measure
        return measure(trial, on_progress)


class FakeWatch:
    """In every trial others have the device's CPU for ``taken_ns``.

    In ``trials``: in so many from the first one on.
    """

    def __init__(self, taken_ns: int, trials: int = 10**9) -> None:
        self.queue_frames = 100
        self.cpu = 1
        self.dropped: dict[str, dict[str, int]] = {}
        self.drops = lambda: self.dropped
        self.sent: Callable[[], dict[str, int]] = dict
        self._taken_ns = taken_ns
        self._left = trials

    def started(self) -> Callable[[], int]:
        self._left -= 1
        taken_ns = self._taken_ns if self._left >= 0 else 0
        return lambda: taken_ns


class Repeats:
    """Which repeat a recording is in; for devices that are others in each of them."""

    def __init__(self) -> None:
        self.now = 1

    def follow(self, recording: Recording) -> None:
        """Watch it from now on."""
        original = recording.runner.run

        def run(ask: Ask) -> TrialRecord:
            self.now = ask.repeat
            return original(ask)

        recording.runner.run = run  # type: ignore[method-assign]


class Recording:
    """A trial runner on a FakeEngine, and everything that it did in order."""

    def __init__(
        self,
        engine: FakeEngine,
        *,
        dut_alive: bool = True,
        testbed: Testbed = TESTBED,
        hooks: RunHooks = run_hooks,
        sleep: Callable[[float], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        device: DeviceWatch | None = None,
        stored: Sequence[TrialRecord] = (),
        openings: Openings | None = None,
        meter: Metering | None = None,
    ) -> None:
        self.engine = engine
        self.records: list[TrialRecord] = []
        self.events: list[Event] = []
        self.waits: list[float] = []
        self.runner = TrialRunner(
            engine,
            testbed,
            journal=self.records.append,
            on_event=self.events.append,
            sleep=sleep or self.waits.append,
            dut_alive=lambda: dut_alive,
            hooks=hooks,
            device=device,
            clock=clock,
            stored=stored,
            openings=openings,
            meter=meter,
        )

    @property
    def loads_fps(self) -> list[int]:
        """The rate of each trial."""
        return [record.load_fps for record in self.records]


class FakeOpener:
    """An ``EngineOpener`` for a FakeEngine; knows whether the engine was ended."""

    def __init__(self, engine: FakeEngine) -> None:
        self.engine = engine
        self.ended = False

    def __call__(self, _testbed: Testbed, _notify: Notify) -> EngineStarter:
        return self._start

    @contextlib.contextmanager
    def _start(self, log_path: Path) -> Iterator[TesterEngine]:
        log_path.write_text("simulated\n")
        try:
            yield self.engine
        finally:
            self.ended = True


TWO_CELLS = campaign(spec(ip=[4, 6], frame_size=[128]))


TestbedOpener = Callable[[PlannedTestbed], AbstractContextManager[Testbed]]


def standing(planned: PlannedTestbed) -> AbstractContextManager[Testbed]:
    """Opens nothing: the testbed is there."""
    return contextlib.nullcontext(planned.testbed)


class Run:
    """A campaign on a FakeEngine in a results directory."""

    def __init__(
        self,
        path: Path,
        engine: FakeEngine,
        *,
        dut_alive: bool = True,
        opener: EngineOpener | None = None,
        sleep: Callable[[float], None] = lambda _seconds: None,
        testbed: Testbed = TESTBED,
        open_testbed: TestbedOpener = standing,
        device: DeviceWatch | None = None,
        openings: Openings | None = None,
        speaking: Speaking = no_speaker,
        meter: Callable[[PowerMeter], Metering] = open_meter,
    ) -> None:
        self.path = path
        self.planned = [PlannedTestbed(testbed=testbed)]
        self.engine = engine
        self.opener = FakeOpener(engine)
        self.events: list[Event] = []
        self.reports = 0
        self.around = Surroundings(
            open_engine=opener or self.opener,
            write_report=self._write_report,
            open_testbed=open_testbed,
            dut_alive=lambda _place: dut_alive,
            watch_dut=lambda _place: device,
            sleep=sleep,
            openings=lambda _testbed: openings,
            speaking=speaking,
            meter=meter,
        )

    def __call__(self, what: Campaign = TWO_CELLS) -> ResultsFile:
        return self._run(what, self.path, None)

    def resume(self, what: Campaign = TWO_CELLS) -> ResultsFile:
        """Continue what another run left in the directory."""
        return self._run(what, None, self.path)

    @property
    def notices(self) -> list[str]:
        """What the user was told."""
        return [e.text for e in self.events if isinstance(e, Notice)]

    def _run(
        self, what: Campaign, results_dir: Path | None, resume: Path | None
    ) -> ResultsFile:
        return run_campaign(
            what,
            self.planned,
            self.around,
            on_event=self.events.append,
            results_dir=results_dir,
            resume=resume,
        )

    def _write_report(self, directory: Path) -> Path:
        self.reports += 1
        return directory / "report.html"
