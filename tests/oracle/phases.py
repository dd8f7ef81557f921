"""Which trials of a cell count, and how those on open connections do (RFC 9693 4.7).

A trial of phase 2 tells nothing if its phase 1 failed, if connections were opened anew
in it, or if a validation right after it found some gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dutperf.evidence import accounting
from oracle import records
from oracle.searches import Asked

Json = dict[str, Any]


def counted_trials(trials: Sequence[Json], *, interrupted: bool = False) -> list[Asked]:
    """In their order, invalid ones among them.

    What an ``interrupted`` device forgets is part of what it does.
    """
    if any(accounting.role(trial) == "phase1" for trial in trials):
        phases = [t for t in trials if accounting.role(t) in _PHASES]
        kept = [t for t in phases if not _opens_for_data(t)]
        return list(_phased(kept, interrupted))
    return [
        Asked(trial["load_fps"], trial["repeat"], accounting.verdict(trial), trial)
        for trial in records.of_role(trials)
    ]


_PHASES = {"phase1", "trial", "validation"}


def _opens_for_data(trial: Json) -> bool:
    """Whether phase 1 goes on: SYNs have opened what data is to be sent on."""
    tcp = trial["result"].get("tcp")
    if tcp is None or tcp["initiator"]["renumbered"]:
        return False
    return accounting.verdict(trial) == "pass"


def _phased(trials: Sequence[Json], interrupted: bool) -> Iterator[Asked]:
    """Phase 2 of each test, or the phase 1 that kept it from being run."""
    for place, trial in enumerate(trials):
        kind, after = accounting.role(trial), trials[place + 1 : place + 3]
        then = accounting.role(after[0]) if after else None
        if (
            kind == "phase1"
            and then != "trial"
            and (_opening_failed(trial) or not then)
        ):
            yield Asked(_load_beside(trials, place), trial["repeat"], "invalid", trial)
        if kind == "trial" and not _was_repeated(trial, after):
            check = after[0] if then == "validation" else None
            kind = accounting.verdict(trial) if interrupted else _judged(trial, check)
            yield Asked(trial["load_fps"], trial["repeat"], kind, trial)


def _judged(trial: Json, check: Json | None) -> str:
    table = trial["result"].get("table")
    renewed = bool(table) and table["changed"] > 0
    renewed |= any(port.get("untranslated") for port in trial["result"]["ports"])
    gone = check is not None and accounting.verdict(check) == "fail"
    if renewed or gone or records.foreign_addresses(trial):
        return "invalid"
    return accounting.verdict(trial)


def _opening_failed(trial: Json) -> bool:
    table, tcp = trial["result"].get("table"), trial["result"].get("tcp")
    if tcp and tcp["initiator"]["renumbered"]:
        return True
    few = bool(table) and table["filled"] < records.connections(trial)
    return (
        accounting.verdict(trial) != "pass" or few or records.foreign_addresses(trial)
    )


def _was_repeated(trial: Json, after: Sequence[Json]) -> bool:
    """Whether a run ended before the check that the trial needed: it was made anew."""
    if [accounting.role(each) for each in after] != ["phase1", "trial"]:
        return False
    same = ("repeat", "load_fps")
    lost = any(stream["lost"] for stream in accounting.streams(trial))
    return (
        lost
        and accounting.verdict(trial) == "fail"
        and all(after[1][key] == trial[key] for key in same)
        and records.seconds(after[1]) == records.seconds(trial)
    )


def _load_beside(trials: Sequence[Json], place: int) -> int:
    """The load that a phase 1 was for: that of the next trial, else of the last."""
    beside = [*trials[place:], *reversed(trials[:place])]
    known = [t["load_fps"] for t in beside if accounting.role(t) == "trial"]
    return int(known[0]) if known else 0
