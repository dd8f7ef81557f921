"""Whether the device stayed a neighbour of the routing daemon beside the tester.

One that is busy forwarding may find no time for its neighbours: they are lost, then its
routes, then all frames. The loss is the device's; why it was is said.
"""

from __future__ import annotations

from collections.abc import Sequence

from dutperf.results.model import CellResult
from dutperf.results.rate_results import Finding
from dutperf.results.trial_record import RoutingSession, TrialRecord


def beside_routing(result: CellResult, records: Sequence[TrialRecord]) -> CellResult:
    """The result with a finding, if in trials of it the device was no neighbour."""
    own = [record for record in records if record.cell == result.id]
    fallen = [record for record in own if any(map(_fell, record.routing))]
    if not fallen:
        return result
    numbers = ", ".join(str(record.number) for record in fallen[:_MOST])
    more = ", ..." if len(fallen) > _MOST else ""
    least_fps = min(record.load_fps for record in fallen)
    finding = Finding(
        kind="routing_fell",
        of="trials",
        message=f"in {len(fallen)} of {len(own)} trials (number {numbers}{more}; from "
        f"{least_fps:,} fps on) the device gave up the routing daemon beside the "
        "tester as its neighbour, and with it the routes of the frames",
        unit="frames",
        numbers={"fell": len(fallen), "trials": len(own)},
    )
    return result.model_copy(update={"findings": [*result.findings, finding]})


_MOST = 5


def _fell(session: RoutingSession) -> bool:
    return session.falls > 0 or not session.open
