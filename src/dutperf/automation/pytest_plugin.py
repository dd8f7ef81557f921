"""The fixture ``dutperf``: a tester for each test.

def test_it_forwards_enough(dutperf):
    measured = dutperf.measure("throughput", preset="quick", frame_size=[64])
    measured.assert_at_least("100000 fps")
"""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dutperf.errors import DutperfError

if TYPE_CHECKING:
    from dutperf.api.tester import Tester

_OPTIONS = (
    ("dutperf-testbed", "FILE", "measure at the testbed of this file"),
    ("dutperf-lab", "NAME", "measure at this lab, which is brought up (root)"),
    ("dutperf-results", "DIR", "keep results here, else with pytest's temporary files"),
    (
        "dutperf-simulated",
        "FPS",
        "send nothing: a simulated device forwards FPS frames/s",
    ),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where to measure: on the command line, else in pytest's configuration."""
    group = parser.getgroup("dutperf", "benchmarks of network devices")
    for name, metavar, told in _OPTIONS:
        group.addoption(f"--{name}", metavar=metavar, help=told)
        parser.addini(name.replace("-", "_"), f"as --{name}")


@pytest.fixture
def dutperf(request: pytest.FixtureRequest, tmp_path: Path) -> Tester:
    """A tester at the place that options or configuration name (docs/automation.md)."""
    # Who does not measure does not load what measures.
    from dutperf.api.tester import Tester  # noqa: PLC0415

    config = request.config
    testbed, lab, results, simulated = (_given(config, name) for name, *_ in _OPTIONS)
    own = re.sub(r"[^A-Za-z0-9._-]+", "-", request.node.nodeid).strip("-")
    return Tester(
        results=Path(results).absolute() / own if results else tmp_path,
        testbed=config.rootpath / testbed if testbed and not lab else None,
        lab=lab or None,
        simulated_fps=_rate(simulated) if simulated else None,
    )


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """What dutperf refuses or cannot do is told as it tells it on a terminal."""
    try:
        return (yield)
    except DutperfError as error:
        if "dutperf" not in pyfuncitem.fixturenames:
            raise
        hint = f"\nhint: {error.hint}" if error.hint else ""
        pytest.fail(f"{error.message}{hint}", pytrace=False)


def _given(config: pytest.Config, name: str) -> str:
    told = config.getoption(f"--{name}")
    return str(told or config.getini(name.replace("-", "_")) or "")


def _rate(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise pytest.UsageError(
            f"--dutperf-simulated {text}: give frames a second, such as 120000"
        ) from None
