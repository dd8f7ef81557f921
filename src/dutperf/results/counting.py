"""Which trials of a journal count.

A cell that was begun at one testbed and went on at an equal one, because the first had
gone, was measured there as a whole: what the first one measured of it is kept, but is
nobody's result.
"""

from __future__ import annotations

from collections.abc import Iterable

from dutperf.results.trial_record import TrialRecord


def counting(records: Iterable[TrialRecord]) -> list[TrialRecord]:
    """Of each cell those at the testbed that ended it, in their order."""
    records = list(records)
    from_number: dict[str, int] = {}
    last: dict[str, str | None] = {}
    for record in records:
        if last.setdefault(record.cell, record.stands_in) != record.stands_in:
            from_number[record.cell] = record.number
            last[record.cell] = record.stands_in
    if not from_number:
        return records
    return [r for r in records if r.number >= from_number.get(r.cell, 0)]
