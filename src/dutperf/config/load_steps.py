"""Loads of a frame loss curve (RFC 2544 26.3): 100 % of the maximum rate and down.

The RFC's series goes down in equal steps of 10 % or finer and ends after two loads in a
row without loss. A list of other loads is measured as it is, and so are loads around
the throughput.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise

STANDARD_STEP_PERCENT = 10.0
AROUND_THROUGHPUT = (200.0, 150.0, 125.0, 110.0, 100.0, 90.0, 75.0, 50.0)
"""In percent of it: denser where the device begins to lose frames."""
_SAME = 1e-9


def falling_loads(step_percent: float) -> list[float]:
    """100 % and all that is left above 0 % in steps, exactly as written."""
    step = Decimal(str(step_percent))
    return [float(100 - n * step) for n in range(int(100 / step) + 1) if n * step < 100]


def ends_when_lossless(loads_percent: Sequence[float]) -> bool:
    """Whether falling loads are the RFC's series, of whatever step."""
    steps = [above - below for above, below in pairwise(loads_percent)]
    if not steps or loads_percent[0] != 100:
        return False
    longest = max(*steps, loads_percent[-1])
    even = max(steps) - min(steps) < _SAME
    return even and longest < min(STANDARD_STEP_PERCENT, *steps) + _SAME
