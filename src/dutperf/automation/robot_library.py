"""Keywords for Robot Framework.

*** Settings ***
Library    dutperf.automation.robot_library.Dutperf    lab=linux-router
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from dutperf.api.tester import Measured, Tester
from dutperf.errors import DutperfError, InputError


class Dutperf:
    """Measures network devices by RFC 2544, 5180, 8219 and 9693.

    ``testbed``: the file of one, or ``lab``: a lab's name. ``results``: a new or empty
    directory. ``simulated_fps``: nothing is sent; a simulated device forwards so many
    frames a second.
    """

    ROBOT_LIBRARY_SCOPE = "SUITE"

    def __init__(
        self,
        testbed: str = "",
        lab: str = "",
        results: str = "results",
        simulated_fps: str = "",
    ) -> None:
        self._tester = Tester(
            results=Path(results),
            testbed=Path(testbed) if testbed else None,
            lab=lab or None,
            simulated_fps=float(simulated_fps) if simulated_fps else None,
        )
        self._last: Measured | None = None

    def measure(self, procedure: str, preset: str = "", **keys: str) -> float | None:
        """Measures by one procedure, and returns the figure if there is one only.

        Keys are those of a campaign file, values as JSON: ``frame_size=[64, 1518]``.
        """
        told = {key: _value(text) for key, text in keys.items()}
        with _in_robots_words():
            self._last = self._tester.measure(procedure, preset=preset or None, **told)
            found = self._last.figures()
        return found[0].value if len(found) == 1 else None

    def figure_should_be_at_least(self, bound: str, figure: str = "") -> None:
        """Fails if a figure of the last measurement is, or may be, less."""
        with _in_robots_words():
            self._measured().assert_at_least(bound, figure)

    def figure_should_be_at_most(self, bound: str, figure: str = "") -> None:
        """Fails if a figure of the last measurement is, or may be, more."""
        with _in_robots_words():
            self._measured().assert_at_most(bound, figure)

    def report_of_last_measurement(self) -> str:
        """The path of its report."""
        with _in_robots_words():
            return str(self._measured().report)

    def _measured(self) -> Measured:
        if self._last is None:
            raise InputError("nothing was measured yet", "begin with Measure")
        return self._last


def _value(text: str) -> object:
    """JSON, or a text as it stands: ``5000``, ``[64, 1518]``, ``5%``."""
    try:
        return json.loads(text)
    except ValueError:
        return text


@contextlib.contextmanager
def _in_robots_words() -> Iterator[None]:
    """Robot shows the message of a RuntimeError alone, without its kind."""
    try:
        yield
    except DutperfError as error:
        hint = f"\nhint: {error.hint}" if error.hint else ""
        raise RuntimeError(f"{error.message}{hint}") from error
