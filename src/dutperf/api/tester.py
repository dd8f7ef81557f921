"""A tester in another program: it measures at one place, as ``dutperf`` would."""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from dutperf.api.frames import Loads, OpenFrames, own_addresses
from dutperf.api.places import campaign_for, planned_testbeds, simulated, surroundings
from dutperf.api.traffic import OF_FRAMES, Traffic
from dutperf.catalogue import PROCEDURES
from dutperf.config import PlannedTestbed, Testbed, expand, spec_from
from dutperf.config.campaign import Campaign, Preset, filled
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.model.requirements import bound_in_unit
from dutperf.model.specs import ProcedureSpec
from dutperf.procedures.events import (
    Event,
    Notice,
    OnEvent,
    ReportWritten,
    RunStarted,
)
from dutperf.procedures.requirements import figure_name, found_words, outcome_of
from dutperf.results import ResultsFile
from dutperf.results.figures import Figure, figures_of
from dutperf.results.units import in_unit
from dutperf.run.campaign_run import campaign_to_run, run_campaign
from dutperf.run.local_executor import Surroundings
from dutperf.run.streaming import name_of, opened_stream

_LOG = logging.getLogger("dutperf")
_PRESETS: dict[str, Preset] = {"quick": "quick", "standard": "standard"}
_SIMULATED_LAB = "linux-router"
"""Whose addresses a simulated device has, if no place is named."""
_AT_ONCE: dict[str, object] = {
    "trial_duration_s": 1.0,
    "settle_wait_s": 0.0,
    "residual_wait_s": 0.1,
    "restabilise_wait_s": 0.0,
}
"""Times of a trial that somebody waits for; a key of the same name changes them."""
_KINDS_NAMED = 3


class Tester:
    """Where to measure, and where results are stored.

    As a context it keeps a lab up between measurements and traffic; without, each
    brings it up and takes it down.

    Args:
        testbed: the file of a testbed; or
        lab: the name of a lab (root).
        simulated_fps: no frame is sent: the device is a simulated one that forwards so
            many frames a second and loses what is more. To try programs themselves:
            it needs neither root nor a place.
        results: a directory for the measurements, each in one of its own.
        on_event: is told what happens; raising KeyboardInterrupt in it ends what is
            measured in order, as Ctrl-C does. Notices are also logged ("dutperf").

    Raises:
        InputError: two places.
    """

    __test__ = False  # no class of tests, whatever pytest takes it for

    def __init__(
        self,
        *,
        testbed: Path | str | None = None,
        lab: str | None = None,
        simulated_fps: float | None = None,
        results: Path | str = "results",
        on_event: OnEvent | None = None,
    ) -> None:
        if testbed is None and lab is None and simulated_fps is not None:
            lab = _SIMULATED_LAB
        if testbed is not None and lab is not None:
            raise _no_place("a testbed and a lab are given")
        if simulated_fps is not None and not simulated_fps > 0:
            raise InputError(
                f"simulated_fps: {simulated_fps} is no rate",
                "give frames a second",
                "simulated_fps",
            )
        self.results = Path(results)
        self._testbed = None if testbed is None else Path(testbed)
        self._lab = lab
        self._simulated_fps = simulated_fps
        self._on_event = on_event
        self._numbers = itertools.count(1)
        self._closing = ExitStack()
        self._open: Testbed | None = None

    def __enter__(self) -> Self:
        """Bring the lab up, if it is one.

        Raises:
            InputError, SetupError: it cannot be.
        """
        with ExitStack() as stack:
            around = self._surroundings()
            self._open = stack.enter_context(around.open_testbed(self._planned()))
            self._closing = stack.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        """Take it down."""
        self._open = None
        self._closing.close()

    @contextlib.contextmanager
    def traffic(self, **keys: object) -> Iterator[Traffic]:
        """Frames of one kind, ready to be sent while the context is open.

        Args:
            keys: as in a campaign file: ``ip=4``, ``frame_size=64``,
                ``direction="both"``, ``traffic={...}``, ``stateful={...}``; and how
                long trials wait: ``residual_wait_s`` (0.1), ``settle_wait_s`` (0).

        Raises:
            InputError: a key is wrong, or these are frames of several kinds.
            SetupError: machine, lab, device or engine are not as needed.
        """
        campaign = self._campaign(keys)
        (planned,) = planned_testbeds(campaign)

        def cell_with(more: dict[str, Any]) -> Cell:
            return _one_cell(self._campaign({**keys, **more}), planned.testbed)

        with opened_stream(
            cell_with({}),
            planned,
            self._surroundings(),
            on_event=_Heard(self._on_event).on_event,
            hooks_of_trials=True,
        ) as stream:
            yield Traffic(stream, cell_with)

    @contextlib.contextmanager
    def frames(self, loads: Loads) -> Iterator[OpenFrames]:
        """Ports ready for frames by their own headers, while the context is open.

        For adapters: what is in a campaign's words is ``traffic``.

        Args:
            loads: templates whose senders the tester answers for; others of their
                kind may be sent.

        Raises:
            InputError: the testbed has no address of an IP version.
            SetupError: machine, lab, device or engine are not as needed.
        """
        versions = {t.ip_version for load in loads.values() for t in load.templates}
        ip = min(versions, default=4)
        campaign = self._campaign({"ip": ip, "direction": "both"})
        (planned,) = planned_testbeds(campaign)
        testbed = planned.testbed
        hops = {
            name: {
                version: hop
                for version in (4, 6)
                if (hop := side.next_hop(version)) is not None
            }
            for name, side in testbed.sides.items()
        }
        with opened_stream(
            _one_cell(campaign, testbed),
            planned,
            self._surroundings(),
            on_event=_Heard(self._on_event).on_event,
            hooks_of_trials=True,
            own=own_addresses(loads),
        ) as stream:
            yield OpenFrames(stream, hops)

    def measure(
        self, procedure: str, *, preset: str | None = None, **keys: object
    ) -> Measured:
        """Measure by one procedure, and store what was found.

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
                f"no procedure {procedure!r}",
                f"one of {', '.join(PROCEDURES)}",
                "procedure",
            )
        data: dict[str, Any] = {"procedure": procedure, **keys}
        if preset is not None:
            if preset not in _PRESETS:
                raise InputError(f"no preset {preset!r}", "quick or standard", "preset")
            data = filled(_PRESETS[preset], data)
        spec = spec_from(data, "measure()")
        return self._run(self._of(spec))

    def run(self, campaign: Path | str) -> Measured:
        """Run a campaign file, at the testbeds or labs that it names.

        Raises:
            InputError, SetupError: as ``measure``.
        """
        return self._run(campaign_to_run(Path(campaign)))

    def _run(self, campaign: Campaign) -> Measured:
        heard = _Heard(self._on_event)
        results = run_campaign(
            campaign,
            planned_testbeds(campaign),
            self._surroundings(),
            on_event=heard.on_event,
            results_dir=self.results / f"{next(self._numbers)}-{campaign.name}",
        )
        return Measured(results, heard.directory, heard.report)

    def _campaign(self, keys: dict[str, object]) -> Campaign:
        data = {"procedure": "throughput", **_AT_ONCE, **keys}
        spec = spec_from(data, "traffic()")
        return self._of(spec)

    def _of(self, spec: ProcedureSpec) -> Campaign:
        if self._testbed is None and self._lab is None:
            raise _no_place("no testbed and no lab is given")
        return campaign_for(spec, self._testbed, self._lab, None, seed=1)

    def _planned(self) -> PlannedTestbed:
        (planned,) = planned_testbeds(self._campaign({}))
        return planned

    def _surroundings(self) -> Surroundings:
        fps, there = self._simulated_fps, self._open
        around = surroundings() if fps is None else simulated(fps)
        if there is None:
            return around

        def check(_planned: PlannedTestbed) -> None:
            """It is ours."""

        return replace(
            around,
            check_testbed=check,
            open_testbed=lambda _planned: contextlib.nullcontext(there),
        )


def _no_place(what: str) -> InputError:
    return InputError(
        f"where to measure: {what}",
        "give testbed, a file, or lab, a name; or simulated_fps, to send nothing",
        "testbed",
    )


def _one_cell(campaign: Campaign, testbed: Testbed) -> Cell:
    cells = expand(campaign, testbed)
    if len(cells) > 1:
        named = [name_of(cell) for cell in cells[:_KINDS_NAMED]]
        more = ", ..." if len(cells) > _KINDS_NAMED else ""
        raise InputError(
            f"traffic() is of one kind of frames, and these keys are of {len(cells)}: "
            f"{', '.join(named)}{more}",
            f"give one value of each: {', '.join(OF_FRAMES)}",
        )
    (cell,) = cells
    if cell.phase2 and cell.phase2.rate_reference:
        raise InputError(
            "stateful.phase1_rate: nothing was measured that it could be a share of",
            "give frames a second",
            "stateful.phase1_rate",
        )
    return cell


class _Heard:
    """Keeps where results are, logs what a user should know, and tells ``then``."""

    directory = Path()
    report = Path()

    def __init__(self, then: OnEvent | None) -> None:
        self._then = then

    def on_event(self, event: Event) -> None:
        """One event of a run."""
        if isinstance(event, Notice):
            _LOG.warning("%s", event.text)
        elif isinstance(event, RunStarted):
            self.directory = event.directory
        elif isinstance(event, ReportWritten):
            self.report = event.path
        if self._then:
            self._then(event)


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
