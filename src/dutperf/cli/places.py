"""Where to measure: a testbed file, or a lab that is brought up for the purpose."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from pathlib import Path

from dutperf import lab
from dutperf.config import (
    Campaign,
    ProcedureSpec,
    Testbed,
    load_testbed,
    with_throughput,
)
from dutperf.errors import InputError


def campaign_for(
    spec: ProcedureSpec, testbed: Path | None, lab_name: str | None, seed: int
) -> Campaign:
    """A campaign of one procedure, and of the throughput that it is measured at.

    Raises:
        InputError: not exactly one place was given, or the file is wrong.
    """
    if (testbed is None) == (lab_name is None):
        raise InputError(
            "give either a testbed file or --lab NAME",
            f"for a device in network namespaces: --lab {next(iter(lab.LABS))}",
        )
    procedures = with_throughput(spec)
    if testbed is None:
        name = f"{spec.procedure}-{lab_name}"
        return Campaign(name=name, seed=seed, lab=lab_name, procedures=procedures)
    loaded = load_testbed(testbed)
    name = f"{spec.procedure}-{loaded.name}"[:64]
    return Campaign(name=name, seed=seed, testbed=loaded, procedures=procedures)


def place_of(campaign: Campaign) -> AbstractContextManager[Testbed]:
    """The campaign's testbed; a lab is up inside the context.

    A lab that ``lab up`` keeps is used and stays; otherwise it goes with the context.

    Raises:
        InputError: there is no such lab.
        SetupError: the lab cannot be brought up.
    """
    if isinstance(campaign.testbed, Testbed):
        return contextlib.nullcontext(campaign.testbed)
    name = campaign.lab or ""
    if any(s.name == name and s.alive and s.owner is None for s in lab.running()):
        return contextlib.nullcontext(lab.up(name))
    return lab.session(name)


def planned_place(campaign: Campaign) -> Testbed:
    """The campaign's testbed as it would be; nothing is brought up.

    Raises:
        InputError: there is no such lab.
    """
    if isinstance(campaign.testbed, Testbed):
        return campaign.testbed
    return lab.plan(campaign.lab or "")


def dut_alive(campaign: Campaign) -> bool:
    """Whether the device is still there; of a testbed nobody can tell: true."""
    return campaign.lab is None or lab.dut_alive(campaign.lab)
