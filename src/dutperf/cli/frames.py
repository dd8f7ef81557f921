"""``dutperf frames``: what would be sent, as a pcap file."""

from __future__ import annotations

from pathlib import Path

from dutperf.cli.failures import PatientConsole
from dutperf.cli.testbeds import open_testbed, planned_testbeds
from dutperf.config import Campaign
from dutperf.run.engine_session import prepare_engine
from dutperf.run.preview import preview_frames


def write_frames(campaign: Campaign, *, rate_fps: int, count: int, pcap: Path) -> None:
    """Write the first ``count`` frames of each direction and say how many there are.

    Raises:
        DutperfError: as ``preview_frames``.
    """
    told = PatientConsole(stderr=True)
    (planned,) = planned_testbeds(campaign)
    with open_testbed(planned) as testbed:
        preview = preview_frames(
            campaign,
            testbed,
            prepare_engine,
            rate_fps=rate_fps,
            count=count,
            path=pcap,
            notify=lambda text: told.print(
                f"notice: {text}", markup=False, highlight=False, soft_wrap=True
            ),
        )
    PatientConsole().out(
        f"{preview.frames} frames of {preview.cell.id} are in {preview.path}",
        highlight=False,
    )
