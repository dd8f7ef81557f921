"""What the tests of the plan share: a testbed, cells, and a run without hardware."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from dutperf.config import Campaign, Cell, ProcedureSpec, Testbed, expand
from dutperf.engine.fake import FakeEngine
from dutperf.engine.protocol import ReasonCode
from dutperf.procedures.events import Event
from dutperf.procedures.runner import TrialRunner
from dutperf.procedures.session import EngineStarter, Notify, TesterEngine
from dutperf.results import TrialRecord

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
    given = {"procedure": "throughput", "ip": [4], "max_rate_fps": 1_000_000}
    return ProcedureSpec.model_validate(given | {"resolution": "1000"} | keys)


def campaign(*specs: ProcedureSpec) -> Campaign:
    """A campaign of ``specs`` on the testbed of this module."""
    return Campaign(name="simulation", testbed=TESTBED, procedures=list(specs))


def cell(**keys: object) -> Cell:
    """The only cell of ``spec(**keys)``."""
    (only,) = expand(campaign(spec(**keys)), TESTBED)
    return only


def spoilt(code: ReasonCode, *calls: int) -> dict[int, ReasonCode]:
    """Troubles of a FakeEngine: these calls come out invalid because of ``code``."""
    return dict.fromkeys(calls, code)


class Recording:
    """A trial runner on a FakeEngine, and everything that it did in order."""

    def __init__(self, engine: FakeEngine, *, dut_alive: bool = True) -> None:
        self.engine = engine
        self.records: list[TrialRecord] = []
        self.events: list[Event] = []
        self.waits: list[float] = []
        self.runner = TrialRunner(
            engine,
            TESTBED,
            journal=self.records.append,
            on_event=self.events.append,
            sleep=self.waits.append,
            dut_alive=lambda: dut_alive,
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
