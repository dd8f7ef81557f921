"""Evidence of a run: packed with its sums, checked, and derived a second time."""

from dutperf.evidence.pack import Packed, files_of, pack, sign
from dutperf.evidence.replayed import TwoRuns, two_runs
from dutperf.evidence.verify import Check, Verification, unpacked, verify

__all__ = [
    "Check",
    "Packed",
    "TwoRuns",
    "Verification",
    "files_of",
    "pack",
    "sign",
    "two_runs",
    "unpacked",
    "verify",
]
