"""A command for each procedure of the catalogue."""

from __future__ import annotations

from collections.abc import Callable

from dutperf.catalogue import Procedure
from dutperf.cli.measuring import measure
from dutperf.cli.options import (
    DEFAULT_SEED,
    Display,
    LabName,
    Output,
    Rules,
    Seed,
    TestbedFile,
    with_procedure_options,
)
from dutperf.cli.testbeds import campaign_for
from dutperf.config import Preset, ProcedureSpec


def command_of(procedure: Procedure) -> Callable[..., None]:
    """The command that measures ``procedure`` at one testbed, or at a lab."""

    def command(
        spec: ProcedureSpec,
        preset: Preset | None,
        display: Display,
        testbed: TestbedFile = None,
        lab: LabName = None,
        rules: Rules = None,
        seed: Seed = DEFAULT_SEED,
        output: Output = None,
    ) -> None:
        campaign = campaign_for(spec, testbed, lab, rules, seed, preset)
        measure(campaign, kind=procedure.name, output=output, display=display)

    command.__doc__ = procedure.finds
    return with_procedure_options(procedure.name)(command)
