"""``tools calibrate``: what is asked for, and what is refused before any frame."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dutperf.cli.app import run
from tools.__main__ import PROGRAM


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--only", "delay,speed"], "--only: there is no 'speed'"),
        (["--path", "wire"], "--path: there is no 'wire'"),
        (["--markdown"], "--markdown: of which calibration?"),
        (["nowhere"], "cannot read nowhere"),
    ],
)
def test_what_is_not_there_is_refused_with_what_there_is(
    arguments: list[str],
    told: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["calibrate", *arguments], PROGRAM) == 2
    assert told in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.timeout(60)
def test_a_fifo_in_place_of_a_calibration_is_refused_and_not_waited_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert run(["calibrate", str(tmp_path / "fifo")], PROGRAM) == 2
    assert "error: " in capsys.readouterr().err
