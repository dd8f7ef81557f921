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

from dutperf.catalogue import PROCEDURES
from dutperf.cli.measuring import campaign_for, planned_testbeds, surroundings
from dutperf.config import PlannedTestbed, Testbed, spec_from
from dutperf.config.campaign import Campaign, Preset, filled
from dutperf.config.testbed import Hooks
from dutperf.errors import InputError
from dutperf.model.requirements import bound_in_unit
from dutperf.procedures.events import Event, Notice, ReportWritten, RunStarted
from dutperf.procedures.requirements import figure_name, found_words, outcome_of
from dutperf.report import write_report
from dutperf.results import ResultsFile
from dutperf.results.figures import Figure, figures_of
from dutperf.results.units import in_unit
from dutperf.run.campaign_run import campaign_to_run, run_campaign
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
            data = filled(_PRESETS[preset], data)
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


# What one measurement found, and whether that is enough.


@dataclass(frozen=True)
class Measured:
    """The results of one measurement.

    Attributes:
        results: all that was found.
        directory: where it is stored.
        report: the report of it.
    """

    results: ResultsFile
    directory: Path
    report: Path

    @property
    def value(self) -> float | None:
        """The only figure, in its unit; None: there is no valid one.

        Raises:
            InputError: there are several: ``figures`` has them.
        """
        found = self.figures()
        if len(found) > 1:
            names = [figure_name(each, self.results.cells) for each in found]
            raise InputError(
                f"there are {len(found)} figures: {', '.join(names)}",
                "ask for one test case, or take figures() apart",
            )
        return found[0].value

    def figures(self, name: str = "") -> list[Figure]:
        """Those that the cells are known by, or all that are called ``name``.

        Raises:
            InputError: none is.
        """
        every = [each for cell in self.results.cells for each in figures_of(cell)]
        if not name:
            return [figure for figure in every if figure.leads]
        found = [figure for figure in every if figure.name == name]
        if not found:
            known = dict.fromkeys(figure.name for figure in every)
            raise InputError(f"no figure {name!r} here: {', '.join(known)}")
        return found

    def assert_at_least(self, bound: float | str, figure: str = "") -> None:
        """Each figure is as much as ``bound``, or more.

        Args:
            bound: in the figure's unit, or with it: ``"100000 fps"``, ``"2 ms"``.
            figure: which ones, where a cell has several: ``TL``, ``WCL``, ``PDV``.

        Raises:
            AssertionError: one is less, may be less, or is invalid; it says which. It
                may be if the repeats, or the interval of their median, have the bound
                within them.
            InputError: there is no such figure, or the bound is of another unit.
        """
        __tracebackhide__ = True
        self._assert(figure, bound, at_least=True)

    def assert_at_most(self, bound: float | str, figure: str = "") -> None:
        """Each figure is as much as ``bound``, or less; see ``assert_at_least``.

        Raises:
            AssertionError, InputError: as there.
        """
        __tracebackhide__ = True  # of pytest: who asked is what matters
        self._assert(figure, bound, at_least=False)

    def _assert(self, name: str, bound: float | str, *, at_least: bool) -> None:
        __tracebackhide__ = True
        short = []
        for figure in self.figures(name):
            asked = bound_in_unit(bound, figure.unit)
            outcome = outcome_of(figure, asked, at_least=at_least)
            if outcome != "met":
                words = f"at {'least' if at_least else 'most'}"
                short.append(
                    f"{figure_name(figure, self.results.cells)}: {outcome}: asked for "
                    f"{words} {in_unit(asked, figure.unit)}, found "
                    f"{found_words(figure)}"
                )
        if short:
            raise AssertionError("\n".join([*short, f"report: {self.report}"]))
