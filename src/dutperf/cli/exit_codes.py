"""How a command ends; ``docs`` and scripts rely on these.

0 measured; 1 measured but invalid; 2 bad input; 3 environment, or a defect in dutperf
(``dutperf.errors``); 130 interrupted.
"""

INVALID = 1
INTERRUPTED = 130
