"""Whether engine and package belong together."""

from __future__ import annotations

from collections.abc import Callable

from dutperf import __version__
from dutperf.doctor.check import Check
from dutperf.doctor.port_checks import Ask, ask
from dutperf.engine.process import find_engine
from dutperf.errors import DutperfError


def version_check(answer: Ask = ask, find: Callable[[], object] = find_engine) -> Check:
    """The engine says its version without starting."""
    try:
        program = str(find())
    except DutperfError as error:
        return Check(
            "versions", "bad", error.message, "nothing can be sent", error.hint
        )
    text = answer([program, "--version"])
    version = (text or "").split()[-1:] or ["unknown"]
    if version[0] == __version__:
        return Check("versions", "good", f"engine and package {__version__}")
    return Check(
        "versions",
        "bad",
        f"engine {version[0]}, package {__version__}",
        "they may not understand each other",
        "run 'make setup' again",
    )
