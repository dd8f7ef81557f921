"""Where to measure: testbed files, labs that are brought up, or a simulated device."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal

from dutperf import lab
from dutperf.config import (
    Campaign,
    PlannedTestbed,
    Preset,
    Testbed,
    load_testbed,
    with_sources,
)
from dutperf.config.campaign import LabKeys
from dutperf.config.captures import with_captures
from dutperf.config.testbed import Hooks
from dutperf.doctor import Check
from dutperf.doctor.checks import examine
from dutperf.errors import InputError
from dutperf.model.fields import CampaignError, Problem
from dutperf.model.specs import ProcedureSpec
from dutperf.passport.keeping import directory
from dutperf.passport.making import Maker
from dutperf.procedures.cpu_contention import DeviceWatch
from dutperf.routing import open_speaker
from dutperf.run.engine_session import EngineStarter, prepare_engine
from dutperf.run.local_executor import Surroundings, no_passport
from dutperf.run.openings import openings_of


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
    (spec,) = with_captures([spec], Path())
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
        return list(_with_cores(campaign.cores, given))
    except InputError as error:
        problem = Problem(("cores",), error.message, error.hint)
        raise CampaignError(campaign.name, problem) from None


def _with_cores(
    cores: list[int] | Literal["all"], given: Sequence[PlannedTestbed]
) -> Iterator[PlannedTestbed]:
    """Each with each number; a lab that has nothing to set, as it is beside others."""
    numbers = lab.core_numbers() if cores == "all" else cores
    any_is_set = any(each.testbed.hooks.set_cores for each in given)
    for each in given:
        if each.lab and any_is_set and each.testbed.hooks.set_cores is None:
            yield each
        else:
            yield from (each.with_cores(number) for number in numbers)


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


def _write_report(directory: Path) -> Path:
    from dutperf.report import write_report  # noqa: PLC0415 - trials alone have none

    return write_report(directory)


def surroundings() -> Surroundings:
    """All that a run of a user's has around it."""
    kept = directory()
    return Surroundings(
        open_engine=prepare_engine,
        write_report=_write_report,
        check_testbed=check_testbed,
        open_testbed=open_testbed,
        dut_alive=dut_alive,
        watch_dut=watch_dut,
        openings=openings_of,
        examine=_examined,
        passport=Maker(kept, open_testbed) if kept else no_passport,
        speaking=open_speaker,
    )


def _examined(testbed: Testbed, offset_ns: int) -> list[Check]:
    """What can be seen without watching, and what the engine saw."""
    return examine(testbed, seconds=0, before=False, offset=lambda _cpus: offset_ns)


def simulated(fps: float) -> Surroundings:
    """A world in which a device forwards up to ``fps`` a second, and no time passes."""
    from dutperf.simulation.fake_engine import (  # noqa: PLC0415 - few need it
        FakeEngine,
        step,
    )

    def open_engine(_testbed: Testbed, _notify: Callable[[str], None]) -> EngineStarter:
        return lambda _log: contextlib.nullcontext(FakeEngine(step(fps)))

    def open_testbed(planned: PlannedTestbed) -> AbstractContextManager[Testbed]:
        alone = planned.testbed.model_copy(update={"hooks": Hooks()})
        return contextlib.nullcontext(alone)

    return Surroundings(
        open_engine=open_engine,
        write_report=_write_report,
        open_testbed=open_testbed,
        sleep=lambda _seconds: None,
    )
