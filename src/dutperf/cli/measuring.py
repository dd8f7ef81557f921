"""Where to measure, and a campaign that is run there and shown, however it ends."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import typer

from dutperf import lab
from dutperf.cli import INTERRUPTED, INVALID, WORSE
from dutperf.cli.console import PatientConsole, show_notice
from dutperf.cli.options import DISPLAY, Display
from dutperf.cli.summary import (
    show_all,
    show_json,
    show_judged,
    show_summary,
    show_with_deviations,
)
from dutperf.cli.terminal import Terminal
from dutperf.config import (
    Campaign,
    PlannedTestbed,
    Preset,
    Testbed,
    load_testbed,
    with_sources,
)
from dutperf.config.campaign import LabKeys, requiring
from dutperf.doctor import Check
from dutperf.doctor.checks import examine
from dutperf.errors import DutperfError, InputError, defect
from dutperf.model.fields import CampaignError, Problem
from dutperf.model.requirements import requirement
from dutperf.model.specs import ProcedureSpec
from dutperf.passport.keeping import directory
from dutperf.passport.making import Maker
from dutperf.procedures.cpu_contention import DeviceWatch
from dutperf.procedures.events import OnEvent
from dutperf.procedures.requirements import Case, Judged, judged, junit
from dutperf.report import write_report
from dutperf.results import CellResult, ResultsFile
from dutperf.results.storage import write_atomically
from dutperf.routing import open_speaker
from dutperf.run.campaign_run import ExecutorMaker, Kind, run_campaign
from dutperf.run.engine_session import prepare_engine
from dutperf.run.local_executor import LocalExecutor, Surroundings, no_passport
from dutperf.run.openings import openings_of

# Where to measure: testbed files, or labs that are brought up for the purpose.


def campaign_for(
    spec: ProcedureSpec,
    testbed: Path | None,
    labs: str | Sequence[str] | None,
    rules: int | None,
    seed: int,
    preset: Preset | None = None,
) -> Campaign:
    """A campaign of one procedure, and of the throughput that it is measured at.

    Raises:
        InputError: neither a testbed nor labs were given or both, the file is wrong, or
            there is no such lab, none with rules, or one is given twice.
    """
    labs = [labs] if isinstance(labs, str) else labs or ()
    if (testbed is None) == (not labs):
        raise InputError(
            "give either a testbed file or --lab NAME",
            f"for a device in network namespaces: --lab {next(iter(lab.LABS))}",
        )
    procedures = with_sources(spec, preset)
    if labs:
        if twice := [each for each in labs if labs.count(each) > 1]:
            raise InputError(f"--lab {twice[0]} is given twice", "leave one out")
        given = [
            each if rules is None else LabKeys(name=each, rules=rules) for each in labs
        ]
        name = "-".join([spec.procedure, *(lab.plan(each).name for each in given)])[:64]
        return Campaign(name=name, seed=seed, lab=given, procedures=procedures)
    if rules is not None:
        filtered = ", ".join(lab.taking("rules"))
        raise InputError(
            f"--rules is of the lab {filtered}; a testbed's device has its own",
            f"leave --rules out, or give --lab {filtered}",
        )
    loaded = load_testbed(testbed or Path())
    name = f"{spec.procedure}-{loaded.name}"[:64]
    return Campaign(name=name, seed=seed, testbed=[loaded], procedures=procedures)


def planned_testbeds(campaign: Campaign) -> list[PlannedTestbed]:
    """The campaign's testbeds, labs as they would be; nothing is brought up.

    Raises:
        CampaignError: there is no such lab.
    """
    given = [
        *(PlannedTestbed(testbed=testbed) for testbed in campaign.testbeds),
        *(_lab(campaign, number, keys) for number, keys in enumerate(campaign.labs)),
    ]
    if campaign.cores is None:
        return given
    try:
        return [each.with_cores(n) for each in given for n in campaign.cores]
    except InputError as error:
        problem = Problem(("cores",), error.message, error.hint)
        raise CampaignError(campaign.name, problem) from None


def check_testbed(planned: PlannedTestbed) -> None:
    """No lab that is kept is in the way of ``open_testbed``.

    Raises:
        SetupError: one is; the user can take it down.
    """
    if planned.lab is None:
        lab.check_cpus(planned.testbed)
    else:
        lab.check(planned.lab)


def open_testbed(planned: PlannedTestbed) -> AbstractContextManager[Testbed]:
    """The testbed, once it is there; a lab is up inside the context.

    Raises:
        SetupError: the lab cannot be brought up or used, see ``lab.use``.
    """
    if planned.lab is None:
        lab.check_cpus(planned.testbed)
        return contextlib.nullcontext(planned.testbed)
    return _as_asked(planned, lab.use(planned.lab))


def dut_alive(planned: PlannedTestbed) -> bool:
    """Whether the device is still there; of a testbed nobody can tell: true."""
    return planned.lab is None or lab.dut_alive(planned.lab.name)


def watch_dut(planned: PlannedTestbed) -> DeviceWatch | None:
    """Tells who else has the device's CPU; of a testbed nobody can: None."""
    return lab.watch_device(planned.lab.own_name) if planned.lab else None


@contextlib.contextmanager
def _as_asked(
    planned: PlannedTestbed, there: AbstractContextManager[Testbed]
) -> Iterator[Testbed]:
    with there as testbed:
        yield planned.as_asked(testbed)


def _lab(campaign: Campaign, number: int, keys: LabKeys) -> PlannedTestbed:
    try:
        return PlannedTestbed(lab=keys, testbed=lab.plan(keys))
    except InputError as error:
        where = ("lab", number) if len(campaign.labs) > 1 else ("lab",)
        problem = Problem(where, error.message, error.hint)
        raise CampaignError(campaign.name, problem) from None


Show = Callable[[PatientConsole, ResultsFile, Path | None], None]
"""Prints results, and where the report is, if there is one."""


def measure(
    campaign: Campaign,
    *,
    kind: Kind,
    output: Path | None,
    display: Display,
    resume: Path | None = None,
    make_executor: ExecutorMaker = LocalExecutor,
) -> None:
    """Measure, show progress on standard error and the results on standard output.

    Raises:
        DutperfError: as ``run_campaign``; and for anything unexpected.
        typer.Exit: with the exit code, unless it is 0.
    """
    required = [requirement(text) for text in display.require or ()]
    asked = campaign if resume else requiring(campaign, display.require or ())
    if display.junit:
        _check_junit(display.junit, [*asked.require, *required])
    results = watched(
        lambda on_event: _run(asked, on_event, kind, output, resume, make_executor),
        _shown(display),
        display,
    )
    if results is None:
        return
    found = judged([*campaign.requirements, *required], results.cells)
    show_judged(PatientConsole(stderr=display.as_json), found)
    if display.junit:
        write_atomically(display.junit, _as_junit(asked.name, found))
    if any(each.outcome == "not met" for each in found):
        raise typer.Exit(WORSE)
    cannot_tell = any(each.outcome == "cannot tell" for each in found)
    if cannot_tell or _falls_short(results.cells, display):
        raise typer.Exit(INVALID)


def measured(
    campaign: Campaign,
    kind: Kind,
    output: Path | None,
    resume: Path | None,
    show: Show,
    display: Display = DISPLAY,
) -> ResultsFile | None:
    """Measure and show progress; the results, which ``show`` gets, too.

    Raises:
        DutperfError, typer.Exit: see ``watched``.
    """
    return watched(
        lambda on_event: _run(campaign, on_event, kind, output, resume), show, display
    )


def _check_junit(file: Path, required: Sequence[object]) -> None:
    """Nothing is measured for a file that cannot be written, or has nothing in it."""
    if not required:
        raise InputError(
            "--junit is for what is required, and nothing is",
            "add --require, or the key require to the campaign",
        )
    if file.is_dir() or not file.absolute().parent.is_dir():
        raise InputError(
            f"--junit {file}: cannot be a file there", "make the directory"
        )


def _as_junit(name: str, found: Sequence[Judged]) -> str:
    """A test case for each figure that something is required of."""
    cases = [
        Case(
            f"{each.requirement.words}: {each.cell}",
            f"dutperf.{name}",
            failure=each.found if each.outcome == "not met" else "",
            skipped=f"cannot tell: {each.found}"
            if each.outcome == "cannot tell"
            else "",
        )
        for each in found
    ]
    return junit(f"dutperf {name}", cases)


def _shown(display: Display) -> Show:
    if display.as_json:
        return show_json
    if display.verbose:
        return show_all
    return show_with_deviations if display.deviations else show_summary


def _falls_short(cells: Sequence[CellResult], display: Display) -> bool:
    """Whether a result is invalid; or, if that was asked for, only a lower bound."""
    if any(cell.verdict == "invalid" for cell in cells):
        return True
    open_end = [c.id for c in cells if c.bound or any(g.bound for g in c.goals)]
    if open_end and display.exact:
        show_notice(f"--exact: only a lower bound: {', '.join(open_end)}")
        return True
    return False


def watched(
    run: Callable[[OnEvent], object], show: Show, display: Display = DISPLAY
) -> ResultsFile | None:
    """Run a campaign; ``show`` gets what was measured, however the run ends.

    Raises:
        DutperfError: as ``run``; and for anything unexpected.
        typer.Exit: when it was interrupted.
    """
    console = PatientConsole(stderr=True)
    with Terminal(console, plain=display.plain, verbose=display.verbose) as terminal:
        try:
            run(terminal.on_event)
        except KeyboardInterrupt:
            terminal.say_interrupted()
            raise typer.Exit(INTERRUPTED) from None
        except DutperfError:
            raise
        except Exception as error:
            raise defect(error, terminal.directory) from error
        finally:
            terminal.stop()
            if terminal.results is not None:
                show(PatientConsole(), terminal.results, terminal.report)
    return terminal.results


def _examined(testbed: Testbed, offset_ns: int) -> list[Check]:
    """What can be seen without watching, and what the engine saw."""
    return examine(testbed, seconds=0, before=False, offset=lambda _cpus: offset_ns)


def _run(
    campaign: Campaign,
    on_event: OnEvent,
    kind: Kind,
    output: Path | None,
    resume: Path | None,
    make_executor: ExecutorMaker = LocalExecutor,
) -> ResultsFile:
    return run_campaign(
        campaign,
        planned_testbeds(campaign),
        surroundings(),
        on_event=on_event,
        kind=kind if len(campaign.procedures) == 1 else "campaign",
        results_dir=output,
        resume=resume,
        make_executor=make_executor,
    )


def surroundings() -> Surroundings:
    """All that a run of a user's has around it."""
    kept = directory()
    return Surroundings(
        open_engine=prepare_engine,
        write_report=write_report,
        check_testbed=check_testbed,
        open_testbed=open_testbed,
        dut_alive=dut_alive,
        watch_dut=watch_dut,
        openings=openings_of,
        examine=_examined,
        passport=Maker(kept, open_testbed) if kept else no_passport,
        speaking=open_speaker,
    )
