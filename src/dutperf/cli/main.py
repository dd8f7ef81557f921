"""The entry of the ``dutperf`` program: from any end of a command to an exit code.

Which is which: ``EXIT_CODES``. No traceback is ever shown. Loading takes long enough to
be interrupted: what is loaded here is loaded where Ctrl-C is answered.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

from dutperf.cli import INTERRUPTED


def main() -> NoReturn:
    """Run the command that ``sys.argv`` holds."""
    end_with(lambda: _run(sys.argv[1:]))


def end_with(program: Callable[[], int]) -> NoReturn:
    """Run a program, which SIGTERM and SIGHUP interrupt as Ctrl-C; end by its code."""
    try:
        for signum in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(signum, _interrupt)
        code = program()
    except KeyboardInterrupt:
        code = INTERRUPTED
    # All is said: one more Ctrl-C must change neither the code nor the last line.
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    from dutperf.cli import quick_answers  # noqa: PLC0415 - see above

    if arguments == ["--version"]:  # the commands need not be loaded for that
        from dutperf.programs import version_line  # noqa: PLC0415 - only for that

        return _told(version_line())
    if arguments[:2] == ["lab", "list"] and arguments[2:] in ([], ["--json"]):
        with contextlib.suppress(Exception):  # what goes wrong there is told below
            if os.geteuid() == 0:  # others see none, and are told so
                return _told(quick_answers.listing(as_json="--json" in arguments))
    if quick_answers.VARIABLE in os.environ:
        told = quick_answers.answer(os.environ)
        if told is not None:
            return _told(told)
    if arguments == [] or arguments[-1] == "--help":
        with contextlib.suppress(Exception):  # what goes wrong there is told below
            from dutperf.cli.command_help import show_help  # noqa: PLC0415 - as above

            show_help(arguments)
    from dutperf.cli.app import run  # noqa: PLC0415 - see above

    return run(arguments)


def _told(text: str) -> int:
    with contextlib.suppress(OSError):
        os.write(sys.stdout.fileno(), f"{text}\n".encode())
    return 0


def _interrupt(_signum: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
