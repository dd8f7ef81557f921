"""Whether engine and package belong together."""

from __future__ import annotations

from collections.abc import Callable

from dutperf import __version__
from dutperf.doctor.check import Check
from dutperf.doctor.port_checks import Ask, ask
from dutperf.errors import DutperfError
from dutperf.programs import find_engine
from dutperf.versions import engine_versions


def version_check(answer: Ask = ask, find: Callable[[], object] = find_engine) -> Check:
    """The engine says its version without starting."""
    try:
        program = str(find())
    except DutperfError as error:
        return Check(
            "versions", "bad", error.message, "nothing can be sent", error.hint
        )
    engine, _ = engine_versions(answer([program, "--version"]) or "")
    if engine == __version__:
        return Check("versions", "good", f"engine and package {__version__}")
    return Check(
        "versions",
        "bad",
        f"engine {engine}, package {__version__}",
        "they may not understand each other",
        "run 'make setup' again",
    )
