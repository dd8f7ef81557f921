"""``dutperf selftest``: its table on a FakeEngine, and what it refuses."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dutperf.bench import benches
from dutperf.cli.app import run as run_program
from dutperf.cli.app import whole
from dutperf.config import Testbed
from dutperf.run.engine_session import EngineStarter, Notify
from dutperf.simulation.fake_engine import FakeEngine, perfect

LIMIT_FPS = 300_000
SHORT = ["--trial-duration", "0.05", "--repeats", "1", "--phase1-rate", "100000"]


def _open_fake(_testbed: Testbed, _notify: Notify) -> EngineStarter:
    engine = FakeEngine(perfect(), tester_limit_fps=LIMIT_FPS)
    return lambda _log: contextlib.nullcontext(engine)


@pytest.fixture(autouse=True)
def simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ports without a device, and a tester of a known limit."""
    monkeypatch.setattr(benches, "prepare_engine", _open_fake)


def run(tmp_path: Path, *options: str) -> tuple[int, str]:
    output = ["--output", str(tmp_path / "run")]
    result = CliRunner().invoke(
        whole(), ["selftest", *options, *output], env={"COLUMNS": "200"}
    )
    return result.exit_code, result.output


def test_each_way_of_sending_has_the_testers_limit(tmp_path: Path) -> None:
    numbers = ("--connections", "600", "--connections", "300")
    code, text = run(tmp_path, "--stateful", *SHORT, *numbers, "--json")
    assert code == 0, text
    data = json.loads(text[text.index("{\n") :])
    found = {
        (
            cell["procedure"],
            cell["parameters"]["direction"],
            cell["parameters"]["connections"],
        ): cell["median"]
        for cell in data["cells"]
    }
    rows = [("connection-rate", "forward")]
    rows += [("throughput", way) for way in ("both", "forward", "reverse")]
    assert set(found) == {(*row, n) for row in rows for n in (300, 600)}
    assert all(LIMIT_FPS * 0.97 <= fps <= LIMIT_FPS for fps in found.values())


def test_the_table_names_what_was_sent_and_learned(tmp_path: Path) -> None:
    code, text = run(tmp_path, "--stateful", *SHORT, "--connections", "300")
    assert code == 0, text
    for words in ("phase 1", "both directions", "to responder", "to initiator"):
        assert words in text
    assert "report.html" in text


def test_memory_is_told_by_ip_version(tmp_path: Path) -> None:
    numbers = ("--connections", "58255", "--ip", "6")
    code, text = run(tmp_path, "--stateful", *SHORT, *numbers)
    assert code == 0, text
    assert "2.0" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--lab", "linux-router", "--campaign", "x.yaml"), "give one of"),
        (("--stateful", "--lab", "linux-router"), "takes no testbed, lab"),
        (("--lab", "linux-ruter"), "did you mean 'linux-router'"),
        (("--campaign", "nowhere.yaml"), "nowhere.yaml"),
        ((), "no passport is kept"),
        (("--stateful", "--cpus", "one"), "no list of CPU numbers"),
        (("--stateful", "--ip", "5"), "no IP version"),
        (("--stateful", "--resolution", "much"), "resolution"),
        (("--stateful", "--connections", "99999999999"), "connections"),
    ],
)
def test_nonsense_is_refused_before_anything_is_sent(
    tmp_path: Path,
    options: tuple[str, ...],
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = run_program(["selftest", *options, "--output", str(tmp_path / "run")])
    assert code == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
