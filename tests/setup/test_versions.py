"""Which dutperf this is, and where its programs are: told whatever is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from dutperf import __version__, programs
from dutperf.errors import SetupError


def engine(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_package_commit_engine_and_dpdk_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = engine(tmp_path / "e", "echo dutperf-engine 1.2.3, DPDK 22.11.11")
    monkeypatch.setenv(programs.ENGINE_VARIABLE, str(program))
    monkeypatch.setattr(programs, "_COMMIT", tmp_path / "commit")
    (tmp_path / "commit").write_text("0123456789ab\n")
    assert programs.version_line() == (
        f"dutperf {__version__} (commit 0123456789ab), engine 1.2.3, DPDK 22.11.11"
    )


def test_an_engine_of_before_says_nothing_of_dpdk() -> None:
    assert programs.engine_versions("dutperf-engine 0.1.0\n")[0] == "0.1.0"
    assert programs.engine_versions("")[0] == "unknown"


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo no librte_eal.so.23 >&2; exit 127", "does not start (no librte_eal"),
        ("exit 1", "does not start (/"),
    ],
)
def test_an_engine_that_does_not_start_is_told_with_its_complaint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, told: str
) -> None:
    program = engine(tmp_path / "e", script)
    monkeypatch.setenv(programs.ENGINE_VARIABLE, str(program))
    assert f", engine {told}" in programs.version_line()


def test_without_an_engine_the_version_is_told_with_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(programs.ENGINE_VARIABLE, raising=False)
    monkeypatch.setattr(programs, "_PROGRAM_FOLDERS", (tmp_path / "gone",))
    told = programs.version_line()
    assert told.startswith(f"dutperf {__version__} (commit ")
    assert "engine not found (build it: run 'make setup'" in told


def test_outside_of_package_and_source_tree_the_commit_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "_COMMIT", tmp_path / "commit")
    monkeypatch.setattr(programs, "SOURCE_TREE", tmp_path)
    assert programs.commit_of_package() == "unknown"


def test_an_engine_variable_that_names_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(programs.ENGINE_VARIABLE, str(tmp_path / "gone"))
    with pytest.raises(SetupError, match=r"\$DUTPERF_ENGINE names .*gone"):
        programs.find_engine()


def test_without_an_engine_the_hint_is_make_setup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(programs.ENGINE_VARIABLE, raising=False)
    monkeypatch.setattr(programs, "_PROGRAM_FOLDERS", (tmp_path / "gone",))
    with pytest.raises(SetupError) as caught:
        programs.find_engine()
    assert "make setup" in caught.value.hint
