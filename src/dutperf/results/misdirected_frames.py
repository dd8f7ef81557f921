"""Frames that the device sent out by another port of several than they are for.

They are lost for their path, and so in all figures; that they came, and where, is said.
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
    """The result with a finding, if frames of its trials came in by a wrong port.

    Of one port on each side the first frames tell that: none is the other side's.
    """
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
        message=f"in {trials} of {len(own)} trials frames came in by other ports than "
        f"they are for, and count as lost: {places}",
        unit="frames",
        numbers={"misdirected": counts.total(), "trials": trials},
    )
    return result.model_copy(update={"findings": [*result.findings, finding]})


def by_port(result: TrialResult) -> Counter[str]:
    """How many came in by which of several ports on a side."""
    if not any(port.number for port in result.ports):
        return Counter()
    return Counter({p.label: p.misdirected for p in result.ports if p.misdirected})
