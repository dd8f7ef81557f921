"""What a stateful device's own hooks show of its table, for RFC 9693 6."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dutperf.results.connection_results import TableLimits
from dutperf.results.model import CellResult
from dutperf.results.trial_record import TrialRecord

_NAMES = {
    "table_size": "nf_conntrack_max|table_size",
    "hash_size": "nf_conntrack_buckets|hash_size|hashsize",
}


def shown_limits(records: Iterable[TrialRecord]) -> TableLimits | None:
    """From lines like ``net.netfilter.nf_conntrack_max = 1000000``; the last counts.

    Any hook may print ``table_size = N`` and ``hash_size = N`` of its device.
    """
    found: dict[str, int] = {}
    for record in records:
        for run in record.hooks:
            for key, names in _NAMES.items():
                lines = re.findall(rf"(?:{names})\s*[:=]\s*([0-9]+)", run.output)
                if lines:
                    found[key] = int(lines[-1])
    return TableLimits(**found) if found else None


def beside_limits(result: CellResult, records: Iterable[TrialRecord]) -> CellResult:
    """``result`` of a stateful cell with what its own trials' hooks showed."""
    if "connections" not in result.parameters:
        return result
    own = (record for record in records if record.cell == result.id)
    return result.model_copy(update={"limits": shown_limits(own)})
