"""The entry of the ``dutperf`` program: from any end of a command to an exit code.

0 measured, 1 measured but invalid, 2 bad input, 3 environment (or a defect in
dutperf), 130 interrupted. No traceback is ever shown.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130


def main() -> NoReturn:
    """Run the command that ``sys.argv`` holds."""
    for signum in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, _interrupt)
    try:
        # Loading takes long enough to be interrupted: keep it inside the try.
        from dutperf.cli.app import run  # noqa: PLC0415 - see above

        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _interrupt(_signum: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
