"""The tester's own limits in stateful traffic: its two ports crossed, no device.

The rows of the stateful siitperf paper (Lencse 2023, Tables 3 to 5): the rate of phase
1, and of phase 2 in both directions and in each alone, over the number of four-tuples.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dutperf.config import Campaign, PlannedTestbed, Testbed, spec_from
from dutperf.config.side import RingPort
from dutperf.config.testbed import crossed
from dutperf.model.specs import ProcedureSpec
from dutperf.procedures.events import OnEvent
from dutperf.report import write_report
from dutperf.results import CellResult, ResultsFile
from dutperf.run.campaign_run import run_campaign
from dutperf.run.engine_session import prepare_engine
from dutperf.run.local_executor import Surroundings

DIRECTIONS = ("both", "forward", "reverse")
_MOST_FPS = 1_000_000_000
"""No tester offers that; the search begins with what it did offer."""
_TROUBLES = {"unstable", "nothing_passed", "connections_expire"}


@dataclass(frozen=True)
class SelftestSettings:
    """What is measured: ``connections`` of one ``ip`` version, on ``cpus``.

    Durations and rates are those of the campaign's keys of these names.
    """

    connections: tuple[int, ...]
    ip: int
    cpus: tuple[int, ...]
    phase1_rate_fps: int
    trial_duration_s: float
    resolution: str
    repeats: int

    @property
    def procedures(self) -> list[ProcedureSpec]:
        """A search of phase 1, and of phase 2 in each direction.

        Raises:
            InputError: a setting is none that these have.
        """
        common: dict[str, Any] = {
            "ip": [self.ip],
            "resolution": self.resolution,
            "max_rate_fps": _MOST_FPS,
            "repeats": self.repeats,
            "settle_wait_s": 0.1,
            "restabilise_wait_s": 0.05,
        }
        counts: dict[str, Any] = {"connections": list(self.connections)}
        phase1 = {"procedure": "connection-rate", "stateful": counts}
        phase2 = {
            "procedure": "throughput",
            "direction": list(DIRECTIONS),
            "trial_duration_s": self.trial_duration_s,
            "residual_wait_s": 0.3,
            "stateful": {**counts, "phase1_rate": self.phase1_rate_fps},
        }
        return [spec_from(keys | common, "selftest") for keys in (phase1, phase2)]


def run_selftest(
    settings: SelftestSettings, output: Path | None, on_event: OnEvent
) -> ResultsFile:
    """Measure, and store the results in ``output``, or where others are.

    Raises:
        DutperfError: as ``run_campaign``; or a setting is wrong.
    """
    testbed = _testbed(settings.cpus)
    campaign = Campaign(
        name="selftest-stateful",
        testbed=[testbed],
        procedures=settings.procedures,
    )
    around = Surroundings(open_engine=prepare_engine, write_report=write_report)
    return run_campaign(
        campaign,
        [PlannedTestbed(testbed=testbed)],
        around,
        on_event=on_event,
        kind="campaign",
        results_dir=output,
    )


def fell_short(cell: CellResult) -> bool:
    """Crossed ports lose nothing: what ends a search must be the tester's limit."""
    return not cell.median or any(r.code in _TROUBLES for r in cell.reasons)


def _testbed(cpus: tuple[int, ...]) -> Testbed:
    ring = RingPort(ring=True)
    return crossed({"left": ring, "right": ring}, name="selftest", cores=list(cpus))
