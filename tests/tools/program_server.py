"""Runs the ``dutperf`` program again and again, its modules loaded once.

Loading them takes longer than most of what tests run. Each run is a process of its own,
as a user's is: a copy of this one, which has done nothing yet but load, and it begins
where the program's entry does; with the option ``--simulated`` it is that of
``simulated_program.py``. ``programs.ProgramServer`` asks, a line of JSON each; it gets
back a line with the run's process id, and one with its exit code.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn

from simulated_program import simulated

import dutperf.cli.app
import dutperf.report  # noqa: F401 - loaded for the runs
from dutperf.cli.main import main


def serve() -> None:
    surroundings = simulated if "--simulated" in sys.argv else nullcontext
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            run(json.loads(line), surroundings)
        tell(pid)
        tell(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def tell(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def run(
    asked: dict[str, Any], surroundings: Callable[[], AbstractContextManager[None]]
) -> NoReturn:
    """What ``python -m dutperf`` does after loading."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(asked["directory"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        for number, path in enumerate(("/dev/null", asked["stdout"], asked["stderr"])):
            opened = os.open(path, os.O_WRONLY if number else os.O_RDONLY)
            os.dup2(opened, number)
            os.close(opened)
        sys.argv = ["dutperf", *asked["arguments"]]
        with surroundings():
            main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
