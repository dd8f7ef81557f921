"""A command for each procedure of the catalogue."""

from __future__ import annotations

from collections.abc import Callable

from dutperf.catalogue import PROCEDURES, ProcedureName
from dutperf.cli.dry_run import NOTHING_STORED, show_plan
from dutperf.cli.measuring import measure
from dutperf.cli.options import Display, DryRun, LabName, Output, Rules, TestbedFile
from dutperf.cli.procedure_options import DEFAULT_SEED, Seed, with_procedure_options
from dutperf.cli.testbeds import campaign_for
from dutperf.config import Preset
from dutperf.model.specs import ProcedureSpec


def command_of(name: ProcedureName) -> Callable[..., None]:
    """The command that measures a procedure at one testbed, or at a lab."""
    procedure = PROCEDURES[name]

    def command(
        spec: ProcedureSpec,
        preset: Preset | None,
        display: Display,
        testbed: TestbedFile = None,
        lab: LabName = None,
        output: Output = None,
        dry_run: DryRun = False,
        rules: Rules = None,
        seed: Seed = DEFAULT_SEED,
    ) -> None:
        if dry_run and output:
            raise NOTHING_STORED
        campaign = campaign_for(spec, testbed, lab, rules, seed, preset)
        if dry_run:
            show_plan(campaign, as_json=display.as_json)
            return
        measure(campaign, kind=procedure.name, output=output, display=display)

    command.__doc__ = procedure.finds
    return with_procedure_options(procedure.name)(command)
