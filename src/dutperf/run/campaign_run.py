"""Runs a campaign, and loses nothing that was measured.

An executor measures the cells. The results are written after every cell, and however
the run ends: complete, interrupted, or with an error. A run that is resumed begins at
the start, too, but is answered from its journal as far as that goes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Never

from dutperf.catalogue import ProcedureName
from dutperf.config import (
    Campaign,
    PlannedTestbed,
    Testbed,
    expand,
    load_campaign,
    notices,
    resolved,
    resolved_again,
    size_notices,
)
from dutperf.config.document import LARGEST_STORED_BYTES
from dutperf.config.side import MemifPort, VdevPort
from dutperf.config.testbed import Hook
from dutperf.errors import DutperfError, EngineError, InputError, SetupError
from dutperf.model.cell import Cell
from dutperf.model.fields import Secret, dotted
from dutperf.procedures.contradictions import with_contradictions
from dutperf.procedures.events import (
    Notice,
    OnEvent,
    ReportWritten,
    ResultsChanged,
    RunStarted,
)
from dutperf.procedures.scalability import scalability, sweeps
from dutperf.results import (
    CellResult,
    NotMeasured,
    ResultsDirectory,
    ResultsFile,
    how_to_go_on,
    load_results,
)
from dutperf.results.directory import CAMPAIGN, as_yaml
from dutperf.results.journal import JOURNAL
from dutperf.run import Executor, Job, JournalEndsError, Outcome, TestbedsError, jobs_of
from dutperf.run.local_executor import LocalExecutor, Surroundings, visits_of
from dutperf.run.openings import told_again

_ALWAYS_SAVED_CELLS = 50
_MOST_REPORTED_CELLS = 1000
_SELDOM = 50
"""Times what a save takes between two of them."""

Kind = ProcedureName | Literal["campaign"]
ExecutorMaker = Callable[[Surroundings, ResultsDirectory, OnEvent], Executor]


def run_campaign(
    campaign: Campaign,
    planned: Sequence[PlannedTestbed],
    around: Surroundings,
    *,
    on_event: OnEvent,
    kind: Kind = "campaign",
    results_dir: Path | None = None,
    resume: Path | None = None,
    make_executor: ExecutorMaker = LocalExecutor,
) -> ResultsFile:
    """Run all cells of ``campaign`` at all of its ``planned`` testbeds.

    Args:
        campaign: what to measure.
        planned: where; the campaign's own testbeds or labs, resolved.
        around: engine, report, and the rest of the world.
        on_event: is told what happens.
        kind: what the results are called.
        results_dir: where to store them; None: see ``ResultsDirectory.create``.
        resume: the directory of a run to continue, instead of ``results_dir``.
        make_executor: makes what measures the cells.

    Raises:
        InputError: found before the first frame was sent; or nothing to resume.
        SetupError, EngineError: machine, lab, DUT or engine are not as needed; what
            was measured before is stored.
        TestbedsError: this is so at some of several testbeds; what was measured at the
            others is stored.
        KeyboardInterrupt: so was what was measured before this.
    """
    testbeds = [each.testbed for each in planned]
    cells = expand(campaign, *testbeds)
    asked = resolved(campaign, *testbeds)
    if any(cell.traffic.pcap for cell in cells):
        _check_room(asked)
    for text in all_notices(campaign, planned, cells):
        on_event(Notice(text))
    if resume:
        directory = resumed(resume, campaign, testbeds)
    else:
        directory = ResultsDirectory.create(results_dir, campaign.name)
    remember([each.testbed for each in planned if each.lab is None])
    with directory:
        jobs = jobs_of(campaign, planned, cells)
        run = _Run(jobs, around, on_event, kind, directory, resumed=resume is not None)
        return run.begin(make_executor(around, directory, on_event), asked)


def _check_room(asked: dict[str, Any]) -> None:
    """What was read of captures stands in each test case of the stored campaign.

    Raises:
        InputError: there it would be too long to be read again.
    """
    size = len(as_yaml(asked))
    if size > LARGEST_STORED_BYTES:
        raise InputError(
            f"what is read of captures makes the stored campaign {size / 1e6:.1f} MB "
            f"long; it can be read again up to {LARGEST_STORED_BYTES / 1e6:g} MB",
            "measure fewer test cases in one run, or take shorter captures",
        )


def resumed(
    path: Path, campaign: Campaign, testbeds: Sequence[Testbed]
) -> ResultsDirectory:
    """The directory of a run of ``campaign``, to go on from what it holds.

    Raises:
        InputError, SetupError: see ``ResultsDirectory.resume``.
    """
    return ResultsDirectory.resume(
        path,
        campaign.name,
        resolved(campaign, *testbeds),
        lambda stored: resolved_again(stored, *testbeds),
    )


def all_notices(
    campaign: Campaign, planned: Sequence[PlannedTestbed], cells: Sequence[Cell]
) -> list[str]:
    """What a user should know beforehand, and, of several testbeds, of which one."""
    told: list[str] = []
    for at in planned:
        here = [cell for cell in cells if cell.testbed == at.testbed.name]
        found = notices(at.testbed, here, in_lab=at.lab is not None)
        found += size_notices(at.testbed, campaign)
        prefix = f"{at.name}: " if len(planned) > 1 else ""
        told += [prefix + text for text in found]
    return told


def virtual_testbeds(planned: Sequence[PlannedTestbed]) -> set[str]:
    """Names of those whose ports are known to be virtual."""
    return {p.testbed.name for p in planned if p.lab or p.testbed.has_no_medium}


@dataclass
class _Run:
    """One run; ``done`` and ``not_measured`` grow as outcomes are told."""

    jobs: Sequence[Job]
    around: Surroundings
    on_event: OnEvent
    kind: Kind
    directory: ResultsDirectory
    resumed: bool
    done: list[CellResult] = field(default_factory=list)
    not_measured: list[NotMeasured] = field(default_factory=list)
    began_with: int = 0
    saved_s: float = 0.0
    save_took_s: float = 0.0
    logs_kept: Path | None = None
    """Where the logs of a start that failed are."""

    def begin(self, executor: Executor, asked: dict[str, Any]) -> ResultsFile:
        self.began_with = len(self.directory.records)
        self.on_event(
            RunStarted(
                self.directory.path,
                tuple(job.cell for job in self.jobs),
                virtual_testbeds([job.planned for job in self.jobs]),
            )
        )
        for text in self.directory.notices:
            self.on_event(Notice(text))
        results = self.directory.complete_results()
        if results:
            self.on_event(Notice("the run was complete; nothing is left to measure"))
            self.on_event(ResultsChanged(results))
            self._report()
            return results
        self.directory.write_campaign(asked)
        with self._saying_how_to_go_on():
            return self._to_the_end(executor)

    def _to_the_end(self, executor: Executor) -> ResultsFile:
        try:
            executor.run(self.jobs, self._on_outcome)
        except BaseException as error:
            # Whatever ended the run, it must not cost what was measured; and a full
            # disk must not hide why the run ended.
            with contextlib.suppress(DutperfError, OSError):
                self._save_what_there_is()
            self._forget(error)
            if isinstance(error, DutperfError) and self.logs_kept:
                before, after = str(self.directory.path), str(self.logs_kept)
                error.message = error.message.replace(before, after)
                error.hint = error.hint.replace(before, after)
            if isinstance(error, EngineError):
                error.message += f"; {self._what_is_safe()}"
            if isinstance(error, TestbedsError):
                error.message += f"\n{self._what_is_safe()}"
            raise
        results = self._save(complete=True)
        self._report()
        return results

    def _on_outcome(self, outcome: Outcome) -> None:
        if isinstance(outcome, NotMeasured):
            self.not_measured.append(outcome)
        else:
            self.done.append(outcome)
            if self._is_news and self._may_save:
                self._save(complete=False)

    @property
    def _is_news(self) -> bool:
        """Whether there is more than results.json held when the run was resumed.

        What an earlier part of the run stored stays until it was reached again.
        """
        told = len(self.done) + len(self.not_measured)
        measured = len(self.directory.records)
        return measured > self.began_with or (measured > 0 and told >= len(self.jobs))

    @property
    def _may_save(self) -> bool:
        """Of a run of many cells only if writing is a small part of its time.

        All that is in results.json follows from the journal.
        """
        if len(self.done) <= _ALWAYS_SAVED_CELLS:
            return True
        return time.monotonic() - self.saved_s > _SELDOM * self.save_took_s

    def _save(self, *, complete: bool) -> ResultsFile:
        begun_s = time.monotonic()
        cells = with_contradictions(self._in_order(self.done))
        results = ResultsFile(
            procedure=self.kind,
            name=self.jobs[0].campaign,
            created_at=self.directory.created_at,
            complete=complete,
            cells=cells,
            scalability=scalability(cells),
            sweeps=sweeps(cells),
            not_measured=list(self.not_measured),
            parts=self.directory.parts,
        ).model_copy(update={"trials": self.directory.records})
        self.on_event(ResultsChanged(results))
        self.directory.write_results(results)
        self.saved_s = time.monotonic()
        self.save_took_s = self.saved_s - begun_s
        return results

    def _in_order(self, done: Sequence[CellResult]) -> list[CellResult]:
        """As in the campaign, whatever the order of their outcomes."""
        return in_order(done, self.jobs)

    def _save_what_there_is(self) -> None:
        if self._is_news:
            self._save(complete=False)
            self._report()

    def _forget(self, error: BaseException) -> None:
        """Leave no directory that is in the way of the corrected command.

        After an input error, which comes before the first trial, or where no port was
        opened, there is nothing in it but logs, which are kept elsewhere; it was new
        or empty.
        """
        if self.directory.records or self.resumed:
            return
        idle = isinstance(error, DutperfError) and not self.directory.has_environment
        if not idle and not isinstance(error, InputError):
            return
        logs = self.directory.logs
        if logs and isinstance(error, EngineError):
            self.logs_kept = Path(tempfile.mkdtemp(prefix="dutperf-start-"))
            for log in logs:
                shutil.copy(log, self.logs_kept)
        shutil.rmtree(self.directory.path, ignore_errors=True)

    def _report(self) -> None:
        if len(self.done) > _MOST_REPORTED_CELLS:
            path = self.directory.path
            self.on_event(
                Notice(
                    f"no report is made of more than {_MOST_REPORTED_CELLS:,} test "
                    f"cases: 'dutperf query' reads {path}; 'dutperf report {path}' "
                    "takes long"
                )
            )
            return
        self.on_event(ReportWritten(self.around.write_report(self.directory.path)))

    @contextlib.contextmanager
    def _saying_how_to_go_on(self) -> Iterator[None]:
        """After all that the user can mend without another campaign."""
        try:
            with _memory_errors():
                yield
        except (SetupError, TestbedsError) as error:
            if self.directory.records and self.directory.is_there:
                then = "then go on" if error.hint else "go on"
                command = how_to_go_on(self.directory.path)
                hints = (error.hint, f"{then} where it ended: {command}")
                error.hint = "\n".join(filter(None, hints))
            raise

    def _what_is_safe(self) -> str:
        trials, path = len(self.directory.records), self.directory.path
        if not trials:
            logs = " and ".join(map(str, self._logs()))
            return f"nothing was measured{f'; the log is {logs}' if logs else ''}"
        if not self.directory.is_there:
            return f"{path} was removed: nothing of the run is stored any more"
        cells = f"{len(self.done)} of {len(self.jobs)} test cases"
        return f"the last finished trial is {trials}; results so far ({cells}): {path}"

    def _logs(self) -> list[Path]:
        return (
            sorted(self.logs_kept.iterdir()) if self.logs_kept else self.directory.logs
        )


def in_order(done: Sequence[CellResult], jobs: Sequence[Job]) -> list[CellResult]:
    """As in the campaign; what a sweep has added after all others of its testbed."""
    order = {job.cell.id: number for number, job in enumerate(jobs)}
    last = {job.cell.testbed: number for number, job in enumerate(jobs)}
    return sorted(
        done, key=lambda each: order.get(each.id, last.get(each.cell.testbed, 0) + 0.5)
    )


@contextlib.contextmanager
def _memory_errors() -> Iterator[None]:
    try:
        yield
    except MemoryError as error:
        raise SetupError(
            "this machine has no memory left for dutperf",
            "free some, or raise the limit on it (ulimit -v, or the container's)",
        ) from error


# The results of a run made again from its journal, by what measured it.
#
# As a run that is resumed: each trial is asked for again, and must be the next one of
# the journal with the same request. Nothing is opened, nothing is sent.


def results_again(
    directory: Path, campaign: Campaign, planned: Sequence[PlannedTestbed]
) -> ResultsFile:
    """What ``results.json`` should hold beside its trials.

    ``complete``: the journal holds all trials of the campaign.

    Args:
        directory: a copy of the results directory: a torn last line is cut off.
        campaign: what was asked for.
        planned: where.

    Raises:
        InputError: the journal is not that of a run of ``campaign``.
    """
    testbeds = [each.testbed for each in planned]
    stored = load_results(directory, trials=False)
    told = {cell.id: told_again(cell) for cell in stored.cells}
    ended = {cell: reason for cell, reason in told.items() if reason}
    cells: list[CellResult] = []
    complete = True
    with resumed(directory, campaign, testbeds) as store:
        jobs = jobs_of(campaign, planned, expand(campaign, *testbeds))
        around = Surroundings(open_engine=_never, write_report=_never)
        for visit in visits_of(jobs, around, store, lambda _event: None):
            try:
                for result in visit.told_by_journal(ended):
                    cells.append(result)  # noqa: PERF402 - those before the end count
            except JournalEndsError:
                complete = False
        cells = with_contradictions(in_order(cells, jobs))
        made = {"cells": cells, "scalability": scalability(cells)}
        made |= {"sweeps": sweeps(cells)}
        made |= {"complete": complete, "parts": store.parts}
        return stored.model_copy(update=made)


def _never(*_args: Any) -> Never:  # noqa: ANN401 - whatever it is
    raise AssertionError("the journal alone answers")


# Whether a campaign that somebody else may have stored may act on this machine.
#
# A stored campaign is a file from anywhere, and yet it has commands, files and
# arguments of DPDK's devices. What a user has begun himself is remembered as a digest
# of all that, and of the directory that relative paths start from, in a folder that is
# his alone: the digest of anything else is not there, however the results directory
# came here.


def campaign_to_run(
    path: Path,
    *,
    allowed: bool = False,
    called: Path | None = None,
) -> Campaign:
    """The campaign at ``path``; a stored one if it may do what it says.

    Args:
        path: of its file.
        allowed: the user has seen what it does, and wants that.
        called: the run that it is of, stored by whomever; None: the user's file, but
            for one that has a journal beside it.

    Raises:
        InputError: as ``load_campaign``; or it acts on this machine as nothing did that
            this user has run here.
    """
    if called is None and path.name == CAMPAIGN and path.with_name(JOURNAL).exists():
        called = path.parent
    campaign = load_campaign(path, stored=called is not None)
    told = acts(campaign.testbeds)
    if called is None or allowed or not told or _is_remembered(told):
        return campaign
    raise InputError(
        f"the campaign of {called} acts on this machine, and this user has not run it "
        "from this directory before:\n" + "\n".join(f"  {line}" for line in told),
        "nothing was run; read these lines, and if they may be done: --allow-hooks "
        "(dutperf run, dutperf verify --rerun)",
    )


def remember(testbeds: Sequence[Testbed]) -> None:
    """This user runs what these do: it may be done again.

    Where nothing can be stored, nothing is: the user is asked next time.
    """
    told = acts(testbeds)
    with suppress(OSError):
        if told and not _is_remembered(told):
            _folder().mkdir(mode=0o700, parents=True, exist_ok=True)
            (_folder() / _digest(told)).touch(mode=0o600)


def acts(testbeds: Sequence[Testbed]) -> list[str]:
    """All that they do on this machine or from it, beside frames: a line for each."""
    return [f"{t.name}: {line}" for t in testbeds for line in _acts(t)]


def _acts(testbed: Testbed) -> Iterator[str]:
    for each in testbed.tester_ports:
        match each.config.port:
            case VdevPort(vdev=arguments):
                yield f"{dotted(each.keys)}.port.vdev: {arguments}"
            case MemifPort(memif=path):
                yield f"{dotted(each.keys)}.port.memif: {path}"
    for key, hook in testbed.hooks.each():
        yield f"hooks.{key}: {_command(hook)}"
    if log := testbed.nat_log:
        told = _command(Hook(command=log.command, ssh=log.ssh)) if log.command else None
        yield f"nat_log: {told or log.file or log.listen}"
    if testbed.power and testbed.power.hook:
        yield f"power: {_command(testbed.power.hook)}"
    community = testbed.snmp.stored.community
    if isinstance(community, Secret):
        yield f"snmp.community: {community} (sent to the gateway)"


def _command(hook: Hook) -> str:
    words, ssh = shlex.join(hook.shown), hook.ssh
    if ssh is None:
        return f"{words} (on this machine)"
    user = f"{ssh.user}@" if ssh.user else ""
    files = "".join(
        f", {key} {path!r}"
        for key in ("identity_file", "known_hosts")
        if (path := getattr(ssh, key))
    )
    return f"{words} (by ssh, port {ssh.port} of {user}{ssh.host}{files})"


def _folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
    return Path(state) / "dutperf/allowed"


def _digest(told: Sequence[str]) -> str:
    whole = json.dumps([str(Path.cwd()), *told])
    return hashlib.sha256(whole.encode()).hexdigest()


def _is_remembered(told: Sequence[str]) -> bool:
    """Only a folder that nobody else could write to tells."""
    try:
        found = _folder().stat()
        own = found.st_uid == os.geteuid() and not found.st_mode & 0o022
        return own and (_folder() / _digest(told)).exists()
    except (OSError, RuntimeError):  # no home, or no working directory
        return False
