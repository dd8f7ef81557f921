"""``dutperf calibrate``: what is asked for, and what is refused before any frame."""

from __future__ import annotations

from pathlib import Path

import pytest

from dutperf.cli.app import run


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
    assert run(["calibrate", *arguments]) == 2
    assert told in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
