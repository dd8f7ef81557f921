"""How a command ends; ``docs`` and scripts rely on these.

0 measured; 1 measured but invalid, or nothing that a gate could judge; 2 bad input;
3 environment, or a defect in dutperf (``dutperf.errors``); 4 worse than a baseline by
more than was allowed; 5 evidence that cannot be judged; 130 interrupted.
"""

INVALID = 1
WORSE = 4
UNPROVEN = 5
INTERRUPTED = 130
