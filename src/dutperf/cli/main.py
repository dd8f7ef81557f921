"""The entry of the ``dutperf`` program: from any end of a command to an exit code.

Which is which: ``exit_codes``. No traceback is ever shown.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

from dutperf.cli import completion
from dutperf.cli.exit_codes import INTERRUPTED


def main() -> NoReturn:
    """Run the command that ``sys.argv`` holds."""
    for signum in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, _interrupt)
    if sys.argv[1:] == ["--version"]:  # the commands need not be loaded for that
        from dutperf.versions import version_line  # noqa: PLC0415 - only for that

        with contextlib.suppress(OSError):
            os.write(sys.stdout.fileno(), f"{version_line()}\n".encode())
        sys.exit()
    if completion.VARIABLE in os.environ:
        told = completion.answer(os.environ)
        if told is not None:
            with contextlib.suppress(OSError):
                os.write(sys.stdout.fileno(), f"{told}\n".encode())
            sys.exit()
    try:
        if sys.argv[1:] == [] or sys.argv[-1] == "--help":
            # What goes wrong there is told below.
            with contextlib.suppress(Exception):
                from dutperf.cli.help_pages import show_help  # noqa: PLC0415 - as below

                show_help(sys.argv[1:])
        # Loading takes long enough to be interrupted: keep it inside the try.
        from dutperf.cli.app import run  # noqa: PLC0415 - see above

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = INTERRUPTED
    # All is said: one more Ctrl-C must change neither the code nor the last line.
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    sys.exit(code)


def _interrupt(_signum: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
