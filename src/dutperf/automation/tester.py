"""A tester in another program: it measures at one place, as ``dutperf`` would."""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dutperf.automation.measured import Measured
from dutperf.catalogue import PROCEDURES
from dutperf.cli.measuring import surroundings
from dutperf.cli.testbeds import campaign_for, planned_testbeds
from dutperf.config import PlannedTestbed, Testbed, spec_from
from dutperf.config.campaign import Campaign, Preset, preset_keys
from dutperf.config.hooks import Hooks
from dutperf.errors import InputError
from dutperf.procedures.events import Event, Notice, ReportWritten, RunStarted
from dutperf.report import write_report
from dutperf.run.campaign_run import run_campaign
from dutperf.run.consent import campaign_to_run
from dutperf.run.local_executor import Surroundings
from dutperf.simulation.fake_engine import FakeEngine, step

_LOG = logging.getLogger("dutperf")
_PRESETS: dict[str, Preset] = {"quick": "quick", "standard": "standard"}


@dataclass
class Tester:
    """Where to measure, and where results are stored.

    Attributes:
        results: a directory for the measurements, each in one of its own.
        testbed: the file of a testbed; or
        lab: the name of a lab, which is up while something is measured (root).
        simulated_fps: no frame is sent: the device is a simulated one that forwards so
            many frames a second and loses what is more. To try tests themselves.
    """

    results: Path
    testbed: Path | None = None
    lab: str | None = None
    simulated_fps: float | None = None
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    def measure(
        self, procedure: str, *, preset: str | None = None, **keys: object
    ) -> Measured:
        """Measure by one procedure.

        Args:
            procedure: as the command: ``throughput``, ``latency``, ...
            preset: ``quick`` or ``standard``: what ``keys`` leave out.
            keys: as in a campaign file: ``frame_size=[64, 1518]``, ``repeats=3``.

        Raises:
            InputError: a key or the place is wrong; nothing was sent.
            SetupError: machine, lab, device or engine are not as needed.
        """
        if procedure not in PROCEDURES:
            raise InputError(
                f"no procedure {procedure!r}", f"one of {', '.join(PROCEDURES)}"
            )
        data: dict[str, Any] = {"procedure": procedure, **keys}
        if preset is not None:
            if preset not in _PRESETS:
                raise InputError(f"no preset {preset!r}", "quick or standard")
            data = {**preset_keys(_PRESETS[preset], data), **data}
        spec = spec_from(data, "measure()")
        return self._run(campaign_for(spec, self.testbed, self.lab, None, seed=1))

    def run(self, campaign: Path | str) -> Measured:
        """Run a campaign file, at the testbeds or labs that it names.

        Raises:
            InputError, SetupError: as ``measure``.
        """
        return self._run(campaign_to_run(Path(campaign)))

    def _run(self, campaign: Campaign) -> Measured:
        heard = _Heard()
        results = run_campaign(
            campaign,
            planned_testbeds(campaign),
            self._surroundings(),
            on_event=heard.on_event,
            results_dir=self.results / f"{next(self._numbers)}-{campaign.name}",
        )
        return Measured(results, heard.directory, heard.report)

    def _surroundings(self) -> Surroundings:
        fps = self.simulated_fps
        return surroundings() if fps is None else simulated(fps)


def simulated(fps: float) -> Surroundings:
    """A world in which a device forwards up to ``fps`` a second, and no time passes."""

    def open_engine(
        _testbed: Testbed, _notify: Callable[[str], None]
    ) -> Callable[[Path], AbstractContextManager[FakeEngine]]:
        return lambda _log: contextlib.nullcontext(FakeEngine(step(fps)))

    def open_testbed(planned: PlannedTestbed) -> AbstractContextManager[Testbed]:
        alone = planned.testbed.model_copy(update={"hooks": Hooks()})
        return contextlib.nullcontext(alone)

    return Surroundings(
        open_engine=open_engine,
        write_report=write_report,
        open_testbed=open_testbed,
        sleep=lambda _seconds: None,
    )


class _Heard:
    """Keeps where results are, and logs what a user should know."""

    directory = Path()
    report = Path()

    def on_event(self, event: Event) -> None:
        """One event of a run."""
        if isinstance(event, Notice):
            _LOG.warning("%s", event.text)
        elif isinstance(event, RunStarted):
            self.directory = event.directory
        elif isinstance(event, ReportWritten):
            self.report = event.path
