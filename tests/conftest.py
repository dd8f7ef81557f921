"""What all tests have in common."""

from __future__ import annotations

import os

from dutperf.passport.keeping import NONE, VARIABLE

# Measuring the tester itself first is a test of its own; programs that tests start
# inherit it.
os.environ[VARIABLE] = NONE
