"""Frames that the device sent to somebody else: another port, or another host there.

Another one of several ports, or back where they were sent; another customer edge's
address (RFC 7597), another tunnel than their host's. They are lost for whom they are
for, and so in all figures; that they came, and where, is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dutperf.protocol import TrialResult
from dutperf.results.model import CellResult
from dutperf.results.rate_results import Finding
from dutperf.results.trial_record import TrialRecord


def beside_misdirected(
    result: CellResult, records: Sequence[TrialRecord]
) -> CellResult:
    """The result with a finding, if frames of its trials came that are for others."""
    own = [record for record in records if record.cell == result.id]
    found = [by_port(record.result) for record in own]
    counts = sum(found, Counter[str]())
    if not counts:
        return result
    places = ", ".join(f"{count:,} by {port}" for port, count in counts.items())
    trials = sum(bool(each) for each in found)
    finding = Finding(
        kind="misdirected",
        of="frames",
        message=f"in {trials} of {len(own)} trials frames came that are for other "
        f"ports or hosts, and count as lost: {places}",
        unit="frames",
        numbers={"misdirected": counts.total(), "trials": trials},
    )
    return result.model_copy(update={"findings": [*result.findings, finding]})


def by_port(result: TrialResult) -> Counter[str]:
    """How many came in by which port."""
    return Counter({p.label: p.misdirected for p in result.ports if p.misdirected})
