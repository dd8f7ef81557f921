"""Soaks once more: what was lost in which trial, and the values of each series."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any

from dutperf.evidence import accounting
from oracle import formulas, records
from oracle.searches import Asked, Repeat, overall

Json = dict[str, Any]
_RANKS = (Fraction(1, 2), Fraction(99, 100), Fraction(999, 1000))
_LISTED = 100


def derived_soak(asked: Sequence[Asked]) -> Json:
    """The figures of a cell, each trial of which is one repeat; not its drifts."""
    trials = [each.trial for each in asked]
    counts = [each.kind != "invalid" for each in asked]
    valid = [trial for trial, is_valid in zip(trials, counts, strict=True) if is_valid]
    sums = [_frames(trial) for trial in valid]
    sent, lost = (sum(each) for each in zip(*sums, strict=True)) if sums else (0, 0)
    stands = len(valid) * 2 > len(trials)
    value = 100 * lost / sent if stands else None
    repeat = Repeat(value, "pass" if stands else "invalid", trials=len(trials))
    told = overall([repeat])
    if not valid:
        return told | {"soak": None}
    lossy = [
        {"number": t["repeat"], "started_at": t["started_at"], "lost": gone, "sent": of}
        for t, (of, gone) in zip(valid, sums, strict=True)
        if gone
    ]
    worst = sorted(lossy, key=lambda each: -each["lost"] / each["sent"])[:_LISTED]
    listed = [each for n, each in enumerate(lossy) if n < _LISTED or each in worst]
    lasts = float(records.seconds(trials[0]))
    begin, end = (datetime.fromisoformat(trials[n]["started_at"]) for n in (0, -1))
    spoilt = [n for n, is_valid in enumerate(counts, 1) if not is_valid]
    return told | {
        "soak": {
            "trials": len(trials),
            "valid": len(valid),
            "spoilt": spoilt[:_LISTED],
            "sent": sent,
            "lost": lost,
            "lossy": len(lossy),
            "losses": listed,
            "under_load_s": lasts * len(trials),
            "took_s": end.timestamp() - begin.timestamp() + lasts,
            "series": [_series(values) for values in _all_series(valid, sums)],
            "unread": [],
        }
    }


def _frames(trial: Json) -> tuple[int, int]:
    """Sent and lost, all streams."""
    streams = [s for d in accounting.directions(trial) for s in d["streams"]]
    return sum(s["sent"] for s in streams), sum(s["lost"] for s in streams)


def _series(values: Sequence[float]) -> Json:
    told = {"trials": len(values), "median": formulas.median(values)}
    return told | {"least": min(values), "most": max(values)}


def _all_series(
    valid: Sequence[Json], sums: Sequence[tuple[int, int]]
) -> list[list[float]]:
    """The loss, the delays of each direction, and what hooks print of the device."""
    found = [[100 * gone / of for of, gone in sums]]
    for place in range(len(accounting.directions(valid[0]))):
        delays = [
            accounting.directions(trial)[place]["streams"][0]["delay_ns"]
            for trial in valid
        ]
        some = [each for each in delays if each["count"]]
        if some:
            found += [
                [_at_rank(each["buckets"], share) for each in some] for share in _RANKS
            ]
            found.append([each["max"] for each in some])
    gauges: dict[str, list[float]] = {}
    for trial in valid:
        for run in records.hook_runs(trial, "after_trial"):
            for line in run["output"].splitlines():
                name, equal, value = line.partition("=")
                if equal:
                    gauges.setdefault(name.strip(), []).append(float(value))
    return [*found, *gauges.values()]


def _at_rank(buckets: formulas.Buckets, share: Fraction) -> float:
    rank = math.ceil(share * formulas.samples_of(buckets))
    return formulas.bucket_of(buckets, rank)[1]
