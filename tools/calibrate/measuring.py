"""Runs the grid: a lab, its device told what to do, a campaign for each point.

Each point is an ordinary run in a directory of its own, with its journal; beside that
``accounts.jsonl`` holds what the device said of each of its trials.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from dutperf import lab
from dutperf.config import Campaign, PlannedTestbed, Testbed, spec_from
from dutperf.config.campaign import IN_FLIGHT_FRAMES, LabKeys
from dutperf.doctor.checks import engine_offset_ns, examine
from dutperf.errors import EngineError, InputError, SetupError
from dutperf.lab import netns, topology
from dutperf.lab.processes import plan_cpus
from dutperf.lab.refdut_socket import (
    Behaviour,
    DirectionAccount,
    Report,
    TrialAccount,
)
from dutperf.procedures.events import Event, Notice, OnEvent, TrialFinished
from dutperf.programs import postponed_signals
from dutperf.results import ResultsFile, TrialRecord, load_environments
from dutperf.results.environment import MachineCheck
from dutperf.results.storage import storing, write_atomically
from dutperf.run.campaign_run import run_campaign
from dutperf.run.local_executor import Surroundings
from tools.calibrate.grid import (
    FLOW_CONTROL,
    SMALL,
    Extent,
    Pairing,
    Traffic,
    limit_point,
    pairings,
    points,
    queue_frames,
)
from tools.calibrate.judging import PROCEDURES, compared, judged, unmeasured
from tools.calibrate.model import (
    FILE,
    Calibration,
    FlowControl,
    Point,
    Quantity,
    Row,
    Way,
)
from tools.calibrate.truth import Witnessed

ACCOUNTS = "accounts.jsonl"
_HELD_BACK = "left"
"""The tester's side whose wire may hold frames back."""
_SECOND_QDISC = 0x20000  # "2:"
_FCS = 4
"""Bytes of a frame that the kernel does not see."""
_LOSS_RUNS_KEPT = 20
"""Of a trial that lost thousands: what is judged needs the first."""


class Device(Protocol):
    """The known-answer device, as ``lab.KnownAnswer`` is it."""

    def configure(self, behaviour: Behaviour) -> None:
        """Make it do as told from the next frame on."""

    def report(self, trial_id: int | None = None) -> Report:
        """What it did in the last trials, or in those with ``trial_id``."""


@dataclass(frozen=True)
class Laboratory:
    """Where the device is; tests have another.

    plan: the testbed that a lab would have; session: the lab, up; device: the one of
    the lab that is up; examine: what of the machine may touch the figures;
    handover_ns: until one of these CPUs sees what the other has written, at most.
    """

    plan: Callable[[str], Testbed] = lab.plan
    session: Callable[[str], AbstractContextManager[Testbed]] = lab.session
    device: Callable[[], Device] = lab.known_answer_device
    examine: Callable[[], Sequence[MachineCheck]] = examine
    handover_ns: Callable[[Sequence[int]], int] = engine_offset_ns


def calibrate(
    directory: Path,
    wanted: Sequence[Quantity],
    paths: Sequence[Way],
    extent: Extent,
    around: Surroundings,
    on_event: OnEvent,
    laboratory: Laboratory = Laboratory(),
) -> Calibration:
    """Measure ``wanted`` of the grid; all is stored in ``directory`` as it is found.

    Raises:
        InputError: the directory is not empty.
        DutperfError: a lab cannot be brought up, or nothing can be stored.
        KeyboardInterrupt: what was measured before is stored.
    """
    _claim(directory)
    with Run(directory, around, on_event, laboratory) as run:
        for point in points(wanted, paths, extent, run.limit):
            run.measure(point)
        if FLOW_CONTROL in wanted:
            for pairing in pairings(extent, paths):
                run.compare(pairing)
        return run.end()


def _claim(directory: Path) -> None:
    with storing(directory):
        try:
            directory.mkdir(parents=True, exist_ok=True)
            taken = any(directory.iterdir())
        except FileExistsError:
            taken = True
    if taken:
        raise InputError(
            f"{directory} holds other files, or is one",
            "give a new or empty directory: no calibration is overwritten",
        )


@dataclass
class Run:
    """One calibration: the labs that it brings up, and its rows."""

    directory: Path
    around: Surroundings
    on_event: OnEvent
    laboratory: Laboratory
    rows: list[Row] = field(default_factory=list)
    flow_control: list[FlowControl] = field(default_factory=list)
    limits: dict[str, int] = field(default_factory=dict)
    safe_rates: dict[str, int] = field(default_factory=dict)
    machine: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._began = time.monotonic()
        self._created = datetime.now(UTC).isoformat(timespec="seconds")
        self._checks = list(self.laboratory.examine())
        self._labs = _Labs(self.laboratory)
        self._handover_ns = self._handover()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._labs.close()

    def limit(self, traffic: Traffic) -> int | None:
        """The least of what the tester can do by its passport, and with the device.

        By a short search: on two CPUs the device is often slower than the tester.
        """
        if traffic.name not in self.limits:
            results, _ = self._results(limit_point(traffic))
            cell = results.cells[-1]
            if cell.median is None:
                return None
            safe_fps = cell.passport.safe_rate_fps if cell.passport else None
            self.limits[traffic.name] = int(min(cell.median, safe_fps or cell.median))
            if safe_fps:
                self.safe_rates[traffic.name] = safe_fps
        return self.limits[traffic.name]

    def measure(self, point: Point) -> None:
        """Its rows, stored."""
        self.on_event(Notice(f"{point.quantity}: {point.words}"))
        run = str(self._place(point).relative_to(self.directory))
        try:
            results, trials = self._results(point)
        except (EngineError, SetupError) as error:
            self.on_event(Notice(f"{point.name}: {error.message}"))
            self.rows += [
                unmeasured(point, figure, error.message, run)
                for figure in point.figures
            ]
        else:
            for figure in point.figures:
                (cell,) = (
                    c for c in results.cells if c.procedure == PROCEDURES[figure]
                )
                row = judged(point, figure, cell, trials, run, self._handover_ns)
                self.rows.append(row)
        self._store(complete=False)

    def compare(self, pairing: Pairing) -> None:
        """The same device with and without flow control, stored."""
        self.on_event(Notice(f"flow control: {pairing.waiting.words}"))
        first = pairing.dropping
        run = str(self._place(first).relative_to(self.directory))
        try:
            without, told = self._results(first)
            row = judged(first, "throughput", without.cells[-1], told, run)
            found, trials = self._results(pairing.waiting)
        except (EngineError, SetupError) as error:
            self.on_event(Notice(f"{first.name}: {error.message}"))
            self.rows.append(unmeasured(first, "throughput", error.message, run))
        else:
            cell = found.cells[-1]
            self.flow_control.append(compared(pairing, row, told, cell, trials))
        self._store(complete=False)

    def end(self) -> Calibration:
        """All of it, stored as complete."""
        return self._store(complete=True)

    def _results(self, point: Point) -> tuple[ResultsFile, list[Witnessed]]:
        planned, testbed = (as_asked(each, point) for each in self._labs.at(point.lab))
        device = self.laboratory.device()
        device.configure(point.behaviour)
        place = self._place(point)
        witness = _Witness(device, place / ACCOUNTS, self.on_event)
        around = replace(
            self.around,
            open_testbed=lambda _planned: contextlib.nullcontext(testbed),
            write_report=lambda path: path,  # dutperf report makes one, of any row
        )
        campaign = Campaign(
            name=point.name,
            lab=[point.lab],
            procedures=[spec_from(dict(keys), "calibrate") for keys in point.specs],
        )
        with held_back(point):
            results = run_campaign(
                campaign,
                [PlannedTestbed(lab=LabKeys(name=point.lab), testbed=planned)],
                around,
                on_event=witness.on_event,
                results_dir=place,
            )
        self._see_machine(place)
        return results, witness.trials

    def _handover(self) -> int:
        cpus = plan_cpus()
        if cpus.dut is None:
            return 0
        return self.laboratory.handover_ns([cpus.worker, cpus.dut])

    def _place(self, point: Point) -> Path:
        return self.directory / "runs" / f"{point.path}-{point.name}"

    def _see_machine(self, place: Path) -> None:
        if self.machine:
            return
        for env in load_environments(place).values():
            self.machine = {
                "CPU": f"{env.cpu_model}, {env.cpus_total} CPUs",
                "virtual machine": {True: "yes", False: "no", None: "unknown"}[
                    env.hypervisor
                ],
                "kernel": env.kernel,
                "governor": ", ".join(sorted(set(env.governor.values()))),
                "engine": env.engine_version,
                "DPDK": env.dpdk_version,
                "device": env.dut,
            }

    def _store(self, *, complete: bool) -> Calibration:
        now = Calibration(
            created_at=self._created,
            duration_s=round(time.monotonic() - self._began, 1),
            complete=complete,
            machine=self.machine,
            checks=self._checks,
            handover_ns=self._handover_ns,
            limits_fps=self.limits,
            safe_rates_fps=self.safe_rates,
            rows=self.rows,
            flow_control=self.flow_control,
        )
        text = now.model_dump_json(indent=1) + "\n"
        write_atomically(self.directory / FILE, text)
        return now


def as_asked(testbed: Testbed, point: Point) -> Testbed:
    """``testbed`` with the ports that the point's path wants.

    Without the hook after each trial: the witness asks for the whole account itself.
    """
    hooks = testbed.hooks.model_copy(update={"after_trial": ()})
    testbed = testbed.model_copy(update={"hooks": hooks})
    changes: dict[str, object] = {}
    if point.path != "memory":
        changes["driver"] = point.path
    if point.waits:
        changes["when_full"] = "wait"
    if not changes:
        return testbed
    sides = {
        name: side.model_copy(update={"port": side.port.model_copy(update=changes)})
        for name, side in testbed.sides.items()
    }
    return testbed.model_copy(update={str(name): side for name, side in sides.items()})


@contextlib.contextmanager
def held_back(point: Point) -> Iterator[None]:
    """In the block the wire of its path holds frames back, if the point says so.

    As a link whose other end sends pause frames: nothing is lost, and whoever sends
    stands still. AF_XDP sockets know no queue discipline, and so not this one.
    """
    rate = point.held_back_fps
    if rate is None:
        yield
        return
    frame = SMALL.size - _FCS
    _put_before_wire(
        "tbf",
        handle=_SECOND_QDISC,
        rate=f"{rate * frame * 8}bit",
        burst=queue_frames(rate) * frame,
        limit=4 * IN_FLIGHT_FRAMES * frame,  # more than the tester can send
    )
    try:
        yield
    finally:
        _put_before_wire("pfifo", handle=topology.FIRST_QDISC, limit=IN_FLIGHT_FRAMES)


def _put_before_wire(discipline: str, **options: object) -> None:
    with (
        postponed_signals(),  # pyroute2 forks, and ends its child by SIGTERM
        netns.kernel_errors(f"change the queue before the lab's {_HELD_BACK} wire"),
        netns.rtnetlink(netns.TESTER) as tester,
    ):
        (index,) = tester.link_lookup(ifname=_HELD_BACK)
        tester.tc("replace", discipline, index=index, **options)


class _Labs:
    """One lab at a time is up; it stays while the next point needs the same."""

    def __init__(self, laboratory: Laboratory) -> None:
        self._laboratory = laboratory
        self._stack = contextlib.ExitStack()
        self._now: tuple[str, Testbed, Testbed] | None = None

    def at(self, name: str) -> tuple[Testbed, Testbed]:
        """The testbed of lab ``name`` as it was planned, and as it is, up."""
        if self._now is None or self._now[0] != name:
            self.close()
            planned = self._laboratory.plan(name)
            testbed = self._stack.enter_context(self._laboratory.session(name))
            self._now = (name, planned, testbed)
        return self._now[1:]

    def close(self) -> None:
        """No lab is up any more."""
        self._stack.close()
        self._now = None


class _Witness:
    """Asks the device after each trial what it did, and keeps that in a file."""

    def __init__(self, device: Device, file: Path, on_event: OnEvent) -> None:
        self.trials: list[Witnessed] = []
        self._device = device
        self._file = file
        self._on_event = on_event
        self._runs = max((trial.run for trial in device.report().trials), default=0)

    def on_event(self, event: Event) -> None:
        """To be told of all that happens."""
        self._on_event(event)
        if isinstance(event, TrialFinished):
            self._ask(event.record)

    def _ask(self, record: TrialRecord) -> None:
        """An account is of this trial if it began after all that were seen before."""
        report = self._device.report(record.request.trial_id)
        new = [trial for trial in report.trials if trial.run > self._runs]
        account = _shortened(new[-1]) if new else None
        self._runs = account.run if account else self._runs
        self.trials.append(Witnessed(record, account, report.nat))
        line = {
            "trial": record.number,
            "account": account.model_dump() if account else None,
            "nat": report.nat.model_dump() if report.nat else None,
        }
        with storing(self._file), self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def _shortened(account: TrialAccount) -> TrialAccount:
    def short(each: DirectionAccount) -> DirectionAccount:
        beyond = len(each.losses[_LOSS_RUNS_KEPT:])
        left_out = {
            "losses": each.losses[:_LOSS_RUNS_KEPT],
            "loss_runs_left_out": each.loss_runs_left_out + beyond,
        }
        return each.model_copy(update=left_out)

    both = {"forward": short(account.forward), "reverse": short(account.reverse)}
    return account.model_copy(update=both)
