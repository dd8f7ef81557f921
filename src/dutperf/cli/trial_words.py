"""How a trial is called on a terminal, in its line and in the live view."""

from __future__ import annotations

from dutperf.procedures.throughput import judged_whole
from dutperf.protocol import VerdictKind
from dutperf.results import TrialRecord
from dutperf.results.trial_record import TrialRole
from dutperf.results.words import RECEIVED

ROLES: dict[TrialRole, str] = {
    "trial": "",
    "first_frames": ", first frames",
    "probe": ", probe",
    "phase1": ", phase 1",
    "validation": ", validation",
    "damage": f", {RECEIVED}",
}
STYLES: dict[VerdictKind, str] = {"pass": "green", "fail": "yellow", "invalid": "red"}


def judged_kind(record: TrialRecord) -> VerdictKind:
    """Its verdict; of the second search that for which damaged frames were received."""
    if record.role == "damage":
        return judged_whole(record) or "invalid"
    return record.result.verdict.kind
