"""Evidence of a run: packed with its sums, checked, and derived a second time."""

from dutperf.evidence.pack import Packed, pack
from dutperf.evidence.verify import Check, Verification, verify

__all__ = ["Check", "Packed", "Verification", "pack", "verify"]
