"""What in this machine may spoil a measurement, what it costs, and what cures it.

Only looked at, nothing is changed; a check that cannot be made says so and is no
finding. ``examine`` makes all of them.
"""

from dutperf.doctor.check import Check, Verdict
from dutperf.doctor.examine import examine

__all__ = ["Check", "Verdict", "examine"]
