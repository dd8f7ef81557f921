"""``dutperf frames``: what would be sent, as a pcap file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from dutperf.cli.failures import PatientConsole
from dutperf.cli.options import LabName, Rules, TestbedFile
from dutperf.cli.procedure_options import DEFAULT_SEED, Seed, with_frame_options
from dutperf.cli.testbeds import campaign_for, open_testbed, planned_testbeds
from dutperf.config import Campaign, PlannedTestbed, Testbed
from dutperf.model.specs import ProcedureSpec
from dutperf.run.engine_session import prepare_engine
from dutperf.run.preview import preview_frames, unopened


@with_frame_options
def frames(
    spec: ProcedureSpec,
    pcap: Annotated[
        Path, typer.Option("--pcap", metavar="FILE", help="the file to write")
    ],
    testbed: TestbedFile = None,
    lab: LabName = None,
    rules: Rules = None,
    count: Annotated[
        int,
        typer.Option(
            "--count", metavar="K", min=1, max=1_000_000, help="frames per direction"
        ),
    ] = 100,
    rate: Annotated[
        int,
        typer.Option(
            "--rate", metavar="FPS", min=1, max=10**12, help="of each direction"
        ),
    ] = 1000,
    seed: Seed = DEFAULT_SEED,
) -> None:
    """Write the first frames of a trial to a pcap file; send none of them.

    As root it opens the ports and asks the next hops for their MAC addresses, as a
    trial does; else MAC addresses that are not given are made up, and said to be.
    """
    _write_frames(
        campaign_for(spec, testbed, lab, rules, seed),
        rate_fps=rate,
        count=count,
        pcap=pcap,
    )


def _write_frames(campaign: Campaign, *, rate_fps: int, count: int, pcap: Path) -> None:
    """Write the first ``count`` frames of each direction and say how many there are.

    Raises:
        DutperfError: as ``preview_frames``.
    """
    told = PatientConsole(stderr=True)

    def notify(text: str) -> None:
        told.print(f"notice: {text}", markup=False, highlight=False, soft_wrap=True)

    (planned,) = planned_testbeds(campaign)
    with _opened(planned, notify) as testbed:
        preview = preview_frames(
            campaign,
            testbed,
            prepare_engine,
            rate_fps=rate_fps,
            count=count,
            path=pcap,
            notify=notify,
        )
    PatientConsole().out(
        f"{preview.frames} frames of {preview.cell.id} are in {preview.path}",
        highlight=False,
    )


@contextmanager
def _opened(
    planned: PlannedTestbed, notify: Callable[[str], None]
) -> Iterator[Testbed]:
    """Where the frames would be sent; without root as much of it as can be."""
    if os.geteuid() == 0:
        with open_testbed(planned) as testbed:
            yield testbed
        return
    testbed, made_up = unopened(planned.testbed)
    notify(
        "without root no port is opened and no neighbour asked; made up are "
        f"{', '.join(made_up)}"
    )
    yield testbed
